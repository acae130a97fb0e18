"""Key generators: kinds, encodings, and what they refuse."""

from __future__ import annotations

import datetime as dt
import decimal
import string

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.errors import ConfigError, SchemaMismatch, UnsupportedFeature
from hudimeta.keys import KeyGenerator, KeyGeneratorType, PartitionLayout, escape, partition_values, unescape

ROWS = pa.table({"id": ["a", "b"], "n": [1, 2], "city": ["Rome", None], "day": [dt.date(2024, 1, 31)] * 2})


def generator(**properties):
    names = {
        "keys": "hoodie.table.recordkey.fields",
        "parts": "hoodie.table.partition.fields",
        "kind": "hoodie.table.keygenerator.type",
        "version": "hoodie.table.version",
        "hive": "hoodie.datasource.write.hive_style_partitioning",
        "encode": "hoodie.datasource.write.partitionpath.urlencode",
    }
    return KeyGenerator.from_properties({names.get(k, k): v for k, v in properties.items()})


def test_simple():
    keys = generator(keys="id", parts="city", kind="SIMPLE")
    assert keys.record_keys(ROWS).to_pylist() == ["a", "b"]
    assert keys.partition_paths(ROWS).to_pylist() == ["Rome", "__HIVE_DEFAULT_PARTITION__"]


def test_several_fields():
    keys = generator(keys="id,n", parts="day,city", kind="COMPLEX", hive="true")
    assert keys.record_keys(ROWS).to_pylist() == ["id:a,n:1", "id:b,n:2"]
    assert keys.partition_paths(ROWS).to_pylist() == [
        "day=2024-01-31/city=Rome",
        "day=2024-01-31/city=__HIVE_DEFAULT_PARTITION__",
    ]


def test_not_partitioned():
    keys = generator(keys="id", kind="NON_PARTITION", parts="")
    assert keys.record_keys(ROWS).to_pylist() == ["a", "b"]
    assert keys.partition_paths(ROWS).to_pylist() == ["", ""]


ENCODED = {mark: f"{ord(mark):02X}" for mark in "\"#%'*/:=?[\\]^{"}
"""The punctuation that Apache Hudi encodes; `}` it leaves."""


@pytest.mark.parametrize("hive", ["true", "false"])
def test_folders_of_every_punctuation(hive):
    values = [f"a{mark}b" for mark in string.punctuation + " \t\x7fü"] + [None, "", "__HIVE_DEFAULT_PARTITION__"]
    rows, front = pa.table({"id": values, "city": values}), "city=" if hive == "true" else ""
    plain = [front + (value or "__HIVE_DEFAULT_PARTITION__") for value in values]
    assert generator(keys="id", parts="city", hive=hive).partition_paths(rows).to_pylist() == plain
    codes = {**ENCODED, "\t": "09", "\x7f": "7F"}
    texts = ["".join(f"%{codes[c]}" if c in codes else c for c in value or "__HIVE_DEFAULT_PARTITION__") for value in values]
    found = generator(keys="id", parts="city", hive=hive, encode="true").partition_paths(rows).to_pylist()
    assert found == [front + text for text in texts]


def test_nested_fields_by_dotted_name():
    rows = pa.table({"s": [{"k": "a"}, {"k": "b"}, None]})
    keys = generator(keys="s.k", parts="s.k", kind="SIMPLE")
    assert keys.partition_paths(rows).to_pylist() == ["a", "b", "__HIVE_DEFAULT_PARTITION__"]
    with pytest.raises(SchemaMismatch, match=r"column 's\.k' is null or empty in row 2"):
        keys.record_keys(rows)
    with pytest.raises(SchemaMismatch, match=r"no field 'x' in 's'"):
        generator(keys="s.x", parts="s.k", kind="SIMPLE").record_keys(rows)


