"""Reading every byte of a log file, to find out whether it is what was written."""

from __future__ import annotations

from hudimeta.errors import CorruptFileError
from hudimeta.formats.log.block import BlockType, CorruptSpan, HeaderKey
from hudimeta.formats.log.data_blocks import decode_data_block, open_hfile_block
from hudimeta.formats.log.delete_block import decode_delete_block
from hudimeta.formats.log.framing import read_blocks
from hudimeta.formats.log.positions import decode_positions

__all__ = ["verify_log_file"]


def verify_log_file(data: bytes | memoryview, path: str = "", size: int | None = None) -> list[CorruptSpan]:
    """Decode every block of a log file, of a data table or of a metadata table.

    Args:
        data: The whole file.
        path: Its path, for errors, and because seals know the file's name.
        size: Bytes that it should have; None when nobody says.

    Returns:
        The spans that are no blocks. In a file with one writer, as all are from table version 8 on, only those that lie after
        its end (`is_past_end`) are no damage; in older ones a dead writer may have left any of them.

    Raises:
        CorruptFileError: Damage.
        UnsupportedFeature: A block that cannot be read.
    """
    scan = read_blocks(data, path, size)
    if not scan.blocks and not scan.corrupt:
        raise CorruptFileError(path, 0, "log blocks", "an empty file")
    for block in scan.blocks:
        if block.type is BlockType.DELETE:
            decode_delete_block(block)
        elif block.type is BlockType.HFILE_DATA:
            open_hfile_block(block).scan()
        elif block.rollback_target is None:
            decode_data_block(block)
        if HeaderKey.RECORD_POSITIONS in block.header:
            decode_positions(block.header[HeaderKey.RECORD_POSITIONS])
    return scan.corrupt
