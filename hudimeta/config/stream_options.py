"""Options of Spark's streams: where one begins, how much a batch takes, how a batch is written once."""

from __future__ import annotations

from hudimeta.config.registry import OPTIONS

__all__ = [
    "FAIL_ON_DATA_LOSS",
    "MAX_BYTES_PER_TRIGGER",
    "MAX_FILES_PER_TRIGGER",
    "STREAM_BATCH",
    "STREAM_COMPACTS_NOT",
    "STREAM_IDENTIFIER",
    "STREAM_START",
    "STREAM_TRIES",
    "STREAM_WAIT_MS",
]

STREAM_START = OPTIONS.text(
    "hoodie.datasource.streaming.startoffset",
    "earliest",
    "Where readStream begins that has no checkpoint: earliest, latest, or a completion time, which is excluded.",
)
MAX_FILES_PER_TRIGGER = OPTIONS.number(
    "maxfilespertrigger",
    0,
    "Files written by the commits that one batch of readStream takes; whole commits, at least one. 0: no limit.",
)
MAX_BYTES_PER_TRIGGER = OPTIONS.number(
    "maxbytespertrigger", 0, "The same in bytes of these files. Where both are given, both hold."
)
FAIL_ON_DATA_LOSS = OPTIONS.flag(
    "failondataloss",
    True,
    "readStream fails where cleaning or archival took commits that it has not read yet; false goes on with what is left, and "
    "warns.",
)
STREAM_IDENTIFIER = OPTIONS.text(
    "hoodie.datasource.write.streaming.checkpoint.identifier",
    "default_single_writer",
    "Names the stream whose batch a write is; each stream that writes to a table needs a name of its own. writeStream takes "
    "the id of its query where it is not given.",
)
STREAM_BATCH = OPTIONS.text(
    "hudimeta.streaming.batch.id",
    None,
    "Number of the batch of the stream: a batch that is in the table already is not written again. writeStream, and "
    "foreachBatch in an attached session, set both by themselves.",
)
STREAM_TRIES = OPTIONS.count(
    "hoodie.datasource.write.streaming.retry.count",
    3,
    "How often writeStream tries to write a batch that meets other writers at the same rows, in all.",
)
STREAM_WAIT_MS = OPTIONS.number(
    "hoodie.datasource.write.streaming.retry.interval.ms",
    2_000,
    "How long it waits before it tries again, in milliseconds; twice as long each further time. Where it is not given, "
    "hudimeta.write.conflict.wait.ms counts.",
)
STREAM_COMPACTS_NOT = OPTIONS.flag(
    "hoodie.datasource.write.streaming.disable.compaction",
    False,
    "writeStream neither compacts nor plans compactions, whatever the options of compaction say.",
)
