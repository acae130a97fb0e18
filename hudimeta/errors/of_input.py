"""What a user gave cannot be: options, predicates, columns and types."""

from __future__ import annotations

from hudimeta.errors.tree import HudiError
from hudimeta.redaction import HIDDEN, is_secret

__all__ = ["ConfigError", "PredicateError", "SchemaError", "SchemaMismatch", "SchemaUnknown", "UnsupportedEvolution"]

_SHOWN = 300
"""Most characters of a predicate that an error repeats."""


def _written(value: object) -> str:
    """What was given, as Python writes it: an integer of some thousand digits it refuses to write."""
    try:
        return repr(value)
    except ValueError:
        size = f" of {value.bit_length():,} bits" if isinstance(value, int) else " with an endless number"
        return f"{type(value).__name__}{size}"


class ConfigError(HudiError):
    """An option or argument that is unknown, malformed, or contradicts the table.

    Attributes:
        key: Name of the option or argument, or the clause of SQL.
        value: What was given, `***` where the name is one of a secret.
        allowed: What would have been accepted, for the reader.
    """

    code = "CONFIG"

    def __init__(self, key: str, value: object, allowed: str, hint: str = "", *, is_option: bool = False) -> None:
        value = HIDDEN if is_secret(key) else value
        self.key, self.value, self.allowed = key, value, allowed
        super().__init__(
            f"{f'option {key!r}' if is_option else _named(key)} has the value {_written(value)}, allowed is {allowed}",
            hint or "Give an allowed value, or leave it out.",
        )


def _named(key: str) -> str:
    """What was given, by what it is: options have dots or begin with a dash, arguments are names; clauses stand as they are."""
    if "." in key or key.startswith("-"):
        return f"option {key!r}"
    return f"argument {key!r}" if key.isidentifier() and not key.isupper() else key


class PredicateError(ConfigError):
    """A predicate, or a part of one, that cannot be read or evaluated: `where`, or the option `hudimeta.filter`.

    Attributes:
        what: The kind of part, such as a regular expression.
    """

    def __init__(self, value: object, allowed: str, hint: str = "", *, what: str = "predicate") -> None:
        self.key, self.value, self.allowed, self.what = "where", value, allowed, what
        whole = _written(value)
        shown = whole if len(whole) <= _SHOWN else f"{whole[:_SHOWN]}…"
        HudiError.__init__(
            self,
            f"{what} {shown}: allowed is {allowed}",
            hint or "Rewrite it, or read without it and filter the rows afterwards.",
        )


class SchemaError(HudiError):
    """Columns or types that do not fit."""

    code = "SCHEMA"


class SchemaUnknown(SchemaError):
    """A table without a commit and without a schema in its properties: nothing tells its columns."""

    code = "SCHEMA_UNKNOWN"

    def __init__(self) -> None:
        super().__init__("nothing tells the table's schema", "Write rows into the table, or set hoodie.table.create.schema.")


class SchemaMismatch(SchemaError):
    """Rows that do not fit the table's schema."""

    code = "SCHEMA_MISMATCH"

    def __init__(self, column: str, found: object, expected: object, hint: str = "") -> None:
        self.column, self.found, self.expected = column, found, expected
        super().__init__(
            f"{'what was given' if column == '*' else f'column {column!r}'} is {found}, the table needs {expected}",
            hint or "Cast or rename the column before writing.",
        )


class UnsupportedEvolution(SchemaError):
    """A change of schema that Hudi does not allow."""

    code = "SCHEMA_EVOLUTION"

    def __init__(self, column: str, change: str, hint: str = "") -> None:
        self.column, self.change = column, change
        super().__init__(f"column {column!r} cannot be changed: {change}", hint or "Write to a new column instead.")
