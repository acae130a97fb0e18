"""Names that differ by one character: what a flipped bit makes of a name that a file must have."""

from __future__ import annotations

__all__ = ["one_apart"]


def one_apart(one: str, other: str) -> bool:
    """True when a character changed, added or taken away makes the one text the other.

    Args:
        one: A text.
        other: Another; False when it equals the first.
    """
    if abs(len(one) - len(other)) > 1 or one == other:
        return False
    same = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    if len(one) == len(other):
        return one[same + 1 :] == other[same + 1 :]
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    return longer[same + 1 :] == shorter[same:]
