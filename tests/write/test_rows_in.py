"""What users hand over as rows."""

from __future__ import annotations

import dataclasses
import datetime
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pytest

from hudimeta.api.table import Table
from hudimeta.errors import SchemaMismatch
from hudimeta.write.rows_in import as_table


def test_dicts_have_the_columns_of_all_of_them() -> None:
    rows: list[dict[str, Any]] = [{"id": 1}, {"id": 2, "fare": 5.0}, {"note": "x", "id": 3}]
    assert as_table(rows).to_pydict() == {"id": [1, 2, 3], "fare": [None, 5.0, None], "note": [None, None, "x"]}


def test_what_makes_no_columns_is_refused_with_advice() -> None:
    import pandas

    mixed: tuple[Any, ...] = (
        {"id": [1, 2], "fare": [1.0]},
        pandas.DataFrame({"id": [1, "x"]}),
        pandas.DataFrame({"id": [2**70]}),
        7,
        [1, 2],
    )
    for data in mixed:
        with pytest.raises(SchemaMismatch, match="HUDIMETA_SCHEMA_MISMATCH: what was given is"):
            as_table(data)


@pytest.mark.parametrize("ids", ["ab", b"ab", {"a", "b"}, {"a": 1}], ids=["text", "bytes", "set", "dict"])
def test_what_arrow_would_take_apart_is_no_column_of_a_dict(ids: Any, tmp_path: Path) -> None:
    """`{"id": "ab"}` was two rows, a and b; of two sets each had an order of its own."""
    table = Table.create(tmp_path / "t", pa.schema({"id": pa.string(), "n": pa.int64()}), key="id")
    table.insert({"id": ["a", "b", "ab"], "n": [1, 2, 3]})
    for call in (lambda: table.upsert({"id": ids, "n": [5, 6]}), lambda: table.delete(keys={"id": ids})):
        with pytest.raises(SchemaMismatch, match=r"column 'id' is a \w+, which is no column, .* of one row, give \[row\]"):
            call()
    assert table.scan().count() == 3


def test_a_number_that_no_column_holds_is_refused() -> None:
    with pytest.raises(SchemaMismatch, match="column 'id' is of no one type"):
        as_table([{"id": 2**70}, {"id": 10**60}])


def test_a_column_of_no_one_type_is_named_and_a_schema_is_the_way_out(tmp_path: Path) -> None:
    rows = [{"id": 1, "tags": [("a", 1)]}, {"id": 2, "tags": None}]
    table = Table.create(tmp_path / "t", pa.schema({"id": pa.int64(), "tags": pa.map_(pa.string(), pa.int32())}), key="id")
    for data in (rows, {"id": [1, 2], "tags": [row["tags"] for row in rows]}):
        with pytest.raises(SchemaMismatch, match=r"column 'tags' is of no one type .* pyarrow\.Table\.from_pylist"):
            table.upsert(data)
    table.upsert(pa.Table.from_pylist(rows, table.schema))
    assert table.scan(columns=["id", "tags"]).to_table().to_pylist() == rows


@pytest.mark.parametrize("portion", [1, 1 << 20])
def test_categories_of_polars_are_texts(portion: int, tmp_path: Path) -> None:
    import polars as pl

    text = ["b", None, "a", "b"]
    frame = pl.DataFrame({"id": ["k1", "k2", "k3", "k4"], "many": text, "few": text, "nested": [[one] for one in text]})
    frame = frame.with_columns(
        pl.col("id").cast(pl.Categorical),
        pl.col("many").cast(pl.Categorical),
        pl.col("few").cast(pl.Enum(["a", "b"])),
        pl.col("nested").cast(pl.List(pl.Categorical)),
    )
    options = {"hudimeta.write.portion.bytes": portion}
    table = Table.create(tmp_path / "t", frame.to_arrow().schema, key="id", options=options)
    table.upsert(frame.slice(1))
    table.upsert(pa.RecordBatchReader.from_batches(frame.to_arrow().schema, frame.to_arrow().to_batches(max_chunksize=1)))
    rows = table.scan(columns=["id", "many", "few", "nested"]).to_table().sort_by("id").to_pylist()
    assert rows == frame.to_dicts()
    table.delete(keys=frame.slice(0, 3))
    assert table.scan(columns=["id"]).to_table().to_pylist() == [{"id": "k4"}]


