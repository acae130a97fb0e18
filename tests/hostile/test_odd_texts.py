"""Odd texts as keys, values, partitions and names: they work from end to end, or are refused before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import ConfigError, HudiError

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("v", pa.string())])
ODD = [
    *("a\nb", "a\rb", "a\tb", "a'b", 'a"b', "a\\b", "\\", "\x1b[31mred", "\x7f", "\u202eright", "\ufeffbom", "a\u200db", "😀"),
    *("e\u0301", "é", " ", "%", "a%2Fb", "a:b", "a=b", "a#b", "a?b", "*", ";", ",", "{}", "${x}", "a\x85b", "a\u2028b", "\x01"),
    *("default", ".hidden", "_x", "+", "!", "a:1,b:2", "__null__", "__empty__", "x" * 200, "a/b", "--", "NULL", "~", "`"),
]
NOT_IN_FOLDERS = ["\0", "a\0b"]
HALVES = ["\ud800", "a\udfffb"]


@pytest.mark.rotation(3)
@pytest.mark.parametrize("encode", ["false", "true"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_keys_values_and_partitions_work_from_end_to_end(kind: str, encode: str, tmp_path: Path) -> None:
    options = {"hoodie.datasource.write.partitionpath.urlencode": encode}
    indexes = ["column_stats", "record_index", "bloom_filters"]
    layout = {"key": "id", "partition_by": "part", "type": kind, "indexes": indexes, "options": options}
    table = hudimeta.Table.create(tmp_path / "t", SCHEMA, **layout)
    texts = [*ODD, *NOT_IN_FOLDERS]
    # Apache Hudi can neither read nor write a folder with a colon, which is refused: see `tests/write/test_bad_keys.py`.
    parts = ["p" if text in NOT_IN_FOLDERS or (":" in text and encode == "false") else text for text in texts]
    table.insert(pa.table([texts, parts, texts], schema=SCHEMA))
    table.upsert(pa.table([texts[::2], parts[::2], [f"{text}!" for text in texts[::2]]], schema=SCHEMA))
    values = {text: f"{text}!" if at % 2 == 0 else text for at, text in enumerate(texts)}
    for given in ({}, {"hoodie.metadata.enable": "false"}):
        found = hudimeta.Table(tmp_path / "t", options=given).scan().to_table()
        rows = zip(found["id"].to_pylist(), found["part"].to_pylist(), found["v"].to_pylist(), strict=True)
        assert sorted(rows) == sorted((text, part, values[text]) for text, part in zip(texts, parts, strict=True))
    for text, part in list(zip(texts, parts, strict=True))[::3]:
        for column, value in (("id", text), ("part", part), ("v", values[text])):
            keys = table.scan(where=[(column, "=", value)]).to_table()["id"].to_pylist()
            assert keys == [text] or (part == "p" and text in keys), (column, value)
    assert "DIFFERS" not in str(table.metadata.validate())
    assert str(table.report())
    assert repr(table.timeline)
    table.delete(pa.table({"id": texts, "part": parts}))
    assert hudimeta.Table(tmp_path / "t").scan().to_table().num_rows == 0


@pytest.mark.parametrize("text", [*ODD[:12], *NOT_IN_FOLDERS, *HALVES])
def test_names_of_tables_and_columns(text: str, tmp_path: Path) -> None:
    make = hudimeta.Table.create
    try:
        make(tmp_path / "t", SCHEMA, key="id", name=text)
    except HudiError:
        assert not (tmp_path / "t").exists()
    else:
        table = hudimeta.Table(tmp_path / "t")
        table.insert(pa.table([["k"], ["p"], ["v"]], schema=SCHEMA))
        assert hudimeta.Table(tmp_path / "t").properties.name == text
    if text not in HALVES:  # Arrow has no such column
        with pytest.raises(HudiError, match="a name that Avro cannot hold"):
            make(tmp_path / "columns", pa.schema([("id", pa.string()), (text, pa.string())]), key="id")
    assert not (tmp_path / "columns").exists()


@pytest.mark.parametrize("text", HALVES)
def test_halves_of_a_pair_are_refused(text: str, tmp_path: Path) -> None:
    table = hudimeta.Table.create(tmp_path / "t", SCHEMA, key="id")
    before = sorted(tmp_path.rglob("*"))
    acts: list[Callable[[], object]] = [
        *(lambda op=op: table.scan(where=[("v", op, [text] if op == "in" else text)]) for op in ("=", "<", "in", "like", "!=")),
        lambda: table.scan(where=f"v = '{text}'"),
        lambda: table.scan(where=["=", {"col": "v"}, {"lit": text}]),
        lambda: table.delete(f"v = '{text}'"),
        lambda: table.update({"v": text}),
        lambda: table.insert([{"id": text, "part": "p", "v": "x"}]),
        lambda: table.insert({"id": ["a"], "part": ["p"], "v": [text]}),
        lambda: table.alter(add={text: pa.string()}),
        lambda: table.scan(columns=[text]).plan(),
        lambda: table.scan(as_of=text).plan(),
        lambda: hudimeta.Table(tmp_path / "t", options={text: "x"}),
        lambda: hudimeta.Table(tmp_path / "t", options={"hudimeta.filter": text}),
        lambda: hudimeta.Table(f"{tmp_path}/{text}"),
        lambda: hudimeta.Table.create(f"{tmp_path}/{text}", SCHEMA, key="id"),
    ]
    for act in acts:
        with pytest.raises(HudiError):
            act()
    assert sorted(tmp_path.rglob("*")) == before


def test_paths_with_nul_are_refused(tmp_path: Path) -> None:
    for act in (lambda: hudimeta.Table(f"{tmp_path}/a\0b"), lambda: hudimeta.Table.create(f"{tmp_path}/\0", SCHEMA, key="id")):
        with pytest.raises(ConfigError, match="NUL"):
            act()


@pytest.mark.parametrize("text", ["(" * 3000 + "v = 'a'" + ")" * 3000, "not " * 3000 + "v = 'a'", "1" + "+1" * 5000 + " = 1"])
def test_endless_predicates_are_refused(text: str, tmp_path: Path) -> None:
    table = hudimeta.Table.create(tmp_path / "t", SCHEMA, key="id")
    with pytest.raises(ConfigError, match="predicate"):
        table.scan(where=text)
