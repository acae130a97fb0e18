r"""Seals of small text files: a checksum of everything else in the file, in a place that other readers pass over.

Layout::

    properties:   <comments> "#hudimeta.seal=" <32 hex> "\n" <properties> "#hudimeta.seal=" <32 hex> "\n"     two comments
    JSON object:  "{" "\"hudimeta.seal\":\"" <32 hex> "\"" [","] <the other members> "}"            the first member

The checksum is BLAKE2b of 16 bytes over the file without its seals. Whoever rewrites such a file drops comments and unknown
members, so a file without a seal claims nothing. A seal says that the bytes are those that were written, not who wrote them.
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
_MEMBER = re.compile(rb'\A\{"hudimeta\.seal":"([0-9a-f]{32})"(?:,|(?=\}))')
_HINT = "Restore the file from a copy; if it was changed by hand on purpose, remove {what} from it."


def digest(data: bytes) -> bytes:
    """The checksum of a seal.

    Args:
        data: What it covers.
    """
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()


def sealed_properties(data: bytes) -> bytes:
    """Properties text with a seal behind its first comments and another one at its end.

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
        data: The whole file. path: For the error.

    Returns:
        True for a right seal, False for a text without.

    Raises:
        CorruptFileError: The text is not the one that was sealed.
    """
    found = set(_COMMENT.findall(data))
    if not found:
        return False
    _compare(found, _COMMENT.sub(b"", data), path, f"the lines that begin with #{SEAL}")
    return True


def sealed_json(data: bytes) -> bytes:
    """A JSON object with a seal as its first member.

    Args:
        data: JSON text of an object, which begins with its brace.
    """
    if data[:1] != b"{":
        raise ValueError("only the text of a JSON object can be sealed")
    more = b"" if data[1:].lstrip().startswith(b"}") else b","
    return b'{"%s":"%s"%s' % (SEAL.encode(), digest(data).hex().encode(), more) + data[1:]


def verify_json(data: bytes, path: str) -> bool:
    """Check the seal of a JSON text. See `verify_properties`."""
    found = _MEMBER.match(data)
    if found is None:
        return False
    _compare({found[1]}, b"{" + data[found.end() :], path, f"its first member {SEAL}")
    return True


def _compare(found: set[bytes], rest: bytes, path: str, what: str) -> None:
    right = digest(rest).hex().encode()
    if found != {right}:
        told = " and ".join(sorted(one.decode() for one in found))
        raise CorruptFileError(path, 0, f"content with the seal {told}", right.decode(), _HINT.format(what=what))
