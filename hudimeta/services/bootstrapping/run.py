"""Bootstrapping: METADATA_ONLY partitions first, all of them with the table itself, then the rows of FULL_RECORD partitions.

The properties make the table, and they come last: before them lie the skeletons, the bootstrap index and the commit of the
skeletons, of which nobody takes notice. One that died before is begun anew, over what it left. After them the table is whole
but for the rows to copy, one bulk insert; one that died before that is finished by another call with the same source.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from hudimeta.commit.locks.chosen import table_lock
from hudimeta.commit.published_schema import published_schema
from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.engine import Engine, LocalEngine
from hudimeta.engine.machine import now_ms
from hudimeta.errors import ConfigError, TableError
from hudimeta.formats.avro.commit_metadata import encode_commit_metadata
from hudimeta.keys import KeyGenerator
from hudimeta.redaction import without_user
from hudimeta.reports import Report
from hudimeta.services.bootstrapping.plan import BootstrapMode, BootstrapPlan, plan
from hudimeta.services.bootstrapping.skeletons import SourceRows, WriteSkeleton, commit_record, skeleton_works
from hudimeta.storage import Storage, join
from hudimeta.table.bootstrap_index import BASE_PATH_KEY, METADATA_ONLY_INSTANT, encode_indexes
from hudimeta.table.create import create_table_layout
from hudimeta.table.discovery import folders_with_files
from hudimeta.table.properties import TableProperties
from hudimeta.table.properties import load as load_properties
from hudimeta.table.properties_file import BACKUP_PATH, PROPERTIES_PATH
from hudimeta.timeline import DEFAULT_FOLDER, InstantGenerator, SystemClock, TimelineWriter
from hudimeta.types import Action, Operation, TableType
from hudimeta.write.base_files import parquet_settings
from hudimeta.write.creation import planned_properties
from hudimeta.write.streaming import write_stream

__all__ = ["SOURCE_KEY", "BootstrapReport", "bootstrap"]

SOURCE_KEY = "hudimeta.bootstrap.source"
"""Property of a bootstrapped table: where its rows come from. Another call with that source finishes one that died."""


@dataclass(frozen=True, repr=False)
class BootstrapReport(Report):
    """What a bootstrap did.

    Attributes:
        plan: What it was going to do.
        skeletons: How many files of the source are described; None where another call had done it before.
        commit: Of the rows that were copied; None for none.
    """

    plan: BootstrapPlan
    skeletons: int | None
    commit: CommitReport | None = None

    def __str__(self) -> str:
        described = (
            "the files to describe were described before" if self.skeletons is None else f"described {self.skeletons:,} files"
        )
        copied = f", copied {self.commit.inserted:,} rows at {self.commit.instant}" if self.commit is not None else ""
        return f"BOOTSTRAPPED: {described}{copied}\n{self.plan}"


def bootstrap(
    source: Storage, storage: Storage, options: Options, engine: Engine | None = None, *, dry_run: bool = False
) -> BootstrapReport | BootstrapPlan:
    """Make a table of a dataset.

    Args:
        source: Rooted at the dataset.
        storage: Rooted where the table shall be.
        options: Of the table, as `create_table` takes them, and of the bootstrap.
        engine: Where files are described.
        dry_run: Only plan.

    Raises:
        ConfigError, SchemaError, UnsupportedFeature: Source or options do not fit; nothing was written.
        TableError: There is a table already, other than one that this bootstrap has begun.
    """
    inside = f"{source.root}/"
    if f"{storage.root}/".startswith(inside) or inside.startswith(f"{storage.root}/"):
        raise ConfigError("path", storage.root, "a folder outside of the source, and not around it")
    the_plan = plan(source, options)
    options = _with_style(options, the_plan)
    described, copied = the_plan.of_mode(BootstrapMode.METADATA_ONLY), the_plan.of_mode(BootstrapMode.FULL_RECORD)
    properties = _properties(source, options, the_plan, bool(described))
    if dry_run:
        return the_plan
    skeletons: int | None = None
    if not _is_begun(storage, source):
        with table_lock(storage, options, properties.name).held():
            if not _is_begun(storage, source):
                skeletons = _make(source, storage, options, properties, the_plan, engine or LocalEngine())
    session = WriteSession(storage, options, engine=engine)
    session.ensure_metadata()
    if not copied:
        return BootstrapReport(the_plan, skeletons)
    rows = SourceRows(source, the_plan.schema, dict(session.properties))
    reader = pa.RecordBatchReader.from_batches(the_plan.schema, _batches(rows, the_plan))
    return BootstrapReport(the_plan, skeletons, write_stream(session, Operation.BULK_INSERT, reader))


def _with_style(options: Options, the_plan: BootstrapPlan) -> Options:
    """Options with what the folders of the source say of the table's; without partitions they say nothing."""
    if not options.get(keys.PARTITION_PATH):
        return options
    if options.is_set(keys.HIVE_STYLE) and options.get(keys.HIVE_STYLE) is not the_plan.hive_style:
        said = str(options.get(keys.HIVE_STYLE)).lower()
        raise ConfigError(keys.HIVE_STYLE.key, said, f"{str(the_plan.hive_style).lower()}, as the source's folders are called")
    return options.having({keys.HIVE_STYLE.key: str(the_plan.hive_style).lower()})


