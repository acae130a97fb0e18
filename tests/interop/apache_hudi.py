"""The client side of `hudi_jvm.py`: real Apache Hudi as an object that tests and benchmarks can call."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
"""For the length of a run of tests: the second compiler would take two fifths of the time, and pay none of it back."""

ROW_BY_ROW = {"spark.sql.parquet.enableVectorizedReader": "false"}


class HudiFailed(Exception):
    """Apache Hudi refused or failed; the text is its own."""


@dataclass(frozen=True)
class HudiRead:
    """Rows that Apache Hudi returned, and how many files its scan read for them."""

    table: pa.Table
    files_read: int


@dataclass(frozen=True)
class Installation:
    """Where the interoperability environment is: its interpreter, a Java home that Spark 3.5 runs on, Hudi's jar."""

    python: Path
    java_home: Path | None
    bundle: Path

    @property
    def release(self) -> str:
        """Of Apache Hudi, such as 1.0.2."""
        return self.bundle.stem.rpartition("-")[2]

    @classmethod
    def find(cls, version: str | None = None) -> Installation | None:
        """From the environment (`make interop` sets it), else from the places where `make interop` leaves things.

        Args:
            version: Of Apache Hudi; None takes what HUDI_BUNDLE names, else the oldest that was fetched.
        """
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hudimeta"
        python = Path(os.environ.get("HUDIMETA_INTEROP_PYTHON") or ROOT / ".venv-interop" / "bin" / "python")
        named = os.environ.get("HUDI_BUNDLE")
        if named and (version is None or Path(named).stem.endswith(f"-{version}")):
            bundle: Path | None = Path(named)
        else:
            bundle = next(iter(sorted(cache.glob(f"hudi-spark3.5-bundle_2.12-{version or '*'}.jar"))), None)
        home = os.environ.get("HUDIMETA_INTEROP_JAVA_HOME") or os.environ.get("JAVA_HOME")
        if bundle is None or not bundle.is_file() or not python.exists():
            return None
        return cls(python, Path(home) if home else None, bundle)


