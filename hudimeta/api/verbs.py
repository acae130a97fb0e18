"""What the faces call: one function a verb, from plain arguments to a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hudimeta.api.arguments import names_of, table_type_of
from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS, Option, Options
from hudimeta.config import options as keys
from hudimeta.engine import Engine
from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.metadata.secondary_index import PREFIX
from hudimeta.storage import Storage, in_one_go
from hudimeta.table.properties_file import NAME_KEY
from hudimeta.types import Operation, TableType
from hudimeta.write.first_schema import with_first_schema
from hudimeta.write.rows_in import as_stream, as_table, columns_of_python, fitted, from_frame, without_views
from hudimeta.write.table_files import TableFiles
from hudimeta.write.table_writer import Prepared, delete_partitions, prepare, write_prepared

if TYPE_CHECKING:
    import pyarrow as pa

    from hudimeta.predicate import Where
    from hudimeta.reports import Reports
    from hudimeta.services.archival import ArchivalPlan, ArchivalReport
    from hudimeta.services.clean import CleanReport
    from hudimeta.services.clustering import ClusteringPlan, ClusteringReport
    from hudimeta.services.compaction import CompactionPlan
    from hudimeta.services.ttl import TtlReport
    from hudimeta.services.versions import VersionPlan, VersionReport
    from hudimeta.write.merge_builder import MergeBuilder

__all__ = [
    "alter",
    "archive",
    "cancel_clustering",
    "clean",
    "cluster",
    "clustering_options",
    "compact",
    "delete_partition",
    "delete_where",
    "execute_clustering",
    "expire_partitions",
    "is_predicate",
    "merge",
    "plan_clustering",
    "recover",
    "rename",
    "run_write",
    "schedule_clustering",
    "schedule_compaction",
    "update",
    "write",
]

_INDEX_OPTIONS = {
    "column_stats": keys.COLUMN_STATS.key,
    "partition_stats": keys.PARTITION_STATS.key,
    "record_index": keys.RECORD_INDEX.key,
    "bloom_filters": keys.BLOOM_FILTERS.key,
}


def creation_options(
    storage: Storage,
    name: str | None,
    key: str | Sequence[str] | None,
    partition_by: str | Sequence[str] | None,
    ordering: str | Sequence[str] | None,
    type: str | None,
    indexes: str | Sequence[str] | None,
    options: Mapping[str, Any],
) -> Options:
    """The arguments of `hudimeta.Table.create` as options. Raises ConfigError: An argument and an option disagree."""
    given = OPTIONS.read(options)
    arguments: tuple[tuple[str, Option[Any], str | None], ...] = (
        ("name", keys.TABLE_NAME, name),
        ("type", keys.TABLE_TYPE, table_type_of(type)),
        ("key", keys.RECORD_KEY, names_of("key", key)),
        ("partition_by", keys.PARTITION_PATH, names_of("partition_by", partition_by)),
        ("ordering", keys.ORDERING, names_of("ordering", ordering)),
    )
    stated: dict[str, str] = {}
    for argument, option, text in arguments:
        if text and given.is_set(option):
            _check_agree(argument, option, text, given)
        elif text:
            stated[option.key] = text
    if not name and not given.is_set(keys.TABLE_NAME):
        stated[keys.TABLE_NAME.key] = storage.root.rstrip("/").rpartition("/")[2]
    return OPTIONS.read(_index_options(indexes) | stated | given.given)


def _check_agree(argument: str, option: Option[Any], text: str, given: Options) -> None:
    """Refuse an argument beside an option that says something else: neither may go before the other in silence."""
    asked = OPTIONS.read({option.key: text}).get(option)
    if asked != given.get(option):
        both = f"{asked!r} as the argument {argument} beside {given.get(option)!r} as an option"
        raise ConfigError(option.key, both, "one value", f"Give the argument {argument} or the option, not both.")


def _index_options(indexes: Sequence[str] | None) -> dict[str, str]:
    """Options for the indexes that are named; a secondary index goes by `secondary_index_<column>`."""
    if indexes is None:
        return {}
    indexes = names_of("indexes", indexes).split(",") if indexes else []
    columns = [name.removeprefix(PREFIX) for name in indexes if name.startswith(PREFIX)]
    unknown = [n for n in indexes if n not in _INDEX_OPTIONS and n != "files" and not n.startswith(PREFIX)]
    if unknown:
        raise ConfigError("indexes", unknown[0], ", ".join(["files", *_INDEX_OPTIONS, f"{PREFIX}<column>"]))
    flags = {option: "true" if name in indexes else "false" for name, option in _INDEX_OPTIONS.items()}
    return flags | ({keys.SECONDARY_INDEX_COLUMNS.key: ",".join(columns)} if columns else {})


def run_write(session: WriteSession, write: Callable[[WriteSession], CommitReport]) -> CommitReport:
    """Run a write, then the services that are due after it: every write that a user asks for comes through here.

    Args:
        session: The table.
        write: Writes and publishes.
    """
    with in_one_go(session.storage):
        report = write(session)
        from hudimeta.services.after_write import run_due_services

        return run_due_services(session, report)


def _session(storage: Storage, options: Options) -> WriteSession:
    """Of a write that looks at the table as soon as it is opened."""
    return WriteSession(storage, options, with_timeline=True)


def write(storage: Storage, options: Options, operation: Operation, data: Any) -> CommitReport:
    """Write rows; see the verbs of `hudimeta.Table`."""
    stream = as_stream(data)
    if stream is not None:
        return run_write(WriteSession(storage, options), lambda session: _write_stream(session, operation, stream))
    rows, of_python = as_table(data), columns_of_python(data)

    def run(session: WriteSession) -> CommitReport:
        def make(table: TableFiles) -> Prepared:
            schema = table.snapshot.file_schema
            return prepare(table, session, operation, fitted(from_frame(rows, data, schema), of_python, schema))

        return with_first_schema(session, operation, rows.schema, lambda: write_prepared(session, operation, make))

    return run_write(_session(storage, options), run)


def _write_stream(session: WriteSession, operation: Operation, stream: pa.RecordBatchReader) -> CommitReport:
    from hudimeta.write.streaming import write_stream

    return write_stream(session, operation, stream)


def is_predicate(value: Any) -> bool:
    """True for what says which rows are meant, false for rows: text, an expression of PyArrow's, a list of tuples or lists."""
    from hudimeta.predicate import is_arrow_expression

    if isinstance(value, str) or is_arrow_expression(value):
        return True
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(v, (tuple, list)) for v in value)


