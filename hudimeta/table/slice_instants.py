"""To which file slice each file belongs.

A base file begins a slice at its own instant. A log file belongs to the slice with the largest base instant that is not later
than the log's *completion* (version 8 and later), or than the instant in its name, which is a base instant (version 6). Logs
without such a base form a slice of their own at the earliest of them.

The completion of an archived write stands in the history alone, which takes files to read. It is asked for only where it
decides: a log that was requested after the newest base file of its group belongs to that one, whenever it was completed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hudimeta.table.text_arrays import instant_number, instant_text

if TYPE_CHECKING:
    import numpy as np

    from hudimeta.table.file_names import ParsedNames
    from hudimeta.table.visibility import Visibility

__all__ = ["slice_instants"]


def slice_instants(
    parsed: ParsedNames,
    rows: np.ndarray[Any, Any],
    group: np.ndarray[Any, Any],
    visibility: Visibility,
) -> np.ndarray[Any, Any]:
    """For each row the instant (as a number) of the slice that it belongs to.

    Args:
        parsed: Names of the files of a listing.
        rows: int64, those of committed base and log files.
        group: int64, for each of these rows a number for its file group.
        visibility: What the timeline says.

    Returns:
        int64, as long as `rows`.
    """
    import numpy as np

    slice_at: np.ndarray[Any, Any] = parsed.instants[rows].copy()
    logs = np.flatnonzero(parsed.is_log[rows])
    if not len(logs):
        return slice_at
    bases = np.flatnonzero(~parsed.is_log[rows])
    reached = slice_at[logs]
    if not visibility.logs_name_base:
        early = np.flatnonzero(reached < _newest_bases(slice_at[bases], group[bases], group[logs]))
        reached[early] = _completions(reached[early], visibility)
    # Ranks make (group, instant) one sortable number.
    ranks = np.unique(np.concatenate([slice_at[bases], reached]))
    width = len(ranks) + 1
    base_at = np.sort(group[bases] * width + np.searchsorted(ranks, slice_at[bases]))
    wanted = group[logs] * width + np.searchsorted(ranks, reached)
    found = np.searchsorted(base_at, wanted, side="right") - 1
    has_base = found >= 0
    has_base[has_base] = base_at[found[has_base]] // width == group[logs][has_base]
    slice_at[logs[has_base]] = ranks[base_at[found[has_base]] % width]
    lone = logs[~has_base]
    if len(lone):
        order = lone[np.lexsort((slice_at[lone], group[lone]))]
        starts = np.flatnonzero(np.r_[True, group[order][1:] != group[order][:-1]])
        slice_at[order] = np.repeat(slice_at[order][starts], np.diff(np.r_[starts, len(order)]))
    return slice_at


def _newest_bases(
    instants: np.ndarray[Any, Any], group: np.ndarray[Any, Any], asked: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """The instant of the newest base file of each group that is asked for; -1 without one."""
    import numpy as np

    newest = np.full(int(max(group.max(initial=-1), asked.max())) + 1, -1, dtype=np.int64)
    np.maximum.at(newest, group, instants)
    found: np.ndarray[Any, Any] = newest[asked]
    return found


def _completions(instants: np.ndarray[Any, Any], visibility: Visibility) -> np.ndarray[Any, Any]:
    """Completion times, as numbers, of log files' instants; an archived one is looked up in the history."""
    import numpy as np

    if not len(instants):
        return instants
    known = {instant_number(t): instant_number(c) for t, c in visibility.completed.items()}
    distinct, place = np.unique(instants, return_inverse=True)
    archived = [int(i) for i in distinct if int(i) not in known]
    if archived:
        texts = instant_text(np.array(archived, dtype=np.int64)).to_pylist()
        answers = visibility.history(texts)
        # Completion is never before the request; without a record the request is the best bound that there is.
        known.update({i: instant_number(answers.get(t, t)) for i, t in zip(archived, texts, strict=True)})
    times: np.ndarray[Any, Any] = np.array([known[int(i)] for i in distinct], dtype=np.int64)[place]
    return times
