"""Every filter that was asked of Apache Hudi over the recorded tables, run over the recorded snapshot rows."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudimeta.predicate import bind, columns, evaluate, parse, to_sql
from tests.recorded_tables import CONFORMANCE, RICH, checker

SIMPLE = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "bool": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "int32": pa.int32(),
    "long": pa.int64(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "date32[day]": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp[us, tz=UTC]": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def arrow_type(recorded: Any) -> pa.DataType:
    """The type of a recorded column; nested ones, which no filter names, as null."""
    if not isinstance(recorded, str):
        return pa.null()
    sizes = re.match(r"decimal(?:128)?\((\d+), ?(\d+)\)", recorded)
    return pa.decimal128(int(sizes[1]), int(sizes[2])) if sizes else SIMPLE.get(recorded, pa.null())


def value(recorded: Any, t: pa.DataType) -> Any:
    if recorded is None or pa.types.is_null(t):
        return None
    if pa.types.is_decimal(t):
        return decimal.Decimal(recorded)
    if pa.types.is_floating(t):
        return float(recorded)
    if pa.types.is_date(t):
        return dt.date.fromisoformat(recorded)
    if pa.types.is_timestamp(t):
        return dt.datetime.fromisoformat(recorded.replace("Z", "+00:00"))
    return bytes.fromhex(recorded) if pa.types.is_binary(t) else recorded


def snapshot(answer: dict[str, Any]) -> pa.Table:
    types = {column["name"]: arrow_type(column["type"]) for column in answer["schema"]}
    recorded = answer["snapshot"]
    cells = {name: [row[i] for row in recorded["rows"]] for i, name in enumerate(recorded["columns"])}
    arrays = {name: pa.array([value(cell, types[name]) for cell in cells[name]], types[name]) for name in cells}
    return pa.table(arrays)


def questions() -> Iterator[Any]:
    for table_set in (CONFORMANCE, RICH):
        for name in table_set.names():
            for number, question in enumerate(table_set.answer(name).get("filters") or []):
                yield pytest.param(table_set.answer(name), question, id=f"{name}-{number}")


def notations(answer: dict[str, Any], question: dict[str, Any]) -> tuple[str, Any]:
    if "filters" in question:
        types = {column["name"]: column["type"] for column in answer["schema"]}
        sql, tree = checker().predicate(question["filters"], types)
        return sql, tree
    return question["where"], question["expr"]


@pytest.mark.parametrize(("answer", "question"), list(questions()))
def test_a_filter_keeps_the_rows_that_hudi_kept(shared: Path, answer: dict[str, Any], question: dict[str, Any]) -> None:
    sql, tree = notations(answer, question)
    schema = pa.schema([(column["name"], arrow_type(column["type"])) for column in answer["schema"]])
    bound = bind(parse(sql), schema)
    from_tree = bind(parse(json.loads(json.dumps(tree))), schema)
    assert bind(parse(to_sql(bound.expr, exact=True)), schema).expr == bound.expr
    if "rows" not in answer["snapshot"] or "keys" not in question:
        return
    rows = snapshot(answer)
    kept = rows.filter(evaluate(bound, rows))
    assert evaluate(bound, rows).equals(evaluate(from_tree, rows))
    right = [question["keys"]] if question.get("judge") != "model" else []
    right += [question["model"]["keys"]] if "model" in question else []
    names = ("_hoodie_record_key", "_hoodie_partition_path")
    if not all(name in kept.column_names for name in names) or any(kept[name].null_count for name in names):
        assert kept.num_rows in [len(keys) for keys in right]
        return
    found = sorted([list(key) for key in zip(*[kept[name].to_pylist() for name in names], strict=True)])
    assert found in [sorted(keys) for keys in right], columns(bound)
