"""Which blocks of a slice count, and in which order."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from hudimeta.errors import UnsupportedFeature
from hudimeta.formats.log import BlockType, HeaderKey, encode_block, encode_command_block, read_blocks
from hudimeta.slices.log_records import SliceBlocks, SliceLog, scan_slice_logs
from hudimeta.table.file_names import LogFileName


def data(instant: str, merged: Iterable[str] = (), kind: BlockType = BlockType.AVRO_DATA) -> bytes:
    header = {HeaderKey.INSTANT_TIME: instant}
    if merged:
        header[HeaderKey.COMPACTED_BLOCK_TIMES] = ",".join(merged)
    return encode_block(kind, header, instant.encode())


def log(name_instant: str, *blocks: bytes, version: int = 1, token: str = "1-0-1", is_cdc: bool = False) -> SliceLog:
    name = LogFileName("f", name_instant, version, token, is_cdc)
    return SliceLog(name, read_blocks(b"".join(blocks), str(name)))


def scan(*logs: SliceLog, hidden: Iterable[str] = (), as_of: str | None = None) -> SliceBlocks:
    return scan_slice_logs(logs, visible=lambda instant: instant not in set(hidden), as_of=as_of)


def instants(found: SliceBlocks) -> list[str]:
    return [block.instant for block in found.blocks]


def test_files_come_by_instant_version_and_token_whatever_their_order() -> None:
    logs = [
        log("2", data("20")),
        log("1", data("12"), version=2),
        log("1", data("11"), token="2-0-1"),
        log("1", data("10")),
    ]
    assert instants(scan(*logs)) == ["10", "11", "12", "20"]


def test_versions_compare_as_numbers_and_tokens_as_text() -> None:
    assert instants(scan(log("1", data("3"), version=10), log("1", data("2"), version=9))) == ["2", "3"]
    assert instants(scan(log("1", data("2"), token="9-0-1"), log("1", data("1"), token="10-0-1"))) == ["1", "2"]


def test_blocks_of_one_instant_stay_together_in_the_place_of_the_first() -> None:
    found = scan(log("1", data("1"), data("2"), data("1", kind=BlockType.DELETE)))
    assert [(b.instant, b.type.name) for b in found.blocks] == [("1", "AVRO_DATA"), ("1", "DELETE"), ("2", "AVRO_DATA")]


def test_pending_and_later_instants_are_not_seen() -> None:
    found = scan(log("1", data("1"), data("2"), data("3"), data("4")), hidden=["2"], as_of="3")
    assert (instants(found), found.invisible) == (["1", "3"], 2)


def test_a_rollback_block_takes_back_what_its_target_wrote_before_it() -> None:
    found = scan(log("1", data("1"), data("2"), encode_command_block("3", "2"), data("2"), data("4")))
    assert (instants(found), found.rolled_back) == (["1", "2", "4"], 1)
    assert len(found.blocks) == 3


def test_a_log_compaction_takes_the_place_of_the_newest_block_it_was_made_of() -> None:
    found = scan(log("1", data("1")), log("2", data("2")), log("3", data("3")), log("5", data("5", ["2", "1"])))
    assert (instants(found), found.superseded) == (["5", "3"], 2)


def test_a_second_log_compaction_stands_for_the_first_and_its_originals() -> None:
    logs = [log("1", data("1")), log("2", data("2")), log("5", data("5", ["2", "1"])), log("7", data("7"))]
    found = scan(*logs, log("9", data("9", ["7", "5"])), log("8", data("8")))
    assert instants(found) == ["9", "8"]


def test_a_second_log_compaction_is_as_old_as_the_originals_of_the_first() -> None:
    """What a write had begun before the first one, and ended after the second, is later than all that they merged."""
    logs = [log("1", data("1")), log("2", data("2")), log("3", data("3")), log("5", data("5", ["2", "1"]))]
    assert instants(scan(*logs, log("9", data("9", ["5"])), log("8", data("8")))) == ["9", "3", "8"]
    assert instants(scan(*logs[2:], log("9", data("9", ["5"])), log("8", data("8")))) == ["3", "9", "8"], "they are gone"


def test_time_travel_before_a_log_compaction_reads_the_originals() -> None:
    logs = [log("1", data("1")), log("2", data("2")), log("5", data("5", ["2", "1"]))]
    assert instants(scan(*logs, as_of="4")) == ["1", "2"]
    assert instants(scan(*logs, hidden=["5"])) == ["1", "2"]


def test_a_log_compaction_whose_originals_are_gone_still_counts() -> None:
    assert instants(scan(log("5", data("5", ["2", "1"])), log("6", data("6")))) == ["5", "6"]


def test_change_images_are_no_rows_and_corrupt_spans_are_reported() -> None:
    torn = data("2")[:-5]
    found = scan(log("1", data("1"), torn), log("1", data("3"), is_cdc=True))
    assert instants(found) == ["1"]
    assert [(span.offset, span.size) for span in found.corrupt] == [(len(data("1")), len(torn))]


def test_an_unknown_command_is_refused() -> None:
    header = {HeaderKey.INSTANT_TIME: "1", HeaderKey.COMMAND_BLOCK_TYPE: "1", HeaderKey.TARGET_INSTANT_TIME: "1"}
    with pytest.raises(UnsupportedFeature, match="log command '1'"):
        scan(log("1", encode_block(BlockType.COMMAND, header, b"")))
