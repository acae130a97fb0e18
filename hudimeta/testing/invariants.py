"""What is true of every table between any two requests, one function each.

Each takes an `Inspection` and raises ValidationFailed with what differs. `check_all` calls them one after the other; those that
hold also while writers are at work, and after one died, are in `ALWAYS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from hudimeta.commit.liveness import HEARTBEAT_FOLDER
from hudimeta.commit.markers import MARKERS, STAGING
from hudimeta.errors import ValidationFailed
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.storage import Storage, join
from hudimeta.table.discovery import PARTITION_METAFILE
from hudimeta.testing.indexes import indexes_know_every_row
from hudimeta.testing.inspection import Inspection
from hudimeta.testing.key_indexes import record_index_is_live_keys, record_window_is_live_keys, secondary_answers_as_scan
from hudimeta.testing.statistics import footers_tell_the_truth, statistics_enclose_every_value
from hudimeta.timeline import Timeline
from hudimeta.types import Action, Instant, State

__all__ = [
    "ALWAYS",
    "AT_REST",
    "LEFTOVERS",
    "check_all",
    "completed_instants_have_their_pending_files",
    "files_agree",
    "footers_tell_the_truth",
    "indexes_know_every_row",
    "metadata_follows_the_timeline",
    "nothing_is_left_over",
    "one_base_file_a_group_and_instant",
    "partitions_are_marked",
    "record_index_is_live_keys",
    "record_window_is_live_keys",
    "recovering_twice_is_recovering_once",
    "secondary_answers_as_scan",
    "slices_point_at_files",
    "statistics_enclose_every_value",
    "the_history_names_its_files",
    "timeline_is_in_order",
    "write_stats_are_true",
]

_FIRST_REAL_INSTANT = "0001"
"""Instants before this one lay out a metadata table; their completion times lie wherever its creation lay."""
_SHOWN = 8


def _refuse(what: str, wrong: Iterable[object]) -> None:
    found = [str(one) for one in wrong]
    if found:
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise ValidationFailed(f"{what}: {'; '.join(found[:_SHOWN])}{more}")


# The timeline


def timeline_is_in_order(table: Inspection) -> None:
    """Requested times are unique, completion times are unique and later than the request, in both timelines."""
    for name, timeline in _timelines(table):
        times = Counter(i.time for i in timeline if i.action is not Action.SAVEPOINT)
        _refuse(f"{name}: requested more than once", sorted(t for t, n in times.items() if n > 1))
        real = [i for i in timeline.completed if i.time >= _FIRST_REAL_INSTANT]
        completions = Counter(i.completion for i in real)
        _refuse(f"{name}: completion time given twice", sorted(str(c) for c, n in completions.items() if n > 1))
        _refuse(f"{name}: completed before it was requested", [i.time for i in real if (i.completion or "") <= i.time])


def completed_instants_have_their_pending_files(table: Inspection) -> None:
    """Hudi's archiver needs the requested or inflight file of every completed instant that is not archived already."""
    for name, timeline in _timelines(table):
        wrong = []
        archived = {i.time for i in timeline.history.instants()}
        for instant in (i for i in timeline.completed if i.time not in archived):
            files = timeline.files_of(instant)
            wanted = (".inflight",) if instant.action is Action.SAVEPOINT else (".requested", ".inflight")
            wrong += [f"{instant.time} lacks {end}" for end in wanted if not any(file.endswith(end) for file in files)]
        _refuse(f"{name}: completed without its earlier files", wrong)


def metadata_follows_the_timeline(table: Inspection) -> None:
    """Each completed write has its delta commit in the metadata table, which completed first, and no delta commit is alone."""
    if table.metadata is None:
        return
    inner, outer = table.metadata.timeline, table.timeline
    deltas = {i.time: i for i in inner if i.action is Action.DELTA_COMMIT}
    # What was completed before the metadata table was built is in its first base files.
    laid_out = [i for i in inner if i.time < _FIRST_REAL_INSTANT] or [
        i for i in inner.history.instants() if i.time < _FIRST_REAL_INSTANT
    ]
    built = max((i.completion or "" for i in laid_out), default="")
    wrong = []
    for instant in (i for i in outer.writes if (i.completion or "") > built):
        delta = deltas.get(instant.time)
        if delta is None or not delta.is_completed:
            wrong.append(f"{instant.time} was not written to the metadata table")
        elif (delta.completion or "") > (instant.completion or ""):
            wrong.append(f"{instant.time} was completed in the metadata table later than in the table")
    known = {i.time for i in outer}
    # Older ones belong to instants of the history; some actions never leave the timeline for it, so writes tell where it ends;
    # not those that a savepoint pins, over which archival may step.
    first = outer.first_active_write or ""
    alone = [t for t in deltas if t >= _FIRST_REAL_INSTANT and t not in known and t >= first]
    wrong += [f"the delta commit {time} belongs to no instant of the table" for time in alone]
    _refuse("metadata timeline", wrong)


