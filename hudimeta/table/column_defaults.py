"""Default values of columns: the table's own word in `hoodie.properties`, as expressions of Spark's SQL.

Neither Hudi's schemas nor its files keep them. Apache Hudi does not know this property and keeps it: its statements give such a
column null.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from hudimeta.errors import TableError

__all__ = ["KEY", "changed_defaults", "column_defaults"]

KEY = "hudimeta.table.column.defaults"


def column_defaults(properties: Mapping[str, str]) -> dict[str, str]:
    """The expression of each column that has a default.

    Raises:
        TableError: The property is no mapping of texts.
    """
    text = properties.get(KEY) or "{}"
    try:
        return {str(name): str(default) for name, default in json.loads(text).items()}
    except (ValueError, AttributeError) as error:
        hint = "Remove the property; ALTER COLUMN … SET DEFAULT states defaults anew."
        raise TableError(f"{KEY} is {text[:80]!r}, which is no mapping of columns", hint) from error


def changed_defaults(properties: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str | None]:
    """The change of properties that changes defaults.

    Args:
        properties: Of the table.
        changes: Expressions by column; None for those that go.
    """
    found: dict[str, str | None] = {**column_defaults(properties), **changes}
    left = {name: default for name, default in found.items() if default is not None}
    return {KEY: json.dumps(left, sort_keys=True) if left else None}
