"""The process of one side: `python -m benchmarks.side CASE SIDE SETTINGS-JSON ANSWER-FILE`. Started by `measure`."""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path

from benchmarks.case import Settings, all_cases, select
from benchmarks.counters import peak_rss
from benchmarks.job import Absent, Job
from hudimeta.errors import UnsupportedFeature


def main(arguments: list[str]) -> None:
    """Run the side, write what was measured."""
    name, side, text, answer = arguments
    values = json.loads(text)
    settings = Settings(values["scale"], Path(values["data"]), values["rounds"])
    case = select(all_cases(), [name])[0]
    job = Job(settings, settings.rounds or case.rounds, side)
    try:
        case.sides[side](job)
    except (Absent, ModuleNotFoundError, UnsupportedFeature) as error:
        job.measured.error = f"absent: {error}"
    except Exception as error:
        traceback.print_exc()
        job.measured.error = f"{type(error).__name__}: {error}"[:500]
    if not job.measured.error and not job.measured.calls:
        job.measured.error = "measured nothing"
    job.measured.rss = max(job.measured.rss, peak_rss(os.getpid()))
    Path(answer).write_text(json.dumps(job.measured.to_json()), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
