"""Every function that a predicate may call, with odd constants and columns of every type as its arguments, judged by Spark.

`HUDIMETA_CALLS=40` asks for so many calls of each function that have types which it takes.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hudimeta.errors import ConfigError
from hudimeta.predicate import bind_value, parse
from hudimeta.predicate.functions import FUNCTIONS
from tests.predicate.all_types import rows
from tests.predicate.judging import Verdicts
from tests.predicate.spark_answers import SparkRows
from tests.rotation import in_turn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EACH = int(os.environ.get("HUDIMETA_CALLS", "3"))
SEED = int(os.environ.get("HUDIMETA_CALLS_SEED", "1"))
TRIES = 30
"""For each call that is wanted: most arguments have types that do not fit."""
ROWS, TEXTS = 80, [b"", b"abc", "é".encode(), b"5", None]
MOST_ARGUMENTS = 4
OWN = frozenset(["&", "|", "^", "~", ".", "[]", "identity", "week", "day_of_week"])
"""Names by which Spark calls no function: operators, fields that EXTRACT names, and a transform."""
LENGTHENING, MOST_DIGITS = frozenset({"repeat", "lpad", "rpad"}), 4
"""Functions whose results would fill the memory of Spark."""
CONSTANTS = (
    "NULL",
    *("''", "' '", "'a'", "'b'", "'abc'", "'é😀'", "'%'", "','", "'-7'", "'[a-c]+'", "'(a)|(b)'", "'$1'", "'\\\\\\\\'"),
    *(
        "'UTC'",
        "'Europe/Berlin'",
        "'+02:00'",
        "'yyyy-MM-dd'",
        "'HH:mm:ss.SSS'",
        "'MONTH'",
        "'WEEK'",
        "'DAY'",
        "'MO'",
        "'friday'",
    ),
    *("0", "1", "-1", "2", "3", "-2", "5", "13", "31", "32", "63", "64", "100", "256", "384", "2024"),
    *("2147483647", "9223372036854775807", "-9223372036854775807", "3000000000", "100Y", "7S", "-3L"),
    *("1.5", "-2.5", "0.5", "99.995", "1e10D", "-0.0D", "2.5F", "double('NaN')", "double('Infinity')"),
    *("true", "false", "DATE'2024-02-29'", "DATE'0001-01-01'", "DATE'9999-12-31'", "X'00ff'", "X''"),
    *("TIMESTAMP'2024-03-31 01:30:00'", "TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'"),
)


def calls(name: str, table: pa.Table, zone: str) -> list[str]:
    """Calls of a function that we evaluate."""
    dice, (fewest, most) = random.Random(f"{SEED} {name}"), FUNCTIONS[name].arity
    found: dict[str, None] = {}
    for _ in range(EACH * TRIES):
        many = range(dice.randint(fewest, min(most, MOST_ARGUMENTS)))
        given = [dice.choice(CONSTANTS if dice.random() < 0.5 else table.column_names) for _ in many]
        if name in LENGTHENING and any(len(one) > MOST_DIGITS and one.isdigit() for one in given):
            continue
        text = f"{name}({', '.join(given)})"
        try:
            bind_value(parse(text), table.schema, timezone=zone)
        except ConfigError:
            continue
        found[text] = None
        if len(found) == EACH:
            break
    return list(found)


def test_what_is_bound_may_be_bound_again() -> None:
    """Spark's plain door does that in its tasks."""
    table = rows(random.Random(SEED), ROWS)
    for text in (text for name in sorted(FUNCTIONS.keys() - OWN) for text in calls(name, table, "UTC")):
        bound = bind_value(parse(text), table.schema).expr
        assert bound.type == bind_value(bound, table.schema).expr.type, text


@pytest.mark.parametrize("zone", in_turn(["UTC", "Europe/Berlin"], 2))
def test_calls(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    table = rows(random.Random(SEED), ROWS)
    of_texts = pa.array([TEXTS[row % len(TEXTS)] for row in range(ROWS)], pa.binary())  # Spark's texts need not be UTF-8
    table = table.set_column(table.column_names.index("bi"), "bi", of_texts)
    texts = [text for name in sorted(FUNCTIONS.keys() - OWN) for text in calls(name, table, zone)]
    verdicts = Verdicts()
    for text, theirs in zip(texts, SparkRows(spark, table, tmp_path / "rows.parquet").answers(texts, zone), strict=True):
        verdicts.judge(text, table, zone, theirs)
    print(dict(verdicts.counts))
    assert not verdicts.different, "\n".join(verdicts.different[:200])
    assert not verdicts.accepted, "\n".join(verdicts.accepted[:200])
