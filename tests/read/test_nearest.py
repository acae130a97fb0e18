"""The rows whose vectors lie nearest, against all distances computed one by one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import ConfigError

KINDS = {"FLOAT": pa.float32(), "DOUBLE": pa.float64(), "INT8": pa.int8()}
EMPTY, ZERO = 3, 7
"""Rows without a vector, and with one of zeros."""


def rows(ids: Sequence[int], vectors: Sequence[Any], element: str = "FLOAT", dimension: int = 4) -> pa.Table:
    kind = f"VECTOR({dimension}, {element})"
    emb = pa.field("emb", pa.list_(KINDS[element]), metadata={"hudi_type": kind})
    schema = pa.schema([("id", pa.int64()), ("lang", pa.string()), emb])
    langs = ["en" if i % 2 else "de" for i in ids]
    return pa.table({"id": list(ids), "lang": langs, "emb": pa.array(vectors, emb.type)}, schema)


def vectors_of(element: str, count: int = 50) -> list[list[float] | None]:
    random = np.random.default_rng(11)
    found: list[Any] = [random.integers(-9, 10, 4).tolist() for _ in range(count)]
    if element != "INT8":
        found = [[x / 4 for x in one] for one in found]
    found[EMPTY], found[ZERO] = None, [0, 0, 0, 0]
    return found


def table_of(path: Path, element: str = "FLOAT", kind: str = "COPY_ON_WRITE") -> hudimeta.Table:
    """Fifty rows in two partitions; of merge-on-read tables ten of them changed in log files."""
    given = vectors_of(element)
    options = {"hoodie.parquet.max.file.size": "20000"}
    table = hudimeta.Table.create(
        path / "t", rows([], [], element).schema, key="id", partition_by="lang", type=kind, options=options
    )
    table.upsert(rows(range(50), given[::-1], element))
    table.upsert(rows(range(25), given[:25], element))
    table.upsert(rows(range(25, 50), given[25:], element))
    return table


def distance(metric: str, a: Sequence[float], b: Sequence[float]) -> float:
    products = sum(x * y for x, y in zip(a, b, strict=True))
    if metric == "dot_product":
        return -products
    if metric == "l2":
        return math.dist(a, b)
    lengths = math.hypot(*a) * math.hypot(*b)
    return 1 - products / lengths if lengths else 1.0


def expected(metric: str, given: Sequence[Any], query: Sequence[float], k: int) -> list[float]:
    """The k least distances; which rows have equal ones does not count."""
    return sorted(distance(metric, one, query) for one in given if one is not None)[:k]


@pytest.mark.parametrize("metric", ["cosine", "l2", "dot_product"])
@pytest.mark.parametrize(
    ("element", "kind"), [("FLOAT", "COPY_ON_WRITE"), ("DOUBLE", "MERGE_ON_READ"), ("INT8", "COPY_ON_WRITE")]
)
def test_the_nearest_come_first(tmp_path: Path, metric: str, element: str, kind: str) -> None:
    table, given, query = table_of(tmp_path, element, kind), vectors_of(element), [1, -2, 3, 4]
    for k in (1, 6, 49, 500):
        found = table.scan().nearest("emb", query, k, metric)
        assert found["_hudi_distance"].to_pylist() == pytest.approx(expected(metric, given, query, k))
        told = [distance(metric, given[i] or (), query) for i in found["id"].to_pylist()]
        assert found["_hudi_distance"].to_pylist() == pytest.approx(told)
        assert len(set(found["id"].to_pylist())) == min(k, 49)
    assert found.column_names == [n for n in table.scan().schema.names if n != "emb"] + ["_hudi_distance"]


def test_several_are_looked_for_at_once(tmp_path: Path) -> None:
    table, queries = table_of(tmp_path), np.array([[1, 0, 0, 0], [0, 0, 0, 0], [-1, 2, 0.5, 9]], np.float32)
    found = table.scan(columns=["id"]).nearest("EMB", queries, k=4)
    assert found.column_names == ["id", "_hudi_query_index", "_hudi_distance"]
    assert found["_hudi_query_index"].to_pylist() == [0] * 4 + [1] * 4 + [2] * 4
    one_by_one = [table.scan(columns=["id"]).nearest("emb", query, k=4)["_hudi_distance"].to_pylist() for query in queries]
    assert found["_hudi_distance"].to_pylist() == [x for distances in one_by_one for x in distances]
    assert one_by_one[1] == [1.0] * 4, "the cosine of zeros"


def test_rows_and_columns_are_those_of_the_scan(tmp_path: Path) -> None:
    table, given, query = table_of(tmp_path), vectors_of("FLOAT"), [1, 1, 1, 1]
    scan = table.scan("lang = 'en' AND id > 9", ["emb", "lang"])
    found = scan.nearest("emb", query, k=3, metric="euclidean")
    assert found["lang"].to_pylist() == ["en"] * 3
    assert found["_hudi_distance"].to_pylist() == pytest.approx(expected("l2", given[11::2], query, 3))
    assert scan.report.partitions_kept < scan.report.partitions
    assert table.scan("id = 3").nearest("emb", query).num_rows == 0, "its vector is null"
    assert table.scan(limit=0).nearest("emb", [query, query]).column_names[-2:] == ["_hudi_query_index", "_hudi_distance"]


def test_vectors_beside_the_columns_of_the_scan_are_read_by_it(tmp_path: Path) -> None:
    table, query = table_of(tmp_path), [1, 1, 1, 1]
    scan, whole = table.scan("id < 30", ["lang", "id"]), table.scan("id < 30", ["lang", "id", "emb"])
    found, report = scan.nearest("EMB", query, k=3), scan.report
    assert found.equals(whole.nearest("emb", query, k=3))
    assert found.column_names == ["lang", "id", "_hudi_distance"]
    assert (report.columns, report.rows, report.rows_read) == (("lang", "id"), 30, whole.report.rows_read)
    assert report.requests["GET", "data"] == report.files_kept, "each file once"
    assert report.seconds["read"] > 0
    assert scan.to_table().column_names == ["lang", "id"], "as before"
    with pytest.raises(ConfigError, match=r"a column of vectors among .*emb.*Did you mean emb"):
        scan.nearest("embs", query)


def test_lists_without_a_length_are_searched_too(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("emb", pa.list_(pa.float64()))])
    table = hudimeta.Table.create(tmp_path / "t", schema, key="id")
    table.insert([{"id": 1, "emb": [1.0, float("nan")]}, {"id": 2, "emb": [3.0, 4.0]}, {"id": 3, "emb": [2.0, 0.0]}])
    assert table.scan().nearest("emb", [0.0, 0.0], 2, "l2")["id"].to_pylist() == [3, 2], "what is no number comes last"
    assert table.scan().nearest("emb", [0.0, 0.0], 5, "l2")["id"].to_pylist() == [3, 2, 1]
    with pytest.raises(ConfigError, match=r"vectors.*3 numbers.*emb, of which one has 2"):
        table.scan().nearest("emb", [0.0, 0.0, 0.0])
    table.insert([{"id": 4, "emb": [1.0, None]}])
    with pytest.raises(ConfigError, match=r"without nulls in them.*Leave out rows"):
        table.scan().nearest("emb", [0.0, 0.0])
    assert table.scan("id <> 4").nearest("emb", [0.0, 0.0], 1, "l2")["id"].to_pylist() == [3]


def test_a_column_of_the_name_of_a_distance_is_left_out_by_the_scan(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("_hudi_distance", pa.float64()), ("emb", pa.list_(pa.float64()))])
    table = hudimeta.Table.create(tmp_path / "t", schema, key="id")
    table.insert([{"id": 1, "_hudi_distance": 5.0, "emb": [3.0]}])
    with pytest.raises(ConfigError, match=r"_hudi_distance.*Leave it out"):
        table.scan().nearest("emb", [1.0])
    assert table.scan(columns=["id"]).nearest("emb", [1.0], metric="l2").to_pylist() == [{"id": 1, "_hudi_distance": 2.0}]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("ids", [1.0]), "a column of vectors among .*Did you mean id"),
        (("id", [1.0]), r"id \(int64\).*lists of float, double or int8"),
        (("emb", [1, 2, 3]), "a list of 4 numbers, or a list of such lists"),
        (("emb", [[1, 2, 3, 4], [1, 2, 3]]), "a list of 4 numbers"),
        (("emb", []), "a list of 4 numbers"),
        (("emb", "near"), "a list of 4 numbers"),
        (("emb", [1, 2, 3, 400]), "whole numbers from -128 to 127"),
        (("emb", [1, 2, 3, 0.5]), "whole numbers from -128 to 127"),
        (("emb", [1, 2, 3, 4], 0), "k.*1 or more"),
        (("emb", [1, 2, 3, 4], 5, "manhattan"), "metric.*cosine, l2 .* or dot_product"),
    ],
)
def test_what_cannot_be_looked_for_is_refused(tmp_path: Path, arguments: tuple[Any, ...], says: str) -> None:
    table = hudimeta.Table.create(tmp_path / "t", rows([], [], "INT8").schema, key="id")
    with pytest.raises(ConfigError, match=says):
        table.scan().nearest(*arguments)
