"""Patterns of `date_format` and its kin beside the answers of Spark 4.1: what it refuses is refused, all else is the same."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import PredicateError, UnsupportedFeature
from hudimeta.predicate.datetime_pattern import compile_pattern, format_local, parse_with_pattern

MOMENT = pa.array([dt.datetime(2021, 8, 9, 15, 6, 7, 123456), None], pa.timestamp("us"))
WRITTEN = (
    "y=2021 yy=21 yyyyyy=002021 M=8 MM=08 MMM=Aug MMMM=August L=8 LL=08 LLLL=August d=9 dd=09 H=15 HH=15 m=6 mm=06 s=7 ss=07 "
    "E=Mon EEEE=Monday a=PM D=221 DDD=221 h=3 hh=03 k=15 kk=15 K=3 KK=03 Q=3 QQ=03 QQQ=Q3 q=3 qq=03 qqq=Q3 S=1 "
    "SSSSSSSSS=123456000 ''=' é=é 日=日 yyyy''dd=2021'09 1=1 yyyy.MM=2021.08 y|M=2021|8 y~M=2021~8 yyyy'{'=2021{ %=%"
)
TEXTS = {**dict(pair.split("=") for pair in WRITTEN.split()), "QQQQ": "3rd quarter", "qqqq": "3rd quarter", "y é": "2021 é"}
REFUSED = "yyyyyyy u uuuu MMMMM LLLLL ddd HHH mmm sss EEEEE aa DDDD hhh kkk KKK QQQQQ qqqqq SSSSSSSSSS b Y ww e c W F n N A B p"
ODD = ["yyyy{", "yyyy}", "yyyy#", "yyyy]", "qqqq{", "yyyy-MM-dd'", "'", "'a"]
NOT_DONE = ["yyyy[-MM]", "yyyy["]
"""Spark takes them: parts that may be absent."""


@pytest.mark.parametrize(("pattern", "text"), TEXTS.items())
def test_what_is_written(pattern: str, text: str) -> None:
    assert format_local(MOMENT, compile_pattern(pattern)).to_pylist() == [text, None]


@pytest.mark.parametrize("pattern", [*REFUSED.split(), *ODD, *NOT_DONE])
def test_what_spark_refuses_is_refused(pattern: str) -> None:
    """Brackets and braces came out as they stand, too many letters as numbers with too many zeros."""
    with pytest.raises(PredicateError, match="datetime pattern"):
        compile_pattern(pattern)


def test_a_fraction_has_as_many_digits_as_its_letters_or_fewer() -> None:
    texts = pa.array(["07.5", "07.123", "07.1234", "07."])
    assert [value and value.microsecond for value in parse_with_pattern(texts, compile_pattern("ss.SSS")).to_pylist()] == [
        500_000,
        123_000,
        None,
        None,
    ]


def test_filters_and_indexes_say_so(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a"], "ts": [0]})
    table = hudimeta.Table.create(tmp_path / "t", rows.schema, key="id", indexes=["column_stats"])
    table.insert(rows)
    with pytest.raises(PredicateError, match=r"datetime pattern.*qqqq\{"):
        table.scan("from_unixtime(ts, 'qqqq{') = '1'").to_table()
    with pytest.raises(UnsupportedFeature, match=r"from_unixtime\(ts\) with .*qqqq\{"):
        table.metadata.create_index("quarters", "column_stats", "ts", expression="from_unixtime", options={"format": "qqqq{"})
    assert "expr_index_quarters" not in hudimeta.Table(table.path).properties.metadata_partitions
    made = table.metadata.create_index("texts", "column_stats", "ts", expression="from_unixtime", options={"format": "qqqq"})
    assert made is not None
    assert table.scan("from_unixtime(ts, 'qqqq') = '1st quarter'").count() == 1
