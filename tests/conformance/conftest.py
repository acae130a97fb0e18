"""Counts the answers of a whole run and prints them at its end."""

from __future__ import annotations

import pytest

from tests.conformance.judging import Tally

TALLY = pytest.StashKey[Tally]()


@pytest.fixture(scope="session")
def tally(request: pytest.FixtureRequest) -> Tally:
    """Where tests count right and wrong answers."""
    stash = request.config.stash
    if TALLY not in stash:
        stash[TALLY] = Tally()
    return stash[TALLY]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the counts."""
    if TALLY in config.stash:
        terminalreporter.section("conformance with Apache Hudi's recorded answers")
        for line in config.stash[TALLY].lines():
            terminalreporter.write_line(line)
