"""`hudimeta metadata …`: the commands of RFC-15 and of its first draft."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from hudimeta.cli.exits import Exit
from hudimeta.cli.given import command, dry_run
from hudimeta.cli.output import Answer, AnswerRows
from hudimeta.errors import ConfigError, TableError, UnsupportedFeature

if TYPE_CHECKING:
    from hudimeta import Table
    from hudimeta.services.metadata_table import ListingCost, MetadataChange

__all__ = ["metadata"]

_FOLDER = ".hoodie/metadata"
_SIZES = ("name", "file_groups", "base_files", "base_bytes", "log_files", "log_bytes")
_COSTS = ("call", "existing_ms", "with_metadata_ms", "difference_percent", "existing_requests", "with_metadata_requests")


@click.group()
def metadata() -> None:
    """The metadata table of a table: make, check, list, count and time it."""


def _needed(table: Table) -> None:
    """Refuse a table without metadata table, in the words of this command line."""
    if not table.properties.has_metadata_table:
        raise TableError("the table has no metadata table", "`hudimeta metadata create PATH` makes one.")


def _changed(change: MetadataChange) -> Answer:
    facts = {
        "table": change.table,
        "changed": bool(change.steps) and not change.dry_run,
        "dry_run": change.dry_run,
        "steps": list(change.steps),
        "partitions": list(change.partitions),
        "seconds": round(change.seconds, 3),
    }
    return Answer(facts, lines=str(change).splitlines())


@dry_run
@click.option("--validate/--no-validate", default=None, help="Reads plan from a listing, and only compare the metadata table.")
@click.option("--enable/--disable", default=None, help="Use the metadata table, and make it where it is not there.")
@click.option("--metadata-dir", help="Where it lies; the table format fixes this: .hoodie/metadata.")
def _set(
    table: Table, metadata_dir: str | None, enable: bool | None, validate: bool | None, dry_run: bool
) -> tuple[Answer, Exit]:
    """Write down how the table's metadata table is used; without an option, tell."""
    if metadata_dir is not None and metadata_dir.rstrip("/") not in (_FOLDER, f"{table.path}/{_FOLDER}"):
        hint = "Readers look for it in .hoodie/metadata of the table. Copy the table where you cannot write beside it."
        raise UnsupportedFeature("a metadata table in another folder", hint)
    if enable is not None or validate is not None:
        return _changed(table.metadata.set(enable=enable, validate=validate, dry_run=dry_run)), Exit.DONE
    modes = table.metadata.modes
    facts = {
        "table": table.path,
        "there": table.properties.has_metadata_table,
        "enabled": modes.enabled,
        "validated": modes.validated,
        "folder": _FOLDER,
    }
    return Answer(facts), Exit.DONE


@dry_run
def _create(table: Table, dry_run: bool) -> tuple[Answer, Exit]:
    """Make the metadata table of a table that has none, from a listing of its folders."""
    return _changed(table.metadata.create(dry_run=dry_run)), Exit.DONE


@dry_run
def _delete(table: Table, dry_run: bool) -> tuple[Answer, Exit]:
    """Remove the metadata table with all indexes; the next write makes it anew unless `set --disable` was called."""
    return _changed(table.metadata.delete(dry_run=dry_run)), Exit.DONE


@dry_run
def _update(table: Table, dry_run: bool) -> tuple[Answer, Exit]:
    """Bring the metadata table into step after crashes, or after writers that left it out."""
    change = table.metadata.update(dry_run=dry_run)
    return _changed(change), Exit.FOUND if change.dry_run and change.steps else Exit.DONE


@dry_run
@click.option("--read-only", is_flag=True, help="Only open it, and say whether it is in step (exit code 1 where it is not).")
def _init(table: Table, read_only: bool, dry_run: bool) -> tuple[Answer, Exit]:
    """Open the metadata table, and bring it into step with the table."""
    if not read_only:
        change = table.metadata.update(dry_run=dry_run)
        return _changed(change), Exit.FOUND if change.dry_run and change.steps else Exit.DONE
    _needed(table)
    begin = time.perf_counter()
    stats = table.metadata.stats()
    took = round(time.perf_counter() - begin, 3)
    state = "in step" if stats.in_sync else f"not in step: {stats.why}"
    facts = {"table": stats.table, "in_sync": stats.in_sync, "why": stats.why, "seconds": took}
    lines = [f"Opened Metadata Table in {stats.table}/{_FOLDER} (duration={took:.2f}sec), {state}"]
    return Answer(facts, lines=lines), Exit.DONE if stats.in_sync else Exit.FOUND


def _stats(table: Table) -> tuple[Answer, Exit]:
    """Files and bytes of the metadata table, its last compaction, and whether it is in step with the table."""
    _needed(table)
    stats = table.metadata.stats()
    rows = AnswerRows("partitions", _SIZES, [[getattr(one, name) for name in _SIZES] for one in stats.partitions])
    return Answer({**stats.figures(), "why": stats.why}, [rows], lines=[*str(stats).splitlines(), ""]), Exit.DONE


