"""JSON that somebody else wrote: whatever is wrong with it is a ValueError, of which callers make an error that names the file.

Python's own reader raises RecursionError for deep nesting, and lets numbers and texts pass that are none: `NaN`, `Infinity`,
`1e999`, and halves of a surrogate pair, which no column can hold.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

__all__ = ["parse_json"]

_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")
_HALF_PAIR_BYTES = re.compile(_HALF_PAIR.pattern.encode())


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: No JSON, nested deeper than Python goes, or with numbers or texts that mean nothing.
    """
    try:
        found = json.loads(text, parse_float=_finite, parse_constant=_refused)
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None
    if (_HALF_PAIR.search(text) if isinstance(text, str) else _HALF_PAIR_BYTES.search(text)) is not None:
        json.dumps(found, ensure_ascii=False).encode()  # UnicodeEncodeError is a ValueError
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text}")
    return number


def _refused(text: str) -> NoReturn:
    raise ValueError(f"the number {text}")
