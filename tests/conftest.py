"""What all tests share: recorded tables, one Spark session, reproducible property tests."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from pytest_spark.config import SparkConfigBuilder
from pytest_spark.fixtures import _spark_session

from tests.elsewhere import of_other_verbs
from tests.examples import FEW
from tests.memory import keep_tables_in_memory
from tests.order import in_order, title_of_order
from tests.recorded_tables import CONFORMANCE, RICH, SHARED, TableSet
from tests.rotation import is_of_everything, slow_tests, title_of_turn, waiting
from tests.thorough import is_thorough

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Unpack", "_spark_session", "conformance_table", "recorded_table", "rich_table", "shared", "spark"]
"""The session is a fixture of pytest-spark, which is not loaded itself: for the head of every run it would import PySpark."""

Unpack = Callable[..., Path]

slow_machine = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True, suppress_health_check=slow_machine)
settings.register_profile("search", deadline=None, max_examples=2000, print_blob=True, suppress_health_check=slow_machine)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=FEW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))  # "search" looks with fresh randomness, for longer

keep_tables_in_memory()

JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
"""No query is asked often enough to pay for the second compiler, and code that was thrown out would be compiled again."""
WORKERS = Path(__file__).with_name("spark") / "workers"
"""On the path of Spark's Python processes; see `sitecustomize.py` there."""
MARKER_OF_FIXTURE = {"spark": "spark", "shared": "shared", "conformance_table": "shared"}


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker that tests get by their place."""
    config.addinivalue_line(
        "markers", "thorough: looks for what is rare, and takes its time (set by itself: tests/thorough.py)"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test by its place and by what its fixtures need, so that `-m "not spark"` holds without anybody remembering.

    Leave out those of other verbs, those of large sets that do not have their turn, unless somebody asks for tests by name, and
    slow ones unless somebody asks for files; and shuffle, before pytest puts tests of one parameter of a fixture side by side.
    """
    for item in items:
        for fixture in getattr(item, "fixturenames", ()):
            if fixture in MARKER_OF_FIXTURE:
                item.add_marker(MARKER_OF_FIXTURE[fixture])
        if "interop" in item.path.parent.parts:
            item.add_marker("interop")
        if is_thorough(item):
            item.add_marker("thorough")
        if item.get_closest_marker("spark") and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group("spark"))  # one session for the whole run, in one of its processes
    by_name = config.option.keyword or any("::" in argument for argument in config.args)
    slow = slow_tests() if is_of_everything(config.args) else None
    left = [*of_other_verbs(items), *([] if by_name else waiting(items, slow))]
    if left:
        others = set(left)
        items[:] = [item for item in items if item not in others]
        config.hook.pytest_deselected(items=list(others))
    items[:] = in_order(items)


def pytest_collection_finish() -> None:
    """Modules and collected tests stay until the end: no search for garbage need look at them."""
    gc.collect()
    gc.freeze()


def pytest_report_header() -> list[str]:
    """Say up front whether the recorded tables take part, whose turn it is, and in which order."""
    tables = str(SHARED) if SHARED.is_dir() else f"none at {SHARED}, their tests are skipped"
    return [f"recorded tables: {tables}", title_of_turn(), title_of_order()]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded tables. Read only: copy what a test changes."""
    if not SHARED.is_dir():
        pytest.skip(f"the recorded tables are not at {SHARED}")
    return SHARED


@pytest.fixture(scope="session")
def conformance_table(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Unpack:
    """`conformance_table(name)` is the path of an unpacked table, shared by all tests; `fresh=True` gives one's own copy."""
    return _unpacker(CONFORMANCE, tmp_path_factory.mktemp("conformance"))


@pytest.fixture(scope="session")
def rich_table(tmp_path_factory: pytest.TempPathFactory) -> Unpack:
    """As `conformance_table`, over the project's own set (late events, evolution, indexes, pending instants …)."""
    return _unpacker(RICH, tmp_path_factory.mktemp("rich"))


@pytest.fixture(scope="session")
def recorded_table(request: pytest.FixtureRequest, rich_table: Unpack) -> Unpack:
    """A table of either set, by its name; the set beside the project is asked only for its own."""

    def unpack(name: str, fresh: bool = False) -> Path:
        if RICH.archive(name) is not None:
            return rich_table(name, fresh)
        beside: Unpack = request.getfixturevalue("conformance_table")
        return beside(name, fresh)

    return unpack


def _unpacker(tables: TableSet, home: Path) -> Unpack:
    unpacked: dict[str, Path] = {}
    files: dict[str, frozenset[tuple[str, int]]] = {}
    number = itertools.count()

    def unpack(name: str, fresh: bool = False) -> Path:
        if name not in unpacked:
            unpacked[name] = tables.unpack(name, home / name)
            files[name] = _files_of(unpacked[name])
        assert _files_of(unpacked[name]) == files[name], f"an earlier test changed {name}: it must ask for a fresh one"
        if fresh:  # a copy takes a third of the time
            return shutil.copytree(unpacked[name], home / f"fresh{next(number)}" / unpacked[name].name, symlinks=True)
        return unpacked[name]

    return unpack


def _files_of(table: Path) -> frozenset[tuple[str, int]]:
    """Names and sizes, without what reads note."""
    found = (file for file in table.rglob("*") if ".aux" not in file.parts and file.is_file())
    return frozenset((str(file), file.stat().st_size) for file in found)


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """One small Spark session for the whole run, that of pytest-spark: a session costs seconds, a JVM hundreds of megabytes.

    `HUDIMETA_TEST_REMOTE=local[2]` makes it a session of Spark Connect, whose server is another process.
    """
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        pytest.fail("Spark's tests need a Java runtime: run them through `make test`, or export JAVA_HOME")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(WORKERS), os.environ.get("PYTHONPATH"))))
    from tests.spark.connect_port import ANY_FREE_PORT, ask_the_server_for_its_port

    home, remote = tmp_path_factory.mktemp("spark"), os.environ.get("HUDIMETA_TEST_REMOTE")
    options = {
        "spark.app.name": "hudimeta tests",
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"{JVM} -Duser.timezone=UTC",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.shuffle.partitions": "4",
        "spark.default.parallelism": "2",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.local.dir": str(home / "scratch"),
        # Of a classic session's tasks each may fail once.
        **(ANY_FREE_PORT if remote else {"spark.master": "local[2,2]"}),
    }
    if remote:
        ask_the_server_for_its_port()
    SparkConfigBuilder.initialize([f"{key}: {value}" for key, value in options.items()], remote)
    session: SparkSession = request.getfixturevalue("_spark_session")
    if not remote:
        session.sparkContext.setLogLevel("ERROR")
    return session
