"""Matching millions of names of files by 62 bits of a hash: sixteen bytes each, beside some hundred of a dictionary."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.formats.bloom import hash_chain
from hudimeta.formats.plain_arrays import integers

__all__ = ["NamesByHash"]

_Numbers = npt.NDArray[np.int64]
_AT_ONCE = 1 << 17


class NamesByHash:
    """Some names, to be found among others.

    Args:
        names: Each once; string.
    """

    def __init__(self, names: pa.StringArray) -> None:
        self._names = names
        hashes = _hashes(names)
        self._order = np.argsort(hashes)
        self._hashes = hashes[self._order]

    def places_in(self, given: pa.ChunkedArray) -> pa.Array | None:
        """Of each name its place among those given (int64, null where it is not there); None where that cannot be told so.

        That is where a name stands several times on one side, or two names have one hash.
        """
        theirs = np.concatenate([np.empty(0, np.int64), *(_hashes(chunk) for chunk in given.chunks)])
        order = np.argsort(theirs)
        theirs = theirs[order]
        if (theirs[1:] == theirs[:-1]).any():
            return None
        # Both sides in order: a search at random waits for memory at each step.
        at = np.minimum(np.searchsorted(theirs, self._hashes), len(theirs) - 1)
        met = theirs[at] == self._hashes if len(theirs) else np.zeros(len(at), np.bool_)
        place, name = order[at[met]], self._order[met]
        wanted = np.full(len(given), -1, np.int64)
        wanted[place] = name
        if np.count_nonzero(wanted >= 0) < len(place) or not self._are_same(given, wanted):
            return None
        places, absent = np.zeros(len(self._names), np.int64), np.ones(len(self._names), np.bool_)
        places[name], absent[name] = place, False
        return pa.array(places, mask=absent)

    def _are_same(self, given: pa.ChunkedArray, wanted: _Numbers) -> bool:
        """Whether each of the names given is the one of ours whose number stands beside it, -1 for none."""
        start = 0
        for chunk in given.chunks:
            for first in range(0, len(chunk), _AT_ONCE):
                theirs = chunk.slice(first, _AT_ONCE)
                numbers = wanted[start + first : start + first + len(theirs)]
                known = numbers >= 0
                if not self._names.take(integers(numbers[known])).equals(theirs.filter(pa.array(known))):
                    return False
            start += len(chunk)
        return True


def _hashes(names: pa.Array) -> _Numbers:
    chain = hash_chain(names, 2)
    return (chain[:, 0].astype(np.int64) << 31) ^ chain[:, 1]
