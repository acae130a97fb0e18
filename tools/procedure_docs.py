"""Write docs/procedures.md from the registry of procedures: `python tools/procedure_docs.py`."""

from __future__ import annotations

from pathlib import Path

from hudimeta.procedures import PROCEDURES, Procedure, RunPlace

TARGET = Path(__file__).resolve().parent.parent / "docs" / "procedures.md"
HEAD = """# Procedures

The procedures of Apache Hudi's SQL, with the names, parameters and columns that version 1.2.0 gives them. Each can be called
in three ways, and gives the same rows:

* `CALL system.show_commits(table => 'trips', limit => 5)` in an attached session; `system.` may be left out, arguments are
  named or stand in the order below, and `table => '/data/trips'` takes a path too.
* `table.call("show_commits", limit=5)` on a `hudimeta.Table`: an Arrow table.
* `HudiTable(spark, path).call("show_commits", limit=5)`: a DataFrame.

Parameters that say which table is meant (`table`, `path`; in italics) are left out on a table object, where everything else is
given by name. `filter` is SQL over the columns of the result, judged after the limit, as Apache Hudi does. `options` is
`key=value,key=value`. Ends of ranges (`startTime`, `start_ts`, `max_instant`) are instants, dates, times or the first
digits of an instant. What is not there yet or refused is an error with the reason that stands below; an unknown name or
parameter is an error that names the right ones. `CALL help()` and `CALL help(cmd => 'run_clean')` tell the same in a session.

This page is written by `tools/procedure_docs.py`.
"""
SECTIONS = (
    ("Those that show", "", lambda p: p.place is RunPlace.ENGINE and not p.acts),
    ("Those that change the table", "", lambda p: p.place is RunPlace.ENGINE and p.acts),
    ("Those that need Spark", "", lambda p: p.place is RunPlace.SPARK),
    (
        "Refused",
        "They have no meaning without Apache Hudi's Java, or a better way is there.",
        lambda p: p.place is RunPlace.NOWHERE,
    ),
)


def _entry(procedure: Procedure) -> str:
    named = [f"*{p}*" if p.names_table else f"`{p}`{' (required)' if p.required else ''}" for p in procedure.parameters]
    lines = [f"### {procedure.name}", "", procedure.doc]
    lines += ["", *filter(None, [procedure.note, procedure.why])] if procedure.note or procedure.why else []
    lines += ["", f"Takes {', '.join(named) or 'nothing'}.", "", f"Gives {', '.join(f'`{c}`' for c in _columns(procedure))}."]
    return "\n".join(lines)


def _columns(procedure: Procedure) -> list[str]:
    return [text.removesuffix("!") for text in procedure.gives.split(", ")]


def text() -> str:
    """The page."""
    parts = [HEAD]
    for title, intro, chosen in SECTIONS:
        entries = [_entry(p) for p in PROCEDURES.values() if chosen(p)]
        if entries:
            parts.append("\n\n".join([f"## {title}", *filter(None, [intro]), *entries]) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
