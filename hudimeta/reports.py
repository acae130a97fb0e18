"""How reports show themselves: as their text, also in a list of them, and as HTML in notebooks."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["Report", "Reports"]


class Report:
    """Something whose `str` is for people: then its `repr` is too, and a notebook shows it.

    A dataclass that is one says `repr=False`, or it gets a `repr` of its fields.
    """

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"


R = TypeVar("R", bound=Report)


class Reports(list[R]):
    """Several reports; a list that prints as they do."""

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "nothing was to be done"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return "".join(report._repr_html_() for report in self) or f"<pre>{self}</pre>"
