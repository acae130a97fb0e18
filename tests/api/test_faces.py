"""`Table` and `HudiTable` have the same verbs with the same arguments; what differs by nature is listed here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from pyspark_hudimeta import HudiTable
from pyspark_hudimeta.native.frame_scan import FrameScan

from hudimeta import Scan, Table
from hudimeta.api.indexes import TableIndexes
from hudimeta.api.metadata import TableMetadata
from hudimeta.api.services import TableServices

DIFFERENT = {
    "__init__": "HudiTable needs a session, and its engine is that session",
    "bootstrap": "HudiTable needs a session",
    "create": "HudiTable needs a session, and takes Spark's schemas too",
    "scan": "HudiTable returns a FrameScan, and times without a zone are in the session's",
    "merge": "HudiTable takes a DataFrame",
    "call": "gives a DataFrame",
}
"""Whose signatures differ, and why."""

ONLY_SPARK = {
    "for_name": "only a session has a catalog",
    "table": "the same table without Spark; an attribute of the instance",
}


def verbs(face: type) -> dict[str, Any]:
    """Public names of a class, those that it inherits included."""
    return {name: inspect.getattr_static(face, name) for name in dir(face) if not name.startswith("_") or name == "__init__"}


def signature(face: type, name: str) -> str:
    found = inspect.getattr_static(face, name)
    return "property" if isinstance(found, property) else str(inspect.signature(getattr(face, name)))


def test_both_have_the_same_verbs() -> None:
    assert set(verbs(HudiTable)) - set(verbs(Table)) == set(ONLY_SPARK) - {"table"}
    assert set(verbs(Table)) <= set(verbs(HudiTable))


@pytest.mark.parametrize("name", sorted(set(verbs(Table)) - set(DIFFERENT)))
def test_verbs_take_the_same_arguments_and_return_the_same(name: str) -> None:
    assert signature(HudiTable, name) == signature(Table, name)


@pytest.mark.parametrize("name", sorted(DIFFERENT))
def test_what_differs_takes_the_same_arguments_beside_the_session(name: str) -> None:
    def arguments(face: type) -> list[tuple[str, Any]]:
        taken: Callable[..., Any] = getattr(face, name)
        own = ("self", "spark", "engine")
        return [(p.name, p.kind) for p in inspect.signature(taken).parameters.values() if p.name not in own]

    assert signature(HudiTable, name) != signature(Table, name), "list only what differs"
    assert arguments(HudiTable) == arguments(Table)


@pytest.mark.parametrize("kind", [Table, HudiTable, Scan, FrameScan, TableIndexes, TableMetadata, TableServices])
def test_every_public_method_has_an_example_or_names_the_one_that_has(kind: type) -> None:
    told = {
        name: inspect.getdoc(v) or "" for name, v in verbs(kind).items() if callable(getattr(kind, name)) and name[0] != "_"
    }
    assert [name for name, text in told.items() if ">>>" not in text and "ee `" not in text] == []


def test_every_public_method_says_what_it_does() -> None:
    silent = [
        f"{face.__name__}.{name}" for face in (Table, HudiTable) for name, v in verbs(face).items() if not inspect.getdoc(v)
    ]
    assert silent in ([], ["Table.__init__", "HudiTable.__init__"]), "the class says it for its constructor"
