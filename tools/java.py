"""Finds a Java runtime that Spark can use, or installs one where that is possible without asking.

Looked at, in this order: ``JAVA_HOME``, ``java`` on the PATH, the folders where packages and version managers put runtimes.
Where none fits, Debian's headless runtime is installed if this process is root and apt is there; otherwise the error says
what to do. Standard library only: this runs before anything is installed.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["SPARK_3", "SPARK_4", "JavaMissing", "find_java", "java_version", "require_java"]

SPARK_4 = range(17, 1000)
"""Java versions that Spark 4 runs on: 17 and whatever came after it."""

SPARK_3 = range(17, 22)
"""Versions that Spark 3.5 with Apache Hudi runs on: Java 24 took away the security manager that its Hadoop asks for."""

PREFERRED = (17, 21)
FOLDERS = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/*jdk*",
    "/opt/*jre*",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
    "~/.asdf/installs/java/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
)
DEBIAN_PACKAGES = ("openjdk-17-jre-headless", "openjdk-21-jre-headless", "default-jre-headless")


class JavaMissing(Exception):
    """No runtime of the wanted version, and none could be installed; the text says what to do."""


def java_version(home: Path) -> int | None:
    """The feature release (17, 21 …) of the runtime at `home`; None when there is no working runtime."""
    if not os.access(home / "bin" / "java", os.X_OK):
        return None
    release = home / "release"
    text = release.read_text(errors="replace") if release.is_file() else ""
    found = re.search(r'JAVA_VERSION="?(\d+)(?:\.(\d+))?', text)
    if found is None:
        ran = subprocess.run([str(home / "bin" / "java"), "-version"], capture_output=True, text=True, check=False)
        found = re.search(r'version "(\d+)(?:\.(\d+))?', ran.stderr + ran.stdout)
    if found is None:
        return None
    major = int(found[1])
    return int(found[2] or 0) if major == 1 else major


def find_java(wanted: range = SPARK_4) -> Path | None:
    """The home folder of a runtime whose version is in `wanted`; None when the machine has none.

    The user's own choice (JAVA_HOME, then PATH) wins; among the rest 17 and 21 come first, as what Spark is tested with.
    """
    chosen = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    on_path = shutil.which("java")
    if on_path:
        chosen.append(Path(on_path).resolve().parents[1])
    for home in chosen:
        if java_version(home) in wanted:
            return home
    others = [Path(p) for pattern in FOLDERS for p in sorted(glob.glob(os.path.expanduser(pattern)))]
    fitting = [(v, home) for home in others for v in [java_version(home)] if v is not None and v in wanted]
    fitting.sort(key=lambda found: (found[0] not in PREFERRED, found[0]))
    return fitting[0][1] if fitting else None


def require_java(wanted: range = SPARK_4) -> Path:
    """As `find_java`, but installs a runtime where it may. Raises JavaMissing."""
    home = find_java(wanted)
    if home is None and hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get"):
        _install_from_debian()
        home = find_java(wanted)
    if home is None:
        span = f"{wanted[0]} to {wanted[-1]}" if wanted[-1] < 999 else f"{wanted[0]} or newer"
        raise JavaMissing(
            f"Spark needs a Java runtime, version {span}; none is in JAVA_HOME, on the PATH or in the usual folders.\n"
            "Do one of these, then run the same command again:\n"
            "  Debian, Ubuntu   sudo apt-get install openjdk-17-jre-headless   (or default-jre-headless)\n"
            "  Fedora, RHEL     sudo dnf install java-17-openjdk-headless   (or java-21-openjdk-headless)\n"
            "  macOS            brew install openjdk@17\n"
            "  any, no root     unpack a runtime from https://adoptium.net and export JAVA_HOME=<its folder>"
        )
    return home


def _install_from_debian() -> None:
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    print("java: none found, installing Debian's headless runtime", file=sys.stderr, flush=True)
    subprocess.run(["apt-get", "update", "-qq"], env=env, stdin=subprocess.DEVNULL, check=False)
    for package in DEBIAN_PACKAGES:
        command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
        if subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False).returncode == 0:
            return


if __name__ == "__main__":
    try:
        print(require_java())
    except JavaMissing as missing:
        sys.exit(f"error: {missing}")
