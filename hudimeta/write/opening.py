"""Opening a table for a write that may have to create it: what `df.write` does, and the verbs of a table do not."""

from __future__ import annotations

import contextlib

import pyarrow as pa

from hudimeta.commit.session import WriteSession
from hudimeta.config import Options
from hudimeta.config.options import INDEX_TYPE, RECORD_KEY
from hudimeta.errors import TableError, TableNotFound
from hudimeta.indexes.tagging import IndexKind
from hudimeta.storage import Storage
from hudimeta.types import Operation
from hudimeta.write.creation import create_table
from hudimeta.write.duplicates import refuse_unheeded

__all__ = ["open_or_create"]


def open_or_create(storage: Storage, options: Options, schema: pa.Schema, operation: Operation) -> WriteSession:
    """A session of a write of rows to a table, which is created where there is none.

    Args:
        storage: Rooted at the table.
        options: Of the write, and of the table if it is created.
        schema: Of the rows.
        operation: One that deletes creates nothing.

    Raises:
        TableNotFound: A delete from a table that is not there.
        TableError, ConfigError: It cannot be created or written.
    """
    try:
        return WriteSession(storage, options)
    except TableNotFound:
        if operation in (Operation.DELETE, Operation.DELETE_PARTITION):
            raise
    in_buckets = (options.get(INDEX_TYPE) or "").strip().upper() == IndexKind.BUCKET.value
    refuse_unheeded(options, operation, has_keys=bool(options.get(RECORD_KEY)), in_buckets=in_buckets)
    try:
        create_table(storage, schema, options)
    except TableError:
        # Another writer may have created it meanwhile; if not, that error is the one to show.
        with contextlib.suppress(TableNotFound):
            return WriteSession(storage, options)
        raise
    return WriteSession(storage, options)
