"""Runs one command inside the project's environment, after making whatever the command needs.

    python3 tools/run.py [--java] [--spark-oldest] [--stores] [--interop[=VERSION,...]] COMMAND [ARGUMENT ...]

``--java``          finds or installs a Java runtime and points Spark at it and at the environment's Python.
``--spark-oldest``  the same, inside an environment with the oldest Spark that is supported.
``--stores``        inside an environment with the clients of object stores; the project's Python, which runs their servers,
                    reaches the command as HUDIMETA_PROJECT_PYTHON.
``--interop``       also makes the environment of Spark 3.5 with Apache Hudi; it reaches the command as
                    HUDIMETA_INTEROP_PYTHON, HUDIMETA_INTEROP_JAVA_HOME and HUDI_BUNDLE, the jar of the first version named.

Nothing newer than Python 3.6 stands above the version check, so that an old interpreter gets the message instead of a
syntax error.
"""

import os
import sys

if sys.version_info < (3, 10):  # noqa: UP036 - this file is what tells the user
    sys.exit(
        "error: hudimeta needs Python 3.10 or newer, this is %d.%d (%s).\n"  # noqa: UP031
        "Install a newer one, then name it: make PYTHON=python3.12 <verb>"
        % (sys.version_info[0], sys.version_info[1], sys.executable)
    )

import environment
import hudi_bundle
import java

FLAGS = ("--java", "--interop", "--spark-oldest", "--stores")


def main(arguments: list[str]) -> int:
    """Prepare, then become the command. Returns an exit code only when there is none, or when preparing failed."""
    flags, versions = set(), [hudi_bundle.VERSION]
    while arguments and arguments[0].split("=")[0] in FLAGS:
        flag, _, named = arguments.pop(0).partition("=")
        flags.add(flag)
        versions = named.split(",") if named else versions
    try:
        variables = prepared(flags, versions)
    except (environment.SetupFailed, java.JavaMissing, hudi_bundle.BundleMissing) as error:
        print("error:", error, file=sys.stderr)
        return 1
    if not arguments:
        print("ready:", variables["VIRTUAL_ENV"])
        return 0
    sys.stdout.flush()
    return os.execvpe(arguments[0], arguments, variables)


def prepared(flags: set[str], versions: list[str]) -> dict[str, str]:
    """The environment variables for the command; `versions` of Apache Hudi are fetched where the flags ask for it."""
    chosen = _environment_of(flags)
    python = environment.prepare(chosen)
    variables = dict(os.environ)
    if "--stores" in flags:
        variables["HUDIMETA_PROJECT_PYTHON"] = str(environment.prepare(environment.PROJECT))
    variables["VIRTUAL_ENV"] = str(chosen.path)
    variables["PATH"] = str(python.parent) + os.pathsep + variables.get("PATH", "")
    # Images of containers set it; the hundreds of processes of a test run would each compile the engine anew, for a second.
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    if flags - {"--stores"}:
        variables["JAVA_HOME"] = str(java.require_java(java.SPARK_4))
        variables["PYSPARK_PYTHON"] = variables["PYSPARK_DRIVER_PYTHON"] = str(python)
        variables["SPARK_LOCAL_IP"] = "127.0.0.1"  # a machine's own name does not always resolve
        variables.pop("SPARK_HOME", None)  # another Spark's folder would win over the installed package
    if "--interop" in flags:
        other, home = environment.prepare(environment.INTEROP), java.require_java(java.SPARK_3)
        variables["HUDIMETA_INTEROP_PYTHON"] = str(other)
        variables["HUDIMETA_INTEROP_JAVA_HOME"] = str(home)
        first, *more = versions
        variables["HUDI_BUNDLE"] = str(hudi_bundle.fetch_bundle(other, home, first, os.environ.get("HUDI_BUNDLE")))
        for version in more:
            hudi_bundle.fetch_bundle(other, home, version)
    return variables


def _environment_of(flags: set[str]) -> environment.Environment:
    if "--stores" in flags:
        return environment.STORES
    return environment.OLDEST_SPARK if "--spark-oldest" in flags else environment.PROJECT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
