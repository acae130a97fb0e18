"""P15: from the bytes of an HFile of column statistics to Arrow columns, no predicate, everything decoded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks import synthetic
from benchmarks.case import OURS, Case, Settings, rate_at_least
from benchmarks.job import Job


def prepare(settings: Settings) -> None:
    """Make the table."""
    synthetic.make(settings, synthetic.small(settings))


def base_file(settings: Settings) -> Path:
    """The first file group's base file: half of the records."""
    table = synthetic.make(settings, synthetic.small(settings))
    return next((table / ".hoodie" / "metadata" / "column_stats").glob("col-stats-0000-0_*.hfile"))


def unpacked(data: bytes) -> bytes:
    """The same records in an HFile without compression."""
    from hudimeta.formats.hfile import HFileInfo, HFileReader, Packing, write_hfile

    reader = HFileReader(data)
    cells = reader.scan()
    return write_hfile(cells.keys, cells.values, HFileInfo(reader.schema_text), packing=Packing("NONE"))


def _decode(change: Callable[[bytes], bytes]) -> Callable[[Job], None]:
    def run(job: Job) -> None:
        data, records = change(base_file(job.settings).read_bytes()), 0
        for _ in range(job.rounds):
            with job.timed():
                from hudimeta.formats.hfile import HFileReader
                from hudimeta.metadata import column_stats

                reader = HFileReader(data)
                records = column_stats.decode_values(reader.scan(), reader.schema_text or "").num_rows
        job.note("records", records)
        job.note("records per cpu s", records / job.measured.warm.cpu)

    return run


CASES = [
    Case(
        "P15-packed",
        "HFile scan and column statistics decode, from compressed bytes",
        {OURS: _decode(bytes)},
        (rate_at_least("records per cpu s", 0.5e6, ">= 0.5M records a core and second"),),
        prepare=prepare,
    ),
    Case(
        "P15-plain",
        "the same from bytes without compression",
        {OURS: _decode(unpacked)},
        (rate_at_least("records per cpu s", 1e6, ">= 1M records a core and second"),),
        prepare=prepare,
    ),
]
