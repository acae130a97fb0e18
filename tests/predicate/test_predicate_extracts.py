"""What planners take out of a predicate: partition parts, key sets, columns, a filter for row groups."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from hudimeta.predicate import (
    bind,
    bind_value,
    columns,
    equalities,
    evaluate,
    keys_of,
    parse,
    split_by_columns,
    split_conjuncts,
    to_parquet_filter,
    to_sql,
)

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("region", pa.string()),
        ("day", pa.date32()),
        ("v", pa.float64()),
        ("st", pa.struct([("a", pa.int32())])),
    ]
)


def sets(where: str) -> dict[str, list[Any]]:
    return {name: values.to_pylist() for name, values in equalities(bind(parse(where), SCHEMA)).items()}


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("id = 5", {"id": [5]}),
        ("5 = id AND region = 'eu'", {"id": [5], "region": ["eu"]}),
        ("id IN (1, 2, NULL)", {"id": [1, 2]}),
        ("id IN (1, 2) AND id IN (2, 3)", {"id": [2]}),
        ("id = 1 AND id = 2", {"id": []}),
        ("id = 1 OR id = 2 OR id IN (3)", {"id": [1, 2, 3]}),
        ("(id = 1 AND v > 0) OR id = 2", {"id": [1, 2]}),
        ("id = 1 OR region = 'eu'", {}),
        ("id = '7'", {"id": [7]}),
        ("region = 7", {}),  # compared as numbers, so that '07' is equal as well
        ("NOT id <> 4", {"id": [4]}),
        ("id NOT IN (1)", {}),
        ("id > 1", {}),
        ("v = 1.5", {}),
        ("id <=> 3", {"id": [3]}),
        ("id <=> NULL", {}),
        ("id = NULL", {"id": []}),
        ("st.a = 2", {"st.a": [2]}),
        ("id = 2.0", {"id": [2]}),
        ("id = 2.5", {}),
    ],
)
def test_finite_sets_of_values(where: str, found: dict[str, list[Any]]) -> None:
    assert sets(where) == found


def test_keys_are_the_combinations_of_their_fields() -> None:
    bound = bind(parse("id IN (1, 2) AND region IN ('eu', 'us') AND v > 0"), SCHEMA)
    both = keys_of(bound, ["region", "id"])
    assert both is not None
    assert both.to_pylist() == [{"region": r, "id": i} for r in ("eu", "us") for i in (1, 2)]
    single = keys_of(bound, ["id"])
    assert single is not None
    assert single["id"].to_pylist() == [1, 2]
    assert keys_of(bound, ["id", "day"]) is None
    assert keys_of(bound, []) is None
    many = bind(parse([("id", "in", list(range(1000))), ("region", "in", [str(n) for n in range(1000)])]), SCHEMA)
    assert keys_of(many, ["id", "region"]) is None


def test_partition_parts_are_judged_over_one_row_per_partition() -> None:
    parts = ["region IN ('eu', 'us')", "(day > '2024-01-01' OR region = 'us')", "v > 1", "(v < 9 OR id = 1)"]
    bound = bind(parse(" AND ".join(parts)), SCHEMA)
    inside, outside = split_by_columns(bound, ["region", "day"])
    assert inside is not None
    assert outside is not None
    assert str(inside) == "region IN ('eu', 'us') AND (day > DATE '2024-01-01' OR region = 'us')"
    assert str(outside) == "v > 1.0 AND (v < 9.0 OR id = 1)"
    partitions = pa.table({"region": ["eu", "us", "ap", None], "day": pa.array([19000, 19000, 30000, None], pa.date32())})
    assert evaluate(inside, partitions).to_pylist() == [False, True, False, None]
    assert split_by_columns(bind(parse("v > 1"), SCHEMA), ["region"])[0] is None
    assert split_by_columns(bind(parse("region = 'eu'"), SCHEMA), ["region"])[1] is None


def test_parts_and_columns() -> None:
    bound = bind(parse("v > 1 AND st.a = 2 AND (id = 1 OR V < 0)"), SCHEMA)
    assert [to_sql(part) for part in split_conjuncts(bound)] == ["v > 1.0", "st.a = 2", "id = 1 OR v < 0.0"]
    assert columns(bound) == ("v", "st.a", "id")


def test_row_groups_are_skipped_and_no_row_is_lost(tmp_path: Path) -> None:
    table = pa.table({"id": list(range(100)), "v": [float(n) if n % 10 else math.nan for n in range(100)]})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=10)
    fragment = next(iter(ds.dataset(tmp_path / "t.parquet").get_fragments()))
    expected = {"id = 55": 1, "id BETWEEN 55 AND 64 AND id % 2 = 0": 2, "id IN (1, 99)": 2, "v < 20": 2}
    for where, groups in expected.items():
        bound = bind(parse(where), table.schema)
        weaker = to_parquet_filter(bound)
        assert len(fragment.split_by_row_group(weaker)) == groups, where
    nan = bind(parse("v > 98"), table.schema)
    read = ds.dataset(tmp_path / "t.parquet").to_table(filter=to_parquet_filter(nan))
    assert read.filter(evaluate(nan, read))["id"].to_pylist() == [*range(0, 100, 10), 99]
    assert to_parquet_filter(bind(parse("id % 2 = 0"), table.schema)) is None


def test_years_of_more_than_sixteen_bits() -> None:
    """As Spark writes them; Arrow's own years wrap around."""
    table = pa.table(
        {
            "l": [1_591_910_344_523, -33_810_856_974, 268_017_837_169, None],
            "n": pa.array([10**8, -(10**8), 0, None], pa.int32()),
        }
    )
    wanted = {
        "from_unixtime(l)": ["+52415-08-19 05:55:23", "0898-07-29 15:17:06", "+10463-02-23 07:12:49", None],
        "from_unixtime(l, 'yy y')": ["15 52415", "98 898", "63 10463", None],
        "year(CAST(l AS TIMESTAMP))": [52415, 898, 10463, None],
        "year(date_from_unix_date(n))": [275760, -271821, 1970, None],
        "CAST(date_from_unix_date(n) AS STRING)": ["+275760-09-13", "-271821-04-20", "1970-01-01", None],
    }
    for text, values in wanted.items():
        assert evaluate(bind_value(parse(text), table.schema), table).to_pylist() == values, text
