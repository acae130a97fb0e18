"""`hudimeta show`, `history`, `maintain`, `advise` and `call`: a table as a whole, and the procedures of Hudi's SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hudimeta.cli.exits import Exit
from hudimeta.cli.given import command, dry_run, opened_options
from hudimeta.cli.output import Answer, AnswerRows

if TYPE_CHECKING:
    import pyarrow as pa

    from hudimeta import Table

__all__ = ["advise", "call", "history", "maintain", "show"]

_group = click.Group("tables")


def _rows(name: str, found: pa.Table) -> AnswerRows:
    return AnswerRows(name, found.column_names, [tuple(row.values()) for row in found.to_pylist()])


def _show(table: Table) -> tuple[Answer, Exit]:
    """What a table is: its type, keys, columns, indexes and newest write."""
    properties, snapshot = table.properties, table.snapshot()
    facts = {
        "table": table.path,
        "name": properties.name,
        "type": properties.type.value,
        "version": properties.version,
        "record_keys": list(properties.record_keys),
        "partition_fields": list(properties.partition_fields),
        "ordering_fields": list(properties.ordering_fields),
        "metadata_partitions": list(properties.metadata_partitions),
        "newest_write": snapshot.latest_write,
        "instants": len(table.timeline.instants),
    }
    columns = [(field.name, str(field.type)) for field in table.schema]
    lines = [f"{name}: {', '.join(v) or '-' if isinstance(v, list) else '-' if v is None else v}" for name, v in facts.items()]
    return Answer(facts, [AnswerRows("columns", ["column", "type"], columns)], [*lines, ""]), Exit.DONE


@click.option("--archived", is_flag=True, help="Instants that archiving took off the active timeline too.")
@click.option("--limit", type=click.IntRange(0), default=20, show_default=True, help="Most rows.")
def _history(table: Table, limit: int, archived: bool) -> tuple[Answer, Exit]:
    """What happened to a table, one row an instant, the newest first."""
    return Answer({"table": table.path}, [_rows("instants", table.history(limit, archived=archived))], []), Exit.DONE


@dry_run
@click.option("--max-seconds", type=click.FloatRange(0), help="Begin nothing after so many seconds.")
@click.option("--max-bytes", type=click.IntRange(0), help="Begin nothing after so many bytes were read and written.")
def _maintain(table: Table, max_bytes: int | None, max_seconds: float | None, dry_run: bool) -> tuple[Answer, Exit]:
    """Run the services that are due (recovery, compaction, clustering, cleaning, archival), in the right order."""
    report = table.maintain(max_bytes=max_bytes, max_seconds=max_seconds, dry_run=dry_run)
    lines = str(report).splitlines()
    return Answer({"table": table.path, "dry_run": dry_run, "report": lines}, lines=lines), Exit.DONE


@dry_run
@click.option("--unused-days", type=click.IntRange(0), default=30, show_default=True, help="Name indexes unused for so long.")
@click.option("--apply", is_flag=True, help="Build what is recommended.")
def _advise(table: Table, apply: bool, unused_days: int, dry_run: bool) -> tuple[Answer, Exit]:
    """Which index or order of rows would have saved the noted reads how many bytes, and at what cost."""
    advice = table.advise(apply=apply and not dry_run, unused_days=unused_days)
    return Answer({**advice.to_dict(), "dry_run": dry_run}, lines=str(advice).splitlines()), Exit.DONE


@click.argument("procedure")
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE]...")
def _call(table: Table, procedure: str, arguments: tuple[str, ...]) -> tuple[Answer, Exit]:
    """Run a procedure of Hudi's SQL on the table at PATH; `hudimeta call PATH help` lists them all."""
    found = table.call(procedure, **opened_options(arguments, what="a procedure's argument"))
    rows = _rows("rows", found)
    if procedure.lower() == "help":
        return Answer({"procedure": procedure}, [rows], lines=[]), Exit.DONE
    return Answer({"table": table.path, "procedure": procedure}, [rows], [], f"{len(rows.values):,} rows"), Exit.DONE


show = command(_group, "show")(_show)
history = command(_group, "history")(_history)
maintain = command(_group, "maintain")(_maintain)
advise = command(_group, "advise")(_advise)
call = command(_group, "call")(_call)
