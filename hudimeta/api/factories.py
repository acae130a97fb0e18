"""The class methods that make a `Table`, and what pickling one keeps."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from hudimeta.api.bootstrapping import bootstrap
from hudimeta.config import OPTIONS, checked
from hudimeta.errors import ConfigError
from hudimeta.storage import absolute_location, open_storage

if TYPE_CHECKING:
    import pyarrow as pa

    from hudimeta.config import Options
    from hudimeta.engine import Engine

__all__ = ["TableFactories"]


class _Opened(Protocol):
    """A class of tables that a location and options open."""

    def __init__(self, path: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> None: ...


T = TypeVar("T", bound=_Opened)


@checked
class TableFactories:
    """How a `Table` comes about without being opened: created, made of a dataset, copied or pickled."""

    _options: Options
    _engine: Engine | None

    if TYPE_CHECKING:

        @property
        def path(self) -> str:
            """Where the table is."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[type[TableFactories], str, Options, Engine | None]]:
        # What a table has read meanwhile stays here: it may be large, and memory that is mapped from files goes nowhere.
        return _opened_anew, (type(self), self.path, self._options, self._engine)

    @classmethod
    def create(
        cls: type[T],
        path: str | os.PathLike[str],
        schema: pa.Schema,
        key: str | Sequence[str] | None = None,
        partition_by: str | Sequence[str] | None = (),
        ordering: str | Sequence[str] | None = (),
        type: str | None = None,
        indexes: str | Sequence[str] | None = None,
        options: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
    ) -> T:
        """Create an empty table.

        >>> table = hudimeta.Table.create("/data/trips", schema, key="id", partition_by="month")       # doctest: +SKIP

        Args:
            path: Its folder, which may exist but must not hold a table.
            schema: Arrow schema of its rows, or what has one: a table, a batch, a reader.
            key: Columns that identify a row; None generates keys.
            partition_by: Columns whose values name the partitions.
            ordering: Columns that decide which version of a row wins.
            type: `COPY_ON_WRITE` (`cow`), which None stands for, or `MERGE_ON_READ` (`mor`).
            indexes: Which of `column_stats`, `partition_stats` … to keep; None for the defaults.
            options: Further options, `hoodie.*` and `hudimeta.*`; later verbs of the table use them too.
            name: Of the table; the last part of the path when None.

        Raises:
            ConfigError, SchemaError: Bad input, or options against it; nothing was written.
            TableError: One is there already.
        """
        from hudimeta.api import verbs
        from hudimeta.api.arguments import schema_of
        from hudimeta.write.creation import create_table

        where = absolute_location(path)
        storage = open_storage(where, OPTIONS.read(options).texts)
        given = dict(options or {})
        asked = verbs.creation_options(storage, name, key, partition_by, ordering, type, indexes, given)
        create_table(storage, schema_of(schema), asked)
        return cls(where, given)

    @classmethod
    def bootstrap(
        cls: type[T],
        source: str | os.PathLike[str],
        path: str | os.PathLike[str],
        key: str | Sequence[str] | None = None,
        **named: Any,
    ) -> T:
        """Make a table of a dataset of Parquet or ORC files that is there already.

        >>> table = hudimeta.Table.bootstrap("/data/raw", "/data/trips", key="id")     # doctest: +SKIP

        Args:
            source: Folder of the dataset.
            path: Where the table shall be.
            key: Columns that identify a row.
            named: What `hudimeta.bootstrap` takes besides, but `dry_run`; later verbs of the table use its `options` too.

        Raises:
            ConfigError, SchemaError, UnsupportedFeature: Source or options do not fit; nothing was written.
            TableError: There is a table already.
        """
        if "dry_run" in named:
            raise ConfigError("dry_run", named["dry_run"], "hudimeta.bootstrap(…, dry_run=True), which says what would be done")
        bootstrap(source, path, key, **named)
        return cls(absolute_location(path), named.get("options"))


def _opened_anew(kind: Callable[..., Any], path: str, options: Options, engine: Engine | None) -> Any:
    return kind(path, options, engine=engine)