def delete_where(storage: Storage, options: Options, where: Where) -> CommitReport:
    """Delete rows by a predicate; see `hudimeta.Table.delete`."""
    from hudimeta.write import row_changes

    return run_write(_session(storage, options), lambda session: row_changes.delete_where(session, where))


def update(storage: Storage, options: Options, assignments: Mapping[str, Any], where: Where | None) -> CommitReport:
    """Change rows by a predicate; see `hudimeta.Table.update`."""
    from hudimeta.write import row_changes

    if not assignments:
        raise ConfigError("set", assignments, "at least one column and its new value")
    return run_write(_session(storage, options), lambda session: row_changes.update_where(session, assignments, where))


def merge(storage: Storage, options: Options, source: Any, on: Any, aliases: tuple[str, str]) -> MergeBuilder:
    """Begin a merge; see `hudimeta.Table.merge`."""
    from hudimeta.write.merge_builder import MergeBuilder

    rows = without_views(as_table(source))
    return MergeBuilder(rows, on, *aliases, lambda changes: run_write(_session(storage, options), changes))


def alter(storage: Storage, options: Options, **change: Any) -> CommitReport:
    """Alter a table's columns; see `hudimeta.Table.alter`."""
    from hudimeta.services import partial_logs
    from hudimeta.write import altering

    def run(session: WriteSession) -> CommitReport:
        return altering.alter(session, altering.alteration(**change), partial_logs.compact_partial_logs)

    return run_write(WriteSession(storage, options), run)


def rename(storage: Storage, options: Options, name: str) -> None:
    """Give a table another name in its properties; its folder stays."""
    if not name.strip():
        raise ConfigError(NAME_KEY, name, "a name")
    session = WriteSession(storage, options)
    with session.lock.held():
        session.change_properties(lambda _: {NAME_KEY: name.strip()})


def set_defaults(storage: Storage, options: Options, changes: Mapping[str, str | None]) -> None:
    """Change default values of columns.

    Args:
        storage: Of the table.
        options: Of the write.
        changes: Expressions of SQL by column; None for those that go.
    """
    from hudimeta.write import altering

    altering.set_defaults(WriteSession(storage, options), changes)


def delete_partition(storage: Storage, options: Options, partitions: str | Sequence[str]) -> CommitReport:
    """Take partitions out of a table; see `hudimeta.Table.delete_partition`."""
    names = [partitions] if isinstance(partitions, str) else list(partitions)
    return run_write(_session(storage, options), lambda session: delete_partitions(session, names))