def _timelines(table: Inspection) -> list[tuple[str, Timeline]]:
    inner = [] if table.metadata is None else [("metadata timeline", table.metadata.timeline)]
    return [("timeline", table.timeline), *inner]


# Files


def files_agree(table: Inspection) -> None:
    """The partition `files`, the completed writes and a listing of storage name the same files with the same sizes."""
    listed = {(f.partition_path, f.name, f.size) for f in table.data_files if table.is_committed(f)}
    written = {(p, s["path"].rpartition("/")[2], s["fileSizeInBytes"]) for _, p, s in table.stats if s["path"]}
    captured = ((p, path, size) for _, p, s in table.stats for path, size in (s["cdcStats"] or {}).items())
    written |= {(p, path.rpartition("/")[2], size) for p, path, size in captured}
    written = {entry for entry in written if join(entry[0], entry[1]) not in table.cleaned}
    _refuse("written by completed instants, not on storage", sorted(written - listed))
    listed = {entry for entry in listed if join(entry[0], entry[1]) not in table.being_cleaned}
    if not table.timeline.history.instants():
        _refuse("on storage, written by no completed instant", sorted(listed - written))
    if table.metadata is not None:
        known = set(zip(*(table.listing[c].to_pylist() for c in ("partition_path", "name", "size")), strict=True))
        known = {entry for entry in known if join(entry[0], entry[1]) not in table.being_cleaned}
        _refuse("on storage, unknown to the partition files", sorted(listed - known))
        _refuse("in the partition files, not on storage", sorted(known - listed))
        partitions = set(table.metadata.partitions().to_pylist())
        _refuse("partitions with files that are not in the list of all", sorted({p for p, _, _ in listed} - partitions))


def write_stats_are_true(table: Inspection) -> None:
    """Every path in a completed write's stats is there with that size, unless it was cleaned."""
    wrong = []
    for instant, partition, stat in table.stats:
        path = stat["path"]
        if not path or path in table.cleaned:
            continue
        if table.sizes.get(path) != stat["fileSizeInBytes"]:
            wrong.append(f"{instant.time}: {path} has {table.sizes.get(path)} bytes, not {stat['fileSizeInBytes']}")
        if stat["partitionPath"] != partition or path.rpartition("/")[0] != partition:
            wrong.append(f"{instant.time}: {path} stands below partition {partition!r}")
    _refuse("write stats", wrong)


def slices_point_at_files(table: Inspection) -> None:
    """No visible file slice names a file that is not there, or is there with another size."""
    wrong = []
    for piece in table.slices.to_pylist():
        names = list(zip(piece["log_files"], piece["log_sizes"], strict=True))
        names += [(piece["base_file"], piece["base_size"])] if piece["base_file"] is not None else []
        paths = [(join(piece["partition_path"], name), size) for name, size in names]
        wrong += [f"{p}: {size} bytes, found {table.sizes.get(p)}" for p, size in paths if table.sizes.get(p) != size]
    _refuse("file slices", wrong)


def one_base_file_a_group_and_instant(table: Inspection) -> None:
    """No committed instant has two base files in one file group: readers would take either."""
    counts = Counter(
        (file.partition_path, file.name.partition("_")[0], file.instant)
        for file in table.data_files
        if not file.name.startswith(".") and table.is_committed(file)
    )
    _refuse("more than one base file", sorted(key for key, n in counts.items() if n > 1))


def partitions_are_marked(table: Inspection) -> None:
    """Every partition with a committed file has its metafile, without which Java does not find it on storage."""
    partitions = {file.partition_path for file in table.data_files if table.is_committed(file)}
    wrong = [p for p in partitions if not any(join(p, PARTITION_METAFILE + end) in table.sizes for end in ("", ".parquet"))]
    _refuse("partitions without metafile", sorted(wrong))


