"""`sql`: statements from arguments, a file or a prompt, and their rows as tables."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from hudimeta.errors import ConfigError, HudiError
from hudimeta.sql import split
from pyspark_hudimeta.attached.attachment import attach
from pyspark_hudimeta.spark_version import is_connect
from pyspark_hudimeta.sql.door import sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["run_all", "run_sql"]

_JAVA = "\nJVM stacktrace:"


def run_sql(arguments: Sequence[str]) -> int:
    """Run statements, or ask for them; returns the exit code: 1 when one of those that were given failed.

    Raises:
        ConfigError: A file that cannot be read.
    """
    known, of_spark = _parser().parse_known_args(arguments)
    texts = [*known.execute]
    for name in known.file:
        try:
            texts.append(Path(name).read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError("-f", name, f"a file that can be read ({error.strerror})") from error
    spark = _session(known.remote, of_spark)
    try:
        if texts:
            return run_all(spark, ";\n".join(texts), known.rows)
        return _asked(spark, known.rows)
    finally:
        spark.stop()


def run_all(spark: SparkSession, text: str, rows: int) -> int:
    """Run statements until one fails.

    Args:
        spark: An attached session.
        text: All statements.
        rows: To print of each at most.
    """
    return 0 if all(_ran(spark, statement, rows) for statement in split(text)) else 1


def _ran(spark: SparkSession, statement: str, rows: int) -> bool:
    try:
        frame = sql(spark, statement)
        if frame.columns:
            frame.show(rows, truncate=False)
    except (HudiError, PySparkException) as error:
        print(str(error).partition(_JAVA)[0].strip(), file=sys.stderr)
        return False
    return True


def _asked(spark: SparkSession, rows: int, read: Callable[[str], str] = input) -> int:
    """Statements from a prompt, each ended by a semicolon, until `exit` or the end of the input."""
    held = ""
    while True:
        try:
            line = read("      -> " if held else "hudimeta> ")
        except EOFError:
            return 0 if not held.strip() or _ran(spark, held, rows) else 1
        except KeyboardInterrupt:
            print()
            held = ""
            continue
        if not held and line.strip().rstrip(";").lower() in ("exit", "quit"):
            return 0
        held += line + "\n"
        if line.rstrip().endswith(";"):
            for statement in split(held):
                _ran(spark, statement, rows)
            held = ""


def _session(remote: str | None, of_spark: Sequence[str]) -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if remote is not None:
        if of_spark:
            raise ConfigError("--remote", " ".join(of_spark), "no options of spark-submit: the server has its own")
        spark: SparkSession = SparkSession.builder.remote(remote).getOrCreate()
        return spark
    quiet = ["--conf", "spark.ui.showConsoleProgress=false"]
    os.environ["PYSPARK_SUBMIT_ARGS"] = shlex.join([*quiet, *of_spark, "pyspark-shell"])
    spark = SparkSession.builder.getOrCreate()
    if not is_connect(spark):
        spark.sparkContext.setLogLevel("ERROR")
        attach(spark)
    return spark


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m pyspark_hudimeta sql",
        description="Run statements of SQL, those about hudimeta tables among them; without -e and -f, ask for them.",
        epilog="All other options are those of spark-submit, such as --master and --conf.",
        allow_abbrev=False,
    )
    parser.add_argument("-e", "--execute", action="append", default=[], metavar="STATEMENTS", help="run these and end")
    parser.add_argument(
        "-f", "--file", action="append", default=[], metavar="FILE", help="run the statements of a file and end"
    )
    parser.add_argument("--remote", metavar="URL", help="use the server of Spark Connect at sc://host:port")
    parser.add_argument("--rows", type=int, default=1000, metavar="N", help="rows to print of each result, 1000 if not given")
    return parser
