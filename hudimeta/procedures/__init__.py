"""The procedures of Hudi's SQL as values, in one registry: `CALL`, `Table.call` and docs/procedures.md are made of it."""

from hudimeta.procedures.binding import bind
from hudimeta.procedures.bootstrapping import bootstrap_arguments
from hudimeta.procedures.files import FILESYSTEM_VIEW, filesystem_view
from hudimeta.procedures.procedure import Parameter, Procedure, RunPlace
from hudimeta.procedures.registry import PROCEDURES, find, help_text
from hudimeta.procedures.running import refuse_unless_runs, run_procedure

__all__ = [
    "FILESYSTEM_VIEW",
    "PROCEDURES",
    "Parameter",
    "RunPlace",
    "Procedure",
    "bind",
    "bootstrap_arguments",
    "filesystem_view",
    "find",
    "help_text",
    "refuse_unless_runs",
    "run_procedure",
]
