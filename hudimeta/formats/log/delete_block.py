"""Delete blocks: the keys that a write removed, each with an ordering value that says whether the delete comes too late.

Content: int version 3, int n (both big-endian), n bytes of Avro binary, the list that `formats.avro.delete_list` knows.
Versions 1 and 2 hold serialised Java objects (Kryo) and are refused by name, never passed over: a delete that is not seen is
a row too many.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from hudimeta.errors import SchemaMismatch, UnsupportedFeature
from hudimeta.formats.log.block import BlockType, LogBlock

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["decode_delete_block", "encode_delete_content"]

DELETE_VERSION: Final = 3
KRYO_VERSIONS: Final = (1, 2)
_HEAD: Final = struct.Struct(">ii")


def decode_delete_block(block: LogBlock) -> pa.Table:
    """The records of a delete block, in its order.

    Returns:
        Table with `formats.avro.ordering.DELETES_SCHEMA`: record_key and partition_path (string), ordering_wrapper (int8) and
        ordering (struct); `formats.avro.ordering.ordering_values` turns the last two into values of the table's types.

    Raises:
        CorruptFileError: Content that does not add up, or a record without a key.
        UnsupportedFeature: A version that holds Java objects, or an unknown one.
    """
    from hudimeta.formats.avro.delete_list import decode_delete_list

    content = block.content
    if block.type is not BlockType.DELETE:
        raise UnsupportedFeature(f"reading deletes from a {block.type.name} block")
    if len(content) < _HEAD.size:
        raise block.damaged("a version and a length", f"{len(content)} bytes", at=0)
    version, size = _HEAD.unpack_from(content)
    where = f"at byte {block.offset} of {block.path or '<memory>'}"
    if version in KRYO_VERSIONS:
        raise UnsupportedFeature(
            f"delete log block of version {version} (Kryo) {where}", "Compact the table with Apache Hudi first."
        )
    if version != DELETE_VERSION:
        raise UnsupportedFeature(f"delete log block of version {version} {where}")
    if size != len(content) - _HEAD.size:
        raise block.damaged(f"a length of {len(content) - _HEAD.size}", size, at=4)
    deletes = decode_delete_list(content[_HEAD.size :], block.path, block.content_offset + _HEAD.size)
    if deletes.column("record_key").null_count:
        raise block.damaged("a key in every delete record", "null", at=_HEAD.size)
    return deletes


def encode_delete_content(
    record_keys: pa.Array,
    partition_paths: pa.Array,
    ordering: Sequence[pa.Array] = (),
) -> bytes:
    """Content of a delete block; the inverse of `decode_delete_block`.

    Args:
        record_keys: string without nulls.
        partition_paths: string, as many.
        ordering: Per ordering field of the table one array of the field's own type. None at all, and a null in a single field,
            writes "no ordering value". With a table whose ordering field is not an int, Hudi 1.0.2 fails when such a record
            and a later row of the same key meet in one slice: give the values wherever they are known.

    Raises:
        SchemaMismatch: A key that is null, or ordering values that do not fit.
        UnsupportedFeature: A type that cannot order.
    """
    from hudimeta.formats.avro.delete_list import encode_delete_list

    if record_keys.null_count:
        raise SchemaMismatch("recordKey", "null", "a key in every delete record")
    deletes = encode_delete_list(record_keys, partition_paths, ordering)
    return _HEAD.pack(DELETE_VERSION, len(deletes)) + deletes