@pytest.mark.parametrize("bad", [None, ""])
def test_a_key_that_is_null_or_empty_names_the_row(bad):
    rows = pa.table({"id": ["a", bad, "c"]})
    with pytest.raises(SchemaMismatch, match=r"column 'id' is null or empty in row 1, .*Fill the column or filter"):
        generator(keys="id").record_keys(rows)


def test_composite_keys_take_placeholders_unless_everything_is_missing():
    rows = pa.table({"x": [None, "", "v"], "y": ["1", "2", ""]})
    keys = generator(keys="x,y")
    assert keys.record_keys(rows).to_pylist() == ["x:__null__,y:1", "x:__empty__,y:2", "x:v,y:__empty__"]
    with pytest.raises(SchemaMismatch, match="column 'x, y' is null or empty in row 0"):
        keys.record_keys(pa.table({"x": pa.array([None], pa.string()), "y": [""]}))


def test_missing_columns_are_named():
    with pytest.raises(SchemaMismatch, match="column 'key' is missing, the table needs a record key"):
        generator(keys="key").record_keys(ROWS)
    with pytest.raises(SchemaMismatch, match="column 'land' is missing, the table needs a partition path"):
        generator(keys="id", parts="land").partition_paths(ROWS)
    with pytest.raises(SchemaMismatch, match="column 'l' is list"):
        generator(keys="l").record_keys(pa.table({"l": [[1]]}))


def test_single_complex_key_is_prefixed_from_version_9_on():
    keys = generator(keys="id", parts="city", kind="COMPLEX", version="9")
    assert keys.record_keys(ROWS).to_pylist() == ["id:a", "id:b"]


@pytest.mark.parametrize(("stored", "expected"), [("a", ["a", "b"]), ("id:a", ["id:a", "id:b"])])
def test_single_complex_key_below_version_9_is_learned_from_a_row(stored, expected):
    keys = generator(keys="id", parts="city", kind="COMPLEX", version="8")
    with pytest.raises(ConfigError, match=r"complex\.keygen\.new\.encoding.*look at _hoodie_record_key"):
        keys.record_keys(ROWS)
    learned = keys.learned_from(pa.table({"_hoodie_record_key": [stored], "id": ["a"]}))
    assert learned.record_keys(ROWS).to_pylist() == expected
    assert keys.learned_from(pa.table({"_hoodie_record_key": pa.array([], pa.string())})) == keys
    with pytest.raises(ConfigError, match="'zzz'"):
        keys.learned_from(pa.table({"_hoodie_record_key": ["zzz"], "id": ["a"]}))


def test_single_complex_key_of_an_empty_table_is_the_bare_value():
    keys = generator(keys="id", parts="city", kind="COMPLEX", version="8")
    assert keys.of_an_empty_table().record_keys(ROWS).to_pylist() == ["a", "b"]
    stated = generator(keys="id", parts="city", kind="COMPLEX", version="9")
    assert stated.of_an_empty_table() == stated


def test_single_complex_key_can_be_stated():
    option = "hoodie.write.complex.keygen.new.encoding"
    for value, expected in (("true", "a"), ("false", "id:a")):
        keys = generator(keys="id", parts="city", kind="COMPLEX", version="8", **{option: value})
        assert keys.record_keys(ROWS)[0].as_py() == expected


def test_generated_keys():
    keys = generator(parts="city", kind="SIMPLE")
    assert keys.generates_keys
    assert keys.generated_keys(2, "20240101000000000", 3, first=7).to_pylist() == [
        "20240101000000000_3_7",
        "20240101000000000_3_8",
    ]
    with pytest.raises(ConfigError, match="this table generates its keys"):
        keys.record_keys(ROWS)


