"""Which keys a commit added to the table, and which of them to the record index, in a few bytes of its extraMetadata.

Writers that are at work at once compare keys under the table lock. What a commit states here spares them the files and logs
that say the same at length. Of each key there are the 32 bits of its CRC-32, together little endian in base64, so that only
"not among them" is certain. A commit of many keys states nothing, and so do other writers than ours: their files tell.
"""

from __future__ import annotations

import base64
import binascii
import enum
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

Hashes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint32]]"
"""Of keys, one number each."""

__all__ = ["Hashes", "Stated", "key_hashes", "none_stated", "stated", "stated_hashes"]


class Stated(enum.Enum):
    """What a commit states of keys, by the name of its entry."""

    ADDED = "hudimeta.keys.added"
    """Those that it added to the table."""
    INDEXED = "hudimeta.keys.indexed"
    """Those of which it wrote to the record index: added, moved and removed ones."""


_MOST = 1000
"""Keys of a commit that states them: some 5 KiB, which every reader of the commit fetches."""
_HASH = np.dtype("<u4")


def stated(what: Stated, keys: Sequence[pa.Array]) -> dict[str, str]:
    """The entry of a commit; {} when they are too many.

    Args:
        what: Is stated.
        keys: All of them, string or binary.
    """
    if sum(map(len, keys)) > _MOST:
        return {}
    return {what.value: base64.b64encode(np.unique(key_hashes(keys)).tobytes()).decode("ascii")}


def none_stated(what: Stated, keys: Sequence[pa.Array], commits: Iterable[Mapping[str, Any]]) -> bool:
    """True when commits say for certain that none of some keys is among theirs.

    Args:
        what: They state.
        keys: String or binary.
        commits: The records of completed commits.
    """
    found = [stated_hashes(what, commit) for commit in commits]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return False
    return not known or not np.isin(key_hashes(keys), np.concatenate(known)).any()


def key_hashes(keys: Sequence[pa.Array]) -> Hashes:
    """What stands for some keys, one each."""
    import pyarrow as pa

    found = [zlib.crc32(key) for array in keys for key in array.cast(pa.binary()).to_pylist()]
    return np.array(found, _HASH)


def stated_hashes(what: Stated, commit: Mapping[str, Any]) -> Hashes | None:
    """What stands for the keys of a commit; None where it does not state them."""
    text = (commit.get("extraMetadata") or {}).get(what.value)
    try:
        data = None if text is None else base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return None if data is None or len(data) % _HASH.itemsize else np.frombuffer(data, _HASH)
