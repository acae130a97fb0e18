"""Many processes at one table, killed at random; see `storm`, whose combinations run as a whole by `make writers-full`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.concurrency.storm import KEYS, PARTITIONS, Weather, check, storm


@pytest.mark.parametrize(
    "weather",
    [
        Weather(2, KEYS, "MERGE_ON_READ", True, commits=6, kill_each_s=0.7),
        Weather(3, PARTITIONS, "COPY_ON_WRITE", False, commits=6, kill_each_s=0.7),
    ],
    ids=str,
)
def test_nothing_is_lost_or_doubled_where_writers_are_killed(tmp_path: Path, weather: Weather) -> None:
    told = storm(tmp_path, weather)
    check(str(tmp_path / "t"), weather, told)
    assert told.acknowledged
