"""Which files of a table a reader at one moment may see: what the timeline says of them, as one value."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from hudimeta.timeline import Timeline

__all__ = ["CompletionTimes", "Visibility"]

CompletionTimes = Callable[[Iterable[str]], Mapping[str, str]]
"""Completion times of archived instants: asked only when a slice depends on one, because the answer costs requests."""


def _no_history(instants: Iterable[str]) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class Visibility:
    """What a timeline says about files.

    Attributes:
        completed: Requested time -> completion time of the completed writes on the active timeline.
        first_active: The earliest write instant on the active timeline; files of earlier instants are committed, since
            archiving takes only what is completed. None when there is none: then only `completed` counts.
        as_of: Requested time that the reader stands at; None for the latest.
        replaced: File groups that completed replacecommits, up to `as_of`, took out of the table: columns partition_path
            and file_id, and instant where a timeline states them; None for none.
        unseen: Requested times of writes that count as pending, also where they are older than `first_active`, as a
            savepointed write may be.
        logs_name_base: True for tables of version 6, whose log files bear the instant of their base file.
        history: See `CompletionTimes`.
    """

    completed: Mapping[str, str]
    first_active: str | None
    as_of: str | None = None
    replaced: pa.Table | None = None
    logs_name_base: bool = False
    history: CompletionTimes = field(default=_no_history)
    unseen: frozenset[str] = frozenset()

    @classmethod
    def of(cls, timeline: Timeline, as_of: str | None = None, logs_name_base: bool = False) -> Visibility:
        """What `timeline` says to a reader at `as_of`. One request for each completed replacecommit on the active timeline."""
        return cls(
            completed=timeline.completion_times,
            first_active=timeline.first_active_write,
            as_of=as_of,
            replaced=timeline.replaced_file_groups(as_of),
            logs_name_base=logs_name_base,
            history=timeline.archived_completions,
        )

    def without(self, unseen: Collection[str]) -> Visibility:
        """The same as if some of the completed writes were still pending."""
        import pyarrow as pa
        import pyarrow.compute as pc

        completed = {time: completion for time, completion in self.completed.items() if time not in unseen}
        gone = self.replaced
        if gone is not None:
            gone = gone.filter(pc.invert(pc.is_in(gone["instant"], pa.array(sorted(unseen), pa.string()))))
        return replace(self, completed=completed, replaced=gone, unseen=frozenset(unseen))
