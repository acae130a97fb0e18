"""The public surface as text: each public name with its signature. `python -m tests.api.public_surface` writes it anew."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pyspark_hudimeta
from pyspark_hudimeta.native.frame_scan import FrameScan

import hudimeta
from hudimeta import errors
from hudimeta.api.indexes import TableIndexes
from hudimeta.api.metadata import TableMetadata
from hudimeta.api.services import TableServices
from hudimeta.services.advice import Advice, Recommendation, UnusedIndex
from hudimeta.services.archival import ArchivalReport
from hudimeta.services.clean import CleanReport
from hudimeta.services.indexing import IndexReport, RebuildReport
from hudimeta.services.metadata_table import ListingCost, MetadataChange, MetadataStats
from hudimeta.services.restore import RestorePlan, RestoreReport, UndoneInstant
from hudimeta.services.rollback import RollbackReport
from hudimeta.services.savepoints import Savepoint
from hudimeta.services.ttl import TtlPlan, TtlReport
from hudimeta.services.validation import ValidationReport
from hudimeta.write.merge_builder import MergeBuilder

PINNED = Path(__file__).resolve().parents[1] / "data" / "public_surface.txt"
GROUPS = (TableServices, TableIndexes, TableMetadata, MergeBuilder, FrameScan)
MADE_BY_VERBS = (*GROUPS, hudimeta.Scan)
"""Nobody else makes these, so that their constructors are ours to change."""
UNDO = (RestorePlan, RestoreReport, RollbackReport, Savepoint, UndoneInstant)
OF_METADATA = (ListingCost, MetadataChange, MetadataStats, ValidationReport)
OF_READS = (Advice, Recommendation, UnusedIndex)
REPORTS = (*OF_READS, ArchivalReport, CleanReport, IndexReport, RebuildReport, TtlPlan, TtlReport, *OF_METADATA, *UNDO)
"""What public verbs return, beside what `hudimeta` itself names."""


def surface() -> str:
    """All of it, one line a name, below a heading for each module and class."""
    lines = [*_module(hudimeta), *_module(pyspark_hudimeta), *_module(errors)]
    named = {value for module in (hudimeta, pyspark_hudimeta, errors) for value in _public(module).values()}
    for kind in (*GROUPS, *REPORTS):
        if kind not in named:
            lines += _class(kind, "")
    return "\n".join(lines) + "\n"


def _public(module: ModuleType) -> dict[str, Any]:
    return {name: getattr(module, name) for name in sorted(module.__all__) if not name.startswith("__")}


def _module(module: ModuleType) -> Iterator[str]:
    yield f"# {module.__name__}"
    classes = []
    for name, value in _public(module).items():
        if inspect.isclass(value):
            classes.append(value)
        elif callable(value):
            yield f"{name}{_signature(value)}"
        else:
            yield f"{name}: {type(value).__name__}"
    for kind in classes:
        yield from _class(kind, f"{module.__name__}.")
    yield ""


def _class(kind: type, module: str) -> Iterator[str]:
    above = ", ".join(base.__name__ for base in kind.__bases__ if base is not object)
    yield ""
    yield f"## {module}{kind.__name__}" + (f"({above})" if above else "")
    if kind in MADE_BY_VERBS:
        pass
    elif dataclasses.is_dataclass(kind):
        yield from (_field(field) for field in dataclasses.fields(kind) if not field.name.startswith("_"))
    elif "__init__" in vars(kind):
        yield f"__init__{_signature(kind.__init__)}"  # type: ignore[misc]
    if issubclass(kind, enum.Enum):
        yield from (f"{member.name} = {member.value!r}" for member in kind)
    fields = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    for name in dir(kind):
        if not name.startswith("_") and name not in fields and _is_of_ours(kind, name):
            yield f"{name}{_told(inspect.getattr_static(kind, name), getattr(kind, name))}"


def _is_of_ours(kind: type, name: str) -> bool:
    """False for what a class of Python or of a library below brings, which may change with its version."""
    owner = next(one for one in kind.__mro__ if name in vars(one))
    return owner.__module__.startswith(("hudimeta", "pyspark_hudimeta"))


def _field(field: dataclasses.Field[Any]) -> str:
    """A field of a value, in the order in which its constructor takes it."""
    if field.default is not dataclasses.MISSING:
        return f"{field.name}: {field.type} = {field.default!r}"
    made = "" if field.default_factory is dataclasses.MISSING else f" = {field.default_factory.__name__}()"
    return f"{field.name}: {field.type}{made}"


def _signature(function: Any) -> str:
    """Without the quotes that postponed annotations have."""
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(function)))


def _told(static: Any, value: Any) -> str:
    if callable(value):
        return _signature(value)
    if isinstance(static, property):
        return f" -> {inspect.signature(static.fget).return_annotation}" if static.fget else ""
    if isinstance(value, (str, int)):
        return f" = {value!r}"
    returned = getattr(static, "func", None)  # a cached property
    return f" -> {inspect.signature(returned).return_annotation}" if returned else ""


if __name__ == "__main__":
    PINNED.write_text(surface(), encoding="utf-8")
