"""What an insert does with rows whose key the table has (`hoodie.datasource.insert.dup.policy`)."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.errors import ConfigError, DuplicateKeys
from hudimeta.types import Operation
from hudimeta.write.batch import KeyedBatch

__all__ = ["DuplicatePolicy", "combines", "duplicate_policy", "of_a_frame", "refuse_unheeded", "settle_duplicates"]

_INSERTS = (
    Operation.INSERT,
    Operation.BULK_INSERT,
    Operation.INSERT_OVERWRITE,
    Operation.INSERT_OVERWRITE_TABLE,
)
_SHOWN = 5


class DuplicatePolicy(enum.Enum):
    """What becomes of inserted rows whose key the table has: stored beside the others, left out, or an error."""

    NONE = "none"
    DROP = "drop"
    FAIL = "fail"


def duplicate_policy(options: Options, operation: Operation) -> DuplicatePolicy:
    """The policy of a write; NONE for everything but an insert."""
    if operation is not Operation.INSERT:
        return DuplicatePolicy.NONE
    if options.get(keys.INSERT_DROP_DUPLICATES):
        return DuplicatePolicy.DROP
    return DuplicatePolicy(options.get(keys.INSERT_DUPLICATES) or "none")


def refuse_unheeded(options: Options, operation: Operation, *, has_keys: bool, in_buckets: bool) -> None:
    """Refuse to store rows beside others of their key where an option says that they shall not be, as Apache Hudi does.

    Args:
        options: Of the write.
        operation: What it does.
        has_keys: Whether rows have keys, else each gets one of its own.
        in_buckets: A bucket index says where keys belong.

    Raises:
        ConfigError: Nobody would look for rows of the same key: no rows have any, a bulk insert does not ask, or a bucket index
            tells of every key where it would be, as if it were there.
    """
    if operation not in _INSERTS:
        return
    policy = options.get(keys.INSERT_DUPLICATES) or "none"
    asked: list[tuple[str, Any, str]] = []
    if policy != "none" and not operation.overwrites:
        asked.append((keys.INSERT_DUPLICATES.key, policy, "none"))
    if options.get(keys.INSERT_DROP_DUPLICATES):
        asked.append((keys.INSERT_DROP_DUPLICATES.key, True, "false"))
    if asked and has_keys and operation is Operation.BULK_INSERT:
        key, value, allowed = asked[0]
        hint = "A bulk insert looks no key up: insert the rows (hoodie.datasource.write.operation=insert)."
        raise ConfigError(key, value, f"{allowed} for a bulk insert", hint)
    if asked and has_keys and operation is Operation.INSERT and in_buckets:
        key, value, allowed = asked[0]
        hint = "A bucket is where a key belongs, whether it is there or not: upsert the rows, which keeps one row a key."
        raise ConfigError(key, value, f"{allowed} for a table with a bucket index", hint)
    if options.get(keys.COMBINE_BEFORE_INSERT):
        asked.append((keys.COMBINE_BEFORE_INSERT.key, True, "false"))
    if asked and not has_keys:
        key, value, allowed = asked[0]
        hint = "Every row gets a key of its own there: leave the option out, or drop repeated rows before writing."
        raise ConfigError(key, value, f"{allowed} for a table without key columns", hint)


def combines(options: Options, operation: Operation) -> bool:
    """Whether a write keeps one row a key among its own rows."""
    if operation in (Operation.UPSERT, Operation.DELETE):
        return options.get(keys.COMBINE_BEFORE_UPSERT)
    return options.get(keys.COMBINE_BEFORE_INSERT) or options.get(keys.INSERT_DROP_DUPLICATES)


def of_a_frame(options: Options, operation: Operation) -> Operation:
    """What a write of a DataFrame does: one that drops or refuses keys of the table is an insert, as in Apache Hudi.

    Args:
        options: Of the write.
        operation: That it asks for. An upsert is the default, so that options of inserts may come without a word of it.
    """
    asked = options.get(keys.INSERT_DROP_DUPLICATES) or options.get(keys.INSERT_DUPLICATES) in ("drop", "fail")
    return Operation.INSERT if asked and operation is Operation.UPSERT else operation


def settle_duplicates(batch: KeyedBatch, known: np.ndarray[Any, Any], policy: DuplicatePolicy) -> np.ndarray[Any, Any]:
    """Positions of the rows to insert.

    Args:
        batch: The rows.
        known: Positions of those whose key the table has.
        policy: DROP or FAIL.

    Raises:
        DuplicateKeys: There are some, and the policy is to fail.
    """
    fresh = ~batch.deleted
    repeated = np.unique(known[fresh[known]])
    if len(repeated) and policy is DuplicatePolicy.FAIL and batch.keys is not None:
        raise DuplicateKeys(len(repeated), [batch.keys[int(at)].as_py() for at in repeated[:_SHOWN]])
    fresh = fresh.copy()
    fresh[known] = False
    kept: np.ndarray[Any, Any] = np.flatnonzero(fresh)
    return kept
