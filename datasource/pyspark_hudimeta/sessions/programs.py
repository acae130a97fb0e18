"""`shell` and `submit`: Spark's own programs, made to run Python in such a way that sessions are attached."""

from __future__ import annotations

import itertools
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyspark

from hudimeta.errors import UnsupportedFeature

__all__ = ["begin_shell", "shell", "submit"]

_CLUSTER_MODE = ("--deploy-mode", "cluster")


def submit(arguments: Sequence[str]) -> int:
    """Run spark-submit with all sessions of the script attached; returns its exit code.

    Args:
        arguments: As spark-submit takes them.

    Raises:
        UnsupportedFeature: A driver on another machine, which this one cannot tell how to run Python.
    """
    of_spark = list(itertools.takewhile(lambda argument: not argument.endswith(".py"), arguments))
    if _CLUSTER_MODE in itertools.pairwise(of_spark) or "--deploy-mode=cluster" in of_spark:
        hint = "Leave --deploy-mode out, or submit with spark-submit and call pyspark_hudimeta.attach(spark) in the script."
        raise UnsupportedFeature("submit with --deploy-mode cluster", hint)
    with tempfile.TemporaryDirectory(prefix="hudimeta-submit-") as folder:
        python = Path(folder) / "python"
        # Spark takes one word for the driver's Python.
        python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m pyspark_hudimeta.sessions.driver "$@"\n')
        python.chmod(0o700)
        return _run("spark-submit", ["--conf", f"spark.pyspark.driver.python={python}", *arguments], {})


def shell(arguments: Sequence[str]) -> int:
    """Run the pyspark shell with `spark` attached; returns its exit code.

    Args:
        arguments: As pyspark takes them.
    """
    with tempfile.TemporaryDirectory(prefix="hudimeta-shell-") as folder:
        startup = Path(folder) / "startup.py"  # the shell runs it when `spark` is there
        startup.write_text("from pyspark_hudimeta.sessions.programs import begin_shell\nbegin_shell(globals())\n")
        given = os.environ.get("PYTHONSTARTUP", "")
        return _run("pyspark", arguments, {"PYTHONSTARTUP": str(startup), "HUDIMETA_PYTHONSTARTUP": given})


def begin_shell(names: dict[str, Any]) -> None:
    """Attach the shell's session, then run the user's own startup file.

    Args:
        names: Of the shell.
    """
    from pyspark_hudimeta.attached.attachment import attach
    from pyspark_hudimeta.sessions.every_session import attach_every_session
    from pyspark_hudimeta.spark_version import is_connect

    attach_every_session()
    if is_connect(names["spark"]):
        print("hudimeta: not attached, for this is Spark Connect; pyspark_hudimeta.sql(spark, …) takes its statements.")
    else:
        attach(names["spark"])
        print("hudimeta: 'spark' is attached; spark.sql takes MERGE, UPDATE, TIMESTAMP AS OF and the like.")
    own = os.environ.get("HUDIMETA_PYTHONSTARTUP")
    if own and os.path.isfile(own):
        exec(compile(Path(own).read_text(encoding="utf-8"), own, "exec"), names)


def _run(program: str, arguments: Sequence[str], more: Mapping[str, str]) -> int:
    """Run one of the programs of Spark's package, or of SPARK_HOME."""
    home = os.environ.get("SPARK_HOME") or os.path.dirname(pyspark.__file__)
    variables = {"PYSPARK_PYTHON": sys.executable, **os.environ, **more}
    process = subprocess.Popen([os.path.join(home, "bin", program), *arguments], env=variables)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:  # it has had control-C as well, and ends or goes on
            continue
