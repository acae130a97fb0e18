"""Indexes of which the definitions are gone: without them nobody can keep these, or tell where their records lie."""

from __future__ import annotations

from hudimeta.errors import CorruptFileError
from hudimeta.metadata import MetadataTable
from hudimeta.metadata.group_files import file_stem, group_stem
from hudimeta.metadata.index_definitions import DEFAULT_PATH

__all__ = ["lost_definitions", "refuse_lost_definitions"]

_RECORD_INDEX = "record_index"
_COLUMNS, _OF_PARTITIONS = "column_stats", "partition_stats"
"""The definition of the first names the columns of the second as well."""
_DEFINED = (_COLUMNS, "secondary_index_", "expr_index_")
"""Indexes of which every writer stores a definition, by how their names begin."""
_BY_PARTITION_SINCE = 9


def lost_definitions(table: MetadataTable) -> list[str]:
    """The indexes of a table that must have a definition and have none.

    A record index need not have one, unless its file groups are named by partition, as those of one are that each partition has
    for itself. That takes a LIST where nothing else says how many file groups there are.
    """
    missing = [name for name in table.ready if name not in table.index_definitions]
    lost = [name for name in missing if name.startswith(_DEFINED)]
    bare = _COLUMNS not in table.ready and _COLUMNS not in table.index_definitions
    lost += [_OF_PARTITIONS] if bare and _OF_PARTITIONS in table.ready else []
    if _RECORD_INDEX in missing and table.version >= _BY_PARTITION_SINCE:
        stems = {group_stem(group.file_id) for group in table.all_groups(_RECORD_INDEX)}
        lost += [_RECORD_INDEX] if stems - {file_stem(_RECORD_INDEX)} else []
    return lost


def refuse_lost_definitions(table: MetadataTable) -> None:
    """Make sure of the definitions before anything is written.

    Raises:
        CorruptFileError: One is missing.
        IndexDropped: Its index was dropped since the table was opened.
    """
    lost = lost_definitions(table)
    for name in lost:
        table.check_named(name, "its definition")
    if lost:
        raise CorruptFileError(DEFAULT_PATH, 0, f"the definition of {', '.join(lost)}", "none", _way_out(table, lost))


def _way_out(table: MetadataTable, lost: list[str]) -> str:
    """What helps, with the calls in the order in which they go through: no index goes while another one needs it."""
    upon = [_OF_PARTITIONS] if _COLUMNS in lost and _OF_PARTITIONS in table.ready else []
    drops = ", ".join(f"t.metadata.drop_index({name!r})" for name in dict.fromkeys([*upon, *lost]))
    return (
        "Restore the file from a copy. Without one, t.metadata.rebuild() builds those anew that the options describe, or drop "
        f"them and make them again by t.metadata.create_index: {drops}."
    )
