"""Batches of a stream: a batch that is repeated, because nobody knows what became of the first try, is written once.

Who writes batch by batch says which batch of which stream a write is (`hudimeta.streaming.batch.id` and Apache Hudi's
`hoodie.datasource.write.streaming.checkpoint.identifier`). The commit keeps it in its extraMetadata, under the key and in the
form that Apache Hudi's own streaming sink uses: `{"<identifier>":"<batch>"}`. A driver may die while the process that commits
its write lives on; when the stream begins again and repeats the batch, both meet here, and under the table lock one wins.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from hudimeta.commit.report import CommitReport
from hudimeta.config import HudiWarning, Options
from hudimeta.config import options as keys
from hudimeta.errors import CommitConflict, ConfigError
from hudimeta.timeline import Timeline
from hudimeta.types import Instant

__all__ = ["CHECKPOINT_KEY", "StreamBatch", "refuse_repeated"]

CHECKPOINT_KEY = "_hudi_streaming_sink_checkpoint"
_NUMBER = re.compile("[0-9]{1,18}")


@dataclass(frozen=True)
class StreamBatch:
    """One batch of one stream.

    Attributes:
        stream: Names the stream.
        number: Of the batch; later batches have greater ones.
    """

    stream: str
    number: int

    @staticmethod
    def of(options: Options) -> StreamBatch | None:
        """As the options of a write say; None where they name no batch. Raises ConfigError."""
        text = options.get(keys.STREAM_BATCH)
        if text is None:
            return None
        if not _NUMBER.fullmatch(text.strip()):
            raise ConfigError(keys.STREAM_BATCH.key, text, "the number of a batch, 0 or more")
        return StreamBatch(options.get(keys.STREAM_IDENTIFIER) or "", int(text))

    def entries(self) -> dict[str, str]:
        """For the commit's extraMetadata."""
        return {CHECKPOINT_KEY: json.dumps({self.stream: str(self.number)}, separators=(",", ":"))}

    def published(self, timeline: Timeline) -> Instant | None:
        """The write that brought this batch of the stream, or a later one; None when the active timeline knows none.

        Writes are asked from the newest on until one is of the stream: for a stream that alone writes that is the first.
        """
        newest = self._newest(timeline)
        return newest[0] if newest is not None and newest[1] >= self.number else None

    def _newest(self, timeline: Timeline) -> tuple[Instant, int] | None:
        """The newest write of the stream, and which batch it brought."""
        for instant in reversed(timeline.by_completion):
            number = _decoded((timeline.metadata(instant).get("extraMetadata") or {}).get(CHECKPOINT_KEY)).get(self.stream)
            if number is not None:
                return instant, number
        return None

    def report(self, timeline: Timeline, operation: str) -> CommitReport | None:
        """What is said instead of writing a batch that is in the table; None for one that is not.

        Spark repeats no batch but the last. Earlier ones come where a stream lost its checkpoint, and then bring other rows.
        """
        newest = self._newest(timeline)
        if newest is None or newest[1] < self.number:
            return None
        found, number = newest
        if number > self.number:
            told = f"batch {self.number} of the stream {self.stream!r} was not written: the table has batch {number}"
            cure = f"If the stream began anew, its rows are missing. Give it a name of its own: {keys.STREAM_IDENTIFIER.key}"
            warnings.warn(f"{told} since {found.time}. {cure}", HudiWarning, stacklevel=2)
        note = f"nothing was written: batch {self.number} of the stream {self.stream!r} is in the table since {found.time}"
        return CommitReport("", None, operation, notes=(note,))


def _decoded(text: str | None) -> dict[str, int]:
    """Batch numbers by stream; nothing where the entry is of another form."""
    try:
        found = json.loads(text or "{}")
        return {str(stream): int(number) for stream, number in found.items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def refuse_repeated(extra: Mapping[str, str], timeline: Timeline, operation: str) -> None:
    """Refuse to publish a batch that another process published meanwhile.

    Args:
        extra: The commit's extraMetadata.
        timeline: As listed under the table lock.
        operation: For the error.

    Raises:
        CommitConflict: It is there.
    """
    for stream, number in _decoded(extra.get(CHECKPOINT_KEY)).items():
        found = StreamBatch(stream, number).published(timeline)
        if found is not None:
            what = f"batch {number} of the stream {stream!r}"
            raise CommitConflict(operation, (), found.time, what=what, did="published meanwhile")
