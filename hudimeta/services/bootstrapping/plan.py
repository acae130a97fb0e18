"""What a bootstrap does: the partitions of the source, the mode of each, and the columns of the table."""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.engine.machine import pool
from hudimeta.errors import ConfigError, SchemaMismatch, UnsupportedFeature
from hudimeta.formats.base_file import schema_of_base_file
from hudimeta.redaction import hidden
from hudimeta.reports import Report
from hudimeta.schema import normalise_schema
from hudimeta.storage import FileInfo, Storage, join
from hudimeta.table.discovery import folders_with_files
from hudimeta.types import META_COLUMNS

__all__ = ["BootstrapPlan", "BootstrapMode", "SourcePartition", "plan"]

_AT_ONCE = 8
_MOST_SHOWN = 20
_READABLE = ("parquet", "orc")


class BootstrapMode(enum.Enum):
    """What becomes of a partition of the source."""

    METADATA_ONLY = "METADATA_ONLY"
    FULL_RECORD = "FULL_RECORD"


@dataclass(frozen=True)
class SourcePartition:
    """A partition of the source.

    Attributes:
        path: Of its folder, "" without partitions; the table's partition has the same.
        files: Its data files.
        mode: What becomes of it.
    """

    path: str
    files: tuple[FileInfo, ...]
    mode: BootstrapMode


@dataclass(frozen=True, repr=False)
class BootstrapPlan(Report):
    """What a bootstrap does; prints as a list.

    Attributes:
        source: Folder of the dataset.
        partitions: Of the source.
        schema: Columns of the table.
        hive_style: Partition folders are called `column=value`.
    """

    source: str
    partitions: tuple[SourcePartition, ...]
    schema: pa.Schema
    hive_style: bool

    def of_mode(self, mode: BootstrapMode) -> tuple[SourcePartition, ...]:
        """The partitions of one mode."""
        return tuple(one for one in self.partitions if one.mode is mode)

    def __str__(self) -> str:
        files = [file for one in self.partitions for file in one.files]
        size = sum(file.size for file in files)
        where = f"{len(self.partitions):,} partitions, {size:,} bytes, of {hidden(self.source)}"
        shown = self.partitions[:_MOST_SHOWN]
        lines = [f"bootstrap {len(files):,} files in {where}"]
        lines += [f"  {one.path or 'the dataset'}: {len(one.files):,} files, {one.mode.value}" for one in shown]
        more = len(self.partitions) - _MOST_SHOWN
        return "\n".join([*lines, f"  and {more:,} more"] if more > 0 else lines)


def plan(source: Storage, options: Options) -> BootstrapPlan:
    """Look at the source; nothing is written.

    Args:
        source: Rooted at the dataset.
        options: Of the table, and `hoodie.bootstrap.mode.selector*`.

    Raises:
        ConfigError: The source is no dataset of Parquet or ORC files in folders of the table's partition columns.
        SchemaMismatch: Its files disagree on their columns.
        UnsupportedFeature: ORC files are to be described only.
    """
    if source.list(".hoodie"):
        raise ConfigError("source", source.root, "a folder of plain files", "It is a Hudi table: open it with hudimeta.Table.")
    names = tuple(name.partition(":")[0] for name in options.get(keys.PARTITION_PATH))
    found = [(path, tuple(file for file in files if not _is_hidden(file.name))) for path, files in folders_with_files(source)]
    found = [(path, files) for path, files in found if files and not any(map(_is_hidden, path.split("/")))]
    if not found:
        raise ConfigError("source", source.root, "a folder with Parquet or ORC files", "There is none.")
    for path, files in found:
        _check_files(path, files, names)
    hive_style = _is_hive_style([path for path, _ in found], names)
    partitions = tuple(SourcePartition(path, files, mode_of(path, options)) for path, files in found)
    for one in partitions:
        orc = next((file for file in one.files if file.name.endswith(".orc")), None)
        if orc is not None and one.mode is BootstrapMode.METADATA_ONLY:
            raise UnsupportedFeature(f"describing ORC files ({orc.path})", "Copy them: choose the mode FULL_RECORD.")
    return BootstrapPlan(source.root, partitions, _schema(source, partitions, names), hive_style)


