"""The seal of HFiles that hudimeta writes: entries of the file info, which other readers pass over.

========================  ================================================================
key                       value
========================  ================================================================
`hudimeta.body.crc32`     CRC-32 of everything before the file info, 8 hexadecimal digits
`hudimeta.trailer.crc32`  CRC-32 of the trailer
========================  ================================================================

The trailer is compared whenever the file is opened. Blocks carry checksums of their own; the body as a whole is compared by
`HFileReader.verify`, which finds damage in bytes too that nobody reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hudimeta.errors import CorruptFileError
from hudimeta.formats.crc32 import crc32

__all__ = ["check_body", "check_trailer", "seal_entries"]

_BODY_KEY, _TRAILER_KEY = "hudimeta.body.crc32", "hudimeta.trailer.crc32"


def seal_entries(body: Iterable[bytes], trailer: bytes) -> dict[str, bytes]:
    """Entries of the file info.

    Args:
        body: Everything before the file info, in pieces.
        trailer: Its bytes.
    """
    checksum = 0
    for piece in body:
        checksum = crc32(piece, checksum)
    return {_BODY_KEY: _text(checksum), _TRAILER_KEY: _text(crc32(trailer))}


def check_trailer(info: Mapping[str, bytes], trailer: bytes, path: str, offset: int) -> None:
    """Compare the trailer with the file info; nothing where the file has no seal.

    Args:
        info: File info.
        trailer: Its bytes.
        path: Of the file.
        offset: Of the trailer.

    Raises:
        CorruptFileError: It changed.
    """
    _compare(info.get(_TRAILER_KEY), trailer, "a trailer", path, offset)


def check_body(info: Mapping[str, bytes], body: bytes | memoryview, path: str) -> None:
    """Compare everything before the file info with it. See `check_trailer`."""
    _compare(info.get(_BODY_KEY), body, "blocks", path, 0)


def _compare(stated: bytes | None, data: bytes | memoryview, what: str, path: str, offset: int) -> None:
    found = _text(crc32(data))
    if stated is not None and stated != found:
        raise CorruptFileError(path, offset, f"{what} with the checksum {stated.decode(errors='replace')}", found.decode())


def _text(checksum: int) -> bytes:
    return f"{checksum:08x}".encode()