def test_objects_and_columns_alone_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    import pandas
    import polars as pl

    table = Table.create(tmp_path / "t", pa.schema({"id": pa.string()}), key="id")
    given: tuple[Any, ...] = (
        pl.DataFrame({"id": ["a"], "x": pl.Series([object()], dtype=pl.Object)}),
        pl.DataFrame({"id": ["a"], "x": pl.Series([1], dtype=pl.Int128)}),
        pl.Series(["a"]),
        pandas.Series(["a"]),
        pa.chunked_array([["a"]]),
    )
    for data in given:
        with pytest.raises(SchemaMismatch, match="HUDIMETA_SCHEMA_MISMATCH"):
            table.insert(data)
        with pytest.raises(SchemaMismatch, match="HUDIMETA_SCHEMA_MISMATCH"):
            table.merge(data, "id")
    assert table.history().num_rows == 0


@pytest.mark.parametrize("kind", ["polars", "categories", "views", "runs"])
def test_merges_take_texts_in_every_layout(kind: str, tmp_path: Path) -> None:
    import polars as pl

    given = pl.DataFrame({"id": ["a", "c"], "note": ["new", None], "tags": [["x"], None], "n": [5, 6]})
    plain = given.to_arrow()
    runs = pa.RunEndEncodedArray.from_arrays([1, 2], plain["note"].combine_chunks())
    coded = (pl.col("id", "note").cast(pl.Categorical), pl.col("tags").cast(pl.List(pl.Categorical)))
    sources = {
        "polars": given,
        "categories": given.with_columns(*coded),
        "views": pa.table(given),
        "runs": plain.set_column(1, "note", runs),
    }
    schema = pa.schema({"id": pa.string(), "note": pa.string(), "tags": pa.list_(pa.string()), "n": pa.int64()})
    table = Table.create(tmp_path / "t", schema, key="id")
    table.insert([{"id": "a", "note": "old", "tags": ["w"], "n": 1}, {"id": "b", "note": "stays", "tags": [], "n": 2}])
    merge = table.merge(sources[kind], "target.id = source.id and source.n > target.n")
    report = merge.when_matched_update().when_not_matched_insert(condition="source.note is null").execute()
    assert (report.updated, report.inserted) == (1, 1)
    rows = table.scan("id <> 'b'", list(schema.names)).to_table().sort_by("id").to_pylist()
    assert rows == given.to_dicts()


def test_numbers_of_python_take_the_types_of_the_table(tmp_path: Path) -> None:
    kinds = {"id": pa.int32(), "ratio": pa.float32(), "many": pa.list_(pa.int32()), "place": pa.struct({"x": pa.float32()})}
    schema = pa.schema(kinds)
    table = Table.create(tmp_path / "t", schema, key="id")
    row = {"id": 1, "ratio": 0.1, "many": [7, None], "place": {"x": float("inf")}}
    table.insert([row, {"id": 2, "ratio": float("nan"), "many": [], "place": None}, {"id": 3}])
    table.upsert({"id": [3, 4], "ratio": (0.5, None), "place": [{"x": 0.25}, None]})
    assert table.schema.types[5:] == schema.types
    found = table.scan("ratio = 0.1F AND many[0] = 7", list(kinds)).to_table().to_pylist()
    assert found == [{**row, "ratio": pytest.approx(0.1)}]
    assert table.delete(keys=[1, 99]).deleted == 1
    assert table.delete(keys=[{"id": 2}]).deleted == 1
    assert sorted(table.scan(columns="id").to_table()["id"].to_pylist()) == [3, 4]


def test_numbers_that_a_column_does_not_hold_make_it_wider(tmp_path: Path) -> None:
    given = {"id": pa.int64(), "n": pa.int32(), "ratio": pa.float32(), "typed": pa.int32()}
    table = Table.create(tmp_path / "t", pa.schema(given), key="id")
    table.insert({"id": [1], "n": [2**40], "ratio": [1e300], "typed": pa.array([1], pa.int64())})
    assert table.schema.types[5:] == [pa.int64(), pa.int64(), pa.float64(), pa.int64()]
    assert table.scan(columns=list(given)).to_table().to_pylist() == [{"id": 1, "n": 2**40, "ratio": 1e300, "typed": 1}]


LATIN = pa.array([b"M\xfcller", b"Meier", None]).view(pa.string())
"""Bytes of another encoding, as Parquet files of others have them: Arrow does not look at them."""


