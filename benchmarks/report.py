"""The table of ratios, and the same as JSON. Bytes read and written are the median of the warm calls."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.case import OURS, Case, Goal, Measured
from benchmarks.measure import disagreements

HEADINGS = ("side", "cold wall", "cold cpu", "warm wall", "warm cpu", "peak rss", "read", "written", "x wall", "x cpu")
WIDTHS = (18, 10, 10, 10, 10, 11, 11, 11, 7, 7)
RIVALS = ("deltalake", "pyiceberg", "duckdb", "polars")
PACKAGES = ("hudimeta", "pyarrow", "numpy", "pyspark", "hudi", "fastavro", *RIVALS)


def machine() -> dict[str, Any]:
    """Where the figures were taken."""
    facts: dict[str, Any] = {"cores": os.cpu_count(), "load": os.getloadavg(), "python": platform.python_version()}
    for name in PACKAGES:
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            facts[name] = None
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            facts["cpu"] = line.split(":", 1)[1].strip()
            break
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemTotal"):
            facts["memory_gb"] = round(int(line.split()[1]) / 1e6, 1)
    return facts


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if os.path.exists(path) else []


def load() -> list[str]:
    """A warning when others were at work: then wall times say little, CPU times still do."""
    busy, cores = os.getloadavg()[0], os.cpu_count() or 1
    return [f"  load {busy:.1f} on {cores} cores: wall times are too high"] if busy > cores + 1 else []


def seconds(value: float) -> str:
    """`3.1 ms`, `0.42 s`, `13.9 s`."""
    if value < 0.1:
        return f"{value * 1000:.1f} ms"
    return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"


def lines(case: Case, sides: Mapping[str, Measured], full_scale: bool) -> list[str]:
    """One case as text: a line a side, then its goals."""
    out = [f"{case.name}  {case.title}", "  " + "".join(h.ljust(w) for h, w in zip(HEADINGS, WIDTHS, strict=True))]
    ours = sides[OURS]
    for name, measured in sides.items():
        if measured.error:
            out.append(f"  {name.ljust(WIDTHS[0])}{measured.error}")
            continue
        cells = [name, *(seconds(measured.value(m)) for m in ("cold.wall", "cold.cpu", "warm.wall", "warm.cpu"))]
        cells += [_size(measured.rss), _size(measured.warm.read), _size(measured.warm.written)]
        if name != OURS and not ours.error:
            cells += [_ratio(measured.warm.wall, ours.warm.wall), _ratio(measured.warm.cpu, ours.warm.cpu)]
        out.append("  " + "".join(c.ljust(w) for c, w in zip(cells, WIDTHS, strict=False)).rstrip())
        if measured.notes:
            out.append("    " + ", ".join(f"{key} {_plain(value)}" for key, value in measured.notes.items()))
    out += [f"  answers differ: {text}" for text in disagreements(sides)]
    found = verdicts(case, sides, full_scale)
    out += [f"  goal {goal.text}: {found[goal.text]}{_reached(goal, sides)}" for goal in case.goals]
    return out


def _reached(goal: Goal, sides: Mapping[str, Measured]) -> str:
    ratio = goal.ratio(sides)
    return "" if ratio is None else f", {ratio:.2f}x"


def verdicts(case: Case, sides: Mapping[str, Measured], full_scale: bool) -> dict[str, str]:
    """Each goal with `met`, `MISSED`, or why nothing can be said."""
    found = {}
    for goal in case.goals:
        if goal.only_at_full_scale and not full_scale:
            found[goal.text] = "not at this scale"
            continue
        met = goal.met(sides)
        found[goal.text] = "no figure" if met is None else "met" if met else "MISSED"
    return found


def _size(count: float | None) -> str:
    if count is None:
        return "-"
    unit, name = (1e3, "kB") if count < 1e6 else (1e6, "MB")
    return f"{count / unit:,.3g} {name}" if count < 1e8 else f"{count / unit:,.0f} {name}"


def _ratio(theirs: float, ours: float) -> str:
    return f"{theirs / ours:.1f}x" if ours > 0 else "-"


def _plain(value: Any) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
