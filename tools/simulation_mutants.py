"""Breaks the rules that keep many writers apart, one at a time, and counts simulated histories until one does not hold.

    python tools/simulation_mutants.py [--histories N] [--seed N] [NAME ...]

No file of the project is changed: a child gets the mutant's source as it imports it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from mutants import changed_source

ROOT = Path(__file__).resolve().parents[1]
COMMIT = "hudimeta/commit/"


@dataclass(frozen=True)
class Edit:
    """A text of a module, which is there once, and what stands in its place."""

    path: str
    before: str
    after: str


MUTANTS: dict[str, tuple[Edit, ...]] = {
    "completed file without create-if-absent": (
        Edit("hudimeta/timeline/transitions.py", "put_own(self._storage, path, content)", "self._storage.put(path, content)"),
    ),
    "data instant completed before the metadata table": (
        Edit(
            COMMIT + "coordinator.py",
            "        if self._metadata is not None:\n            extra |= self._metadata.commit(",
            "        early = self._times.next(self._times.next(timeline.last_time, write.instant))\n"
            "        told = encode_commit_metadata(commit_record(write, publication, extra), replace=write.replaces)\n"
            "        self._writer.complete(write.instant, write.action, early, told)\n"
            "        if self._metadata is not None:\n            extra |= self._metadata.commit(",
        ),
        Edit(
            COMMIT + "coordinator.py",
            "completion = self._times.next(self._times.next(timeline.last_time, write.instant))",
            "completion = early",
        ),
        Edit(COMMIT + "coordinator.py", "self._writer.complete(write.instant, write.action, completion, content)", "pass"),
    ),
    "no conflict check on keys": (
        Edit("hudimeta/write/settling.py", "            self._compare(timeline, changes, rivals)", "            pass"),
        Edit("hudimeta/write/rebase.py", "        if len(keys):\n            raise", "        if False:\n            raise"),
    ),
    "conflict check outside the lock": (
        Edit(COMMIT + "approach.py", "others = again or _others(write, publication)", "others = True"),
        Edit(COMMIT + "coordinator.py", "publication = publication.settling.under_lock(timeline)", "pass"),
    ),
    "lease not re-checked": (
        Edit(
            COMMIT + "locks/storage_lock.py",
            "            if self._lost_to is not None:\n                raise",
            "            if False:\n                raise",
        ),
        Edit(
            COMMIT + "locks/storage_lock.py",
            "            if self._mine is None or Lease.decode(self._mine).valid_until <= self._now_ms():",
            "            if False:",
        ),
        Edit(
            COMMIT + "locks/file_lock.py", "            if self._mine is None or found != self._mine:", "            if False:"
        ),
    ),
    "heartbeat ignored": (
        Edit(
            COMMIT + "liveness.py",
            "if found is not None and _is_fresh(storage, found.modified_ms, now_ms(), patience_s):",
            "if False:",
        ),
    ),
    "heartbeat judged by the clock of this machine": (
        Edit(COMMIT + "liveness.py", "return now_ms - modified_ms <= longest", "return False"),
    ),
    "rollback that deletes without looking at the timeline": (
        Edit(COMMIT + "recovery.py", "        if any(timeline.get(name) is None for name in names):", "        if False:"),
        Edit(
            COMMIT + "recovery.py",
            "            if found is None and not self._beats(name):",
            "            if (found is None or not found.is_completed) and not self._beats(name):",
        ),
    ),
    "instants taken without the lock": (
        Edit(
            "hudimeta/timeline/transitions.py",
            "if any(at_once(self._storage.is_file, paths, self._storage)):",
            "if False:",
        ),
        Edit(
            COMMIT + "concurrency.py",
            "        with lock.held():\n            yield",
            "        with lock.alone_here():\n            yield",
        ),
    ),
    "a write published over a restore": (Edit(COMMIT + "coordinator.py", "        refuse_undone(timeline, write)\n", ""),),
    "a restore beside a writer at work": (
        Edit("hudimeta/services/restore.py", "    refuse_living(session, timeline, gone, _WHAT, instant)\n", ""),
    ),
    "early detection that trusts a dead marker": (
        Edit(
            COMMIT + "early_conflicts.py",
            "        if lives:\n            yield instant",
            "        if lives or True:\n            yield instant",
        ),
    ),
}


def sources(name: str) -> dict[str, str]:
    """The mutated source of each module, by path.

    Raises:
        ValueError: A text is not there once: the mutant has to be written anew.
    """
    found: dict[str, str] = {}
    for edit in MUTANTS[name]:
        source = found.get(edit.path) or (ROOT / edit.path).read_text()
        if source.count(edit.before) != 1:
            raise ValueError(f"{edit.path} has {source.count(edit.before)} times: {edit.before}")
        found[edit.path] = source.replace(edit.before, edit.after)
    return found


def child(name: str, histories: int, seed: int) -> int:
    """Run histories against a mutant; 0 when one does not hold."""
    for path, source in sources(name).items():
        changed_source(str(ROOT / path), source)
    from hudimeta.testing.simulation import Broken, plan, run

    began = time.monotonic()
    for number in range(histories):
        try:
            run(plan(seed + number))
        except Broken as error:
            why = " ".join(f"{type(error.__cause__).__name__}: {error.__cause__}".split())
            print(f"{name:56s} {number + 1:5d} histories, {time.monotonic() - began:4.0f} s: {why[:160]}", flush=True)
            return 0
    print(f"{name:56s} SURVIVED {histories} histories", flush=True)
    return 1


def main(arguments: list[str]) -> int:
    """Try all mutants, or those that are named."""
    parser = argparse.ArgumentParser(prog="simulation_mutants.py")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--histories", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", action="store_true")
    options = parser.parse_args(arguments)
    if options.child:
        sys.path.insert(0, str(ROOT))
        return child(options.names[0], options.histories, options.seed)
    chosen = [name for name in MUTANTS if not options.names or any(word in name for word in options.names)]
    common = ["--child", "--histories", str(options.histories), "--seed", str(options.seed)]
    return max(
        [subprocess.run([sys.executable, __file__, name, *common], check=False).returncode for name in chosen], default=0
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
