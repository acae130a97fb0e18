"""Which tests take turns: reads what `pytest --durations=0` printed, and writes `tests/data/slow_tests.txt`.

make test-full PYTEST_ARGS="--durations=0 -q" | tee durations.log
python tools/slow_tests.py durations.log
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from pathlib import Path

LISTED = Path(__file__).resolve().parents[1] / "tests" / "data" / "slow_tests.txt"
HEAD = "# Tests that take 0.5 seconds or more, on two cores that three processes share. Made by tools/slow_tests.py.\n"
LEAST_SECONDS = 0.5
_LINE = re.compile(r"^(?P<seconds>[\d.]+)s (?:call|setup|teardown) +(?P<item>tests/.+?)(?:@\w+)?$", re.M)
"""After an at sign stands the group of processes."""


def slow_tests(printed: str, least_seconds: float = LEAST_SECONDS) -> list[str]:
    """Names of tests, without parameters, of which a case takes so long with what it sets up."""
    of_item: dict[str, float] = defaultdict(float)
    for found in _LINE.finditer(printed):
        of_item[found["item"]] += float(found["seconds"])
    return sorted({item.partition("[")[0] for item, seconds in of_item.items() if seconds >= least_seconds})


def main() -> None:
    """Write the list anew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("printed", type=Path, help="what a run of all tests printed")
    parser.add_argument("--least", type=float, default=LEAST_SECONDS, help="seconds")
    given = parser.parse_args()
    names = slow_tests(given.printed.read_text(encoding="utf-8"), given.least)
    LISTED.write_text(HEAD + "".join(f"{name}\n" for name in names), encoding="utf-8")
    print(f"{len(names)} tests in {LISTED.name}")


if __name__ == "__main__":
    main()
