"""The same expressions over the same rows in Spark itself: every value of every row must agree, nulls included."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import math
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudimeta.predicate import bind, evaluate, parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

D = decimal.Decimal
UTC = dt.timezone.utc
MOMENTS = [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2024, 2, 29, 12, 30, 1, 120000), None]
MOMENTS += [dt.datetime(2024, 7, 1), dt.datetime(1582, 10, 4, 1), dt.datetime(2024, 3, 31, 1, 30)]
MOMENTS += [dt.datetime(2024, 10, 27, 0, 30)]
POOL: dict[str, tuple[pa.DataType, list[object]]] = {
    "b": (pa.int8(), [-128, 127, None, 0]),
    "i": (pa.int32(), [-7, 0, None, 5, 2_000_000_000]),
    "l": (pa.int64(), [-(2**62), 5, None, 2**53 + 1, 0]),
    "f": (pa.float32(), [0.1, math.nan, None, -0.0, math.inf, 2.5]),
    "d": (pa.float64(), [0.1, math.nan, None, -0.0, -math.inf, 2.5, float(2**53), -2.5, 1e10, 1e-5]),
    "w": (pa.float64(), [2.5, -2.5, None, 0.1, 1e10]),
    "s": (pa.string(), ["", "abc", None, "é😀", "ABC", "a_c%", "Straße", " a ", "\U0010ffff"]),
    "n": (pa.string(), ["5", " -7 ", None, "+0", "2000000000"]),
    "x": (pa.string(), ["2024-02-29", "1969-12-31", None, "2024-7-1", "2024"]),
    "dec": (pa.decimal128(10, 2), [D("1.50"), D("-0.01"), None, D("99999999.99"), D("2.00")]),
    "big": (pa.decimal128(38, 18), [D("1.5"), D("-12345678901234567890.123456789012345678"), None, D("0.000000000000000001")]),
    "most": (
        pa.decimal128(38, 18),
        [D("-99999999999999999999.999999999999999999"), None, D("1.25"), D("-0.000000000000000001")],
    ),
    "late": (pa.int64(), [2**62, None, 2**63 - 2, 1_591_910_344_523, -(2**62), -67_000_000_000, 268_017_837_169]),
    "odd": (pa.int32(), [-2147483647, 16777217, None, 5]),
    "near": (pa.int32(), [-2147483648, 16777216, None, 5]),
    "da": (pa.date32(), [dt.date(2024, 2, 29), dt.date(1969, 12, 31), None, dt.date(2023, 1, 1), dt.date(1582, 10, 4)]),
    "ts": (pa.timestamp("us", "UTC"), [moment and moment.replace(tzinfo=UTC) for moment in MOMENTS]),
    "tn": (pa.timestamp("us"), list(MOMENTS)),
    "bo": (pa.bool_(), [True, False, None]),
    "bi": (pa.binary(), [b"", b"abc", None, b"\xff"]),
    "ai": (pa.list_(pa.int32()), [[1, 2, None], [], None, [5], [-1, 5]]),
    "at": (pa.list_(pa.string()), [["a", None], ["abc", "b"], [], None]),
    "ad": (pa.list_(pa.float64()), [[math.nan, 1.5], [-0.0], [None], None]),
    "ms": (pa.map_(pa.string(), pa.int32()), [[("a", 1), ("b", None)], [], None, [("a", 5)]]),
    "mi": (pa.map_(pa.int32(), pa.string()), [[(1, "x"), (5, "abc")], [(2, None)], None]),
    "sa": (pa.list_(pa.struct([("q", pa.int32())])), [[{"q": 5}, None], [{"q": None}], [], None]),
    "st": (pa.struct([("a", pa.int32()), ("t", pa.string())]), [{"a": 5, "t": "x"}, {"a": None, "t": None}, None]),
}
LENGTH = 60


def rows() -> pa.Table:
    """Every column runs through its values in its own rhythm, so that all meet."""
    columns = {}
    for step, (name, (t, values)) in enumerate(POOL.items()):
        endless = itertools.cycle(values + values[: step % 2])
        columns[name] = pa.array(list(itertools.islice(endless, step, step + LENGTH)), t)
    return pa.table(columns)


EXPRESSIONS = """
i > 2.5 | i <= -7.0 | i = 5L | b < 200 | b > -129 | l = 9223372036854775808 | l > 9007199254740992.0D | d = l
i = d | f = l | f = 0.1 | f = CAST(0.1 AS FLOAT) | f = 0 | f < d | d > 5 | d < double('NaN') | d = double('NaN')
d <=> f | NOT d >= 2.5 | d IN (0.1, 0.0, double('NaN')) | d NOT IN (2.5, NULL) | f IN (0, 2.5) | i IN (5, NULL)
i IN ('5', '-7') | i IN (5, 2.5) | n = 5 | n = i | n > 5L | n = 5.0 | x = da | x > DATE '2024-01-01' | da > '2024'
da IN ('2024-02-29') | s = X'616263' | s > 'a' | s < 'é' | s >= '' | s LIKE 'a%' | s LIKE '_b_' | s LIKE '%\\\\%'
s LIKE 'a!_c!%' ESCAPE '!' | s ILIKE 'aBC' | s NOT LIKE '%' | s RLIKE '^[a-cA-C]+$' | startswith(s, 'a')
endswith(s, 'c') | contains(s, 'b') | s LIKE ANY ('abc', 'A%') | dec = 1.5 | dec > 1.505 | dec < 2 | dec = d
dec > '1.5' | dec = big | big > 0 | big = 1.5BD | dec BETWEEN 1 AND 2 | dec IN (1.5, 2) | ts = '2024-07-01'
ts >= TIMESTAMP '2024-02-29 12:30:01.12' | ts < da | ts = tn | tn > da | tn = '2024-07-01 00:00:00' | da = ts | bo
NOT bo | bo = 'true' | bo IS TRUE | bo IS NOT FALSE | bo IS UNKNOWN | bo AND i > 0 | bo OR i > 0 | (i > 0) = bo
bo > FALSE | st.a = 5 | st.t IS NULL | st IS NULL | st.a <=> NULL | bi = 'abc' | bi > X'61'
i IS NULL AND l IS NOT NULL | i IS DISTINCT FROM 5 | i / 2 = 2.5 | i % 3 = -1 | d % 2 = 0.5 | i * 1L > 10
dec * 2 = 3 | dec + i > 0 | dec / 3 = 0.5 | dec - 0.005 > 1 | dec % 1 = 0.5 | -i > 5 | l + i > 0 | i DIV 2 = -3
big + dec > 3 | dec * big > 0 | i * 2.5 = 12.5 | abs(i) = 7 | sign(dec) = -1 | pmod(i, 3) = 2 | year(da) = 2024
year(ts) > 1600 | month(x) = 2 | day(ts) = 29 | dayofweek(da) = 5 | weekday(da) = 3 | weekofyear(da) = 52
dayofyear(da) = 60 | quarter(da) = 1 | hour(ts) = 23 | minute(ts) = 30 | second(ts) = 1 | hour(tn) = 12
last_day(da) = '2024-02-29' | date_add(da, 1) = '2024-03-01' | date_sub(x, 1) < '2024-01-01' | datediff(da, ts) > 0
add_months(da, 12) = '2025-02-28' | trunc(da, 'MM') = '2024-02-01' | date_trunc('hour', ts) = '2024-02-29 12:00:00'
date_trunc('week', tn) < '2024-01-01' | date_format(ts, 'yyyy-MM-dd HH:mm:ss.SSS') = '2024-02-29 12:30:01.120'
date_format(da, 'E d MMM y, D') = 'Thu 29 Feb 2024, 60' | from_unixtime(i, 'yyyy/MM/dd HH:mm') > '1970'
unix_timestamp(ts) > 0 | to_date(x) = '2024-07-01' | to_timestamp(x) > '2024-02-01'
to_date('29/02/2024', 'dd/MM/yyyy') = da | ts > date_add(da, 100) | lower(s) = 'abc' | upper(s) = 'STRASSE'
length(s) = 2 | length(bi) = 3 | trim(s) = 'a' | ltrim(s) = 'a ' | substring(s, 2) = 'bc'
substring(s, -2, 1) = 'b' | left(s, 1) = 'a' | right(s, 2) = 'BC' | concat(s, n) = 'abc5' | s || i = 'abc5'
reverse(s) = 'cba' | replace(s, 'b', 'xx') = 'axxc' | lpad(n, 4, '0') = '0005' | regexp_extract(s, '(b)', 1) = 'b'
regexp_replace(s, '[ab]', 'z') = 'zzc' | ceil(w) = 3 | floor(dec) = -1 | ceil(dec) = 100000000 | round(d) = 3
round(dec, 1) = 1.5 | round(i, -1) = -10 | sqrt(i) > 2 | isnan(d) | CAST(d AS STRING) = '1.0E10'
CAST(f AS STRING) = '0.1' | CAST(dec AS STRING) = '1.50' | CAST(ts AS STRING) = '2024-02-29 12:30:01.12'
CAST(big AS STRING) = '0.000000000000000001' | CAST(da AS STRING) = '2024-02-29' | CAST(bo AS STRING) = 'true'
TRY_CAST(s AS INT) IS NULL | TRY_CAST(n AS INT) = 0 | TRY_CAST(x AS DATE) = '2024-01-01' | CAST(n AS DOUBLE) = -7
TRY_CAST(l AS INT) = 5 | CAST(dec AS DECIMAL(10,1)) = 1.5 | CAST(dec AS INT) = 1 | CAST(ts AS BIGINT) = -1
CAST(ts AS DATE) = da | CAST(da AS TIMESTAMP) = ts | CAST(i AS BOOLEAN) | CAST(bo AS INT) = 1
TRY_CAST(d AS BIGINT) = 2 | CAST(i AS TIMESTAMP) > ts | CAST(l AS FLOAT) = 9.007199E15 | coalesce(i, 7) = 7
nvl(s, 'none') = 'none' | nullif(i, 5) IS NULL | if(bo, i, dec) = 5 | greatest(i, l) = 5 | least(d, f) = 0.1
CASE WHEN i > 0 THEN 'p' WHEN i < 0 THEN 'm' END = 'm' | CASE i WHEN 5 THEN 1 ELSE 0 END = 1 | NULL | i = NULL
i + NULL > 1
size(ai) = 2 | cardinality(ms) = 1 | array_size(ai) = 0 | array_contains(ai, 2) | array_contains(ai, 5L)
array_contains(ad, double('NaN')) | array_contains(at, 'a') | array_position(ai, 2) = 2 | array_max(ai) = 2
array_position(ai, NULL) IS NULL | array_position(ai, CAST(2 AS DECIMAL(12,2))) = 2
array_min(ad) = 0.0 | array_max(ad) = double('NaN') | get(ai, 1) = 2 | try_element_at(ai, -1) = 5 | ms['a'] = 1
ms.a = 5 | element_at(ms, 'a') = 1 | mi[5] = 'abc' | ms['nothing'] IS NULL | map_contains_key(ms, 'b')
size(map_keys(mi)) = 2 | get(map_values(ms), 0) = 1 | get(sa, 0).q = 5 | split(x, '-')[0] = '2024' | size(split(s, 'b')) = 2
st['a'] = 5 | i & 5 = 5 | (b|i) = -1 | i ^ l = 0 | ~i = 6 | shiftleft(i, 3) = 40 | shiftright(l, 60) = -4 | hex(i) = '5'
hex(s) = '616263' | hex(bi) = 'FF' | unhex('616263') = bi | md5(s) = '900150983cd24fb0d6963f7d28e17f72' | sha1(bi) < 'a'
sha2(s, 256) > 'a' | crc32(s) = 891568578 | base64(bi) = 'YWJj' | ascii(s) = 97 | chr(i + 60) = 'A' | octet_length(s) = 3
bit_length(bi) = 24 | instr(s, 'b') = 2 | locate('c', s) = 3 | locate('c', s, 4) = 0 | repeat(s, 2) = 'abcabc'
translate(s, 'ab', 'x') = 'xc' | concat_ws('-', s, n) = 'abc-5' | substring_index(x, '-', 2) = '2024-02'
substring_index(x, '-', -1) = '1' | split_part(x, '-', 3) = '29' | split_part(x, '-', -1) = '31' | nvl2(i, l, 7) = 5
nanvl(d, 1.5D) = 1.5 | rint(d) = 2 | equal_null(i, l) | unix_date(da) = 19782 | date_from_unix_date(i) = '1970-01-06'
unix_seconds(ts) = -1 | unix_millis(ts) = 1709209801120 | unix_micros(ts) < 0 | timestamp_seconds(i) < ts
timestamp_millis(i) > ts | timestamp_micros(l) IS NOT NULL | from_utc_timestamp(ts, 'America/New_York') < tn
to_utc_timestamp(ts, 'Asia/Kolkata') < ts | make_date(2024, 2, 29) = da | next_day(da, 'MO') = '2024-03-04'
dayname(da) = 'Thu' | monthname(da) = 'Feb' | dec = 1.5D | dec IN (1.5D, -0.01D) | dec <= -0.01D | big = 1.5D
CAST(dec AS FLOAT) = -0.01 | CAST(big AS DOUBLE) < 0 | s ILIKE 'STRASSE' | s RLIKE '^A' | s RLIKE 'c$' | s RLIKE '(?i)c%$'
round(most, 4) < -99999999999999999999.9 | round(most, -1) = -100000000000000000000BD | round(most) = 1
most % nullif(round(most, 4), 0) = most | least(dec, 0.500BD, round(most, 1)) < 0
round(dec, -3) = 100000000 | round(dec, 1) = 1.5 | round(big, 30) = 1.5
coalesce(TRY_CAST(w AS DECIMAL(38,10)), round(CAST(w AS DECIMAL(38,10)), 1)) = 0.1 | from_unixtime(late) = '1970-01-01 00:00:00'
from_unixtime(late) < '1970' | most <> -29850283858633046051.877420100191235902BD
nullif(TRY_CAST('epoch' AS TIMESTAMP), ts) < tn | CAST('epoch' AS DATE) > da | ts > 'epoch'
CAST(odd AS FLOAT) = near | CAST(odd AS FLOAT) + 0D = near
CAST(odd AS FLOAT) = CAST(near AS FLOAT) | from_unixtime(late) = '+52415-08-19 05:55:23' | from_unixtime(late, 'y') = '10463'
from_unixtime(late, 'yy') = '15' | from_unixtime(late, 'yyyyy') < '1' | year(timestamp_seconds(late % 300000000000)) = 10463
CAST(timestamp_seconds(late % 300000000000) AS STRING) > '+1' | weekofyear(timestamp_seconds(late % 300000000000)) = 8
CAST(date_from_unix_date(odd % 90000000) AS STRING) < '0' | year(date_from_unix_date(near % 90000000)) < 0
btrim(s, 'a') = 'bc' | locate('b', s, NULL) = 0 | locate('', s, 2) = 1 | unix_timestamp(tn) > 0 | to_date(tn, 'y') = da
timestamp_seconds(dec) < ts | add_months(da, 120000) > da | make_date(-4, 2, 29) < da | greatest(NULL, NULL) IS NULL
""".replace("\n", " | ").split(" | ")
WRITTEN = [text for text in EXPRESSIONS if text]


@pytest.mark.rotation(2)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_spark_gives_the_same_answers(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    table = rows()
    pq.write_table(table, tmp_path / "rows.parquet")
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame = spark.read.parquet(str(tmp_path / "rows.parquet")).coalesce(1)
        answers = [list(row) for row in frame.selectExpr(*[f"({text}) AS a{n}" for n, text in enumerate(WRITTEN)]).collect()]
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    wrong = []
    for number, text in enumerate(WRITTEN):
        ours = evaluate(bind(parse(text), table.schema, timezone=zone), table).to_pylist()
        theirs = [row[number] for row in answers]
        if ours != theirs:
            at = next(n for n, pair in enumerate(zip(ours, theirs, strict=True)) if pair[0] != pair[1])
            wrong.append(f"{text}: row {at} is {theirs[at]} in Spark, {ours[at]} here: {table.slice(at, 1).to_pylist()}")
    assert not wrong, "\n".join(wrong)
