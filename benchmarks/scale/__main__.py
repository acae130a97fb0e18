"""`python -m benchmarks.scale [PHASE ...] [--smoke] [--json FILE]`: measure the constants, print the model and its errors."""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.report import machine
from benchmarks.scale.measured import Phase, measure
from benchmarks.scale.model import BYTES_A_SECOND, ITEMS_A_TASK, Model, fitted, limit
from benchmarks.scale.phases import PHASES
from benchmarks.scale.places import CORES, LATENCIES, MEMORY, PLACES, SECONDS, SECONDS_SPREAD, Place, first_to_break

SMOKE = 100
"""A smoke run is so many times smaller."""
TOLERATED = 0.3
"""By how much lines may miss the CPU or the memory of a size that was left out."""
WIDTH = 16
COSTS = (
    ("cpu", "s", 1e6),
    ("memory", "B", 1),
    ("requests", "", 1e6),
    ("waits", "", 1e6),
    ("read", "B", 1),
    ("written", "B", 1),
)
"""Name, unit, and for how many at once it is printed."""


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
    for phase in _chosen(asked.names, asked.smoke):
        models.append(fitted(phase, [measure(phase, size, asked.data) for size in phase.sizes]))
        print("\n".join(_model_lines(models[-1])), flush=True)
    for lines in (_errors(models), _limits(models), _at_latencies(models), _at_cores(models), _breaks(models)):
        print("\n".join(lines))
    if asked.json:
        figures = [
            {
                "phase": m.phase.name,
                "of": m.phase.of,
                "sizes": m.phase.sizes,
                "lines": {k: asdict(v) for k, v in m.lines.items()},
            }
            | {"measured": asdict(m.measured), "foretold": asdict(m.foretold)}
            for m in models
        ]
        asked.json.write_text(json.dumps({"machine": machine(), "phases": figures}, indent=1), encoding="utf-8")
    return 0


def _chosen(names: Sequence[str], smoke: bool) -> Iterator[Phase]:
    for phase in PHASES:
        if names and not any(phase.name.startswith(name) for name in names):
            continue
        if phase.needs and not os.environ.get(phase.needs):
            print(f"\n{phase.name}: left out, no {phase.needs}: run through `make scale`")
            continue
        smaller = tuple(max(phase.least, size // SMOKE) * (n + 1) for n, size in enumerate(phase.sizes))
        yield replace(phase, sizes=smaller, grows_to=smaller[1] if phase.grows_to else 0) if smoke else phase


def _model_lines(model: Model) -> Iterator[str]:
    phase = model.phase
    yield f"\n{phase.name}, by {phase.of}{', in tasks' if phase.spread else ''}; measured at {_listed(phase.sizes)}"
    for name, unit, factor in COSTS:
        line, error = model.lines[name], model.error(name)
        each = f"{line.each * factor:,.2f} {unit}{' a million' if factor > 1 else ' each'}"
        missed = "" if math.isnan(error) else f", misses {phase.sizes[-1]:,} by {error:+.0%}"
        yield f"  {name:9} {line.fixed:14,.2f} {unit} + {each}{missed}"


def _listed(sizes: Iterable[int]) -> str:
    return ", ".join(f"{size:,}" for size in sizes)


def _errors(models: Iterable[Model]) -> Iterator[str]:
    yield f"\nCPU or memory of the size that was left out, missed by more than {TOLERATED:.0%}"
    found = [
        f"  {model.phase.name}: {name} {model.error(name):+.0%}"
        for model in models
        for name in ("cpu", "memory")
        if abs(model.error(name)) > TOLERATED
    ]
    yield from found or ["  none"]


def _limits(models: Iterable[Model]) -> Iterator[str]:
    yield f"\nWhere one process takes {SECONDS:.0f} CPU seconds, or {MEMORY / 1e9:.0f} GB"
    for model in models:
        within = [_number(limit(model.lines[name], most)) for name, most in (("cpu", SECONDS), ("memory", MEMORY))]
        yield f"  {model.phase.name:46} {within[0]:>10} {within[1]:>10}  {model.phase.of}"


def _headings(columns: Iterable[str]) -> str:
    return "  " + " " * 46 + "".join(f"{one:>{WIDTH}}" for one in columns)


def _at_latencies(models: Sequence[Model]) -> Iterator[str]:
    yield (
        f"\nSeconds, with {_number(BYTES_A_SECOND)}B a second from the store and {_number(ITEMS_A_TASK)}rows or keys a task; "
        "the write is of 10 million keys at random, or a hundredth of all"
    )
    for what in ("files", "partitions", "keys", "cores"):
        yield _headings(f"{_number(getattr(place, what))}{what}" for place in PLACES)
    for name, latency in LATENCIES.items():
        yield f"  {name} a request"
        for model in models:
            seconds = [model.wall(place.number(model), latency, place.cores) for place in PLACES]
            yield f"  {model.phase.name:46}" + "".join(f"{_number(one):>{WIDTH}}" for one in seconds)
    yield "  bytes of memory of the process, or of one task"
    for model in models:
        memory = [model.memory(place.number(model)) for place in PLACES]
        yield f"  {model.phase.name:46}" + "".join(f"{_number(one):>{WIDTH}}" for one in memory)


def _at_cores(models: Iterable[Model]) -> Iterator[str]:
    place = PLACES[len(PLACES) // 2]
    shown = f"{_number(place.files)}files and {_number(place.keys)}keys"
    yield f"\nSeconds of what tasks do, by cores, for {shown}, 20 ms a request"
    yield _headings(f"{cores:,} cores" for cores in CORES)
    for model in models:
        if model.phase.spread:
            seconds = [model.wall(place.number(model), LATENCIES["20 ms"], cores) for cores in CORES]
            yield f"  {model.phase.name:46}" + "".join(f"{_number(one):>{WIDTH}}" for one in seconds)


def _breaks(models: Sequence[Model]) -> Iterator[str]:
    yield (
        f"\nWhat breaks first at 20 ms a request: one process that takes {SECONDS:.0f} s, tasks that take "
        f"{SECONDS_SPREAD:,.0f} s, anything that needs {MEMORY / 1e9:.0f} GB"
    )
    for place in PLACES:
        yield f"  {_number(place.files)}files: {_broken(models, place)}"


def _broken(models: Sequence[Model], place: Place) -> str:
    strains = first_to_break(models, place, LATENCIES["20 ms"])
    broken = [strain for strain in strains if strain.share > 1]
    shown = "; ".join(f"{one.phase}, {one.of} {_number(one.share)}times that" for one in broken)
    nearest = strains[0]
    return shown or f"nothing; the nearest is {nearest.phase}, {nearest.of} {nearest.share:.1%} of that"


def _number(value: float) -> str:
    if math.isinf(value):
        return "no end"
    for size, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {name}"
    return f"{value:.3g} "


if __name__ == "__main__":
    raise SystemExit(main())
