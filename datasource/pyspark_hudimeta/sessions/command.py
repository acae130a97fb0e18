"""The command line `python -m pyspark_hudimeta`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from hudimeta.errors import HudiError

__all__ = ["main"]

_USAGE = """\
usage: python -m pyspark_hudimeta shell  [OPTIONS OF PYSPARK]
       python -m pyspark_hudimeta submit [OPTIONS OF SPARK-SUBMIT] SCRIPT [ARGUMENTS]
       python -m pyspark_hudimeta sql    [-e STATEMENTS | -f FILE] [--remote URL] [OPTIONS OF SPARK-SUBMIT]

Sessions in which pyspark_hudimeta.attach(spark) need not be called:
  shell   the pyspark shell, whose `spark` is attached
  submit  spark-submit; every session that the script makes is attached, newSession() too
  sql     a prompt for statements of SQL, or a run of those that are given; prints tables

Options of Spark have the names that they have there: --master, --conf, --packages …; `--` before them is passed over.
Exit codes: 0, that of the script, 1 for a statement that failed, 2 for what was asked wrongly.
"""
_WRONG = 2
_HELP = ("-h", "--help", "help")


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    word, *rest = arguments or ("",)
    rest = [text for number, text in enumerate(rest) if text != "--" or "--" in rest[:number]]
    if word in _HELP or (word in ("shell", "submit") and rest[:1] and rest[0] in _HELP):
        print(_USAGE)
        return 0
    if word not in ("shell", "submit", "sql") or (word == "submit" and not rest):
        print(_USAGE, file=sys.stderr)
        return _WRONG
    try:
        return _run(word, rest)
    except HudiError as error:
        print(error, file=sys.stderr)
        return _WRONG


def _run(word: str, arguments: Sequence[str]) -> int:
    from pyspark_hudimeta.sessions import programs, statements

    run = {"shell": programs.shell, "submit": programs.submit, "sql": statements.run_sql}
    return run[word](arguments)
