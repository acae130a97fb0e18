"""The root of the tree of errors, and those that belong to no part of the table."""

from __future__ import annotations

from typing import ClassVar

from hudimeta.redaction import hidden

__all__ = ["HudiError", "MissingLibrary", "ValidationFailed"]


class HudiError(Exception):
    """Anything that hudimeta raises on purpose.

    Args:
        message: What happened, without a full stop at the end.
        hint: What the user can do next; empty when nothing can be done.
    """

    code: ClassVar[str] = "ERROR"

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = message = hidden(message)
        self.hint = hint = hidden(hint)
        super().__init__(f"HUDIMETA_{self.code}: {message}." + (f" {hint}" if hint else ""))

    def __reduce__(self) -> tuple[object, ...]:
        """Errors cross process borders (pools, Spark workers): rebuild without calling the subclass's own signature."""
        return (_rebuild, (type(self), self.args, self.__dict__))


def _rebuild(kind: type[HudiError], args: tuple[object, ...], facts: dict[str, object]) -> HudiError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(facts)
    return error


class MissingLibrary(HudiError):
    """A library that hudimeta can do without, and that what was asked for needs.

    Attributes:
        name: As it is installed.
    """

    code = "MISSING_LIBRARY"

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"{name} is not installed here", f"Run: pip install {name}.")


class ValidationFailed(HudiError):
    """A validator found differences; the report names each."""

    code = "VALIDATION"

    def __init__(self, report: object) -> None:
        self.report = report
        hint = "Read with hoodie.metadata.enable=false meanwhile: that goes by what is on storage."
        super().__init__(f"validation found differences: {report}", hint)
