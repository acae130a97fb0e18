"""What the extraMetadata of a commit says besides the writer's own entries: the schema, what never changes, rolling keys.

Rolling keys (`hoodie.write.rolling.metadata.keys`, Apache Hudi 1.2) are entries such as the offsets of a source, which every
commit is to have: one that does not bring its own takes that of the newest commit that has one. It is looked for under the
table lock, so that a commit never has an older value than the one before it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from hudimeta.commit.publication import Publication
from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.table.properties import TableProperties
from hudimeta.table.remembered import REMEMBERED_KEY, what_never_changes
from hudimeta.timeline import Timeline

__all__ = ["RollingKeys", "entries_of"]


@dataclass(frozen=True)
class RollingKeys:
    """Entries that go from commit to commit.

    Attributes:
        names: Of the entries.
        lookback: How many commits are looked at.
    """

    names: tuple[str, ...] = ()
    lookback: int = 0

    @classmethod
    def of(cls, options: Options) -> RollingKeys:
        """As the options of a writer have them."""
        return cls(options.get(keys.ROLLING_KEYS), options.get(keys.ROLLING_LOOKBACK))

    def carried(self, timeline: Timeline, own: Mapping[str, str]) -> dict[str, str]:
        """The entries that a commit takes over.

        Args:
            timeline: Before the commit.
            own: Its own entries; an empty text is none.
        """
        missing = [name for name in self.names if not own.get(name)]
        found: dict[str, str] = {}
        for instant in list(reversed(timeline.by_completion))[: self.lookback] if missing else ():
            if instant in timeline.empty_writes:
                continue
            entries = timeline.metadata(instant)["extraMetadata"] or {}
            found |= {name: entries[name] for name in missing if name not in found and entries.get(name)}
            if len(found) == len(missing):
                break
        return found


def entries_of(
    properties: TableProperties, publication: Publication, rolling: RollingKeys, timeline: Timeline, notes: list[str]
) -> dict[str, str]:
    """The extraMetadata of a commit, but for what the metadata table adds.

    Args:
        properties: Of the table.
        publication: What is to be made visible.
        rolling: Entries that go from commit to commit.
        timeline: As listed under the table lock.
        notes: Of the publication, which tell of rolling entries that no commit has.
    """
    remembered = json.dumps(what_never_changes(properties))
    own = {"schema": publication.avro_schema, REMEMBERED_KEY: remembered, **publication.extra}
    found = own | rolling.carried(timeline, own)
    if lost := [name for name in rolling.names if not found.get(name)]:
        notes.append(f"no value of {', '.join(lost)} was given, and none of the newest {rolling.lookback} commits has one")
    return found