def mode_of(path: str, options: Options) -> BootstrapMode:
    """What the options say of a partition. Raises ConfigError: no pattern."""
    selector = options.get(keys.BOOTSTRAP_SELECTOR)
    if selector != "BootstrapRegexModeSelector":
        return BootstrapMode.FULL_RECORD if selector.startswith("Full") else BootstrapMode.METADATA_ONLY
    pattern, mode = options.get(keys.BOOTSTRAP_REGEX) or "", BootstrapMode(options.get(keys.BOOTSTRAP_REGEX_MODE))
    try:
        matches = re.fullmatch(pattern, path) is not None
    except re.error as error:
        raise ConfigError(keys.BOOTSTRAP_REGEX.key, pattern, f"a regular expression ({error})") from error
    return mode if matches else next(other for other in BootstrapMode if other is not mode)


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", ".")) and "=" not in name


def _check_files(path: str, files: Sequence[FileInfo], names: Sequence[str]) -> None:
    for file in files:
        if file.name.rpartition(".")[2] not in _READABLE:
            raise ConfigError("source", join(path, file.name), "files that end in .parquet or .orc", "Move others elsewhere.")
    depth = path.count("/") + 1 if path else 0
    if depth != len(names):
        allowed = f"folders of {len(names)} levels, for the partition columns {', '.join(names) or '(none)'}"
        raise ConfigError("source", path or "files in the folder itself", allowed, "Name the partition columns of the dataset.")


def _is_hive_style(paths: Sequence[str], names: Sequence[str]) -> bool:
    if not names:
        return False
    styled = [all(part.startswith(f"{name}=") for part, name in zip(p.split("/"), names, strict=True)) for p in paths]
    odd = next((path for path, fits in zip(paths, styled, strict=True) if not fits and (any(styled) or "=" in path)), None)
    if odd is not None:
        allowed = f"folders that are all called {'/'.join(f'{name}=value' for name in names)}"
        raise ConfigError("source", odd, allowed, "Name the partition columns of the dataset.")
    return all(styled)


def _schema(source: Storage, partitions: Sequence[SourcePartition], names: Sequence[str]) -> pa.Schema:
    """The columns of all files, then the partition columns that no file has, as texts."""
    paths = [file.path for one in partitions for file in one.files]
    with pool(_AT_ONCE, "footer") as threads:
        stored = list(threads.map(lambda path: schema_of_base_file(source, path), paths))
    schemas = [normalise_schema(schema, allow_null_type=True) for schema in stored]
    fields: dict[str, pa.Field] = {}
    for path, schema in zip(paths, schemas, strict=True):
        for field in schema:
            if field.name in META_COLUMNS:
                raise ConfigError("source", path, "files of rows without columns of Hudi", f"It has a column {field.name}.")
            known = fields.setdefault(field.name, field.with_nullable(True))
            both = _type_of_both(known.type, field.type)
            if both is None:
                hint = "Rewrite the files that differ."
                raise SchemaMismatch(field.name, f"{field.type} in {path}", f"{known.type}, as files before it have", hint)
            fields[field.name] = known.with_type(both)
    for name in names:
        fields.setdefault(name, pa.field(name, pa.string()))
    return normalise_schema(pa.schema(list(fields.values())))


def _type_of_both(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type of a column that two files have; None where they differ. A file without any value of it may know no type."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if one.id != other.id or one.num_fields != other.num_fields:
        return None
    pairs = [(one.field(at), other.field(at)) for at in range(one.num_fields)]
    types = [_type_of_both(mine.type, theirs.type) for mine, theirs in pairs]
    if not pairs or None in types or any(mine.name != theirs.name for mine, theirs in pairs):
        return None
    children = [mine.with_type(kind) for (mine, _), kind in zip(pairs, types, strict=True)]
    if pa.types.is_struct(one):
        return pa.struct(children)
    if pa.types.is_list(one):
        return pa.list_(children[0])
    return pa.map_(one.key_type, children[0].type.field(1))  # its one field is the entries, of key and value
