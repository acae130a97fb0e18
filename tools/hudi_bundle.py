"""Fetches jars of Apache Hudi, for the interoperability tests and the benchmarks: once per machine and version.

A jar (some 100 MB) is kept in ``$XDG_CACHE_HOME/hudimeta`` (``~/.cache/hudimeta``). Maven fetches it where it is installed,
otherwise Ivy, which comes inside Spark. ``HUDI_BUNDLE`` names a jar that is there already, for the first version asked for.
Standard library only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["VERSION", "BundleMissing", "bundle_path", "fetch_bundle"]

GROUP, NAME = "org.apache.hudi", "hudi-spark3.5-bundle_2.12"
VERSION = "1.0.2"
"""Of Apache Hudi, where none is named: the last that writes table version 8 by itself."""
SMALLEST = 50_000_000
"""Bytes; anything shorter is a broken download or an error page."""


class BundleMissing(Exception):
    """The jar could not be fetched; the text says what to do."""


def bundle_path(version: str = VERSION) -> Path:
    """Where the jar of a version is kept, or will be."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hudimeta"
    return cache / f"{NAME}-{version}.jar"


def fetch_bundle(python: Path, java_home: Path, version: str = VERSION, named: str | None = None) -> Path:
    """The jar's path, after fetching it if need be.

    Args:
        python: Interpreter of the interoperability environment, whose Spark brings Ivy.
        java_home: Runtime for Maven or Spark.
        version: Of Apache Hudi.
        named: A jar that is there already, from HUDI_BUNDLE.

    Raises:
        BundleMissing: Neither way worked, or what is named is no jar.
    """
    if named:
        if not _is_whole(Path(named)):
            raise BundleMissing(f"HUDI_BUNDLE names {named}, no jar of Apache Hudi. Unset it to have the jar fetched.")
        return Path(named)
    jar, artifact = bundle_path(version), f"{GROUP}:{NAME}:{version}"
    if _is_whole(jar):
        return jar
    print(f"setup: fetching {artifact} (some 100 MB) into {jar.parent}", file=sys.stderr, flush=True)
    staging = jar.parent / f".fetching-{os.getpid()}"
    staging.mkdir(parents=True)
    env = {**os.environ, "JAVA_HOME": str(java_home), "SPARK_LOCAL_IP": "127.0.0.1"}
    try:
        for fetch in (_with_maven, _with_ivy):
            found = fetch(artifact, python, staging, env)
            if found is not None and _is_whole(found):
                os.replace(found, jar)
                return jar
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    raise BundleMissing(
        f"{artifact} could not be fetched, neither by Maven nor by Spark's Ivy; their messages are above. "
        f"Fetch the jar by hand from Maven Central and put it at {jar}, or export HUDI_BUNDLE=<jar>."
    )


def _is_whole(jar: Path) -> bool:
    return jar.is_file() and jar.stat().st_size >= SMALLEST


def _with_maven(artifact: str, python: Path, staging: Path, env: dict[str, str]) -> Path | None:
    maven = shutil.which("mvn")
    if maven is None:
        return None
    goal = ["dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={staging}", "-Dtransitive=false"]
    subprocess.run([maven, "-q", "-B", *goal], env=env, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False, cwd=staging)
    return next(staging.glob("*.jar"), None)


def _with_ivy(artifact: str, python: Path, staging: Path, env: dict[str, str]) -> Path | None:
    program = (
        "import sys; from pyspark.sql import SparkSession; "
        "SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false')"
        ".config('spark.jars.packages', sys.argv[1]).config('spark.jars.ivy', sys.argv[2]).getOrCreate().stop()"
    )
    ivy = staging / "ivy"
    command = [str(python), "-c", program, artifact, str(ivy)]
    subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False, cwd=staging)
    return next((ivy / "jars").glob("*hudi-spark*.jar"), None)
