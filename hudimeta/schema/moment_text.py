"""Dates and times as Java's text, of whatever year: Arrow knows the fields of years with 16 bits alone, and writes others as
`<value out of range: …>`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.formats.plain_arrays import array_of, fill_null, numpy_of, scalar_of

__all__ = ["moved_near", "text_of_date", "text_of_timestamp", "year_text", "years_of"]

_ERA_YEARS, _ERA_DAYS = 400, 146_097
_UNITS_OF_A_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000}


def moved_near(local: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """Dates or wall clock times moved to the years 1970 to 2369, where Arrow knows their fields: its years have 16 bits.

    The calendar repeats after 400 years, weekdays included.

    Args:
        local: A date32, or a timestamp of whole microseconds or coarser.

    Returns:
        The moved values, and by how many years each lies after them.
    """
    unit = pa.int32() if pa.types.is_date32(local.type) else pa.int64()
    numbers = numpy_of(fill_null(local.view(unit), 0)).astype(np.int64)
    eras, rest = np.divmod(numbers, _ERA_DAYS if unit == pa.int32() else _ERA_DAYS * _UNITS_OF_A_DAY[local.type.unit])
    return array_of(rest, unit, mask=numpy_of(local.is_null())).view(local.type), eras * _ERA_YEARS


def years_of(near: pa.Array, after: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The years of dates or times that `moved_near` has moved; anything for nulls."""
    import pyarrow.compute as pc

    return numpy_of(fill_null(pc.year(near), 0)) + after


def year_text(years: npt.NDArray[np.int64], count: int) -> pa.Array:
    """Years as Java writes them: two digits alone, a sign before a negative one, and before one that
    needs more digits than a pattern of four or more has."""
    import pyarrow.compute as pc

    sizes = np.abs(years)
    if count == 2:
        return pc.utf8_lpad(array_of(sizes % 100).cast(pa.string()), 2, "0")
    plus = "+" if count >= 4 else ""
    signs = np.where(years < 0, 2, years >= 10**count)
    return pc.binary_join_element_wise(
        array_of(["", plus, "-"]).take(array_of(signs)),
        pc.utf8_lpad(array_of(sizes).cast(pa.string()), count, "0"),
        scalar_of(""),
    )


def text_of_date(local: pa.Array) -> pa.Array:
    """CAST(date AS STRING); years of five digits have a sign, as in Java."""
    import pyarrow.compute as pc

    near, after = moved_near(local)
    rest = pc.utf8_slice_codeunits(pc.cast(near, pa.string()), 4)
    return pc.binary_join_element_wise(year_text(years_of(near, after), 4), rest, scalar_of(""))


def text_of_timestamp(local: pa.Array) -> pa.Array:
    """CAST(timestamp AS STRING) of wall clock times: `2024-01-02 03:04:05.6`, without trailing zeros."""
    import pyarrow.compute as pc

    whole = pc.replace_substring_regex(text_of_date(local), r"\.0+$", "")
    return pc.replace_substring_regex(whole, r"(\.\d*?[1-9])0+$", r"\1")
