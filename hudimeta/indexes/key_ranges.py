"""Which files may hold keys, by the smallest and largest key that each of them has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.table.key_file import KeyFile

__all__ = ["files_in_range"]


def files_in_range(files: Sequence[KeyFile], keys: pa.StringArray) -> np.ndarray[Any, Any]:
    """Which files may hold at least one of the keys, by their key ranges: bool, one a file.

    Keys and bounds are ranked together, so that the question becomes one of whole numbers.
    """
    n = len(files)
    result = np.ones(n, dtype=bool)
    known = np.array([i for i, f in enumerate(files) if f.min_key is not None and f.max_key is not None], dtype=np.int64)
    if not len(known) or not len(keys):
        return result & bool(len(keys))
    low = pa.array([files[i].min_key for i in known], pa.binary())
    high = pa.array([files[i].max_key for i in known], pa.binary())
    everything = pa.concat_arrays([keys.cast(pa.binary()), low, high])
    ranks = pc.rank(everything, tiebreaker="dense").to_numpy()
    own = np.sort(ranks[: len(keys)])
    first = np.searchsorted(own, ranks[len(keys) : len(keys) + len(known)], side="left")
    last = np.searchsorted(own, ranks[len(keys) + len(known) :], side="right")
    result[known] = last > first
    return result
