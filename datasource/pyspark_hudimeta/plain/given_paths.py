"""The paths of a read: one, several, or patterns of them, and the tables that they lead to.

Spark hands a list over as the option `paths`, and patterns as they were typed. Apache Hudi takes several by the option
`hoodie.datasource.read.paths`, and patterns and folders of partitions of one table by all of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from hudimeta import Table
from hudimeta.config.options import PARTITIONS
from hudimeta.errors import ConfigError, TableNotFound
from hudimeta.table.globs import has_glob, split_globs
from hudimeta.table.places import Place, find_places, place_within
from pyspark_hudimeta.plain.location import resolve

__all__ = ["given_paths", "limited_to", "opened_to_read", "places_of", "refuse_part_of_table"]

READ_PATHS = "hoodie.datasource.read.paths"
_OF_PATHS = ("path", "paths", "location", READ_PATHS)


def given_paths(options: Mapping[str, str]) -> list[str]:
    """The paths among the options of a read, as they were typed; empty when there are none."""
    first = json.loads(options["paths"]) if options.get("paths") else [options.get("path") or options.get("location")]
    return [path for path in (*first, *split_globs(options.get(READ_PATHS) or "")) if path]


def places_of(options: Mapping[str, str]) -> list[Place] | None:
    """The tables that the options of a read lead to; None where one path names one folder, which nobody has looked at.

    Raises:
        TableNotFound: A path leads to no table.
        ConfigError: Paths or patterns that mean nothing, or partitions that are chosen twice.
    """
    paths = given_paths(options)
    if not paths or (len(paths) == 1 and not has_glob(paths[0])):
        return None
    if options.get(PARTITIONS.key):
        raise ConfigError(PARTITIONS.key, options[PARTITIONS.key], "nothing beside several paths or a pattern of them")
    return find_places([resolve(path) for path in paths], options)


def limited_to(place: Place, options: Mapping[str, str]) -> dict[str, str]:
    """The options of a read of one table among those that its paths lead to."""
    kept = {key: value for key, value in options.items() if key.lower() not in _OF_PATHS}
    return kept if place.partitions is None else {**kept, PARTITIONS.key: place.partitions}


def refuse_part_of_table(options: Mapping[str, str]) -> None:
    """Refuse paths that are not the folder of one whole table, which is what an entry of the catalog stands for.

    Raises:
        ConfigError: Several paths, or some partitions.
    """
    places = places_of(options)
    if places is not None and (len(places) > 1 or places[0].partitions is not None):
        hint = "Register the table's folder, and make a view of it for some of its partitions."
        raise ConfigError("path", ", ".join(given_paths(options)), "the folder of one table", hint)


def opened_to_read(location: str, options: Mapping[str, str]) -> Table:
    """The table at a location; where that is the folder of partitions inside a table, this table limited to them.

    Raises:
        TableNotFound: There is no table.
        HudiError: It cannot be read.
    """
    try:
        return Table(location, options)
    except TableNotFound:
        place = None if PARTITIONS.key in options else place_within(location, options)
        if place is None:
            raise
        return Table(place.location, limited_to(place, options))
