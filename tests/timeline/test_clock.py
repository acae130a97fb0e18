"""Instants grow whatever the clock does, and every spelling of a moment that Hudi takes is understood."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.errors import ConfigError
from hudimeta.timeline.clock import (
    InstantGenerator,
    SystemClock,
    format_instant,
    normalise_instant,
    parse_instant,
    range_bound,
    timeline_zone,
)

UTC = timezone.utc
BERLIN = ZoneInfo("Europe/Berlin")
ZONES = (UTC, ZoneInfo("Asia/Kolkata"), timezone(timedelta(hours=-7)))
YEAR_MS = 365 * 86_400_000


class StepClock:
    """Shows the given moments, one a call, and then stands still."""

    def __init__(self, *moments_ms: int) -> None:
        self._moments = list(moments_ms)

    def now_ms(self) -> int:
        return self._moments.pop(0) if len(self._moments) > 1 else self._moments[0]


@pytest.fixture
def new_york_machine() -> Iterator[None]:
    """The machine's zone is America/New_York."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "America/New_York"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


def epoch_ms(*wall: int) -> int:
    return round(datetime(*wall, tzinfo=UTC).timestamp() * 1000)  # type: ignore[misc, arg-type]


@given(st.integers(0, 400 * YEAR_MS), st.sampled_from(ZONES))
def test_a_moment_survives_its_digits(moment: int, zone: tzinfo) -> None:
    digits = format_instant(moment, zone)
    assert len(digits) == 17
    assert parse_instant(digits, zone) == moment


def test_digits_are_those_of_the_tables_zone(new_york_machine: None) -> None:
    moment = epoch_ms(2024, 1, 2, 3, 4, 5) + 6
    assert format_instant(moment, UTC) == "20240102030405006"
    assert format_instant(moment, BERLIN) == "20240102040405006"
    assert format_instant(moment, timeline_zone("LOCAL")) == "20240101220405006"
    assert parse_instant("20240101220405006", timeline_zone(None)) == moment


def test_fourteen_digits_mean_the_end_of_their_second() -> None:
    assert parse_instant("20240102030405", UTC) == epoch_ms(2024, 1, 2, 3, 4, 5) + 999
    assert parse_instant("20240102030405006010", UTC) == epoch_ms(2024, 1, 2, 3, 4, 5) + 6, "suffix of a metadata table"


@pytest.mark.parametrize("text", ["", "abc", "2024", "202401020304050", "20241302030405006", "00000000000000000"])
def test_what_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="yyyyMMddHHmmssSSS"):
        parse_instant(text, UTC)


@pytest.mark.parametrize(("name", "is_utc"), [("UTC", True), ("utc", True), ("LOCAL", False), (None, False), ("", False)])
def test_zone_of_a_table(name: str | None, is_utc: bool) -> None:
    assert timeline_zone(name) == (UTC if is_utc else None)


def test_unknown_zone_is_refused() -> None:
    with pytest.raises(ConfigError, match="UTC or LOCAL"):
        timeline_zone("Mars/Olympus")


@given(
    st.lists(st.integers(0, 60 * YEAR_MS), min_size=1, max_size=20),
    st.sampled_from((*ZONES, BERLIN, None)),
    st.lists(st.integers(0, 60 * YEAR_MS).map(lambda ms: format_instant(ms, UTC)), max_size=3),
)
def test_instants_only_grow(moments: list[int], zone: tzinfo | None, on_timeline: list[str]) -> None:
    generator = InstantGenerator(StepClock(*moments), zone)
    given_out = [generator.next(*on_timeline) for _ in range(len(moments) + 2)]
    assert given_out == sorted(set(given_out))
    assert all(one > old for one in given_out for old in on_timeline)


def test_the_hour_that_comes_twice() -> None:
    """In Berlin 2024-10-27 02:00 to 02:59 came twice: the digits go on growing through the second time."""
    first_pass = epoch_ms(2024, 10, 27, 0, 59, 59) + 999
    generator = InstantGenerator(StepClock(first_pass, first_pass + 1, first_pass + 2, first_pass + 3_600_001), BERLIN)
    assert generator.next() == "20241027025959999"
    assert [generator.next(), generator.next()] == ["20241027030000000", "20241027030000001"]
    assert generator.next() == "20241027030000002", "the clock shows 03:00:00.000 now, which is taken"


