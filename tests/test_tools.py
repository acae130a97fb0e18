"""Setting up a machine: which Java is taken, and what the user is told when there is none."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from benchmarks.scale.model import Model

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """`tools/java.py` on a machine without any Java."""
    spec = importlib.util.spec_from_file_location("tools_java", ROOT / "tools" / "java.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "FOLDERS", ())
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(module.os, "geteuid", lambda: 1000, raising=False)
    return module


def runtime(folder: Path, version: str, release: bool = True) -> Path:
    """A folder that looks like a Java runtime."""
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024-01-01' >&2\n")
    program.chmod(0o755)
    if release:
        (folder / "release").write_text(f'IMPLEMENTOR="Somebody"\nJAVA_VERSION="{version}"\n')
    return folder


@pytest.mark.parametrize("release", [True, False])
@pytest.mark.parametrize(("text", "number"), [("17.0.15", 17), ("1.8.0_392", 8), ("21", 21), ("25-ea", 25)])
def test_version_is_read_from_the_release_file_or_from_java_itself(
    java: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, number: int, release: bool
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert java.java_version(runtime(tmp_path / "home", text, release)) == number


def test_a_folder_without_java_has_no_version(java: ModuleType, tmp_path: Path) -> None:
    assert java.java_version(tmp_path) is None


def test_java_home_wins_when_its_version_fits(java: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen, other = runtime(tmp_path / "jdk-25", "25.0.1"), runtime(tmp_path / "jdk-17", "17.0.9")
    monkeypatch.setattr(java, "FOLDERS", (str(tmp_path / "*"),))
    monkeypatch.setenv("JAVA_HOME", str(chosen))
    assert java.find_java(java.SPARK_4) == chosen
    assert java.find_java(java.SPARK_3) == other, "Spark 3.5 does not run on Java 25"


def test_an_old_java_home_is_passed_over_for_17(java: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(runtime(tmp_path / "jdk-11", "11.0.2")))
    runtime(tmp_path / "jdk-22", "22.0.1")
    monkeypatch.setattr(java, "FOLDERS", (str(tmp_path / "*"),))
    assert java.find_java() == tmp_path / "jdk-22"
    runtime(tmp_path / "jdk-17", "17.0.9")
    assert java.find_java() == tmp_path / "jdk-17"


def test_without_java_the_user_is_told_what_to_do(java: ModuleType) -> None:
    with pytest.raises(java.JavaMissing, match="apt-get install openjdk-17-jre-headless") as failure:
        java.require_java()
    assert "JAVA_HOME" in str(failure.value)


def test_make_alone_lists_every_verb() -> None:
    ran = subprocess.run(["make", "PYTHON=" + sys.executable], cwd=ROOT, capture_output=True, text=True, check=True)
    for verb in ("demo", "test", "check", "interop", "bench", "ci"):
        assert f"\n  {verb} " in ran.stdout


def test_benchmarks_count_bytes_of_files_that_are_otherwise_mapped(tmp_path: Path) -> None:
    from benchmarks.case import OURS, Settings
    from benchmarks.job import Job
    from hudimeta.storage import open_storage

    (tmp_path / "file").write_bytes(bytes(1_000_000))
    job = Job(Settings(1, tmp_path), 4, OURS)
    for _ in range(job.rounds):
        with job.timed(), open_storage(str(tmp_path)).open_input("file") as file:
            file.read()

    calls = job.measured.calls
    assert [call.read is None for call in calls] == [True, False, True, True], "nobody counts what is mapped"
    assert 1_000_000 <= (job.measured.warm.read or 0) < 1_100_000
    assert job.measured.warm.wall == sum(call.wall for call in calls[2:]) / 2, "the time of the call that counted says nothing"


def test_requests_that_wait_together_count_once() -> None:
    from benchmarks.scale.measured import waits

    assert waits([]) == 0
    assert waits([(0.0, 2.0), (0.5, 2.5), (2.5, 4.5)]) == pytest.approx(2.25)


def test_the_model_says_what_breaks_first() -> None:
    from benchmarks.scale.measured import Cost, Phase
    from benchmarks.scale.model import fitted
    from benchmarks.scale.places import Place, first_to_break

    def model(name: str, of: str, cpu: float, memory: float, spread: bool = False) -> Model:
        phase = Phase(name, of, (1000, 2000, 4000), lambda data, size: data, lambda path, given: None, spread=spread)
        costs = [Cost(size * cpu, size * memory, 5, 0, 0, 5) for size in phase.sizes]
        return fitted(phase, costs)

    plan, compaction = model("plan", "files", 1e-6, 240), model("compaction", "rows of the table", 1e-6, 400, spread=True)
    assert abs(plan.error("cpu")) < 1e-9, "a straight line foretells the size that was left out"
    small, large = Place(1e6, 1e3, 1e9, 200), Place(1e8, 1e5, 1e11, 5000)
    assert first_to_break([plan, compaction], small, 0.02)[0].share < 1
    first, second, *others = first_to_break([plan, compaction], large, 0.02)
    assert (first.phase, first.of, round(first.share, 1)) == ("plan", "memory", 3.0), "what a plan returns is in one process"
    assert (second.phase, second.of, round(second.share, 1)) == ("plan", "wall time", 1.7)
    assert all(strain.phase == "compaction" and strain.share < 1 for strain in others)


def test_benchmarks_take_turns_by_claims() -> None:
    """`--parts 2`: the cases of a claim stay together, and two days take all."""
    from benchmarks.case import all_cases, in_turn

    cases = all_cases()
    even, odd = in_turn(cases, 2, 6), in_turn(cases, 2, 7)
    assert {case.claim for case in even} & {case.claim for case in odd} == set()
    assert sorted(case.name for case in [*even, *odd]) == sorted(case.name for case in cases)
    assert in_turn(cases, 1, 7) == cases
