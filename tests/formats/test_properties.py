"""Java's properties text: what Java wrote is read, what we write Java reads, and nothing is lost in between."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.errors import CorruptFileError
from hudimeta.formats.properties import decode_properties, encode_properties, table_checksum
from tests.conftest import Unpack
from tests.recorded_tables import CONFORMANCE, RICH

any_text = st.text(max_size=40)


@given(st.dictionaries(any_text, any_text, max_size=8), st.lists(any_text, max_size=3))
def test_what_is_written_is_read_back(properties: dict[str, str], comments: list[str]) -> None:
    encoded = encode_properties(properties, comments)
    assert decode_properties(encoded) == properties
    assert list(decode_properties(encoded)) == list(properties), "the order is kept"
    assert encoded.isascii()
    assert encoded.count(b"\n") == len(properties) + len(comments), "one line per key, or readers without continuations fail"


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_with_an_offset(data: bytes) -> None:
    try:
        found = decode_properties(data, ".hoodie/hoodie.properties")
    except CorruptFileError as error:
        refusal = error
    else:
        assert decode_properties(encode_properties(found)) == found
        return
    assert refusal.path == ".hoodie/hoodie.properties"
    assert 0 <= refusal.offset < len(data)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"a=b", {"a": "b"}),
        (b"a = b ", {"a": "b "}),
        (b"a:b\na2 : b2\r\na3 b3\ra4\tb4", {"a": "b", "a2": "b2", "a3": "b3", "a4": "b4"}),
        (b"a", {"a": ""}),
        (b"a=\nb==", {"a": "", "b": "="}),
        (b"#c\n  !c\n\n \t\f\na=1", {"a": "1"}),
        (b"# no continuation \\\na=1", {"a": "1"}),
        (b"fruits  apple, \\\n        banana", {"fruits": "apple, banana"}),
        (b"a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        (b"a=1\\\n\nb=2", {"a": "1", "b": "2"}),
        (b"a=end\\", {"a": "end"}),
        (rb"a\ b\=c\:d=e", {"a b=c:d": "e"}),
        (rb"a=\u00e9\u0041\t\q\\", {"a": "éA\tq\\"}),
        (rb"a=\ud83d\ude00", {"a": "😀"}),
        (b"a=\xe9", {"a": "é"}),
        (rb"f=reg\:SIMPLE,at\:TIMESTAMP", {"f": "reg:SIMPLE,at:TIMESTAMP"}),
        (b"a=1\nb=2\na=3", {"b": "2", "a": "3"}),
    ],
)
def test_java_grammar(text: bytes, expected: dict[str, str]) -> None:
    assert decode_properties(text) == expected


@pytest.mark.parametrize("text", [rb"a=\u12", rb"a=\u12G4", rb"\uXYZ0=1"])
def test_a_broken_escape_is_named_with_its_line(text: bytes) -> None:
    with pytest.raises(CorruptFileError, match="four hexadecimal digits") as caught:
        decode_properties(b"x=1\n" + text)
    assert caught.value.offset == 4


def test_values_stay_plain_for_readers_that_know_no_escapes() -> None:
    schema = '{"type":"record","fields":[]}'
    encoded = encode_properties({"hoodie.table.create.schema": schema, "f": "a:SIMPLE,b=c#d!"}, ["Updated at x"])
    assert encoded.decode().splitlines() == ["#Updated at x", f"hoodie.table.create.schema={schema}", "f=a:SIMPLE,b=c#d!"]


def test_checksum_of_real_tables() -> None:
    assert table_checksum("default", "v8_nonpartitioned") == 1908876706
    assert table_checksum("", "v8_trips_8i3u1d_metadata") == 380169000


def test_every_recorded_file_reads_as_hudi_read_it(shared: Path) -> None:
    """The rich set records what Hudi saw; the checksum rule holds for each of these tables."""
    import tarfile

    names = RICH.names()
    assert len(names) >= 75
    for name in names:
        archive = RICH.archive(name)
        assert archive is not None
        with tarfile.open(archive) as packed:
            member = packed.extractfile(f"{name}/.hoodie/hoodie.properties")
            assert member is not None
            found = decode_properties(member.read())
        recorded = {k: v.replace("\\:", ":") for k, v in RICH.answer(name)["properties"].items()}
        assert {k: v for k, v in found.items() if k in recorded} == recorded, name
        assert int(found["hoodie.table.checksum"]) == table_checksum(
            found.get("hoodie.database.name", ""), found["hoodie.table.name"]
        )
        assert decode_properties(encode_properties(found)) == found


def test_property_files_of_the_fixture_set(shared: Path) -> None:
    import zipfile

    expected = json.loads((shared / "conformance/expected_fixtures/table_props.json").read_text())
    with zipfile.ZipFile(shared / "conformance/fixtures/core_tests_data_open.zip") as packed:
        for name, facts in expected.items():
            assert decode_properties(packed.read(f"{name}/.hoodie/hoodie.properties")) == facts["properties"]


def test_conformance_tables_have_right_checksums(conformance_table: Unpack) -> None:
    for name in CONFORMANCE.names():
        found = decode_properties((conformance_table(name) / ".hoodie/hoodie.properties").read_bytes())
        assert int(found["hoodie.table.checksum"]) == table_checksum(
            found.get("hoodie.database.name", ""), found["hoodie.table.name"]
        )
