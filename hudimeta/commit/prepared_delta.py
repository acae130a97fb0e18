"""What a commit changes in the metadata table, made before the table lock is taken: others wait for the lock, not for this.

Most of it depends on nothing that other writers do: records of the commit's own files, encoded into log blocks, which the store
may take before they have names. Under the lock each index says whether what was made for it holds on the timeline of now; what
does not is made again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from hudimeta.indexes.protocol import CommitChange, IndexDelta
from hudimeta.indexes.registry import maintainer_for
from hudimeta.metadata.delta import MetadataDelta
from hudimeta.metadata.writer import EncodedLog, MetadataWriter, WrittenLog
from hudimeta.storage import Staged
from hudimeta.types import Action

__all__ = ["PreparedDelta"]

_COMMITS = (Action.COMMIT, Action.DELTA_COMMIT)


@dataclass(frozen=True)
class PreparedDelta:
    """See the module.

    Attributes:
        change: The commit, as the table was when this was made.
        deltas: By metadata partition.
        groups: How many file groups each metadata partition had.
        logs: By metadata partition; those that begin file groups have none here.
        staged: The announcement of the delta commit and all of its logs, on their way.
        record: What its completed file says where all of these logs are its own.
    """

    change: CommitChange
    deltas: Mapping[str, IndexDelta]
    groups: Mapping[str, int]
    logs: Mapping[str, Sequence[EncodedLog]]
    staged: Staged
    record: bytes

    @classmethod
    def of(cls, change: CommitChange, groups: Mapping[str, int], writer: MetadataWriter) -> PreparedDelta:
        """Ask every index of the table, and encode what they say."""
        deltas = {name: maintainer_for(name).delta(name, change) for name in change.table.ready}
        plain = {name: found.parts for name, found in deltas.items() if not any(part.begins for part in found.parts)}
        logs = {name: writer.encode_logs(change.instant, MetadataDelta(parts), groups) for name, parts in plain.items()}
        record = writer.record(change.instant, [log.about for log in chain(*logs.values())])
        return cls(change, deltas, groups, logs, writer.stage(change.instant, chain(*logs.values())), record)

    def record_of(self, logs: Sequence[WrittenLog]) -> bytes | None:
        """What the completed file says of these logs; None where they are others than those that were made ready."""
        return self.record if logs == [log.about for log in chain(*self.logs.values())] else None

    def close(self) -> None:
        """Let go what was not published."""
        self.staged.close()

    def holding(self, change: CommitChange, groups: Mapping[str, int]) -> dict[str, IndexDelta]:
        """What holds still, by metadata partition.

        Args:
            change: The commit, as the table is under the lock.
            groups: How many file groups each metadata partition has.
        """
        then, timeline = self.change, change.timeline
        same = then.written is change.written and then.replaced == change.replaced and then.schema.equals(change.schema)
        columns = then.added == change.added and then.unbounded == change.unbounded
        settled = columns and then.proven == change.proven and then.statistics == change.statistics
        laid_out = then.table.laid_out != change.table.laid_out
        if not (same and settled) or laid_out or any(i.action not in _COMMITS for i in then.missed(timeline)):
            return {}
        return {
            name: delta
            for name, delta in self.deltas.items()
            if groups.get(name) == self.groups.get(name)
            and name in self.logs
            and maintainer_for(name).holds(name, then, change.table)
        }
