"""Options that say what a read returns: on a write they mean nothing, and whoever gives them means something else."""

from __future__ import annotations

from collections.abc import Mapping

from hudimeta.config.options import OPTIONS
from hudimeta.config.read_options import AS_OF, FILTER, INCREMENTAL_BEGIN, INCREMENTAL_END, PARTITIONS, QUERY_TYPE
from hudimeta.errors import ConfigError

__all__ = ["refuse_on_write"]

_OF_READS = (AS_OF, FILTER, INCREMENTAL_BEGIN, INCREMENTAL_END, PARTITIONS, QUERY_TYPE)


def refuse_on_write(given: Mapping[str, str]) -> None:
    """Refuse options of a write that say what a read returns.

    Args:
        given: Of a write to a table, by DataFrame or by statement; Spark hands those of a view to the writes into it.

    Raises:
        ConfigError: One of them has a value that a read would follow.
    """
    for key, value in given.items():
        option = OPTIONS.find(key)
        if option in _OF_READS and value.strip().lower() != option.default:
            hint = f"Leave {key} out of the write: rows go to the table as it is now."
            raise ConfigError(key, value, "nothing: it is an option of reads", hint)
