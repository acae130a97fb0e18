"""Makes the virtual environments, and makes them again only when what they should hold has changed.

``.venv`` holds the project (editable) with all its extras. ``.venv-spark-oldest`` holds it with the oldest Spark, Arrow and
sqlglot that it supports. ``.venv-stores`` holds it with the clients of object stores, whose botocore is older than what the
tests' own servers need. ``.venv-interop`` holds Spark 3.5 for Apache Hudi, which has no build for Spark 4; never the project.
Standard library only: this runs before anything is installed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["INTEROP", "OLDEST_SPARK", "PROJECT", "ROOT", "STORES", "Environment", "SetupFailed", "prepare"]

ROOT = Path(__file__).resolve().parents[1]


class SetupFailed(Exception):
    """An environment could not be made; the text says what to do."""


@dataclass(frozen=True)
class Environment:
    """A virtual environment.

    Attributes:
        folder: Relative to the project.
        arguments: What `pip install` is given.
        depends_on: Files whose change makes the installation stale.
    """

    folder: str
    arguments: tuple[str, ...]
    depends_on: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """Absolute path of the environment."""
        return ROOT / self.folder

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.path / "bin" / "python"


PROJECT = Environment(".venv", ("-e", ".[spark,connect,demo,bench,test,check]"), ("pyproject.toml",))
OLDEST_SPARK = Environment(
    ".venv-spark-oldest",
    (
        "-e",
        ".[connect]",
        "pyspark==4.1.0",
        "pyarrow==24.0.0",
        "sqlglot==30.22.0",
        "pandas<3",
        "fsspec>=2024.10",
        "pytest>=8,<9.2",
        "pytest-spark>=0.8",
        "pytest-timeout>=2.3",
        "hypothesis>=6.100",
    ),
    ("pyproject.toml",),
)
STORES = Environment(
    ".venv-stores",
    ("-e", ".[s3,gcs,azure]", "pytest>=8,<9.2", "pytest-spark>=0.8", "pytest-timeout>=2.3", "hypothesis>=6.100"),
    ("pyproject.toml",),
)
INTEROP = Environment(".venv-interop", ("pyspark==3.5.6", "pandas<3", "pyarrow", "setuptools"))


def prepare(environment: Environment) -> Path:
    """Bring the environment up to date and return its interpreter. Does nothing when its stamp fits. Raises SetupFailed."""
    wanted = _fingerprint(environment)
    stamp = environment.path / ".stamp"
    with _alone(ROOT / f"{environment.folder}.lock"):
        if stamp.is_file() and stamp.read_text() == wanted and _runs(environment.python):
            return environment.python
        print(f"setup: installing into {environment.folder}, the first time takes minutes", file=sys.stderr, flush=True)
        if not _runs(environment.python):
            shutil.rmtree(environment.path, ignore_errors=True)
            _create(environment.path)
        stamp.unlink(missing_ok=True)
        command = [str(environment.python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *environment.arguments]
        if subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False).returncode != 0:
            raise SetupFailed(
                f"pip could not install {' '.join(environment.arguments)} into {environment.folder}. "
                "Its own message is above; check that the package index is reachable, then run the same command again."
            )
        stamp.write_text(wanted)
    return environment.python


def _fingerprint(environment: Environment) -> str:
    digest = hashlib.sha256(repr((sys.version_info[:2], str(environment.path), environment.arguments)).encode())
    for name in environment.depends_on:
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def _runs(python: Path) -> bool:
    """True for an interpreter of this version that has pip: a moved or half-made environment has not."""
    if not python.exists():
        return False
    probe = "import sys, pip; print(*sys.version_info[:2])"
    ran = subprocess.run([str(python), "-c", probe], capture_output=True, text=True, check=False)
    return ran.returncode == 0 and ran.stdout.split() == [str(part) for part in sys.version_info[:2]]


def _create(path: Path) -> None:
    if _try([sys.executable, "-m", "venv", str(path)]):
        return
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get"):
        _try(["apt-get", "update", "-qq"])
        for package in (f"python{version}-venv", "python3-venv"):
            installed = _try(["apt-get", "install", "-y", "-qq", package])
            if installed and _try([sys.executable, "-m", "venv", "--clear", str(path)]):
                return
    if shutil.which("uv") and _try(["uv", "venv", "-q", "--seed", "--python", sys.executable, str(path)]):
        return
    if _try([sys.executable, "-m", "virtualenv", "-q", str(path)]):
        return
    raise SetupFailed(
        f"{sys.executable} cannot make a virtual environment. On Debian and Ubuntu: sudo apt-get install python{version}-venv; "
        "elsewhere: pip install virtualenv. Then run the same command again."
    )


def _try(command: list[str]) -> bool:
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False).returncode == 0


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Two commands started at once must not install into the same folder at once."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