class ApacheHudi:
    """One Java process with Apache Hudi; `close` ends it. Not for two threads at once.

    Args:
        installation: Where it is.
        memory: Heap of the driver, in Spark's notation.
        cores: Task slots.
        flags: More flags for Java. Benchmarks give none: a rival is measured with all that Java has.
    """

    def __init__(self, installation: Installation, memory: str = "1200m", cores: int = 2, flags: str = "") -> None:
        self.home = Path(tempfile.mkdtemp(prefix="apache-hudi-"))
        self.log = self.home / "log.txt"
        env = {k: v for k, v in os.environ.items() if k not in ("SPARK_HOME", "PYTHONPATH", "VIRTUAL_ENV")}
        env["PYSPARK_PYTHON"] = env["PYSPARK_DRIVER_PYTHON"] = str(installation.python)
        env["HUDI_BUNDLE"] = str(installation.bundle)
        env["SPARK_LOCAL_IP"] = "127.0.0.1"
        env["HUDI_JVM_MEMORY"], env["HUDI_JVM_CORES"], env["HUDI_JVM_FLAGS"] = memory, str(cores), flags
        if installation.java_home:
            env["JAVA_HOME"] = str(installation.java_home)
        with self.log.open("wb") as log:  # the process has a file of its own
            self.process = subprocess.Popen(
                [str(installation.python), str(HERE / "hudi_jvm.py")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=env,
                cwd=self.home,
            )
        self.about = self._answer(timeout=180)

    def close(self) -> None:
        """End the process and remove what it left behind."""
        if self.process.stdin and not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()
        shutil.rmtree(self.home, ignore_errors=True)

    def __enter__(self) -> ApacheHudi:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, op: str, timeout: float = 240, **arguments: Any) -> dict[str, Any]:
        """Send one command and wait for its answer. Raises HudiFailed."""
        if self.process.stdin is None or self.process.poll() is not None:
            raise HudiFailed(f"the process of Apache Hudi has ended:\n{self._log_end()}")
        self.process.stdin.write(json.dumps({"op": op, **arguments}).encode() + b"\n")
        self.process.stdin.flush()
        return self._answer(timeout)

    def write(
        self,
        path: Path | str,
        rows: pa.Table,
        options: dict[str, str] | None = None,
        *,
        operation: str = "upsert",
        mode: str = "append",
    ) -> None:
        """Write rows with one of Hudi's operations; key, partition and ordering fields come as options."""
        file = self.home / "rows.parquet"
        pq.write_table(rows, file)
        settings = {"hoodie.datasource.write.operation": operation, **(options or {})}
        self.call("write", path=str(path), rows=str(file), options=settings, mode=mode)

    def read(
        self,
        path: Path | str,
        *,
        metadata: bool = True,
        as_of: str | None = None,
        where: str | None = None,
        columns: list[str] | None = None,
        options: dict[str, str] | None = None,
        vectorized: bool = True,
    ) -> HudiRead:
        """Read rows; `metadata` says whether the metadata table and its indexes plan the read.

        Only a read that is not vectorized finds fields of structs in files where they have another name.
        """
        settings = {"hoodie.metadata.enable": str(metadata).lower(), "hoodie.enable.data.skipping": str(metadata).lower()}
        if as_of is not None:
            settings["as.of.instant"] = as_of
        file = self.home / "answer.arrow"
        settings.update(options or {})
        session = {} if vectorized else ROW_BY_ROW
        done = self.call(
            "read", path=str(path), out=str(file), options=settings, where=where, columns=columns, settings=session
        )
        return HudiRead(_load(file), int(done["files_read"]))

    def sql(self, statement: str, settings: dict[str, str] | None = None) -> pa.Table:
        """Run one SQL statement, under settings of the session that end with it, and return its rows."""
        file = self.home / "answer.arrow"
        self.call("sql", statement=statement, out=str(file), settings=settings)
        return _load(file)

    def service(
        self, path: Path | str, name: str, options: dict[str, str] | None = None, instant: str | None = None
    ) -> str | None:
        """Run clean, compact, cluster, archive, savepoint, rollback or rollback_failed; returns the instant it made."""
        done = self.call("service", path=str(path), name=name, options=options or {}, instant=instant)
        made: str | None = done.get("instant")
        return made

    def clean(self, path: Path | str, retain_commits: int) -> str | None:
        """Remove what only commits before the last `retain_commits` need."""
        options = {"hoodie.clean.policy": "KEEP_LATEST_COMMITS", "hoodie.clean.commits.retained": str(retain_commits)}
        return self.service(path, "clean", options)

    def validate(self, path: Path | str) -> dict[str, int]:
        """Hudi's metadata reader against storage, footers and rows: comparisons made by kind. Raises AssertionError."""
        done = self.call("validate", path=str(path))
        if done["problems"]:
            shown = "\n".join(done["problems"][:20])
            raise AssertionError(f"{len(done['problems'])} differences seen by Apache Hudi in {path}:\n{shown}")
        compared: dict[str, int] = done["compared"]
        return compared

    def _answer(self, timeout: float) -> dict[str, Any]:
        assert self.process.stdout is not None
        line, deadline = bytearray(), time.monotonic() + timeout
        with selectors.DefaultSelector() as ready:
            ready.register(self.process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not ready.select(max(0.0, deadline - time.monotonic())):
                    self.process.kill()
                    raise HudiFailed(f"no answer within {timeout:.0f} s:\n{self._log_end()}")
                piece = os.read(self.process.stdout.fileno(), 65536)
                if not piece:
                    raise HudiFailed(f"the process of Apache Hudi has ended:\n{self._log_end()}")
                line += piece
        answer: dict[str, Any] = json.loads(line)
        if not answer.pop("ok"):
            raise HudiFailed(answer["error"])
        return answer

    def _log_end(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-40:])


def _load(file: Path) -> pa.Table:
    with pa.OSFile(str(file)) as source:
        return pa.ipc.open_file(source).read_all()