def _properties(source: Storage, options: Options, the_plan: BootstrapPlan, describes: bool) -> TableProperties:
    """Of the table before it has a metadata table."""
    if describes and not options.get(keys.POPULATE_META_FIELDS):
        hint = "Choose the mode FULL_RECORD."
        raise ConfigError(keys.POPULATE_META_FIELDS.key, "false", "true where files are only described", hint)
    if not options.get(keys.RECORD_KEY):
        raise ConfigError(keys.RECORD_KEY.key, None, "the columns that identify a row", "Name the key.")
    if describes:
        for option in (keys.COLUMN_STATS, keys.PARTITION_STATS):
            if options.is_set(option) and options.get(option):
                hint = "Leave it out, or choose the mode FULL_RECORD."
                raise ConfigError(option.key, "true", "false where files are only described", hint)
    properties, _ = planned_properties(the_plan.schema, options.having({keys.METADATA_ENABLE.key: "false"}))
    root = without_user(source.root)
    said = {SOURCE_KEY: root}
    if describes:
        said |= {BASE_PATH_KEY: root, "hoodie.bootstrap.index.enable": "true", "hoodie.bootstrap.index.type": "HFILE"}
    return properties.with_changes(said)


def _is_begun(storage: Storage, source: Storage) -> bool:
    """Whether the table is there, without the rows that are to be copied, by a call that died.

    Raises:
        TableError: Another table is there, or a finished one.
    """
    if not any(storage.is_file(path) for path in (PROPERTIES_PATH, BACKUP_PATH)):
        return False
    properties = load_properties(storage)
    written = [i for i in properties.load_timeline(storage).writes if i.time != METADATA_ONLY_INSTANT]
    if properties.get(SOURCE_KEY) == without_user(source.root) and not written:
        return True
    raise TableError(f"there is a table at {storage.root} already", "Open it with hudimeta.Table(path).")


def _make(
    source: Storage, storage: Storage, options: Options, properties: TableProperties, the_plan: BootstrapPlan, engine: Engine
) -> int:
    _remove_leftovers(storage)
    described = the_plan.of_mode(BootstrapMode.METADATA_ONLY)
    works = skeleton_works(source.root, described)
    if works:
        rows = SourceRows(source, the_plan.schema, dict(properties))
        generator = KeyGenerator.from_properties(properties).of_an_empty_table()
        write = WriteSkeleton(storage, rows, generator, parquet_settings(options))
        files = engine.map(write, works)
        root = without_user(source.root)
        for path, data in encode_indexes(root, [work.source for work in works], now_ms()).items():
            storage.put(path, data)
        avro = published_schema(the_plan.schema, properties.name, None, METADATA_ONLY_INSTANT).avro
        _commit(storage, properties, encode_commit_metadata(commit_record(files, avro), replace=False))
    create_table_layout(storage, properties)
    return len(works)


def _commit(storage: Storage, properties: TableProperties, content: bytes) -> None:
    action = Action.DELTA_COMMIT if properties.type is TableType.MERGE_ON_READ else Action.COMMIT
    writer = TimelineWriter(storage, properties.timeline_folder)
    writer.create_requested(METADATA_ONLY_INSTANT, action)
    writer.create_inflight(METADATA_ONLY_INSTANT, action)
    completion = InstantGenerator(SystemClock(), properties.zone).next("")
    writer.complete(METADATA_ONLY_INSTANT, action, completion, content)


def _remove_leftovers(storage: Storage) -> None:
    """Remove what a call that died left where no table came to be.

    Raises:
        TableError: There is a timeline of something else.
    """
    names = [entry.name for entry in storage.list(DEFAULT_FOLDER) if not entry.is_folder]
    others = [name for name in names if not name.startswith(METADATA_ONLY_INSTANT)]
    if others:
        hint = "Restore that file from a copy, or remove the folder .hoodie if the table is not needed any more."
        raise TableError(f"there is a timeline without {PROPERTIES_PATH} at {storage.root}", hint)
    for name in names:
        storage.delete(join(DEFAULT_FOLDER, name))
    for folder, files in folders_with_files(storage):
        for file in files:
            if file.name.endswith(f"_{METADATA_ONLY_INSTANT}.parquet"):
                storage.delete(join(folder, file.name))


def _batches(rows: SourceRows, the_plan: BootstrapPlan) -> Iterator[pa.RecordBatch]:
    for one in the_plan.of_mode(BootstrapMode.FULL_RECORD):
        for file in one.files:
            for piece in rows.pieces(one.path, file.path, rows.schema.names):
                yield from piece.to_batches()