@pytest.mark.parametrize(
    "odd",
    [
        LATIN,
        pa.DictionaryArray.from_arrays([0, 1, 2], LATIN),
        pa.ListArray.from_arrays([0, 1, 2, 3], LATIN),
        pa.StructArray.from_arrays([LATIN], ["a"]),
        pa.DictionaryArray.from_arrays([0, 7, 1], ["a", "b"], safe=False),
    ],
    ids=["text", "coded", "list", "struct", "codes of nothing"],
)
def test_texts_of_another_encoding_are_refused(tmp_path: Path, odd: pa.Array) -> None:
    """They were stored where no bound met them, and nobody could read them; else the write ended in Arrow's own error."""
    rows = pa.table({"id": ["a", "b", "c"], "odd": odd})
    table = Table.create(tmp_path / "t", rows.schema, key="id")
    acts: tuple[Callable[[], object], ...] = (
        lambda: table.upsert(rows),
        lambda: table.bulk_insert(rows.to_reader()),
        lambda: table.merge(rows, "id").when_not_matched_insert().execute(),
    )
    for act in acts:
        with pytest.raises(SchemaMismatch, match=r"column 'odd' is no sound .* Texts are UTF-8"):
            act()
    assert not table.history().num_rows


@pytest.mark.parametrize("shape", [{"key": "odd"}, {"key": "id", "partition_by": "odd"}])
def test_keys_of_another_encoding_are_refused(tmp_path: Path, shape: dict[str, str]) -> None:
    rows = pa.table({"id": ["a", "b", "c"], "odd": LATIN}).slice(0, 2)
    table = Table.create(tmp_path / "t", rows.schema, **shape)
    for verb in (table.upsert, table.delete):
        with pytest.raises(SchemaMismatch, match="column 'odd' is no sound string"):
            verb(rows)
    assert not table.history().num_rows


@dataclasses.dataclass
class Row:
    id: str


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([{"id": "a"}, None], "list whose element 1 is NoneType"),
        ([Row("a")], r"list whose element 0 is Row, .* Give \[dataclasses\.asdict\(row\) for row in rows\]"),
        (pa.table({"id": ["a"]}).to_batches(), r"Give pyarrow\.RecordBatchReader\.from_batches"),
        ((row for row in [{"id": "a"}]), r"generator, .* Give a list of dicts"),
        (Path("rows.parquet"), r"PosixPath, .* pyarrow\.parquet\.read_table"),
        (pyarrow.dataset.dataset(pa.table({"id": ["a"]})), r"Give dataset\.scanner\(\)\.to_reader\(\)"),
    ],
)
def test_what_is_no_rows_says_how_it_becomes_some(data: Any, says: str) -> None:
    with pytest.raises(SchemaMismatch, match=f"what was given is .*{says}"):
        as_table(data)


def test_a_lazy_frame_is_collected(tmp_path: Path) -> None:
    import polars as pl

    table = Table.create(tmp_path / "t", pa.schema({"id": pa.string(), "n": pa.int64()}), key="id")
    lazy = pl.DataFrame({"id": ["a", "b"], "n": [1, 2]}).lazy().with_columns(pl.col("n") * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table.upsert(lazy)
        table.merge(lazy.with_columns(n=pl.lit(0)), "id").when_matched_update().execute()
    assert table.scan(columns=["id", "n"]).to_table().to_pylist() == [{"id": "a", "n": 0}, {"id": "b", "n": 0}]


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64()], ids=str)
def test_whole_numbers_of_pandas_of_which_some_are_missing_stay_whole(kind: pa.DataType, tmp_path: Path) -> None:
    import pandas

    table = Table.create(tmp_path / "t", pa.schema({"id": pa.string(), "n": kind}), key="id")
    table.upsert(pandas.DataFrame({"id": ["a", "b"], "n": [7, None]}))
    assert table.schema.field("n").type == kind
    assert table.scan(columns=["id", "n"]).to_table().to_pylist() == [{"id": "a", "n": 7}, {"id": "b", "n": None}]
    table.upsert(pandas.DataFrame({"id": ["a", "b"], "n": [0.5, None]}))
    assert table.schema.field("n").type == pa.float64(), "fractions make a column wider, as in any write"


def test_an_index_of_pandas_is_the_column_of_its_name_where_the_table_has_one(tmp_path: Path) -> None:
    import pandas

    schema = pa.schema({"id": pa.string(), "day": pa.timestamp("us"), "n": pa.int64()})
    table = Table.create(tmp_path / "t", schema, key="id")
    day = datetime.datetime(2026, 1, 2)
    frame = pandas.DataFrame({"id": ["a"], "day": [day], "n": [1]})
    for index in (["day"], ["id", "day"], ["id"]):
        table.upsert(frame.set_index(index))
        assert table.scan(columns=schema.names).to_table().to_pylist() == [{"id": "a", "day": day, "n": 1}]
    table.upsert(frame.set_index(pandas.Index([5], name="place")))
    assert table.schema.names[5:] == schema.names
    table.delete(keys=frame.set_index("id"))
    assert table.scan().count() == 0
