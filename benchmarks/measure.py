"""Runs the sides of a case, each in its own process, and compares their answers."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.case import Case, Measured, Settings

ROOT = Path(__file__).resolve().parents[1]


def run_side(case: Case, side: str, settings: Settings) -> Measured:
    """One side's figures; a failure is in `error`."""
    asked = json.dumps({"scale": settings.scale, "data": str(settings.data), "rounds": settings.rounds})
    with tempfile.TemporaryDirectory(prefix="hudimeta-bench-") as folder:
        answer = Path(folder, "answer.json")
        command = [sys.executable, "-m", "benchmarks.side", case.name, side, asked, str(answer)]
        try:
            ended = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, timeout=case.patience_s, check=False)
        except subprocess.TimeoutExpired:
            return Measured(error=f"not finished after {case.patience_s} s")
        if not answer.is_file():
            return Measured(error=f"the process ended with code {ended.returncode}")
        return Measured.from_json(json.loads(answer.read_text(encoding="utf-8")))


def disagreements(sides: Mapping[str, Measured]) -> list[str]:
    """Facts that two sides answer differently: a fast wrong answer is no win."""
    found = []
    names = sorted({name for measured in sides.values() for name in measured.facts})
    for name in names:
        answers = {side: m.facts[name] for side, m in sides.items() if name in m.facts and not m.error}
        if len({json.dumps(value, sort_keys=True) for value in answers.values()}) > 1:
            found.append(f"{name}: " + ", ".join(f"{side} says {value}" for side, value in answers.items()))
    return found
