"""From a procedure and its arguments to a table of what it gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hudimeta.config import Options
from hudimeta.errors import UnsupportedFeature
from hudimeta.procedures.call import ProcedureCall
from hudimeta.procedures.procedure import Procedure, RunPlace

if TYPE_CHECKING:
    import pyarrow as pa

    from hudimeta.engine import Engine
    from hudimeta.storage import CountingStorage

__all__ = ["refuse_unless_runs", "run_procedure"]

_FILTER = "filter"


def run_procedure(
    procedure: Procedure, arguments: Mapping[str, Any], storage: CountingStorage, options: Options, engine: Engine | None
) -> pa.Table:
    """Run a procedure on a table.

    Args:
        procedure: What is called.
        arguments: As `bind` made them.
        storage: Rooted at the table.
        options: Of the table.
        engine: Where services run their tasks; threads of this process when None.

    Raises:
        UnsupportedFeature: It does not run here.
        HudiError: What it raises.
    """
    refuse_unless_runs(procedure, session=False)
    assert procedure.run is not None  # mypy
    kept = _condition(procedure, arguments)
    rows = procedure.table(procedure.run(ProcedureCall(arguments, storage, options, engine)))
    return rows if kept is None else rows.filter(kept(rows))


def refuse_unless_runs(procedure: Procedure, *, session: bool) -> None:
    """Raise UnsupportedFeature with the reason, unless the procedure runs.

    Args:
        procedure: What is called.
        session: There is a session of Spark.
    """
    runs = procedure.place is RunPlace.ENGINE or (session and procedure.place is RunPlace.SPARK)
    if runs:
        return
    if procedure.place is RunPlace.SPARK:
        hint = f"{procedure.why} CALL {procedure.name}(…) in a session that pyspark_hudimeta.attach has attached."
        raise UnsupportedFeature(f"the procedure {procedure.name} without a session of Spark", hint.strip())
    raise UnsupportedFeature(f"the procedure {procedure.name}", procedure.why)


def _condition(procedure: Procedure, arguments: Mapping[str, Any]) -> Any:
    """What the argument `filter` says of rows, bound to the columns before anything is run; None without one."""
    text = arguments.get(_FILTER)
    if not text:
        return None
    from hudimeta.predicate import bind, evaluate, parse

    bound = bind(parse(text), procedure.schema)
    return lambda rows: evaluate(bound, rows)
