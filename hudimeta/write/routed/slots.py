"""Slots: into how many shares the keys of a routed write are cut, so that rows of one key meet in one task.

Where keys are unique in the whole table the key alone decides, by the hash that also chooses a key's file group in the record
index: rows that one file group of the index knows stand in neighbouring slots, and a task opens few of them. Elsewhere the
partition path decides first, so that a task looks into few partitions, and then the key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hudimeta.metadata.keys import shard
from hudimeta.write.batch import KeyedBatch
from hudimeta.write.routed.exchange import Span

__all__ = ["Slots", "packed"]

_PATHS = 16
_LEAST_TASK_BYTES, _MOST_TASK_BYTES = 8 << 20, 128 << 20
_WAVES = 2
"""Tasks for each place that runs them: more than one, because they are not equally long."""


@dataclass(frozen=True)
class Slots:
    """How rows are cut.

    Attributes:
        count: How many slots there are.
        whole_table: Keys alone decide.
        groups: File groups of the record index, else 1.
    """

    count: int
    whole_table: bool
    groups: int = 1

    @classmethod
    def of(cls, about: int, *, whole_table: bool, groups: int = 1) -> Slots:
        """About so many slots."""
        whole = groups if whole_table else _PATHS
        return cls(whole * max(1, -(-about // whole)), whole_table, groups)

    def numbers(self, batch: KeyedBatch) -> np.ndarray[Any, Any]:
        """The slot of each row of a batch with keys."""
        if self.whole_table:
            share = shard(batch.keys, self.count)
            found: np.ndarray[Any, Any] = (share % self.groups) * (self.count // self.groups) + share // self.groups
            return found
        shares = self.count // _PATHS
        # Neither number may follow from the other, or some slots would stay empty.
        return shard(batch.partitions, _PATHS) * shares + shard(batch.keys, shares * _PATHS) // _PATHS


def packed(slots: Sequence[tuple[int, Sequence[Span]]], parallelism: int) -> list[list[list[Span]]]:
    """Neighbouring slots put together to tasks of a reasonable size, each a list of the spans of each of its slots."""
    sizes = [sum(span.size for span in spans) for _, spans in slots]
    limit = min(max(sum(sizes) // (parallelism * _WAVES), _LEAST_TASK_BYTES), _MOST_TASK_BYTES)
    tasks: list[list[list[Span]]] = []
    size = 0
    for (_, spans), own in zip(slots, sizes, strict=True):
        if not tasks or size + own > limit:
            tasks.append([])
            size = 0
        tasks[-1].append(list(spans))
        size += own
    return tasks
