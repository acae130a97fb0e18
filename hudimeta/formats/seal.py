r"""Seals of small text files: a checksum of everything else in the file, in a place that other readers pass over.

Layout::

    properties:   <comments> "#hudimeta.seal=" <32 hex> "\n" <properties> "#hudimeta.seal=" <32 hex> "\n"     two comments
    JSON object:  "{" <the other members> ",\"hudimeta.seal\":\"" <file name> ":" <32 hex> "\"}"      the last member

The checksum is BLAKE2b of 16 bytes over the file without its seals, of JSON over the file's name and a zero byte as well.
Whoever rewrites such a file drops comments and unknown members, so a file without a seal claims nothing. One case is known
where Java takes over text unread: a new history of the columns is the old one with something in front, under another name.
"""

from __future__ import annotations

import hashlib
import re

from hudimeta.errors import CorruptFileError

__all__ = ["SEAL", "digest", "sealed_json", "sealed_properties", "verify_json", "verify_properties"]

SEAL = "hudimeta.seal"
DIGEST_BYTES = 16

_COMMENT = re.compile(rb"^#hudimeta\.seal=([0-9a-f]{32})\n", re.MULTILINE)
_FIRST_COMMENTS = re.compile(rb"(?:#.*\n)*")
_MEMBER = re.compile(rb',?"hudimeta\.seal":"([^":\\]*):([0-9a-f]{32})"\}\s*\Z')
_HINT = "Restore the file from a copy; if it was changed by hand on purpose, remove {what} from it."


def digest(data: bytes) -> bytes:
    """The checksum of a seal.

    Args:
        data: What it covers.
    """
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()


def sealed_properties(data: bytes) -> bytes:
    """Properties text with a seal after its first comments and another one at its end.

    Args:
        data: The text, ended by a line feed.
    """
    line = f"#{SEAL}={digest(data).hex()}\n".encode()
    head = _FIRST_COMMENTS.match(data)
    at = head.end() if head else 0
    return data[:at] + line + data[at:] + line


def verify_properties(data: bytes, path: str) -> bool:
    """Check the seals of properties text, of which one is enough.

    Args:
        data: The whole file.
        path: For the error.

    Returns:
        True for a right seal, False for a text without.

    Raises:
        CorruptFileError: The text is not the one that was sealed.
    """
    found = set(_COMMENT.findall(data))
    if not found:
        return False
    _compare(found, digest(_COMMENT.sub(b"", data)), path, f"the lines that begin with #{SEAL}")
    return True


def sealed_json(data: bytes, name: str) -> bytes:
    """A JSON object with a seal as its last member.

    Args:
        data: JSON text of an object, without white space at its ends.
        name: Of the file that it will be, without its folder.
    """
    if not (data.startswith(b"{") and data.endswith(b"}")):
        raise ValueError("only the text of a JSON object can be sealed")
    comma = "" if len(data) == len("{}") else ","
    return data[:-1] + f'{comma}"{SEAL}":"{name}:{_digest_of_json(name, data).hex()}"}}'.encode()


def verify_json(data: bytes, path: str, *, taken_over: bool = False) -> bool:
    """Check the seal of a JSON text.

    Args:
        data: The whole file.
        path: Of the file.
        taken_over: A seal of another file counts as none, where writers take over text unread.

    Returns:
        True for a right seal, False for a text without.

    Raises:
        CorruptFileError: The text is not the one that was sealed, or that of another file.
    """
    found = _MEMBER.search(data)
    if found is None:
        return False
    name = path.rpartition("/")[2]
    if found[1] != name.encode():
        if taken_over:
            return False
        raise CorruptFileError(path, found.start(), f"the content of {name}", f"that of {found[1].decode('utf-8', 'replace')}")
    right = _digest_of_json(name, data[: found.start()] + b"}")
    _compare({found[2]}, right, path, f"its last member {SEAL}")
    return True


def _digest_of_json(name: str, data: bytes) -> bytes:
    return digest(name.encode() + b"\0" + data)


def _compare(found: set[bytes], right: bytes, path: str, what: str) -> None:
    if found != {right.hex().encode()}:
        stated = " and ".join(sorted(one.decode() for one in found))
        raise CorruptFileError(path, 0, f"content with the seal {stated}", right.hex(), _HINT.format(what=what))
