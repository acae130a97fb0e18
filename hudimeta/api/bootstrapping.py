"""`hudimeta.bootstrap`: a table out of a dataset of Parquet or ORC files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hudimeta.config import checked_call
from hudimeta.config.options import BOOTSTRAP_REGEX, BOOTSTRAP_REGEX_MODE, BOOTSTRAP_SELECTOR
from hudimeta.errors import ConfigError
from hudimeta.storage import absolute_location, open_storage

if TYPE_CHECKING:
    from hudimeta.engine import Engine
    from hudimeta.services.bootstrapping import BootstrapPlan, BootstrapReport

__all__ = ["bootstrap"]

_MODES = ("METADATA_ONLY", "FULL_RECORD")


@checked_call
def bootstrap(
    source: str | os.PathLike[str],
    path: str | os.PathLike[str],
    key: str | Sequence[str] | None = None,
    partition_by: str | Sequence[str] = (),
    ordering: str | Sequence[str] = (),
    type: str | None = None,
    indexes: Sequence[str] | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    mode: str | None = None,
    pattern: str | None = None,
    engine: Engine | None = None,
    dry_run: bool = False,
) -> BootstrapReport | BootstrapPlan:
    """Make a table of a dataset of Parquet or ORC files that is there already.

    A METADATA_ONLY partition is described: the table gets files of record keys, and refers to the source for everything else
    until its rows are written. The source must stay as it is. A FULL_RECORD partition is copied. A call that died is finished
    by another one.

    >>> hudimeta.bootstrap("/data/raw", "/data/trips", key="id", partition_by="month")     # doctest: +SKIP

    Args:
        source: Folder of the dataset; partition folders are called as the table's will be, `column=value` or `value`.
        path: Where the table shall be.
        key: Columns that identify a row.
        partition_by: Columns whose values name the partition folders; those that no file has are read as texts.
        ordering: Columns that decide which version of a row wins.
        type: `COPY_ON_WRITE`, which None stands for, or `MERGE_ON_READ`.
        indexes: As of `Table.create`; statistics of columns only where everything is copied.
        options: Further options of the table; `hoodie.bootstrap.mode.selector*` say what the next two arguments say.
        name: Of the table; the last part of the path when None.
        mode: `METADATA_ONLY` or `FULL_RECORD`, of all partitions, or of those that the pattern matches.
        pattern: A regular expression over whole partition paths; the others get the other mode.
        engine: Where files are described; threads of this process when None. `pyspark_hudimeta.SparkEngine(spark)` is Spark's
            executors.
        dry_run: Only say what would be done.

    Returns:
        What was done; what would be, with `dry_run`.

    Raises:
        ConfigError, SchemaError, UnsupportedFeature: Source or options do not fit; nothing was written.
        TableError: There is a table already.
    """
    from hudimeta.api.verbs import creation_options
    from hudimeta.services import bootstrapping

    given = {**(options or {}), **_selector(mode, pattern)}
    storage = open_storage(absolute_location(path), given)
    asked = creation_options(storage, name, key, partition_by, ordering, type, indexes, given)
    return bootstrapping.bootstrap(open_storage(absolute_location(source), given), storage, asked, engine, dry_run=dry_run)


def _selector(mode: str | None, pattern: str | None) -> dict[str, str]:
    if mode is not None and mode.upper() not in _MODES:
        raise ConfigError("mode", mode, " or ".join(_MODES))
    if pattern is not None:
        regex = {BOOTSTRAP_SELECTOR.key: "BootstrapRegexModeSelector", BOOTSTRAP_REGEX.key: pattern}
        return {**regex, **({BOOTSTRAP_REGEX_MODE.key: mode.upper()} if mode else {})}
    if mode is None:
        return {}
    word = "FullRecord" if mode.upper() == "FULL_RECORD" else "MetadataOnly"
    return {BOOTSTRAP_SELECTOR.key: f"{word}BootstrapModeSelector"}
