"""Vectors: columns of Apache Hudi 1.2 whose values have all the same number of numbers, as embeddings do.

In memory a vector is a list of numbers that are never null. Files hold its numbers little-endian, one after the other, in
Avro's `fixed` and in Parquet's fixed-length byte arrays; the Avro schema tells such a column from plain bytes:

    {"type": "fixed", "name": "vector_float_4", "namespace": "", "size": 16, "logicalType": "vector",
     "dimension": 4, "elementType": "FLOAT", "storageBacking": "FIXED_BYTES"}

As in Hudi only whole columns are vectors, none within structs, lists or maps. Parquet footers name them once more.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from hudimeta.errors import SchemaError, SchemaMismatch
from hudimeta.formats.json_text import parse_json
from hudimeta.formats.plain_arrays import spread

__all__ = [
    "COLUMNS_KEY",
    "Vector",
    "as_stored",
    "bytes_of",
    "numbers_of",
    "vector_columns",
    "vector_in",
]

LOGICAL_TYPE = "vector"
COLUMNS_KEY = "hoodie.vector.columns"
"""Entry of Parquet footers: `name:VECTOR(4),other:VECTOR(3, DOUBLE)`."""

_ELEMENTS: Mapping[str, pa.DataType] = {"FLOAT": pa.float32(), "DOUBLE": pa.float64(), "INT8": pa.int8()}
_SPELLED = re.compile(r"\s*VECTOR\s*\(\s*([0-9]{1,9})\s*(?:,\s*([A-Za-z0-9]+)\s*)?\)\s*", re.IGNORECASE | re.ASCII)
_IN_HISTORY = re.compile(r"vector\[([0-9]{1,9}), ([A-Z0-9]+), [A-Z_]+\]", re.ASCII)
_ALSO = {"BYTE": "INT8"}


class Vector:
    """The type of a vector column.

    Args:
        dimension: Numbers of a value.
        element: FLOAT, DOUBLE or INT8.

    Raises:
        SchemaError: No such vector can be.

    Example:
        >>> str(Vector(3, "DOUBLE"))
        'VECTOR(3, DOUBLE)'
    """

    def __init__(self, dimension: int, element: str = "FLOAT") -> None:
        name = _ALSO.get(element.upper(), element.upper())
        if name not in _ELEMENTS:
            raise SchemaError(f"vectors of {element}", f"Take one of {', '.join(_ELEMENTS)}.")
        if not isinstance(dimension, int) or not 0 < dimension < 2**31 // _ELEMENTS[name].byte_width:
            raise SchemaError(f"a vector of {dimension} numbers", "Give the number of its elements, at least one.")
        self.dimension, self.element = dimension, name

    @classmethod
    def spelled(cls, text: str) -> Vector | None:
        """The type that SQL and `hudi_type` spell as `VECTOR(4)` or `VECTOR(4, DOUBLE)`; None for any other text."""
        found = _SPELLED.fullmatch(text)
        return None if found is None else cls(int(found[1]), found[2] or "FLOAT")

    @classmethod
    def in_history(cls, stored: Any) -> Vector | None:
        """The type that the history of a schema names `vector[4, FLOAT, FIXED_BYTES]`; None for any other."""
        found = _IN_HISTORY.fullmatch(stored) if isinstance(stored, str) else None
        return None if found is None else cls(int(found[1]), found[2])

    def __str__(self) -> str:
        return f"VECTOR({self.dimension})" if self.element == "FLOAT" else f"VECTOR({self.dimension}, {self.element})"

    @property
    def size(self) -> int:
        """Bytes of a value in files."""
        return self.dimension * int(_ELEMENTS[self.element].byte_width)

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type in memory: a list of float32, float64 or int8."""
        return pa.list_(pa.field("element", _ELEMENTS[self.element], nullable=False))

    @property
    def stored(self) -> pa.DataType:
        """The Arrow type in files."""
        return pa.binary(self.size)

    @property
    def avro(self) -> dict[str, Any]:
        """The Avro type, as Hudi writes it."""
        named = {"type": "fixed", "name": f"vector_{self.element.lower()}_{self.dimension}", "namespace": "", "size": self.size}
        told = {"dimension": self.dimension, "elementType": self.element, "storageBacking": "FIXED_BYTES"}
        return named | {"logicalType": LOGICAL_TYPE} | told

    def takes(self, kind: pa.DataType) -> bool:
        """Whether elements of a type can be its numbers: whole ones of any width, and where it has fractions, floating ones."""
        whole = pa.types.is_integer(kind) or pa.types.is_null(kind)
        return bool(whole or (self.element != "INT8" and pa.types.is_floating(kind)))

    def elements(self, values: pa.Array, path: str) -> pa.Array:
        """Numbers as a value has them; fractions lose digits as in `CAST(… AS FLOAT)`.

        Raises:
            SchemaMismatch: A null, a number that does not fit, or no number.
        """
        import pyarrow.compute as pc

        kind, hint = _ELEMENTS[self.element], f"Every value of {path} has {self.dimension} numbers, or is null."
        if values.null_count:
            raise SchemaMismatch(f"{path}.element", f"null in {values.null_count} places", f"a number of {self}", hint)
        if values.type == kind:
            return values
        if not self.takes(values.type):
            raise SchemaMismatch(f"{path}.element", values.type, str(kind), hint)
        try:
            return pc.cast(values, kind, safe=not pa.types.is_floating(kind))
        except pa.ArrowInvalid as error:
            raise SchemaMismatch(f"{path}.element", f"{values.type} ({error})", str(kind), hint) from None

    def check(self, values: pa.Array, path: str) -> None:
        """Refuse lists of another length.

        Raises:
            SchemaMismatch: A list has more or fewer elements.
        """
        import pyarrow.compute as pc

        lengths = pc.list_value_length(values)
        odd = lengths.filter(pc.not_equal(lengths, self.dimension))
        if len(odd):
            hint = f"Give every value of {path} exactly {self.dimension} numbers, or null."
            raise SchemaMismatch(path, f"a list of {odd[0].as_py()}", str(self), hint)