def test_a_clock_that_is_behind_follows_the_timeline_by_a_millisecond() -> None:
    generator = InstantGenerator(StepClock(epoch_ms(2024, 1, 1)))
    assert generator.next("20240228235959999") == "20240229000000000"
    assert generator.next(None, "") == "20240229000000001"
    assert generator.next("20250101000000") == "20250101000001000", "14 digits stand for their whole second"
    assert generator.next("20250101000001000010") == "20250101000001001", "metadata instants of version 6 have suffixes"
    assert generator.next("00000000000000003") == "20250101000001002"


def test_nothing_can_follow_a_nonsense_instant() -> None:
    with pytest.raises(ConfigError, match="99999999999999999"):
        InstantGenerator(SystemClock()).next("99999999999999999")


def test_threads_never_share_an_instant() -> None:
    generator = InstantGenerator(SystemClock())
    with ThreadPoolExecutor(8) as pool:
        given_out = list(pool.map(lambda _: generator.next(), range(400)))
    assert len(set(given_out)) == 400


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("20240102030405006", "20240102030405006"),
        (" 20240102030405006 ", "20240102030405006"),
        ("20240102030405", "20240102030405"),  # as text before every instant of that second
        ("2024-01-02", "20240102000000000"),
        ("2024-01-02 03:04:05", "20240102030405999"),
        ("2024-01-02T03:04:05", "20240102030405999"),
        ("2024-01-02 03:04:05.006", "20240102030405006"),
        ("2024-01-02T03:04:05.006", "20240102030405006"),
        ("2024-01-02T03:04:05.006789", "20240102030405006"),
        ("2024-01-02T03:04", "20240102030400000"),
        ("2024-01-02T03:04:05.006Z", "20240102030405006"),
        ("2024-01-02T03:04:05+01:00", "20240102020405999"),
        ("2024-01-02 03:04:05.5-0530", "20240102083405500"),
        ("2024-01-02T03:04:05+01", "20240102020405999"),
    ],
)
def test_spellings_of_a_moment(spelling: str, expected: str) -> None:
    assert normalise_instant(spelling) == expected


def test_spellings_with_a_zone_become_the_tables_wall_clock() -> None:
    assert normalise_instant("2024-07-02T03:04:05Z", BERLIN) == "20240702050405999"
    assert normalise_instant("2024-07-02 03:04:05", BERLIN) == "20240702030405999"


@pytest.mark.parametrize(
    "spelling",
    ["", "now", "2024", "2024-1-2", "20240230000000000", "2024-02-30", "2024-01-02T25:00:00", "202401020304050067", "٢٠٢٤٠١٠٢"],
)
def test_bad_spellings_are_answered_with_the_good_ones(spelling: str) -> None:
    with pytest.raises(ConfigError) as caught:
        normalise_instant(spelling)
    assert caught.value.key == "as.of.instant"
    for allowed in ("yyyyMMddHHmmssSSS", "yyyy-MM-dd", "ISO 8601"):
        assert allowed in str(caught.value)


@pytest.mark.parametrize(
    "bound",
    ["0", "000", "00000000000001", "2026", "20261", "2026112", "2026112821", "20261128212240161", "99999", "99999999999999999"],
)
def test_digits_that_bound_a_range_stay(bound: str) -> None:
    assert range_bound(f" {bound} ", UTC, "begin") == bound


@pytest.mark.parametrize("spelling", ["1712010112", "1712010112000"])
def test_seconds_and_milliseconds_since_1970_are_moments(spelling: str) -> None:
    """As in Hudi 1.2.0, in ranges too, where these digits could be those of a day of 1712."""
    assert normalise_instant(spelling) == range_bound(spelling, UTC, "begin") == "20240401222152000"
    assert normalise_instant(spelling, BERLIN) == "20240402002152000"


@pytest.mark.parametrize("bound", ["5", "17", "202", "2026-13-01", "20261345", "20260230", "yesterday", ""])
def test_what_bounds_nothing_is_refused(bound: str) -> None:
    with pytest.raises(ConfigError, match=rf"argument 'begin' has the value '{bound}', allowed is .*yyyyMMddHHmmssSSS"):
        range_bound(bound, UTC, "begin")
