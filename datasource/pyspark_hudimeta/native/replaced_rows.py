"""Which rows of a base file count, as a constant of that file, and the condition by which Spark leaves out the others.

The constant is binary, a bit for each row of the file: the row at position `p` is bit `p % 8` of byte `p // 8`, set where a log
has replaced or deleted the row. Behind the last byte all rows count.

SQL has no cheap way to look at one byte of a binary: `ascii(substring(...))` makes a text of each. The condition is therefore
put together from Catalyst's own expressions, and calls the method that Spark's texts have for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from pyspark_hudimeta.native.jvm import Jvm

__all__ = ["current_rows", "replaced_bits"]


def replaced_bits(positions: npt.NDArray[np.int64]) -> bytes | None:
    """Positions of rows as bits; None for none."""
    if not len(positions):
        return None
    bits = np.zeros(int(positions.max()) + 1, np.bool_)
    bits[positions] = True
    return np.packbits(bits, bitorder="little").tobytes()


def current_rows(jvm: Jvm, column: str) -> Any:
    """An expression of Catalyst's, still to be resolved: True for rows of a scan that count.

    Args:
        jvm: Of the session.
        column: With the bits of the row's file; null for a file whose rows all count.
    """
    expressions = jvm.expressions
    # The method does not look how long the text is, so the row's position is compared with that first.
    beyond = jvm.parsed(f"{column} IS NULL OR _metadata.row_index >= 8 * octet_length({column})")
    place = jvm.parsed("CAST(_metadata.row_index DIV 8 AS INT)")
    text, number, nothing = jvm.parsed(f"CAST({column} AS STRING)"), jvm.type("tinyint"), jvm.seq([])
    byte = expressions.objects.Invoke(text, "getByte", number, jvm.seq([place]), nothing, True, False, True)
    bit = expressions.BitwiseAnd(byte, jvm.parsed("shiftleft(1, CAST(_metadata.row_index % 8 AS INT))"))
    return expressions.Or(beyond, expressions.EqualTo(bit, jvm.parsed("0")))
