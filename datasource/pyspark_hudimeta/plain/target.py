"""Which table a read or a write means: the option `path` first, then what the catalog's schema carries, else nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql.types import StructType

from hudimeta.config import check_of_a_write
from hudimeta.errors import ConfigError, TableError
from hudimeta.redaction import redacted
from pyspark_hudimeta.plain.given_paths import limited_to, places_of
from pyspark_hudimeta.plain.location import given_location
from pyspark_hudimeta.plain.registration import carriers

__all__ = ["Target", "read_target", "stream_target", "write_target"]

_HOW_TO_REGISTER = (
    "A table of the catalog must be created without columns and with its place, CREATE TABLE t USING hudimeta LOCATION "
    "'/folder/of/an/existing/table', or in a session after pyspark_hudimeta.attach(spark), which knows Hudi's SQL."
)
_HOW_TO_NAME = (
    "Write with df.write.format('hudimeta').mode('append').save(path), or into a temporary view made with "
    "CREATE TEMP VIEW v USING hudimeta OPTIONS (path '…'); after pyspark_hudimeta.attach(spark), SQL writes to any table."
)
_HOW_TO_STREAM = (
    "Begin the query with writeStream.format('hudimeta').start('/folder/of/the/table'); toTable works after "
    "pyspark_hudimeta.attach(spark). DROP TABLE takes away an entry that toTable has made of a new name: it leads nowhere."
)

_SEVERAL = (
    "A source in Python is one table: load each by itself and join them with unionByName(…, allowMissingColumns=True), which a "
    "session does by itself after pyspark_hudimeta.attach(spark)."
)


@redacted
@dataclass(frozen=True)
class Target:
    """A table and the options to open it with."""

    location: str
    options: Mapping[str, str]


def read_target(options: Mapping[str, str], schema: StructType | None = None) -> Target:
    """The table that a read means.

    Args:
        options: Of the read.
        schema: What Spark hands to `reader()`; None where it has none yet.

    Raises:
        TableError: Nothing says where the table is.
        TableNotFound: One of several paths, or a pattern, leads to no table.
        ConfigError: What says so are several tables, or means nothing.
    """
    places = places_of(options)
    if places is not None:
        if len(places) > 1:
            raise ConfigError("path", ", ".join(place.location for place in places), "one table", _SEVERAL)
        return Target(places[0].location, limited_to(places[0], options))
    location = given_location(options)
    if location is not None:
        return Target(location, dict(options))
    carrier = next(carriers(schema), None) if schema is not None else None
    if carrier is not None:
        return Target(carrier.registration.location, {**carrier.registration.options, **options})
    if schema is None:
        raise TableError("no path was given", f"Name the table's folder, as in load('/folder'). {_HOW_TO_REGISTER}")
    raise TableError(
        "Spark does not say where this table is, because it was created with a list of columns",
        f"{_HOW_TO_REGISTER} Drop this entry first: a table that lies at a LOCATION keeps its files.",
    )


def write_target(options: Mapping[str, str], schema: StructType) -> Target:
    """The table that a write means; never a guess.

    Args:
        options: Of the write.
        schema: Of the rows, with the metadata that Spark left on them.

    Raises:
        TableError: Nothing trustworthy says which table.
        ConfigError: Two things say different tables, or an option of reads.
    """
    check_of_a_write(options, schema.names)
    found = list(carriers(schema))
    own = {c.registration.location: c.registration for c in found if not c.marked and c.registration.insertable}
    location = given_location(options)
    if location is not None:
        others = sorted(set(own) - {location})
        if others:
            raise ConfigError("path", location, f"{others[0]}, where the table named in this statement is", _HOW_TO_NAME)
        return Target(location, dict(options))
    if len(own) == 1:
        registration = next(iter(own.values()))
        return Target(registration.location, {**registration.options, **options})
    if any(not c.marked and not c.registration.insertable for c in found):
        raise TableError(
            "this table has no string column, so that Spark cannot be made to say which table an INSERT means",
            _HOW_TO_NAME,
        )
    if found:
        places = sorted({c.registration.location for c in found})
        raise TableError(
            f"Spark does not say which table this write means: it only names where the rows come from ({', '.join(places)}), "
            "as it does when a table is inserted into itself, and for CREATE TABLE … AS SELECT",
            _HOW_TO_NAME,
        )
    raise TableError(
        "Spark does not say where to write to: no path was given, and CREATE TABLE … AS SELECT, saveAsTable of a new table and "
        "tables created with a list of columns pass none on",
        f"{_HOW_TO_NAME} {_HOW_TO_REGISTER}",
    )


def stream_target(options: Mapping[str, str], schema: StructType) -> Target:
    """The table that a stream writes to: only a path says it, since columns are those of its source.

    Args:
        options: Of the stream.
        schema: Of its rows.

    Raises:
        TableError: No path.
        ConfigError: As of `write_target`.
    """
    if given_location(options) is None:
        raise TableError(
            "Spark does not say where the stream shall write to: no path was given, and toTable passes none on", _HOW_TO_STREAM
        )
    return write_target(options, schema)