def test_values_are_written_as_java_writes_them():
    zone = dt.timezone.utc
    rows = pa.table(
        {
            "d": pa.array([decimal.Decimal("0.10")], pa.decimal128(8, 2)),
            "t": pa.array([dt.datetime(2024, 1, 1, 0, 0, 1, 1000, zone)], pa.timestamp("us", "UTC")),
            "b": [True],
            "f": [1e7],
        }
    )
    assert generator(keys="d,t,b,f").record_keys(rows).to_pylist() == ["d:0.10,t:1704067201001000,b:true,f:1.0E7"]
    consistent = {"hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled": "true"}
    assert generator(keys="t", **consistent).record_keys(rows).to_pylist() == ["2024-01-01 00:00:01.001"]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary(2), pa.dictionary(pa.int32(), pa.binary())])
def test_bytes_are_their_hexadecimal_digits(kind):
    """As Apache Hudi's are, readable text or not."""
    rows = pa.table({"k": pa.array([b"ab", b"\x00\xff"]).cast(kind), "p": pa.array([b"\xc3\xa9", None]).cast(kind)})
    keys = generator(keys="k", parts="p")
    assert keys.record_keys(rows).to_pylist() == ["6162", "00ff"]
    assert keys.partition_paths(rows).to_pylist() == ["c3a9", "__HIVE_DEFAULT_PARTITION__"]


@pytest.mark.parametrize(
    ("properties", "kind"),
    [
        ({"kind": "COMPLEX_AVRO"}, KeyGeneratorType.COMPLEX),
        ({"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator"}, "NON_PARTITION"),
        ({"hoodie.table.keygenerator.class": "com.uber.hoodie.SimpleKeyGenerator", "parts": "p"}, "SIMPLE"),
        ({"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.ComplexAvroKeyGenerator"}, "COMPLEX"),
        ({"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.GlobalDeleteKeyGenerator"}, "GLOBAL_DELETE"),
        ({"hoodie.table.keygenerator.class": "org.apache.spark.sql.hudi.command.SqlKeyGenerator", "parts": "p,q"}, "COMPLEX"),
        ({"kind": "SPARK_SQL", "parts": "p"}, "SIMPLE"),
        ({}, "NON_PARTITION"),
        ({"keys": "a,b", "parts": "p"}, "COMPLEX"),
        ({"keys": "a", "parts": "p:SIMPLE"}, "CUSTOM"),
    ],
)
def test_kinds_and_legacy_classes(properties, kind):
    assert generator(**properties).kind is KeyGeneratorType(kind)


def test_what_we_cannot_generate_is_named():
    with pytest.raises(UnsupportedFeature, match=r"user-provided key generator com\.acme\.Keys"):
        generator(kind="USER_PROVIDED", **{"hoodie.table.keygenerator.class": "com.acme.Keys"})
    with pytest.raises(UnsupportedFeature, match="HOODIE_TABLE_METADATA"):
        generator(kind="HOODIE_TABLE_METADATA")
    with pytest.raises(ConfigError, match="Use COMPLEX"):
        generator(keys="a,b", kind="SIMPLE", parts="p")
    with pytest.raises(ConfigError, match="field:SIMPLE or field:TIMESTAMP"):
        generator(keys="a", kind="CUSTOM", parts="p")


def test_a_global_delete_has_no_partition():
    keys = generator(keys="id", kind="GLOBAL_DELETE", parts="city")
    assert keys.partition_paths(ROWS).to_pylist() == ["", ""]
    assert keys.record_keys(ROWS).to_pylist() == ["id:a", "id:b"]


@pytest.mark.parametrize("bad", ["..", "a/../b", "a//b", "/a", "a/", "."])
def test_paths_that_would_leave_the_table_are_refused(bad):
    rows = pa.table({"id": ["a", "b"], "city": ["x", bad]})
    with pytest.raises(SchemaMismatch, match=r"in row 1, .*urlencode=true"):
        generator(keys="id", parts="city").partition_paths(rows)


def test_slashes_make_folders_unless_values_are_encoded():
    rows = pa.table({"id": ["a"], "city": ["a/b"]})
    assert generator(keys="id", parts="city").partition_paths(rows).to_pylist() == ["a/b"]
    encoded = generator(keys="id", parts="city", encode="true", hive="true")
    assert encoded.partition_paths(rows).to_pylist() == ["city=a%2Fb"]


