"""`python -m benchmarks.scale [PHASE ...] [--smoke] [--json FILE]`: measure the constants, print the model and its errors."""

from __future__ import annotations

import argparse
import json
import math
import os
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.scale.measured import measure
from benchmarks.scale.model import BATCH, KEYS_A_FILE, PLACES, Model, fitted, limit
from benchmarks.scale.phases import PHASES

SMOKE = 100
"""A smoke run is so many times smaller."""
SECONDS, MEMORY = 60.0, 8e9
"""What one process may take for a phase before it is the first thing that breaks."""
LATENCIES = (0.005, 0.02, 0.1)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and keep the figures."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hudimeta" / "benchmarks"
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="PHASE", help="beginnings of names of phases; all by default")
    parser.add_argument("--smoke", action="store_true", help=f"tables {SMOKE} times smaller: does it run at all?")
    parser.add_argument("--data", type=Path, default=cache, help="folder for generated tables, kept between runs")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    asked = parser.parse_args(arguments)
    asked.data.mkdir(parents=True, exist_ok=True)
    models = []
    for phase in PHASES:
        if asked.names and not any(phase.name.startswith(name) for name in asked.names):
            continue
        if asked.smoke:
            phase = replace(phase, sizes=tuple(max(1000, size // SMOKE) * (n + 1) for n, size in enumerate(phase.sizes)))
        costs = [measure(phase, size, asked.data) for size in phase.sizes]
        models.append(fitted(phase, costs))
        _print_model(models[-1])
    _print_limits(models)
    _print_places(models)
    if asked.json:
        figures = [
            {"phase": m.phase.name, "of": m.phase.of, "lines": {k: asdict(line) for k, line in m.lines.items()}} for m in models
        ]
        asked.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    return 0


def _print_model(model: Model) -> None:
    phase, lines = model.phase, model.lines
    print(f"\n{phase.name}, by {phase.of}{', in tasks' if phase.spread else ''}")
    for name, unit, factor in (
        ("cpu", "s", 1e6),
        ("memory", "B", 1),
        ("requests", "", 1e6),
        ("read", "B", 1),
        ("written", "B", 1),
    ):
        line, error = lines[name], model.error(name)
        each = f"{line.each * factor:,.2f} {unit}{' a million' if factor > 1 else ' each'}"
        missed = "" if math.isnan(error) else f", misses {phase.sizes[-1]:,} by {error:+.0%}"
        print(f"  {name:9} {line.fixed:14,.2f} {unit} + {each}{missed}")


def _print_limits(models: list[Model]) -> None:
    print(f"\nWhere one process takes {SECONDS:.0f} CPU seconds, or {MEMORY / 1e9:.0f} GB")
    for model in models:
        within = [_number(limit(model.lines[name], most)) for name, most in (("cpu", SECONDS), ("memory", MEMORY))]
        print(f"  {model.phase.name:46} {within[0]:>10} {within[1]:>10}  {model.phase.of}")


def _print_places(models: list[Model]) -> None:
    print(
        f"\nSeconds at 20 ms a request (files of {KEYS_A_FILE:,} rows, writes of {BATCH:,} keys at random); memory of one task"
    )
    print("  " + " " * 46 + "".join(f"{_number(p.files) + ' files':>22}" for p in PLACES))
    print("  " + " " * 46 + "".join(f"{f'{p.cores:,} cores':>22}" for p in PLACES))
    for model in models:
        shown = []
        for place in PLACES:
            number = place.number(model.phase)
            tasks = max(1, math.ceil(number / 1e6)) if model.phase.spread else 1
            memory = model.cost(number / tasks).memory
            shown.append(f"{_number(model.wall(number, place.latency, place.cores))} s, {_number(memory)}B")
        print(f"  {model.phase.name:46}" + "".join(f"{one:>22}" for one in shown))


def _number(value: float) -> str:
    if math.isinf(value):
        return "no end"
    for size, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {name}"
    return f"{value:.3g} "


if __name__ == "__main__":
    raise SystemExit(main())
