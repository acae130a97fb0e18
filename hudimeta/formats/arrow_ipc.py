"""Arrow tables as bytes: the file form of Arrow IPC, compressed with zstd; for rows that one process hands to another."""

from __future__ import annotations

import pyarrow as pa

from hudimeta.errors import CorruptFileError

__all__ = ["decode_table", "encode_table"]


def encode_table(table: pa.Table) -> bytes:
    """The bytes of a table; schema metadata is kept."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def decode_table(data: bytes, path: str = "") -> pa.Table:
    """The inverse of `encode_table`.

    Raises:
        CorruptFileError: Other bytes.
    """
    try:
        with pa.ipc.open_file(pa.BufferReader(data)) as reader:
            return reader.read_all()
    except (pa.ArrowInvalid, OSError) as error:
        raise CorruptFileError(path, 0, "an Arrow IPC file", str(error).splitlines()[0]) from error
