"""Fetches the jar of Apache Hudi that the interoperability tests alternate with, once per machine.

The jar (110 MB) is kept in ``$XDG_CACHE_HOME/hudimeta`` (``~/.cache/hudimeta``). Maven fetches it where it is installed,
otherwise Ivy, which comes inside Spark. ``HUDI_BUNDLE`` names a jar that is there already. Standard library only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["ARTIFACT", "BundleMissing", "bundle_path", "fetch_bundle"]

ARTIFACT = "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.0.2"
SMALLEST = 50_000_000
"""Bytes; anything shorter is a broken download or an error page."""


class BundleMissing(Exception):
    """The jar could not be fetched; the text says what to do."""


def bundle_path() -> Path:
    """Where the jar is, or will be."""
    if os.environ.get("HUDI_BUNDLE"):
        return Path(os.environ["HUDI_BUNDLE"])
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hudimeta"
    _, name, version = ARTIFACT.split(":")
    return cache / f"{name}-{version}.jar"


def fetch_bundle(python: Path, java_home: Path) -> Path:
    """The jar's path, after fetching it if need be.

    Args:
        python: Interpreter of the interoperability environment, whose Spark brings Ivy.
        java_home: Runtime for Maven or Spark.

    Raises:
        BundleMissing: Neither way worked.
    """
    jar = bundle_path()
    if _is_whole(jar):
        return jar
    if os.environ.get("HUDI_BUNDLE"):
        raise BundleMissing(f"HUDI_BUNDLE names {jar}, which is not a jar of Apache Hudi. Unset it to have the jar fetched.")
    print(f"setup: fetching {ARTIFACT} (110 MB) into {jar.parent}", file=sys.stderr, flush=True)
    staging = jar.parent / f".fetching-{os.getpid()}"
    staging.mkdir(parents=True)
    env = {**os.environ, "JAVA_HOME": str(java_home), "SPARK_LOCAL_IP": "127.0.0.1"}
    try:
        for fetch in (_with_maven, _with_ivy):
            found = fetch(python, staging, env)
            if found is not None and _is_whole(found):
                os.replace(found, jar)
                return jar
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    raise BundleMissing(
        f"{ARTIFACT} could not be fetched, neither by Maven nor by Spark's Ivy; their messages are above. "
        f"Fetch the jar by hand from Maven Central and put it at {jar}, or export HUDI_BUNDLE=<jar>."
    )


def _is_whole(jar: Path) -> bool:
    return jar.is_file() and jar.stat().st_size >= SMALLEST


def _with_maven(python: Path, staging: Path, env: dict[str, str]) -> Path | None:
    maven = shutil.which("mvn")
    if maven is None:
        return None
    goal = ["dependency:copy", f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={staging}", "-Dtransitive=false"]
    subprocess.run([maven, "-q", "-B", *goal], env=env, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False, cwd=staging)
    return next(staging.glob("*.jar"), None)


def _with_ivy(python: Path, staging: Path, env: dict[str, str]) -> Path | None:
    program = (
        "import sys; from pyspark.sql import SparkSession; "
        "SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false')"
        ".config('spark.jars.packages', sys.argv[1]).config('spark.jars.ivy', sys.argv[2]).getOrCreate().stop()"
    )
    ivy = staging / "ivy"
    command = [str(python), "-c", program, ARTIFACT, str(ivy)]
    subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False, cwd=staging)
    return next((ivy / "jars").glob("*hudi-spark*.jar"), None)