def vector_in(avro: Any) -> Vector | None:
    """The vector that an Avro type is; None for every other type.

    Raises:
        SchemaError: It contradicts itself.
    """
    if not isinstance(avro, dict) or avro.get("type") != "fixed" or avro.get("logicalType") != LOGICAL_TYPE:
        return None
    vector = Vector(avro.get("dimension", 0), str(avro.get("elementType", "FLOAT")))
    if avro.get("size") != vector.size:
        raise SchemaError(f"{vector} in {avro.get('size')} bytes", "The commit or file that holds it is damaged.")
    return vector


@functools.lru_cache(maxsize=64)
def vector_columns(schema_json: str) -> Mapping[str, Vector]:
    """The vectors among the columns of an Avro record; named types that come again are resolved."""
    if f'"{LOGICAL_TYPE}"' not in schema_json:
        return {}
    named: dict[str, Any] = {}
    found = {}
    for field in parse_json(schema_json)["fields"]:
        branches = field["type"] if isinstance(field["type"], list) else [field["type"]]
        kind = next((branch for branch in branches if branch != "null"), "null")
        if isinstance(kind, dict) and "name" in kind:
            named[str(kind["name"])] = kind
        vector = vector_in(named.get(kind) if isinstance(kind, str) else kind)
        if vector is not None:
            found[str(field["name"])] = vector
    return found


def as_stored(rows: pa.Table, schema_json: str | None) -> pa.Table:
    """Rows as Parquet files hold them: vectors as bytes, other columns as they are.

    Args:
        rows: Of the record, maybe with other columns beside.
        schema_json: The Avro record; None where no column can be a vector.
    """
    for name, vector in vector_columns(schema_json or "").items():
        at = rows.schema.get_field_index(name)
        if at >= 0 and pa.types.is_list(rows.schema.field(at).type):
            field = rows.schema.field(at).with_type(vector.stored)
            chunks = [bytes_of(chunk, vector.size) for chunk in rows.column(at).chunks]
            rows = rows.set_column(at, field, pa.chunked_array(chunks, vector.stored))
    return rows


def numbers_of(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """The lists that bytes of files stand for; nothing is copied.

    Args:
        values: Fixed-size binary.
        kind: The list.

    Raises:
        SchemaError: The bytes are no whole number of elements.
    """
    size, width = values.type.byte_width, kind.value_type.byte_width
    if size % width:
        raise SchemaError(f"a vector of {kind.value_type} in {size} bytes", "The file that holds it is damaged.")
    dimension = size // width
    content = values.buffers()[1].slice(values.offset * size, len(values) * size) if len(values) else pa.py_buffer(b"")
    inner = pa.Array.from_buffers(kind.value_type, len(values) * dimension, [None, content], null_count=0)
    offsets = pa.py_buffer(np.arange(len(values) + 1, dtype=np.int32) * dimension)
    valid = values.is_valid().buffers()[1] if values.null_count else None
    return pa.Array.from_buffers(kind, len(values), [valid, offsets], children=[inner])


def bytes_of(values: pa.Array, size: int) -> pa.Array:
    """The bytes of files that lists stand for.

    Args:
        values: Lists of numbers, as many in each as take `size` bytes, or null.
        size: Bytes of a value.

    Raises:
        SchemaMismatch: A list of another length.
    """
    import pyarrow.compute as pc

    width = values.type.value_type.byte_width
    present = values.drop_null() if values.null_count else values
    lengths = pc.list_value_length(present)
    odd = lengths.filter(pc.not_equal(lengths, size // width))
    if len(odd):
        raise SchemaMismatch("vector", f"a list of {odd[0].as_py()}", f"one of {size // width} numbers")
    content = np.ascontiguousarray(present.flatten().to_numpy(zero_copy_only=False))
    dense = pa.Array.from_buffers(pa.binary(size), len(present), [None, pa.py_buffer(content)], null_count=0)
    return dense if not values.null_count else spread(dense, values.is_valid().to_numpy(zero_copy_only=False))
