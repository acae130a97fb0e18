"""Runs put together: which file groups hold a key, and several runs as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.indexes.record_window.chains import GroupKey, group_keys, living
from hudimeta.indexes.record_window.runs import REMOVED, SEGMENTS, Matches, Prints, RunContent, sorted_entries

__all__ = ["AnyRun", "KeysOfGroups", "all_keys", "merged"]

_Numbers = npt.NDArray[np.int64]


class AnyRun(Protocol):
    """A run, stored or in memory."""

    @property
    def segments(self) -> pa.Table:
        """`runs.SEGMENTS`."""

    def find(self, wanted: Prints) -> Matches:
        """The entries of some keys."""

    def __len__(self) -> int: ...


class KeysOfGroups:
    """The keys of some file groups.

    Args:
        runs: Oldest first.
        now: The print of the slice of each file group that there is.
    """

    def __init__(self, runs: Sequence[AnyRun], now: Mapping[GroupKey, int]) -> None:
        self._runs = list(runs)
        self.groups = list(now)
        self.numbers = {name: number for number, name in enumerate(self.groups)}
        alive = living([run.segments for run in runs], now)
        self._group_of = [
            np.where(mask, np.array([self.numbers.get(name, -1) for name in group_keys(run.segments)], np.int64), -1)
            for run, mask in zip(runs, alive, strict=True)
        ]

    @property
    def covered(self) -> npt.NDArray[np.bool_]:
        """Of each group whether its keys are known."""
        known = np.zeros(len(self.groups), np.bool_)
        for numbers in self._group_of:
            known[numbers[numbers >= 0]] = True
        return known

    def find(self, wanted: Prints) -> tuple[_Numbers, _Numbers]:
        """Where keys are: positions in what the prints were made of, and for each of them a number of `groups`."""
        at, group, removed = [], [], []
        for run, group_of in zip(self._runs, self._group_of, strict=True):
            if not (group_of >= 0).any():
                continue
            matches = run.find(wanted)
            own = group_of[(matches.owner >> np.uint32(1)).astype(np.int64)]
            lives = own >= 0
            at.append(matches.at[lives])
            group.append(own[lives])
            removed.append((matches.owner[lives] & REMOVED).astype(np.bool_))
        if not at:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        return _newest(wanted, np.concatenate(at), np.concatenate(group), np.concatenate(removed))


def _newest(wanted: Prints, at: _Numbers, group: _Numbers, removed: npt.NDArray[np.bool_]) -> tuple[_Numbers, _Numbers]:
    """What the last entry of each key and file group says."""
    order = np.lexsort((np.arange(len(at)), group, at))
    at, group, removed = at[order], group[order], removed[order]
    last = np.append((at[1:] != at[:-1]) | (group[1:] != group[:-1]), True) if len(at) else np.zeros(0, np.bool_)
    kept = last & ~removed
    return wanted.order[at[kept]], group[kept]


def all_keys(slices: Sequence[tuple[str, str, int]], keys: Sequence[pa.StringArray]) -> RunContent:
    """A run with all keys of some slices.

    Args:
        slices: Partition path, file id and print of each.
        keys: Of each.
    """
    parts = []
    for number, own in enumerate(keys):
        prints = Prints.of(own)
        parts.append((prints.first, prints.second, np.full(len(prints), 2 * number, np.uint32)))
    paths, ids, prints_after = zip(*slices, strict=True) if slices else ((), (), ())
    unknown, counts = [0] * len(slices), [len(own) for own in keys]
    segments = pa.table([paths, ids, [True] * len(slices), unknown, prints_after, counts], schema=SEGMENTS)
    return RunContent(segments, *sorted_entries(parts))


def merged(runs: Sequence[RunContent], wanted: Mapping[GroupKey, int] | None) -> RunContent:
    """Several runs as one, which says what they say together.

    Args:
        runs: Oldest first; all that there are when `wanted` is given, else the newest ones.
        wanted: The print of each slice whose keys are kept, the others are left out. None keeps all that may be of use beside
            older runs.
    """
    tables = [run.segments for run in runs]
    if wanted is not None:
        alive = living(tables, wanted)
    else:
        alive = [np.ones(len(table), np.bool_) for table in tables]
    chains: dict[GroupKey, list[tuple[int, int]]] = {}
    for number, (table, mask) in enumerate(zip(tables, alive, strict=True)):
        for row, name in enumerate(group_keys(table)):
            if mask[row]:
                chains.setdefault(name, []).append((number, row))
    kept: list[tuple[object, ...]] = []
    owner_of = [np.full(len(table), -1, np.int64) for table in tables]
    keeps_removed: list[bool] = []
    for chain in chains.values():
        if (links := _linked(chain, tables)) is None:
            continue
        (first, row), (last, last_row) = links[0], links[-1]
        for run_number, place in links:
            owner_of[run_number][place] = len(keeps_removed)
        begin = {column: tables[first][column][row].as_py() for column in SEGMENTS.names}
        keeps_removed.append(not begin["full"])
        after = tables[last]["after"][last_row].as_py()
        kept.append((begin["partition_path"], begin["file_id"], begin["full"], begin["before"], after))
    columns = list(zip(*kept, strict=True)) if kept else [()] * 5
    return _without_outdated(runs, owner_of, np.array(keeps_removed, np.bool_), columns)


def _linked(chain: list[tuple[int, int]], tables: Sequence[pa.Table]) -> list[tuple[int, int]] | None:
    """The part of a chain that counts: from the newest segment with all keys on; None when it does not hold together."""
    fulls = [place for place, (number, row) in enumerate(chain) if tables[number]["full"][row].as_py()]
    links = chain[fulls[-1] :] if fulls else chain
    for (left, at), (right, row) in pairwise(links):
        if tables[left]["after"][at].as_py() != tables[right]["before"][row].as_py():
            return None
    return links


def _without_outdated(
    runs: Sequence[RunContent],
    owner_of: Sequence[_Numbers],
    keeps_removed: npt.NDArray[np.bool_],
    columns: Sequence[Sequence[object]],
) -> RunContent:
    """The newest entry of each key and file group. Arguments: of each segment its number from now on, -1 for none; of each of
    these whether it says what is removed; columns of `SEGMENTS` but the last."""
    parts = []
    for run, owners in zip(runs, owner_of, strict=True):
        own = owners[(run.owner >> np.uint32(1)).astype(np.int64)]
        lives = own >= 0
        owner = (own[lives].astype(np.uint32) << np.uint32(1)) | (run.owner[lives] & REMOVED)
        parts.append((run.first[lives], run.second[lives], owner))
    first, second, owner = sorted_entries(parts)  # of equal prints the newer ones come later
    group = (owner >> np.uint32(1)).astype(np.int64)
    order = np.lexsort((np.arange(len(first)), group, second, first))
    first, second, group, owner = first[order], second[order], group[order], owner[order]
    same = (first[1:] == first[:-1]) & (second[1:] == second[:-1]) & (group[1:] == group[:-1])
    last = np.append(~same, True) if len(first) else np.zeros(0, np.bool_)
    kept = last & (((owner & REMOVED) == 0) | (keeps_removed[group] if len(keeps_removed) else False))
    counts = np.bincount(group[kept], minlength=len(keeps_removed))
    return RunContent(pa.table([*columns, counts], schema=SEGMENTS), first[kept], second[kept], owner[kept])
