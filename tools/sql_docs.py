"""Write docs/sql.md from the statements that tests run: `python tools/sql_docs.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.spark.sql_list import Listed

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "sql.md"
HEAD = """# Statements of SQL

What a session says after `pyspark_hudimeta.attach(spark)`; [spark.md](spark.md#sql-in-an-attached-session) explains it. Tests
run each of these statements, by Apache Hudi 1.0.2 and 1.2.0 as well, with no more than the word after `USING` changed, and
compare the rows of queries; the last column says where 1.2.0 does something else. `pyspark_hudimeta.sql(spark, "…")` runs the
same in any session, and through Spark Connect with the same outcome (`make connect`; a value of the wrong type has another of
Spark's error classes there).
Statements that are not about hudimeta tables go to Spark as they were written. Errors are Spark's own, or
begin with a code such as `HUDIMETA_CONFIG` and end with what to do; a statement that is refused has changed nothing on disk.
The columns that `MERGE WITH SCHEMA EVOLUTION` adds are a commit of their own, which stays where a row is refused afterwards.

This page is written by `tools/sql_docs.py`.
"""
_INSTANT, _COMPLETION = "20260102030405678", "20260102030406789"


def text() -> str:
    """The page."""
    sys.path.insert(0, str(ROOT))
    from tests.spark.sql_list import SECTIONS

    parts = [HEAD]
    for title, statements in SECTIONS.items():
        parts += [f"\n## {title}\n\n| statement | page | hudimeta | Apache Hudi 1.0.2 |\n|---|---|---|---|\n"]
        rows = dict.fromkeys(_row(one) for one in statements)
        parts += [f"| `{shown}` | {source} | {outcome} | {hudi} |\n" for shown, source, outcome, hudi in rows]
    return "".join(parts)


def _row(one: Listed) -> tuple[str, str, str, str]:
    outcome = f"refused: {one.because}" if one.refused else "works"
    newer = "takes it" if one.newer == "the same" else one.newer
    hudi = f"{one.hudi}; 1.2.0 {newer}" if newer else one.hudi
    return one.text.format(format="hudimeta", at=_INSTANT, done=_COMPLETION), one.source, outcome, hudi


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
