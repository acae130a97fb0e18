"""File slices of generated listings, against a plain rule that looks at one file group after the other."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.errors import UnsupportedFeature
from hudimeta.table import slices
from hudimeta.table.file_names import parse_base_file, parse_log_file, parse_names
from hudimeta.table.slices import build_slices, place_files
from hudimeta.table.visibility import Visibility

INSTANTS = [f"2026010203040{n}000" for n in range(10)]
DONE = 8
"""The last two began and did not end."""
DELAYS = st.lists(st.integers(0, 4), min_size=DONE, max_size=DONE)
"""How many later instants begin before an instant ends."""

GROUP = st.lists(
    st.tuples(st.sampled_from(["base", "log"]), st.integers(0, 9), st.integers(1, 999)),
    min_size=1,
    max_size=5,
    unique_by=lambda f: f[:2],
)
LISTING = st.dictionaries(st.tuples(st.sampled_from(["", "a", "b/c", "d=1"]), st.integers(0, 5)), GROUP, max_size=8)


def completions(delays: list[int]) -> dict[str, str]:
    ends = (at + delay for at, delay in enumerate(delays))
    return {INSTANTS[at]: f"{INSTANTS[min(end, 9)][:-3]}500" for at, end in enumerate(ends)}


def rows_of(listing: dict[tuple[str, int], list[tuple[str, int, int]]], scattered: bool) -> list[dict[str, Any]]:
    rows = []
    for (partition, number), files in sorted(listing.items()):
        for kind, at, size in files:
            base, log = f"f{number}-0_0-1-{at}_{INSTANTS[at]}.parquet", f".f{number}-0_{INSTANTS[at]}.log.1_0-1-{at}"
            rows.append({"partition_path": partition, "name": base if kind == "base" else log, "size": size})
    return rows[::2] + rows[1::2] if scattered else rows


def expected(
    listing: dict[tuple[str, int], list[tuple[str, int, int]]], completed: dict[str, str]
) -> dict[tuple[str, str], dict[str, Any]]:
    found = {}
    for (partition, number), files in listing.items():
        done = sorted((at, kind, size) for kind, at, size in files if INSTANTS[at] in completed)
        bases = [f for f in done if f[1] == "base"]
        newest = max(bases, default=None)
        # A log belongs to the newest base that began before the log ended.
        logs = [f for f in done if f[1] == "log" and (newest is None or completed[INSTANTS[f[0]]] >= INSTANTS[newest[0]])]
        if newest or logs:
            found[partition, f"f{number}-0"] = {
                "base_instant": INSTANTS[(newest or logs[0])[0]],
                "base_size": newest[2] if newest else None,
                "log_sizes": [size for _, _, size in logs],
            }
    return found


@given(
    LISTING, st.booleans(), st.sampled_from([1, 3, 1 << 15]), DELAYS, st.integers(0, DONE), st.sets(st.integers(0, DONE - 1))
)
def test_slices_are_those_of_the_plain_rule(
    listing: dict[tuple[str, int], list[tuple[str, int, int]]],
    scattered: bool,
    segment: int,
    delays: list[int],
    archived: int,
    unseen: set[int],
) -> None:
    """Writes that count as pending are unseen, be they older than the active timeline, as savepointed ones may be."""
    completed = completions(delays)
    active = {instant: done for instant, done in completed.items() if instant >= INSTANTS[archived]}
    now = Visibility(active, INSTANTS[archived], history=lambda times: {time: completed[time] for time in times})
    left_out = {INSTANTS[number] for number in unseen}
    now, completed = now.without(left_out), {time: done for time, done in completed.items() if time not in left_out}
    files = pa.Table.from_pylist(
        rows_of(listing, scattered),
        pa.schema([("partition_path", pa.string()), ("name", pa.string()), ("size", pa.int64())]),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "_SEGMENT_ROWS", segment)
        found = build_slices(files, now)
    assert found.schema == slices.slices_schema()
    kept = ("base_instant", "base_size", "log_sizes")
    got = {(row["partition_path"], row["file_id"]): {name: row[name] for name in kept} for row in found.to_pylist()}
    assert got == expected(listing, completed)
    assert found.num_rows == len(got)


DIGITS = ["1", "20260102", "20260102030405", "2026010203040506", "20260102030405006", "202601020304050067", "2026010203040500x"]
FILE_IDS = ["a", "6e1d0c42-0", "0", "6e1d0c42-3bd5-4d71-9f6c-0c8f35d4ab10-0"]


@st.composite
def names(draw: st.DrawFn) -> str:
    """A name of a file: mostly a good one."""
    file_id, instant = draw(st.sampled_from(FILE_IDS)), draw(st.sampled_from(DIGITS))
    base, log = f"{file_id}_0-1-{draw(st.integers(0, 99))}_{instant}", f".{file_id}_{instant}.log.2_0-1-1"
    good = [f"{base}.parquet", log, f"{log}.cdc"]
    return draw(st.sampled_from([*good, *good, "_SUCCESS", "", base, f"{file_id}_0-1-1_.parquet"]))


@given(st.lists(names(), max_size=20))
def test_many_names_are_parsed_as_one_is(listing: list[str]) -> None:
    parsed = parse_names(pa.array(listing, pa.string()))
    for at, name in enumerate(listing):
        one = parse_base_file(name) or parse_log_file(name)
        if one is None or len(one.instant) > 17:
            assert not parsed.valid[at]
            continue
        assert parsed.valid[at]
        assert parsed.file_ids[at].as_py() == one.file_id
        assert parsed.instant_digits[at] == len(one.instant)
        assert parsed.instants[at] == int(one.instant.ljust(17, "0"))
        assert parsed.is_log[at] == name.startswith(".")
        assert parsed.is_cdc[at] == name.endswith(".cdc")


@pytest.mark.parametrize("name", ["part-0.parquet", "part_1.parquet", "part-0.parquet_20260102030400000_fg%3Dbucket"])
def test_files_that_other_tools_wrote_are_refused_and_not_passed_over(name: str) -> None:
    """As the metadata table lists them where Apache XTable made one for their Parquet files."""
    row = {"partition_path": "", "name": f"{name}_{INSTANTS[0]}_hudiext", "size": 5}
    mark = {"partition_path": "", "name": ".hoodie_partition_metadata", "size": 5}
    visibility = Visibility(completions([0] * DONE), INSTANTS[0])
    for read in (build_slices, place_files):
        read(pa.Table.from_pylist([mark]), visibility)
        with pytest.raises(UnsupportedFeature, match="did not write, such as part"):
            read(pa.Table.from_pylist([mark, row]), visibility)
