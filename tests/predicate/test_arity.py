"""How many arguments each function takes: one more or one less is refused by name."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hudimeta.errors import PredicateError
from hudimeta.predicate import bind_value, parse
from hudimeta.predicate.functions import FUNCTIONS
from hudimeta.predicate.number_text import decimal_of_text

MANY = 1000
ARITY = {
    (1, 1): (
        "abs array_max array_min array_size ascii base64 bit_length cardinality ceil ceiling char char_length character_length "
        "chr crc32 date_from_unix_date day day_of_week dayname dayofmonth dayofweek dayofyear floor hex hour identity isnan "
        "last_day lcase length lower map_keys map_values md5 minute month monthname negative octet_length positive quarter "
        "reverse rint second sha sha1 sign signum size sqrt timestamp_micros timestamp_millis timestamp_seconds ucase unhex "
        "unix_date unix_micros unix_millis unix_seconds upper week weekday weekofyear year ~"
    ),
    (1, 2): "btrim from_unixtime ltrim round rtrim to_date to_timestamp to_unix_timestamp trim unix_timestamp",
    (1, MANY): "coalesce concat concat_ws",
    (2, 2): (
        "& . [] ^ add_months array_contains array_position date_add date_diff date_format date_sub date_trunc dateadd datediff "
        "element_at from_utc_timestamp get ifnull instr left map_contains_key mod nanvl next_day nullif nvl pmod repeat right "
        "sha2 shiftleft shiftright to_utc_timestamp trunc try_element_at |"
    ),
    (2, 3): "locate lpad position regexp_extract replace rpad split substr substring",
    (2, MANY): "greatest least",
    (3, 3): "if make_date nvl2 regexp_replace split_part substring_index translate",
}
"""Fewest and most arguments, and who takes so many."""
NAMED = {name: arity for arity, names in ARITY.items() for name in names.split()}


CONSTANT = {
    (0,): "concat_ws date_trunc",
    (1,): (
        ". date_format from_unixtime from_utc_timestamp left next_day repeat right round sha2 to_date to_timestamp "
        "to_unix_timestamp to_utc_timestamp trunc unix_timestamp"
    ),
    (1, 2): "lpad regexp_extract regexp_replace replace rpad split split_part substr substring substring_index translate",
}
"""Which arguments must be constants, counted from 0, and of whom: what they compute is prepared once for all rows."""


def test_the_same_arguments_must_be_constants() -> None:
    named = {name: places for places, names in CONSTANT.items() for name in names.split()}
    assert {name: tuple(sorted(f.constants)) for name, f in FUNCTIONS.items() if f.constants} == named


def test_every_function_takes_as_many_arguments_as_it_should() -> None:
    assert {name: function.arity for name, function in FUNCTIONS.items()} == NAMED


@pytest.mark.parametrize("name", ["sha1", "array_max", "unix_date", "date_from_unix_date", "octet_length"])
def test_one_argument_more_is_refused(name: str) -> None:
    with pytest.raises(PredicateError, match=name):
        bind_value(parse(f"{name}(s, s)"), pa.schema([("s", pa.string())]))


@pytest.mark.parametrize("text", ["1_0", " 1", "1 ", "1e", "NaN", "Infinity", ""])
def test_what_java_reads_as_no_decimal_is_none(text: str) -> None:
    assert decimal_of_text(text) is None