def _list_partitions(table: Table) -> tuple[Answer, Exit]:
    """Partitions of the table, by the metadata table; by a listing of storage where there is none."""
    begin = _clock()
    found = table.metadata.list_partitions().to_pylist()
    took = (time.perf_counter() - begin) * 1000
    return _listed(table, AnswerRows("partitions", ["partition"], [[path] for path in found]), "partitions", took), Exit.DONE


@click.option("--partition", default="", help="Its path; left out for a table without partitions.")
def _list_files(table: Table, partition: str) -> tuple[Answer, Exit]:
    """Files of completed writes in one partition, by the metadata table or, where there is none, by a listing."""
    if not partition and table.properties.is_partitioned:
        raise ConfigError("--partition", "", "the path of a partition: the table is partitioned")
    begin = _clock()
    found = table.metadata.list_files(partition)
    took = (time.perf_counter() - begin) * 1000
    columns = ("name", "size")
    rows = list(zip(*(found[name].to_pylist() for name in columns), strict=True))
    return _listed(table, AnswerRows("files", columns, rows), "files", took), Exit.DONE


def _clock() -> float:
    """Now, when what takes longest to load is loaded: that is no part of a look-up."""
    import pyarrow
    import pyarrow.compute

    pyarrow.array([0])  # which loads pandas where it is installed
    return time.perf_counter()


def _listed(table: Table, rows: AnswerRows, what: str, took: float) -> Answer:
    reason = table.metadata.listing_reason
    source = "listing" if reason else "metadata table"
    facts = {"table": table.path, "source": source, "why": reason, "milliseconds": round(took, 2)}
    because = f" ({reason})" if reason else ""
    how = "a listing of storage" if reason else "the metadata table"
    return Answer(facts, [rows], [], f"{len(rows.values):,} {what} by {how}{because}, {took:,.2f} ms")


@click.option("--verbose", is_flag=True, help="All files, also those that agree.")
def _validate_files(table: Table, verbose: bool) -> tuple[Answer, Exit]:
    """Files of which the metadata table and storage say different things; exit code 1 where there are some."""
    _needed(table)
    found = table.call("validate_metadata_table_files", verbose=verbose)
    rows = [tuple(row.values()) for row in found.to_pylist()]
    wrong = sum(row[2:4] != (True, True) or row[4] != row[5] for row in rows)
    facts = {"table": table.path, "differences": wrong}
    closing = f"{wrong:,} files differ" if wrong else "the metadata table lists what storage has"
    answer = Answer(facts, [AnswerRows("files", found.column_names, rows)] if rows or verbose else [], [], closing)
    return _with_files(answer), Exit.FOUND if wrong else Exit.DONE


def _with_files(answer: Answer) -> Answer:
    """JSON has the key `files` also where there are none."""
    return answer if answer.tables else Answer({**answer.facts, "files": []}, [], answer.lines, answer.closing)


@click.option("--rounds", type=click.IntRange(1, 1000), default=3, show_default=True, help="The quickest round counts.")
@click.option("--partition", help="For calls about one partition; that with the most files where it is left out.")
def _perf(table: Table, partition: str | None, rounds: int) -> tuple[Answer, Exit]:
    """Listings and views of this table: existing (listing) / with the metadata table / difference."""
    cost = table.metadata.measure(partition, rounds=rounds)
    facts = {"table": cost.table, "partition": cost.partition, "partition_count": cost.partitions, "file_count": cost.files}
    tables = [AnswerRows(name, _COSTS, rows, titled=True) for name, rows in _timed(cost)]
    average = cost.files / cost.partitions if cost.partitions else 0.0
    lines = [
        f"File counts: files={cost.files:,}, partitions={cost.partitions:,}",
        f"Files/partition (avg): files={average:,.2f}",
        f"Calls about one partition: {cost.partition!r}",
    ]
    return Answer(facts, tables, lines), Exit.DONE


def _timed(cost: ListingCost) -> list[tuple[str, list[tuple[object, ...]]]]:
    def row(one: object) -> tuple[object, ...]:
        names = ("call", "listing_ms", "metadata_ms", "difference", "listing_requests", "metadata_requests")
        values = (getattr(one, name) for name in names)
        return tuple(round(value, 3) if isinstance(value, float) else value for value in values)

    return [("lookups", [row(one) for one in cost.lookups]), ("views", [row(one) for one in cost.views])]


for _name, _run in (
    ("set", _set),
    ("create", _create),
    ("delete", _delete),
    ("update", _update),
    ("stats", _stats),
    ("list-partitions", _list_partitions),
    ("list-files", _list_files),
    ("init", _init),
    ("validate-files", _validate_files),
    ("perf", _perf),
):
    command(metadata, _name)(_run)
