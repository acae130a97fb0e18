"""Partitions as statements name them: SHOW PARTITIONS, and PARTITION (…) of TRUNCATE and ALTER TABLE."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudimeta.errors import ConfigError
from hudimeta.keys import KeyGenerator, PartitionLayout
from hudimeta.keys.timestamp_partition import TimestampPartition
from hudimeta.sql import Partitions, PartitionValues, PartitionVerb, is_constant, quoted
from hudimeta.write.learned_keys import learned
from pyspark_hudimeta.hudi_table import HudiTable
from pyspark_hudimeta.routed.assignment import column_of
from pyspark_hudimeta.sql.registering import literal
from pyspark_hudimeta.sql.session import Entry, SqlSession, opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "as_session_reads",
    "change_partitions",
    "check_values",
    "given_partition",
    "partition_path",
    "partitions_like",
]

_KEEPS_TEXT = "spark.sql.legacy.keepPartitionSpecAsStringLiteral"
_EMPTY = re.compile(r"""r?(''|"")$""", re.IGNORECASE)
_ALIKE = re.compile(r"""r?['"]|[:?]|null$""", re.IGNORECASE)
"""Texts, parameters and null, which mean the same in any session."""


def as_session_reads(session: SqlSession, given: PartitionValues) -> PartitionValues:
    """Values of PARTITION as the session reads them: where it keeps what is written, `01` is a text of two digits."""
    if str(session.spark.conf.get(_KEEPS_TEXT, "false")).lower() != "true":
        return given
    return tuple(
        (name, value if value is None or _ALIKE.match(value) else literal("".join(value.split()))) for name, value in given
    )


def given_partition(entry: Entry, fields: tuple[str, ...], given: PartitionValues) -> dict[str, str | None]:
    """The columns that PARTITION names, as the table spells them, with their values.

    Raises:
        ConfigError: Columns that are no partition columns, one twice, or values that are none.
    """
    check_values(given)
    found = {column_of(entry.columns, name): value for name, value in given}
    if len(found) < len(given) or set(found) - set(fields):
        allowed = f"partition columns: {', '.join(fields)}" if fields else "nothing, without partitions"
        raise ConfigError("PARTITION", ", ".join(name for name, _ in given), allowed)
    return found


def check_values(given: PartitionValues) -> None:
    """Refuse what is no value for all rows, and what Spark refuses for tables of any format: rows with an empty text are
    among those without a value.

    Raises:
        ConfigError: An empty text, or what is no constant.
    """
    for name, value in given:
        if value is not None and not is_constant(value):
            hint = "Put a text between quotes; values of rows come from the query of an INSERT."
            raise ConfigError("PARTITION", f"{name} = {value}", "a constant", hint)
        if value is not None and _EMPTY.match(value):
            hint = f"Rows whose {name} is an empty text or null are in one partition: say {name} = null."
            raise ConfigError("PARTITION", f"{name} = {value}", "a text that is not empty", hint)


def partition_path(session: SqlSession, entry: Entry, table: HudiTable, values: Mapping[str, str]) -> str:
    """The path of the partition that values of all partition columns, in SQL, name."""
    return str(_path_of(_row(session, entry, values), table))


def _path_of(row: pa.Table, table: HudiTable, *, whole: bool = False) -> str | None:
    """The partition of a row; `whole`: None for a fraction that folders do not show, since they hold other rows as well."""
    generator = learned(KeyGenerator.from_properties(table.properties), table.snapshot())
    if whole and generator.cuts(row):
        return None
    return str(generator.partition_paths(row)[0].as_py())


def partitions_like(
    session: SqlSession, entry: Entry, table: HudiTable, given: PartitionValues | None, *, starred: bool = False
) -> list[str]:
    """Paths of the partitions that have rows and fit PARTITION, sorted; all without one.

    Args:
        session: Of the statement.
        entry: Of the table in the catalog.
        table: The table.
        given: What PARTITION says.
        starred: `*` in a text stands for any text where no partition has that very value, as Apache Hudi drops partitions.

    Raises:
        ConfigError: A table without partitions, columns that are no partition columns, or values that paths do not state.
    """
    fields = table.properties.partition_fields
    if not fields:
        named = ", ".join(name for name, _ in given or ()) or "of rows"
        raise ConfigError("PARTITION", named, "nothing, without partitions", f"{entry.name.sql} is not partitioned.")
    have = sorted(set(table.snapshot().slices()["partition_path"].unique().to_pylist()))
    wanted = given_partition(entry, fields, as_session_reads(session, given or ()))
    values = {name: value for name, value in wanted.items() if value is not None}
    if not values or not have:
        return have
    if len(values) == len(fields) and (named := _named(session, values, table)) in have:
        return [named]
    row = _row(session, entry, values)
    if len(values) == len(fields):
        exact = _path_of(row, table, whole=True)
        found = [path for path in have if path == exact]
    else:
        found = _fitting(have, row, table, operator.eq)
    if found or not starred or not any("*" in str(value) for value in row.to_pylist()[0].values()):
        return found
    return _fitting(have, row, table, _is_like)


def change_partitions(session: SqlSession, entry: Entry, statement: Partitions) -> DataFrame:
    """Drop, truncate or add partitions.

    Rows go in one commit. A partition that is added is only checked, because in a Hudi table it comes with its first row; and
    the catalog has none to look for.

    Raises:
        ConfigError: Columns that are no partition columns or have no value; a partition that is not there, or is there already.
    """
    without = [name for given in statement.given for name, value in given if value is None]
    if without:  # it would name all partitions
        hint = f"Say {without[0]} = …, or leave it out."
        raise ConfigError("PARTITION", without[0], "a value for every column that it names", hint)
    table = opened(session, entry)
    if statement.verb is PartitionVerb.TRUNCATE and not statement.given:
        return _emptied(session, table)
    starred = statement.verb is not PartitionVerb.ADD
    found = [(given, partitions_like(session, entry, table, given, starred=starred)) for given in statement.given]
    if not statement.given:
        partitions_like(session, entry, table, None)
    if statement.verb is PartitionVerb.ADD:
        fields = table.properties.partition_fields
        for given, paths in found:
            if sorted(given_partition(entry, fields, given)) != sorted(fields):
                raise ConfigError("PARTITION", _shown(given), f"values of all partition columns: {', '.join(fields)}")
            if paths and not statement.lenient:
                raise ConfigError("PARTITION", paths[0], "a partition that is not there yet", "Say IF NOT EXISTS.")
        return session.nothing()
    missing = [_shown(given) for given, paths in found if not paths]
    if missing and not statement.lenient:
        have = ", ".join(partitions_like(session, entry, table, None)[:10]) or "none"
        raise ConfigError("PARTITION", missing[0], f"partitions that are there: {have}", "SHOW PARTITIONS lists them.")
    gone = sorted({path for _, paths in found for path in paths})
    if gone:
        table.delete_partition(gone)
    return session.nothing()


def _emptied(session: SqlSession, table: HudiTable) -> DataFrame:
    """Take all rows out with their file groups: deletes of them would win over a new row of the same key that is older by
    the ordering columns."""
    if have := table.snapshot().slices()["partition_path"].unique().to_pylist():
        table.delete_partition(sorted(have))
    return session.nothing()


def _named(session: SqlSession, values: Mapping[str, str], table: HudiTable) -> str:
    """The path whose folders show values as they are written, where the key generator makes dates of values; else "".

    So Apache Hudi reads PARTITION: `ts = 202401` is the folder of that name, and no second.
    """
    generator = KeyGenerator.from_properties(table.properties)
    if not any(isinstance(field.time, TimestampPartition) for field in generator.partitions):
        return ""
    texts = ", ".join(f"CAST({value} AS STRING) AS {quoted(name)}" for name, value in values.items())
    plain = replace(generator, partitions=tuple(replace(field, time=None) for field in generator.partitions))
    return str(plain.partition_paths(session.query(f"SELECT {texts}").toArrow())[0].as_py())


def _shown(given: PartitionValues) -> str:
    return ", ".join(name if value is None else f"{name} = {value}" for name, value in given)


def _is_like(value: Any, wanted: Any) -> bool:
    if not isinstance(value, str) or not isinstance(wanted, str):
        return bool(value == wanted)
    return re.fullmatch(".*".join(map(re.escape, wanted.split("*"))), value, re.DOTALL) is not None


def _fitting(have: list[str], row: pa.Table, table: HudiTable, fits: Callable[[Any, Any], bool]) -> list[str]:
    stated = PartitionLayout.from_properties(table.properties).values(pa.array(have), table.schema)
    if set(row.column_names) - set(stated.column_names):
        hint = "Name all partition columns: folders of this table do not state single values."
        raise ConfigError("PARTITION", ", ".join(row.column_names), "partition columns that paths state by themselves", hint)
    wanted = [row[name].cast(stated.schema.field(name).type)[0].as_py() for name in row.column_names]
    columns = [stated[name].to_pylist() for name in row.column_names]
    return [path for path, *values in zip(have, *columns, strict=True) if all(map(fits, values, wanted))]


def _row(session: SqlSession, entry: Entry, values: Mapping[str, str]) -> pa.Table:
    kinds = {column.name: column.dataType.simpleString() for column in entry.columns}
    shown = [f"CAST({value} AS {kinds[name]}) AS {quoted(name)}" for name, value in values.items()]
    row = session.query(f"SELECT {', '.join(shown)}").toArrow()
    check_values(tuple((name, "''") for name in row.column_names if row[name][0].as_py() == ""))  # of a parameter
    return row
