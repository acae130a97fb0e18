"""Write docs/options.md from the option registry: `python tools/option_docs.py`."""

from __future__ import annotations

from pathlib import Path

from hudimeta.config import OPTIONS, NotDone
from hudimeta.config.passed_over import PASSED_OVER
from hudimeta.config.registry import Ignored

TARGET = Path(__file__).resolve().parent.parent / "docs" / "options.md"
HEAD = """# Options

Names are Hudi's where Hudi has one; ours alone begin with `hudimeta.`. They go to `hudimeta.Table(path, options={...})`, to
`spark.read.format("hudimeta").option(...)` and to `df.write.format("hudimeta").option(...)`; in an attached session also to
`OPTIONS` and `TBLPROPERTIES` of CREATE TABLE and to `SET`, which writes read. Case does not matter.

Options for every table of a machine stand in `hudi-defaults.conf`, the file that Apache Hudi reads: in `/etc/hudi/conf` and in
the folder that the environment variable `HUDI_CONF_DIR` names, which wins. An option that is given wins over both, and so does
what a table has stored; `conf/` holds samples.

* Every option of Apache Hudi (1.0.2 to 1.2.0) is known. What is done stands in the first table. What is not done and would
  change rows, layout or side effects is an error, whichever door it comes in by, unless its value asks for what hudimeta does
  anyway: the second table. What is done otherwise, and is none the worse for it, is ignored with a warning: the third. The rest
  changes nothing that you see and is passed over: the fourth.
* An unknown `hudimeta.*` option, and any option that is a slip of a known one (`hoodie.table.nam`, `hudi.table.name`,
  `as_of_instant`), is an error that names the right one. So are words that other formats, Hudi's SQL or the API use for the
  same thing: `timestampAsOf`, `filter`, `columns`, `primaryKey` on a DataFrame. Hudi's short names `type`, `primaryKey`,
  `preCombineField`, `orderingFields`, `payloadClass` and `recordMergeMode` are for OPTIONS and TBLPROPERTIES.
* Other unknown `hoodie.*` options are reported once and ignored; whatever else Spark hands over is left alone.

This page is written by `tools/option_docs.py`.

## Done

| option | default | allowed | meaning |
|---|---|---|---|
"""
REFUSED = """
## Refused

| option | values that are fine | instead |
|---|---|---|
"""
IGNORED = """
## Ignored, with a warning

| option | values that are fine | what is done instead |
|---|---|---|
"""
PASSED = """
## Passed over

| because it | options |
|---|---|
"""


def _names(*keys: str) -> str:
    return "<br>".join(f"`{key}{'*' if key.endswith('.') else ''}`" for key in keys)


def _done() -> list[str]:
    rows = []
    for option in OPTIONS:
        default = option.default
        shown = "" if default in (None, ()) else str(default).lower() if isinstance(default, bool) else str(default)
        rows.append(f"| {_names(option.key, *option.aliases)} | {shown and f'`{shown}`'} | {option.allowed} | {option.doc} |")
    return rows


def _otherwise(option: NotDone | Ignored, instead: str) -> str:
    fits = ", ".join(f"`{value}`" for value in option.fits) or "none"
    return f"| {_names(option.key, *option.aliases)} | {fits} | {instead} |"


def text() -> str:
    """The page."""
    passed = [
        f"| {group.why} | {' '.join(f'`{name}`' for name in (*group.names, *(f'{prefix}*' for prefix in group.prefixes)))} |"
        for group in PASSED_OVER
    ]
    refused = [_otherwise(option, option.hint) for option in OPTIONS.not_done]
    ignored = [_otherwise(option, option.instead) for option in OPTIONS.ignored]
    tables = ((HEAD, _done()), (REFUSED, refused), (IGNORED, ignored), (PASSED, passed))
    return "".join(head + "\n".join(rows) + "\n" for head, rows in tables)


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
