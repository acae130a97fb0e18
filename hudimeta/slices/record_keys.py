"""The record keys that a predicate asks for, as the table spells them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.formats.plain_arrays import array_of, scalar_of, single_array

if TYPE_CHECKING:
    from hudimeta.keys import KeyGenerator
    from hudimeta.predicate import Bound, Expr

__all__ = ["KEY_COLUMN", "WantedKeys", "wanted_keys"]

KEY_COLUMN = "_hoodie_record_key"


@dataclass(frozen=True)
class WantedKeys:
    """Finitely many record keys.

    Attributes:
        texts: string, each once; a row that the predicate keeps has one of them.
        because: What says so in the predicate.
        alone: The predicate looks at nothing but the key.
    """

    texts: pa.StringArray
    because: Expr
    alone: bool = False


def wanted_keys(bound: Bound, properties: Mapping[str, str], by_fields: bool = True) -> WantedKeys | str:
    """The record keys that a predicate asks for, through the key column or through all fields that make the key.

    Args:
        bound: The predicate.
        properties: Of the table.
        by_fields: False where the fields may once have had other names.

    Returns:
        The keys, or why there are not finitely many of them.
    """
    from hudimeta.predicate import keys_of

    if properties.get("hoodie.populate.meta.fields", "true").strip().lower() == "false":
        return "the table stores no record keys"
    stored = keys_of(bound, [KEY_COLUMN])
    if stored is not None:
        return WantedKeys(single_array(stored.column(0)), _part(bound, [KEY_COLUMN]), _looks_at_no_more(bound, [KEY_COLUMN]))
    try:
        from hudimeta.keys import KeyGenerator

        generator = KeyGenerator.from_properties(properties)
    except (ConfigError, UnsupportedFeature):
        return "the table's key generator is not known here"
    fields = list(generator.record_fields)
    values = keys_of(bound, fields) if fields and by_fields else None
    if values is None:
        return f"the predicate does not fix the record key ({', '.join(fields) or KEY_COLUMN})"
    if any("." in name or not _is_plain(values.schema.field(name).type) for name in fields):
        return "keys of other types than text and whole numbers can be spelled in several ways"
    return WantedKeys(_spelled(generator, values), _part(bound, fields), _looks_at_no_more(bound, fields))


def _is_plain(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_integer(kind))


def _spelled(generator: KeyGenerator, values: pa.Table) -> pa.StringArray:
    """Keys of combinations of values; those without any text are the key of no row."""
    import pyarrow.compute as pc

    some: pa.ChunkedArray | None = None
    for column in values.columns:
        filled = pc.not_equal(column.cast(pa.string()), scalar_of(""))
        some = filled if some is None else pc.or_(some, filled)
    rows = values.filter(some)
    if not rows.num_rows:
        return array_of([], pa.string())
    # Releases differ in how they write the only field of a COMPLEX key, and a table can hold both spellings.
    both = [replace(generator, complex_single_field_prefix=flag) for flag in (True, False)]
    return pa.concat_arrays([g.record_keys(rows) for g in both]).unique()


def _part(bound: Bound, names: list[str]) -> Expr:
    """The conjuncts that fix some columns."""
    from hudimeta.predicate import equalities

    parts = [part for part in bound.conjuncts if set(names) & set(equalities(bound.with_conjuncts([part])))]
    return bound.with_conjuncts(parts).expr


def _looks_at_no_more(bound: Bound, names: list[str]) -> bool:
    return all(column.name in names for column in bound.columns)