def nothing_is_left_over(table: Inspection) -> None:
    """Everything on storage has an owner: an instant of the timeline, of the history, or the table itself."""
    owned = {i.time for i in table.timeline}
    _refuse(
        "data files of no instant", [f.path for f in table.data_files if f.instant not in owned and not table.is_committed(f)]
    )
    _refuse("foreign files", table.foreign_files)
    _refuse("files below .hoodie that nobody knows", table.unknown_files)
    _refuse("temporary files", [path for path in table.sizes if path.endswith(".tmp")])
    pending = {i.time for i in table.timeline.pending}
    _refuse("markers of no pending instant", sorted(_names_below(table, MARKERS) - pending))
    _refuse("staged rows of no pending instant", sorted(_names_below(table, STAGING) - pending))
    _refuse("heartbeats of no pending instant", sorted(_names_below(table, HEARTBEAT_FOLDER) - pending))
    if table.metadata is None:
        _refuse("files of a metadata table that the table does not have", [f.path for f in table.metadata_files])
        return
    inner = table.metadata.timeline
    known = {i.time for i in inner}
    orphans = {f.path: f.instant for f in table.metadata_files if f.instant not in known and not inner.is_committed(f.instant)}
    if orphans:
        # An index that Apache Hudi makes later begins with an instant before all others; the history still tells archived ones.
        archived = {i.time for i in inner.history.instants()}
        orphans = {path: instant for path, instant in orphans.items() if instant not in archived}
    _refuse("metadata files of no instant", orphans)
    _refuse("metadata markers", sorted(_names_below(table, f"{METADATA_ROOT}/{MARKERS}") - {i.time for i in inner.pending}))


def the_history_names_its_files(table: Inspection) -> None:
    """Every file in a history is named by a manifest; the next archival, or `recover`, removes what a dead one left."""
    _refuse("files of the history that no manifest names", table.unnamed_history)


def _names_below(table: Inspection, folder: str) -> set[str]:
    """Instants that the direct children of a folder are named after."""
    children = (e.path[len(folder) + 1 :] for e in table.everything if e.path.startswith(folder + "/"))
    return {child for child in children if "/" not in child}


# All of them

Invariant = Callable[[Inspection], None]

ALWAYS: tuple[Invariant, ...] = (
    timeline_is_in_order,
    completed_instants_have_their_pending_files,
    write_stats_are_true,
    slices_point_at_files,
    one_base_file_a_group_and_instant,
    partitions_are_marked,
    statistics_enclose_every_value,
    footers_tell_the_truth,
    files_agree,
    indexes_know_every_row,
    record_window_is_live_keys,
)
"""True at any moment, also while a writer is at work or after one died."""

LEFTOVERS: tuple[Invariant, ...] = (nothing_is_left_over, the_history_names_its_files)
"""True when nobody died, or what the dead left was removed."""

AT_REST: tuple[Invariant, ...] = (metadata_follows_the_timeline, *LEFTOVERS)
"""True when no writer is at work and the last one finished or was rolled back."""


def check_all(storage: Storage, invariants: Iterable[Invariant] = (*ALWAYS, *AT_REST)) -> None:
    """Check a table.

    Args:
        storage: Rooted at the table.
        invariants: Which ones; all for a table at rest.

    Raises:
        ValidationFailed: With what differs.
    """
    table = Inspection(storage)
    for invariant in invariants:
        invariant(table)


def recovering_twice_is_recovering_once(storage: Storage, recover: Callable[[], object]) -> None:
    """After one recovery a second one finds nothing to do and changes nothing.

    Args:
        storage: Rooted at the table.
        recover: Recovers the table, for example `table.recover`.
    """
    recover()
    first = Inspection(storage)
    recover()
    second = Inspection(storage)
    _refuse("dead writes after a recovery", [i.time for i in first.timeline.pending_writes if _is_write(i)])
    ignored = ".hoodie/.locks/"
    before = {p: n for p, n in first.sizes.items() if not p.startswith(ignored)}
    after = {p: n for p, n in second.sizes.items() if not p.startswith(ignored)}
    _refuse("changed by a second recovery", sorted(set(before.items()) ^ set(after.items())))


def _is_write(instant: Instant) -> bool:
    action = instant.pending_action or instant.action
    return instant.state is not State.COMPLETED and action in (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
