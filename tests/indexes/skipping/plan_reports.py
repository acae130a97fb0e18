"""What the report of a plan says of indexes."""

from __future__ import annotations

from pathlib import Path

import hudimeta

TRUST = {"hudimeta.index.trust": "true"}


def left_out(report: hudimeta.ScanReport) -> set[str]:
    """Names of the indexes that left something out."""
    return {skip.by for skip in report.skipped}


def note_of(report: hudimeta.ScanReport, index: str) -> str:
    """Why an index was not used."""
    (note,) = [n for n in report.notes if n.startswith(f"{index} not used: ")]
    return note


def plan_report(path: Path, where: str, **options: str) -> hudimeta.ScanReport:
    """The report of a plan under options of `hudimeta.index`."""
    given = {f"hudimeta.index.{name}": value for name, value in options.items()}
    return hudimeta.Table(path, given).scan(where=where).plan().report