def compact(
    storage: Storage, options: Options, engine: Engine | None = None, *, dry_run: bool = False
) -> Reports[CommitReport] | CompactionPlan:
    """Compact a merge-on-read table; see `hudimeta.Table.compact`."""
    from hudimeta.services import compaction

    session = WriteSession(storage, options, engine=engine)
    if session.properties.type is not TableType.MERGE_ON_READ:
        raise UnsupportedFeature("compacting a copy-on-write table", "It has no log files; only merge-on-read tables need it.")
    return compaction.plan(session, session.snapshot_now()) if dry_run else compaction.compact(session)


def schedule_compaction(storage: Storage, options: Options) -> str | None:
    """Plan a compaction and leave it to be run; see `hudimeta.Table.schedule_compaction`."""
    from hudimeta.services import compaction

    session = WriteSession(storage, options)
    if session.properties.type is not TableType.MERGE_ON_READ:
        raise UnsupportedFeature("compacting a copy-on-write table", "It has no log files; only merge-on-read tables need it.")
    return compaction.schedule(session)


def clustering_options(
    options: Options, columns: str | Sequence[str], strategy: str | None, partitions: str | Sequence[str]
) -> Options:
    """The options of a clustering with what its arguments say."""
    asked = {
        keys.CLUSTER_SORT.key: names_of("columns", columns),
        keys.LAYOUT_STRATEGY.key: strategy or "",
        keys.CLUSTER_PARTITIONS.key: names_of("partitions", partitions),
    }
    return OPTIONS.read(options.having({key: text for key, text in asked.items() if text}).given)


def cluster(storage: Storage, options: Options, engine: Engine | None = None) -> Reports[ClusteringReport]:
    """Cluster a table; see `hudimeta.Table.cluster`."""
    from hudimeta.services import clustering

    return clustering.cluster(WriteSession(storage, options, engine=engine))


def plan_clustering(storage: Storage, options: Options) -> ClusteringPlan:
    """What a clustering would take; nothing is written."""
    from hudimeta.services import clustering

    session = WriteSession(storage, options)
    return clustering.plan(session, session.snapshot_now())


def schedule_clustering(storage: Storage, options: Options) -> str | None:
    """Plan a clustering and leave it to be run."""
    from hudimeta.services import clustering

    return clustering.schedule(WriteSession(storage, options))


def execute_clustering(storage: Storage, options: Options, instant: str, engine: Engine | None = None) -> ClusteringReport:
    """Run a clustering that is on the timeline."""
    from hudimeta.services import clustering

    return clustering.execute(WriteSession(storage, options, engine=engine), instant)


def cancel_clustering(storage: Storage, options: Options, instant: str) -> None:
    """Take a clustering off the timeline."""
    from hudimeta.services import clustering

    clustering.cancel(WriteSession(storage, options), instant)


def clean(storage: Storage, options: Options, engine: Engine | None = None) -> CleanReport:
    """Delete files that nothing retained needs; see `hudimeta.Table.clean`."""
    from hudimeta.services import clean as service

    return service.clean(WriteSession(storage, options, engine=engine))


def expire_partitions(storage: Storage, options: Options, *, dry_run: bool) -> TtlReport:
    """Take partitions out that have outlived their time; see `hudimeta.Table.expire_partitions`."""
    from hudimeta.services import ttl

    return ttl.expire(WriteSession(storage, options), dry_run=dry_run)


def archive(storage: Storage, options: Options, *, dry_run: bool = False) -> ArchivalReport | ArchivalPlan:
    """Move old instants to the timeline's history; see `hudimeta.Table.archive`."""
    from hudimeta.services import archival

    session = WriteSession(storage, options)
    return archival.plan(session, session.snapshot_now()) if dry_run else archival.archive(session)


def recover(storage: Storage, options: Options) -> tuple[str, ...]:
    """Roll back what dead writers left; returns their instants."""
    return WriteSession(storage, options).coordinator.recover()


def change_version(
    storage: Storage, options: Options, to: int, verb: str, dry_run: bool, engine: Engine | None = None
) -> VersionPlan | VersionReport:
    """Move a table to another version; see `hudimeta.Table.upgrade` and `downgrade`."""
    from hudimeta.services import versions

    if dry_run:
        return versions.plan_version(storage, options, to, verb)
    return versions.change_version(storage, options, to, verb, engine)
