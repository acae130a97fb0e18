"""Changes the engine in one small place at a time and runs the tests that pass there; what none of them notices survives.

    python tools/mutants.py record [PYTEST ARGUMENT ...]
    python tools/mutants.py run [--count N] [--seed N] [--processes N] [--seconds N] [PACKAGE ...]

``record`` runs tests under coverage and notes which of them pass through which line, and how long each takes. ``run`` takes
a sample of the mutants of some packages and runs against each the tests of its line, the quickest first, as long as the
seconds last. No file of the project is changed: a child gets the mutant's source as it imports it. Changes that
``equal_mutants.json`` names make no difference, and are left out.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import xml.etree.ElementTree as ET
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from mutations import Mutation, equal_mutants, mutations

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / ".mutants"
PACKAGES = ("commit", "slices", "indexes", "predicate")
LEFT_OUT = ("--ignore=tests/interop", "--ignore=tests/crash", "--ignore=tests/damage", "--ignore=tests/hostile")
"""Tests whose work is done by other processes, or takes long: a mutant has to be noticed by those that mirror it."""
LEAST_SECONDS = 60
"""Of CPU for a child beside twice what its tests took when they were recorded; a mutant that needs more does not end."""


@dataclass(frozen=True)
class Mutant:
    """A mutation of a module, and the tests that pass through its line.

    Attributes:
        path: Of the module, below the project.
        mutation: What is changed.
        tests: Their ids.
        seconds: What they took.
    """

    path: str
    mutation: Mutation
    tests: tuple[str, ...]
    seconds: float

    def __str__(self) -> str:
        change = f"{_short(self.mutation.before)}  ->  {_short(self.mutation.after)}"
        return f"{self.path}:{self.mutation.line}: {change}  ({len(self.tests)} tests)"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else line[:97] + "..."


# Recording


def record(arguments: list[str]) -> int:
    """Run tests and note what passes where."""
    RECORD.mkdir(exist_ok=True)
    config = RECORD / "coveragerc"
    config.write_text(f"[run]\nsource = hudimeta\ndata_file = {RECORD / 'data'}\ndynamic_context = test_function\n")
    tests = arguments or ["-m", "not spark", *LEFT_OUT]
    command = [sys.executable, "-m", "coverage", "run", f"--rcfile={config}", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run([*command, f"--junit-xml={RECORD / 'seconds.xml'}", *tests], cwd=ROOT, check=False).returncode


class Recorded:
    """Which tests pass through a line, and how long each takes with all its parameters."""

    def __init__(self) -> None:
        import coverage

        self._data = coverage.CoverageData(str(RECORD / "data"))
        self._data.read()
        self._seconds: dict[str, float] = {}
        failed = set()
        for case in ET.parse(RECORD / "seconds.xml").iter("testcase"):
            name = f"{case.get('classname')}.{(case.get('name') or '').partition('[')[0]}"
            self._seconds[name] = self._seconds.get(name, 0.0) + float(case.get("time") or 0)
            if case.find("failure") is not None or case.find("error") is not None:
                failed.add(name)
        for name in failed:  # they would notice everything
            del self._seconds[name]

    def of(self, path: str, line: int, most: float) -> tuple[tuple[str, ...], float]:
        """Tests through a line, or through its module where the line runs as it is imported: the quickest, for so long."""
        by_line = self._data.contexts_by_lineno(str(ROOT / path))
        found = {name for name in by_line.get(line, ()) if name in self._seconds}
        if not found and line in by_line:
            found = {name for names in by_line.values() for name in names if name in self._seconds}
        chosen, left = [], most
        for name in sorted(found, key=self._seconds.__getitem__):
            left -= self._seconds[name]
            if chosen and left < 0:
                break
            module, _, function = name.rpartition(".")
            chosen.append(f"{module.replace('.', '/')}.py::{function}")
        return tuple(chosen), most - left


# Running


def changed_source(path: str, source: str) -> None:
    """Let whoever imports a module of the project from now on get another source of it.

    Args:
        path: Of the module.
        source: What is imported instead.
    """
    name = str(Path(path).relative_to(ROOT)).removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    sys.meta_path.insert(0, _Changed(name, path, source))


class _Changed(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):
    """Gives one module another source."""

    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self._source = source.encode()

    def find_spec(self, fullname: str, path: object = None, target: ModuleType | None = None) -> object:  # type: ignore[override]
        if fullname != self.name:
            return None
        package = self.path.endswith("__init__.py")
        return importlib.util.spec_from_file_location(
            fullname, self.path, loader=self, submodule_search_locations=[str(Path(self.path).parent)] if package else None
        )

    def get_code(self, fullname: str) -> object:  # type: ignore[override]
        return compile(self._source, self.path, "exec", dont_inherit=True)


def chosen_mutants(recorded: Recorded, options: argparse.Namespace) -> list[Mutant]:
    """A sample; each mutant has tests of its own."""
    found = []
    for package in options.packages or PACKAGES:
        for path in sorted((ROOT / "hudimeta" / package).rglob("*.py")):
            found += [(str(path.relative_to(ROOT)), mutation) for mutation in mutations(path.read_text())]
    print(f"{len(found)} mutants, of which {min(options.count, len(found))} are tried; seed {options.seed}", flush=True)
    sample = random.Random(options.seed).sample(found, min(options.count, len(found)))
    mutants = [Mutant(path, m, *recorded.of(path, m.line, options.seconds)) for path, m in sample]
    known = equal_mutants()
    reasons = {n: equal.why for n, m in enumerate(mutants) for equal in known if equal.is_about(m.path, m.mutation)}
    for number, why in reasons.items():
        print(f"     equal     {mutants[number]}: {why}", flush=True)
    return [mutant for number, mutant in enumerate(mutants) if number not in reasons]


def start(mutant: Mutant, home: Path) -> int:
    """Run a mutant's tests in a child; its process id. It ends with 0 if none of them noticed."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = 3
    try:
        os.setsid()
        limit = int(LEAST_SECONDS + 2 * mutant.seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        quiet = os.open(home.with_suffix(".log"), os.O_WRONLY | os.O_CREAT)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        changed_source(str(ROOT / mutant.path), mutant.mutation.source)
        import pytest

        imported_before = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        options = ["-x", "-q", "-p", "no:cacheprovider", "--no-header", *imported_before, f"--basetemp={home}"]
        code = int(pytest.main([*options, *mutant.tests]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def verdict(status: int) -> str:
    """What the end of a child says: `survived`, `killed`, or that its tests could not be run."""
    if os.WIFSIGNALED(status):
        return "killed"
    code = os.WEXITSTATUS(status)
    return {0: "survived", 1: "killed", 2: "killed"}.get(code, f"not run: pytest ended with {code}")


def tests_pass_without_a_change(mutants: list[Mutant]) -> bool:
    """Whether a mutant that changes nothing survives: else every verdict would be worthless. Prints what its tests say."""
    mutant = next(mutant for mutant in mutants if mutant.tests)
    same = replace(mutant, mutation=replace(mutant.mutation, source=(ROOT / mutant.path).read_text()))
    with tempfile.TemporaryDirectory(prefix="mutants") as home:
        _, status = os.waitpid(start(same, Path(home) / "same"), 0)
        if verdict(status) != "survived":
            print((Path(home) / "same.log").read_text())
    return verdict(status) == "survived"


def try_all(mutants: list[Mutant], processes: int, patience: float) -> dict[int, str]:
    """The verdict on each mutant, by its number."""
    verdicts: dict[int, str] = {n: "never run" for n, mutant in enumerate(mutants) if not mutant.tests}
    waiting = [n for n, mutant in enumerate(mutants) if mutant.tests]
    running: dict[int, tuple[int, float]] = {}
    with tempfile.TemporaryDirectory(prefix="mutants", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as home:
        while waiting or running:
            while waiting and len(running) < processes:
                number = waiting.pop(0)
                running[start(mutants[number], Path(home) / str(number))] = number, time.monotonic()
            child, status = os.waitpid(-1, os.WNOHANG)
            if child in running:
                number, _ = running.pop(child)
                verdicts[number] = verdict(status)
                shutil.rmtree(Path(home) / str(number), ignore_errors=True)
                print(f"{len(verdicts):4d} {verdicts[number]:9s} {mutants[number]}", flush=True)
            for child, (_, began) in running.items():
                if time.monotonic() - began > patience:
                    os.killpg(child, signal.SIGKILL)
            time.sleep(0.05)
    return verdicts


def run(options: argparse.Namespace) -> int:
    """Try a sample, and list what survives."""
    os.chdir(ROOT)
    os.environ.update(HUDIMETA_TURN="all", HUDIMETA_ORDER="written")
    mutants = chosen_mutants(Recorded(), options)
    sys.path.insert(0, str(ROOT))
    _import_what_all_need()
    if not tests_pass_without_a_change(mutants):
        return 1
    verdicts = try_all(mutants, options.processes, options.patience)
    for what in ("survived", "never run"):
        left = [mutants[n] for n, found in sorted(verdicts.items()) if found == what]
        print(f"\n{len(left)} {what}" + "".join(f"\n  {mutant}" for mutant in sorted(left, key=str)))
    odd = {found for found in verdicts.values() if found.startswith("not run")}
    print(f"\n{sum(v == 'killed' for v in verdicts.values())} of {len(verdicts)} killed", *odd)
    return bool(odd)


def _import_what_all_need() -> None:
    """Once for all children; nothing of the project's own."""
    import fastavro
    import hypothesis
    import numpy
    import pyarrow.compute
    import pyarrow.dataset
    import pyarrow.parquet
    import pytest
    import sqlglot

    assert [fastavro, hypothesis, numpy, pyarrow, pytest, sqlglot]


def main(arguments: list[str]) -> int:
    """Record or run."""
    if arguments[:1] == ["record"]:
        return record(arguments[1:])
    parser = argparse.ArgumentParser(prog="mutants.py")
    parser.add_argument("verb", choices=["run"])
    parser.add_argument("packages", nargs="*")
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=20, help="of recorded time for the tests of one mutant")
    parser.add_argument("--patience", type=float, default=600, help="seconds after which a mutant that hangs is killed")
    return run(parser.parse_intermixed_args(arguments))  # packages may stand behind options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
