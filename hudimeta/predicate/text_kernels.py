"""How functions over text are computed; see `function_kernels` for what a kernel is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudimeta.errors import PredicateError
from hudimeta.formats.plain_arrays import fill_null, scalar_of
from hudimeta.predicate.function_kernels import Kernel
from hudimeta.predicate.types import map_unique

if TYPE_CHECKING:
    from hudimeta.predicate.signature import Context


MAX_TEXT = 1_000_000
"""Longest text that a function makes of a short one, in characters."""


def check_length(length: int) -> None:
    """Refuse what would fill the memory."""
    if length > MAX_TEXT:
        raise PredicateError(length, f"at most {MAX_TEXT} characters", what="length of a text that is made longer")


def lower(_context: Context, args: list[Any]) -> Any:
    """Lower case by Unicode's full mapping, as Java's root locale."""
    return lower_case(args[0])


def lower_case(texts: pa.Array) -> pa.Array:
    """Lower case of texts."""
    return _case(texts, "ascii_lower", str.lower)


def upper(_context: Context, args: list[Any]) -> Any:
    """Upper case by Unicode's full mapping (`ß` becomes `SS`)."""
    return _case(args[0], "ascii_upper", str.upper)


def _case(texts: pa.Array, ascii_kernel: str, unicode: Callable[[str], str]) -> pa.Array:
    import pyarrow.compute as pc

    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        return pc.call_function(ascii_kernel, [texts])
    return map_unique(texts, unicode, texts.type)


def reverse(_context: Context, args: list[Any]) -> Any:
    """Characters backwards."""
    import pyarrow.compute as pc

    return pc.utf8_reverse(args[0])


def length(context: Context, args: list[Any]) -> Any:
    """Characters of a string, bytes of a binary value."""
    import pyarrow.compute as pc

    kernel = pc.binary_length if args[0].type == pa.binary() else pc.utf8_length
    return kernel(args[0]).cast(context.type)


def trim(side: str, *, text_first: bool = False) -> Kernel:
    """Blanks (only U+0020), or the characters that stand first, cut off; of `btrim` they stand last."""

    def run(_context: Context, args: list[Any]) -> Any:
        import pyarrow.compute as pc

        kernel = {"both": pc.utf8_trim, "left": pc.utf8_ltrim, "right": pc.utf8_rtrim}[side]
        if len(args) == 1:
            return kernel(args[0], " ")
        texts, characters = args if text_first else reversed(args)
        result = pa.nulls(len(texts), texts.type)
        for cut in pc.unique(characters).to_pylist():
            if cut is not None:
                result = pc.if_else(fill_null(pc.equal(characters, cut), False), kernel(texts, cut), result)
        return result

    return run


def substring(_context: Context, args: list[Any]) -> Any:
    """Characters from a 1-based position (0 is 1; negative counts from the end), at most so many."""
    import pyarrow.compute as pc

    texts, position = args[0], args[1]
    count = args[2] if len(args) > 2 else 1 << 31
    if position is None or count is None:
        return pa.nulls(len(texts), texts.type)
    if count <= 0:
        return pc.if_else(pc.is_valid(texts), scalar_of(""), scalar_of(None)).cast(texts.type)
    if position >= 0:
        start = max(position - 1, 0)
        return pc.utf8_slice_codeunits(texts, start, start + count)

    def piece(text: str) -> str:
        start = len(text) + position
        return text[max(start, 0) : max(start + count, 0)]

    return map_unique(texts, piece, texts.type)


def left(_context: Context, args: list[Any]) -> Any:
    """The first characters."""
    import pyarrow.compute as pc

    return pa.nulls(len(args[0]), args[0].type) if args[1] is None else pc.utf8_slice_codeunits(args[0], 0, max(args[1], 0))


def right(_context: Context, args: list[Any]) -> Any:
    """The last characters."""
    if args[1] is None:
        return pa.nulls(len(args[0]), args[0].type)
    return map_unique(args[0], lambda text: text[-args[1] :] if args[1] > 0 else "", args[0].type)


def concat(_context: Context, args: list[Any]) -> Any:
    """Texts joined; null when any is."""
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(*args, scalar_of(""))


def replace(_context: Context, args: list[Any]) -> Any:
    """Every occurrence of a text replaced; an empty text is not sought."""
    import pyarrow.compute as pc

    sought, put = args[1], args[2] if len(args) > 2 else ""
    if sought is None or put is None:
        return pa.nulls(len(args[0]), args[0].type)
    return pc.replace_substring(args[0], sought, put) if sought else args[0]


def pad(side: str) -> Kernel:
    """Filled up, or cut off, to exactly so many characters."""

    def run(_context: Context, args: list[Any]) -> Any:
        width, filler = args[1], args[2] if len(args) > 2 else " "
        if width is None or filler is None:
            return pa.nulls(len(args[0]), args[0].type)

        check_length(width)

        def padded(text: str) -> str:
            missing = width - len(text)
            if missing <= 0 or not filler:
                return text[: max(width, 0)]
            fill: str = (filler * (missing // len(filler) + 1))[:missing]
            return fill + text if side == "left" else text + fill

        return map_unique(args[0], padded, args[0].type)

    return run