def test_the_escaped_characters():
    plain = "".join(map(chr, range(0x20, 0x7F))) + "é€😀"
    assert escape(plain) == (
        " !%22%23$%25&%27()%2A+,-.%2F0123456789%3A;<%3D>%3F@ABCDEFGHIJKLMNOPQRSTUVWXYZ%5B%5C%5D%5E_`"
        "abcdefghijklmnopqrstuvwxyz%7B|}~é€😀"
    )
    assert escape("\x00\x1f\x7f") == "%00%1F%7F"


@given(st.text())
def test_unescape_is_the_inverse(text):
    assert unescape(escape(text)) == text


@given(st.lists(st.none() | st.text(min_size=1), min_size=1, max_size=5), st.booleans())
def test_encoded_partition_values_come_back(values, hive):
    rows = pa.table({"id": ["k"] * len(values), "city": pa.array(values, pa.string())})
    if any(v in (".", "..", "__HIVE_DEFAULT_PARTITION__") for v in values):
        return
    keys = generator(keys="id", parts="city", encode="true", hive=str(hive).lower())
    paths = keys.partition_paths(rows)
    out = partition_values(paths, [pa.field("city", pa.string())], hive=hive, encoded=True)
    if not any(v is not None and v.startswith("city=") for v in values) or hive:
        assert out["city"].to_pylist() == values


def test_partition_values_are_typed():
    fields = [pa.field("day", pa.date32()), pa.field("n", pa.int32())]
    paths = pa.array(["day=2024-01-31/n=7", "day=__HIVE_DEFAULT_PARTITION__/n=default"])
    out = partition_values(paths, fields, hive=True, encoded=False)
    assert out.to_pylist() == [{"day": dt.date(2024, 1, 31), "n": 7}, {"day": None, "n": None}]
    times = partition_values(
        pa.array(["1704067200000000"]), [pa.field("t", pa.timestamp("us", "UTC"))], hive=False, encoded=False
    )
    assert times["t"][0].as_py().year == 2024
    raw = pa.field("b", pa.binary())
    (read,) = partition_values(pa.array(["b=00ff", "b=__HIVE_DEFAULT_PARTITION__"]), [raw], hive=True, encoded=False).columns
    assert read.to_pylist() == [b"\x00\xff", None]
    assert not partition_values(pa.array(["b=[B@30aff28a"]), [raw], hive=True, encoded=False).num_columns


def test_nothing_is_claimed_about_paths_that_do_not_fit():
    two = [pa.field("a", pa.string()), pa.field("n", pa.int32())]
    assert partition_values(pa.array(["x/y/1"]), two, hive=False, encoded=False).num_columns == 0
    out = partition_values(pa.array(["x/soon"]), two, hive=False, encoded=False)
    assert out.column_names == ["a"]
    whole = partition_values(pa.array(["x/y"]), [pa.field("a", pa.string())], hive=False, encoded=False)
    assert whole["a"].to_pylist() == ["x/y"]


def test_time_based_folders_take_as_many_levels_as_their_pattern():
    properties = {
        "hoodie.table.partition.fields": "reg:SIMPLE,at:TIMESTAMP",
        "hoodie.table.keygenerator.type": "CUSTOM",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
    }
    layout = PartitionLayout.from_properties(properties)
    assert (layout.plain, layout.levels) == ((True, False), (1, 3))
    schema = pa.schema([("reg", pa.string()), ("at", pa.int64())])
    assert layout.values(pa.array(["eu/2024/01/31"]), schema).to_pylist() == [{"reg": "eu"}]


def test_a_users_generator_can_still_be_read():
    properties = {"hoodie.table.partition.fields": "p", "hoodie.table.keygenerator.class": "com.acme.Keys"}
    layout = PartitionLayout.from_properties(properties)
    assert layout.values(pa.array(["x"]), pa.schema([("p", pa.string())])).num_columns == 0
