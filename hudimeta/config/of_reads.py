"""Options that are about reads alone: on a write they mean nothing, and whoever gives them means something else."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping

from hudimeta.config.column_names import name_parts
from hudimeta.config.options import OPTIONS
from hudimeta.config.read_options import (
    AS_OF,
    COLUMNS,
    FILTER,
    HOLES,
    INCREMENTAL_BEGIN,
    INCREMENTAL_END,
    INCREMENTAL_FALLBACK,
    INCREMENTAL_FORMAT,
    PARTITIONS,
    QUERY_TYPE,
    READ_CORRUPT,
    RETRY_ON_CLEAN,
)
from hudimeta.config.registry import HudiWarning
from hudimeta.config.stream_options import FAIL_ON_DATA_LOSS, MAX_BYTES_PER_TRIGGER, MAX_FILES_PER_TRIGGER, STREAM_START
from hudimeta.errors import ConfigError
from hudimeta.types import META_COLUMNS

__all__ = ["check_of_a_write", "refuse_on_write", "said_of_reads"]

_OF_ROWS = (AS_OF, FILTER, INCREMENTAL_BEGIN, INCREMENTAL_END, INCREMENTAL_FORMAT, PARTITIONS, QUERY_TYPE, STREAM_START)
"""What a read returns."""
_OF_READING = (
    FAIL_ON_DATA_LOSS,
    HOLES,
    INCREMENTAL_FALLBACK,
    MAX_BYTES_PER_TRIGGER,
    MAX_FILES_PER_TRIGGER,
    READ_CORRUPT,
    RETRY_ON_CLEAN,
)
"""What a read does on its way to the same rows: a write is what it is without them."""


def refuse_on_write(given: Mapping[str, str]) -> None:
    """Refuse options of a write that say what a read returns.

    Args:
        given: Of a write to a table, by DataFrame or by statement; Spark hands those of a view to the writes into it.

    Raises:
        ConfigError: One of them has a value that a read would follow.
    """
    for key, value in given.items():
        option = OPTIONS.find(key)
        if option in _OF_ROWS and value.strip().lower() != option.default:
            hint = f"Leave {key} out of the write: rows go to the table as it is now."
            raise ConfigError(key, value, "nothing: it is an option of reads", hint)


def said_of_reads(given: Mapping[str, str]) -> list[str]:
    """Which options of a table that was opened with them say what its reads return; its writes pass over these."""
    found = ((key, OPTIONS.find(key), value.strip()) for key, value in given.items())
    return [key for key, option, value in found if option in (*_OF_ROWS, COLUMNS) and value and value.lower() != option.default]


def check_of_a_write(given: Mapping[str, str], columns: Collection[str]) -> None:
    """Say which options of a write of rows are about reads alone.

    Args:
        given: As `refuse_on_write` takes them.
        columns: Of the rows.

    Raises:
        ConfigError: See `refuse_on_write`; or `hudimeta.columns` leaves out columns of the rows, which would be written too. An
            INSERT into a view that shows these columns brings no others.
    """
    refuse_on_write(given)
    for key, value in given.items():
        option = OPTIONS.find(key)
        if option is COLUMNS:
            named = {".".join(name_parts(name) or (name,)).lower() for name in OPTIONS.read({key: value}).get(COLUMNS)}
            others = [name for name in columns if named and name.lower() not in named and name not in META_COLUMNS]
            if others:
                hint = f"Leave {key} out of the write, and select the columns of the rows: they have {', '.join(others)} too."
                raise ConfigError(key, value, "nothing: it is an option of reads", hint)
        elif option is not None and option in _OF_READING and OPTIONS.read({key: value}).get(option) != option.default:
            text = f"option {key}={value} is about reads, and is passed over by a write"
            warnings.warn(text, HudiWarning, stacklevel=3)
