"""`python -m benchmarks [NAME ...] [--scale S] [--json FILE]`: run cases, print the table of ratios, keep the figures."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.case import MINE, NEEDS_JVM, OURS, Case, Measured, Settings, all_cases, in_turn, select
from benchmarks.job import Absent
from benchmarks.measure import disagreements, run_side

SMOKE_SCALE = 0.01
SECONDS_OF_A_DAY = 86_400


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hudimeta" / "benchmarks"
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure every claim against its rivals.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="cases (P3-286k) or claims (P3); all by default")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the data; goals speak of 1")
    parser.add_argument("--rounds", type=int, default=0, help="calls of each side; the first is cold")
    parser.add_argument("--json", type=Path, help="where to write the figures (default: benchmarks/results/)")
    parser.add_argument("--data", type=Path, default=cache, help="folder for generated tables, kept between runs")
    parser.add_argument("--only-ours", action="store_true", help="leave the rivals out")
    parser.add_argument("--without", action="append", default=[], metavar="SIDE", help="leave a side out: 'Hudi 1.0.2'")
    parser.add_argument("--smoke", action="store_true", help="tiny data, two rounds, no rival in Java: does it run at all?")
    parser.add_argument(
        "--parts", type=int, default=1, help="take the claims that have their turn today, each every so many days"
    )
    parser.add_argument("--list", action="store_true", help="list the cases")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run; 1 when a side failed, answers differ, or a count is above its goal. A missed time is a figure, no failure."""
    asked = parse(arguments)
    try:
        cases = in_turn(select(all_cases(), asked.names), asked.parts, int(time.time()) // SECONDS_OF_A_DAY)
    except LookupError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if asked.list:
        print("\n".join(f"{case.name:14} {case.title}" for case in cases))
        return 0
    settings = Settings(asked.scale, asked.data.expanduser().resolve(), asked.rounds)
    if asked.smoke:
        settings = replace(settings, scale=min(asked.scale, SMOKE_SCALE), rounds=2)
    broken, rows = 0, []
    for case in cases:
        left_out = set(asked.without)
        left_out |= set(case.sides) - MINE if asked.only_ours else set()
        left_out |= {*NEEDS_JVM, *case.not_in_smoke} if asked.smoke else set()
        unready = _prepare(case, settings)
        sides = {
            side: Measured(error=unready) if unready else run_side(case, side, settings)
            for side in case.sides
            if side not in left_out
        }
        if OURS in left_out:  # for what takes so long that its sides are run one by one
            sides = {OURS: Measured(error="absent: left out"), **sides}
        print("\n".join([*report.lines(case, sides, settings.scale == 1), *report.load()]), end="\n\n", flush=True)
        differing, verdicts = disagreements(sides), report.verdicts(case, sides, settings.scale == 1)
        broken += sum(goal.binding and verdicts[goal.text] == "MISSED" for goal in case.goals)
        broken += bool(differing) + sum(bool(m.error) and not m.error.startswith("absent") for m in sides.values())
        rows.append(
            {
                "case": case.name,
                "title": case.title,
                "sides": {name: measured.to_json() for name, measured in sides.items()},
                "goals": verdicts,
                "disagreements": differing,
            }
        )
    _keep(asked, settings, rows)
    if broken:
        print(f"{broken} failed")
    return 1 if broken else 0


def _prepare(case: Case, settings: Settings) -> str:
    """Make the case's data; why that failed, or ""."""
    try:
        if case.prepare is not None:
            case.prepare(settings)
    except Absent as error:
        return f"absent: {error}"
    except Exception as error:
        traceback.print_exc()
        return f"no data: {type(error).__name__}: {error}"[:500]
    return ""


def _keep(asked: argparse.Namespace, settings: Settings, rows: list[dict[str, Any]]) -> None:
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    file = asked.json or Path(__file__).parent / "results" / f"{stamp}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    figures = {"when": stamp, "machine": report.machine(), "scale": settings.scale, "cases": rows}
    file.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    print(f"figures: {file}")


if __name__ == "__main__":
    sys.exit(main())
