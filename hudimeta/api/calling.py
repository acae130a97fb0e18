"""`Table.call`: a procedure of Hudi's SQL by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hudimeta.config import Options
from hudimeta.engine import Engine
from hudimeta.procedures import bind, find, run_procedure
from hudimeta.storage import CountingStorage

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["call_procedure"]


def call_procedure(
    storage: CountingStorage,
    options: Options,
    engine: Engine | None,
    name: str,
    arguments: Mapping[str, Any],
    on_change: Callable[[], None],
) -> pa.Table:
    """Run a procedure on a table; see `hudimeta.Table.call`.

    Args:
        storage: Rooted at the table.
        options: Of the table.
        engine: Where services run their tasks.
        name: Of the procedure.
        arguments: By parameter.
        on_change: Called after a procedure that may have changed the table.
    """
    procedure = find(name)
    rows = run_procedure(procedure, bind(procedure, (), arguments, on_table=True), storage, options, engine)
    if procedure.acts:
        on_change()
    return rows
