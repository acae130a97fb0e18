"""Servers for tests, each in a process of its own: ZooKeeper as it comes with Debian, else with Spark's jars; moto's Amazon.

A server that runs already is used: `HUDIMETA_TEST_ZOOKEEPER=host:port`, `HUDIMETA_TEST_AWS=http://host:port`, as `make servers`
prints them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

__all__ = ["AWS", "ZOOKEEPER", "aws_server", "free_port", "running", "wait_for", "zookeeper_server"]

ZOOKEEPER, AWS = "HUDIMETA_TEST_ZOOKEEPER", "HUDIMETA_TEST_AWS"

_STARTS_WITHIN_S = 60.0
_DEBIANS_JARS = Path("/usr/share/java")
_NEEDED_JARS = ("zookeeper", "zookeeper-jute", "netty-all", "slf4j-api", "slf4j-nop", "metrics-core", "snappy-java")
_PACKAGE = "libzookeeper-java"


@contextlib.contextmanager
def zookeeper_server(folder: Path, longest_session_ms: int = 4_000) -> Iterator[str]:
    """`host:port` of a server: the one that runs, else one that keeps its data in a folder.

    Args:
        folder: For its data.
        longest_session_ms: What it grants at most: a client that is silent for longer, on a busy machine too, loses its locks.
    """
    from kazoo.client import KazooClient

    if ZOOKEEPER in os.environ:
        yield os.environ[ZOOKEEPER]
        return
    java = shutil.which("java")
    assert java, "no java on the path"
    port = free_port()
    settings = folder / "zoo.cfg"
    settings.write_text(
        f"clientPort={port}\nclientPortAddress=127.0.0.1\ndataDir={folder}\nadmin.enableServer=false\n"
        f"tickTime=200\nminSessionTimeout=400\nmaxSessionTimeout={longest_session_ms}\n"
    )
    command = [java, "-Xmx128m", "-cp", _jars(), "org.apache.zookeeper.server.ZooKeeperServerMain", str(settings)]
    with running(command, folder / "log"):
        client = KazooClient(f"127.0.0.1:{port}", connection_retry={"max_tries": -1, "delay": 0.1, "max_delay": 0.5})
        client.start(_STARTS_WITHIN_S)
        client.stop()
        client.close()
        yield f"127.0.0.1:{port}"


def _jars() -> str:
    """Debian's package where it is installed, else Spark's."""
    debians = [_DEBIANS_JARS / f"{name}.jar" for name in _NEEDED_JARS]
    if all(jar.exists() for jar in debians):
        return ":".join(map(str, debians))
    import pyspark

    return f"{Path(pyspark.__file__).parent / 'jars'}/*"


def _install_debians() -> None:
    """Where that can be done without asking anybody; else Spark's jars serve."""
    if hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", _PACKAGE]):
            subprocess.run(["apt-get", *command], env=quiet, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)


@contextlib.contextmanager
def aws_server(folder: Path) -> Iterator[str]:
    """URL of moto's server, which answers for DynamoDB, S3 and the others: the one that runs, else one of one's own."""
    if AWS in os.environ:
        yield os.environ[AWS]
        return
    port = free_port()
    python = os.environ.get("HUDIMETA_PROJECT_PYTHON", sys.executable)
    command = [python, str(Path(__file__).with_name("amazon.py")), str(port)]
    with running(command, folder / "log") as server:
        url = f"http://127.0.0.1:{port}"
        wait_for(f"{url}/moto-api/", server, folder / "log")
        yield url


def wait_for(url: str, server: subprocess.Popen[bytes], log: Path, within_s: float = _STARTS_WITHIN_S) -> None:
    """Return as soon as a server answers at a URL, whatever it says.

    Args:
        url: Where it is asked.
        server: Its process; when that ends there will be no answer.
        log: What it prints.
        within_s: Seconds until it should.
    """
    until = time.monotonic() + within_s
    while not _answers(url):
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(0.1)
        told = log.read_text(errors="replace")[-2000:]
        assert server.poll() is None, f"the server for {url} ended: {told}"
        assert time.monotonic() < until, f"no answer at {url}: {told}"


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


@contextlib.contextmanager
def running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program, with those that it starts, until the end of the block; the file gets what it prints."""
    with log.open("wb") as written:
        server = subprocess.Popen(command, stdout=written, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        yield server
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _serve(folder: Path) -> None:
    """Run both until interrupted, and print how tests find them."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for name in ("zookeeper", "aws"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    with zookeeper_server(folder / "zookeeper") as zookeeper, aws_server(folder / "aws") as aws:
        print(f"export {ZOOKEEPER}={zookeeper}\nexport {AWS}={aws}", flush=True)
        print("# running; stop with control-C", file=sys.stderr)
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                time.sleep(3600)


if __name__ == "__main__":
    _install_debians()
    with tempfile.TemporaryDirectory() as home:
        _serve(Path(home))
