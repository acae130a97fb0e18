"""A ZooKeeper server for tests: the one that comes with Spark's jars, in a process of its own."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyspark
from kazoo.client import KazooClient

__all__ = ["zookeeper_server"]

_STARTS_WITHIN_S = 60.0


@contextlib.contextmanager
def zookeeper_server(folder: Path) -> Iterator[str]:
    """A server that keeps its data in a folder; `host:port` of it."""
    java = shutil.which("java")
    assert java, "no java on the path"
    jars = Path(pyspark.__file__).parent / "jars"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = folder / "zoo.cfg"
    settings.write_text(
        f"clientPort={port}\nclientPortAddress=127.0.0.1\ndataDir={folder}\ntickTime=200\nminSessionTimeout=400\nadmin.enableServer=false\n"
    )
    command = [java, "-Xmx128m", "-cp", f"{jars}/*", "org.apache.zookeeper.server.ZooKeeperServerMain", str(settings)]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        client = KazooClient(f"127.0.0.1:{port}", connection_retry={"max_tries": -1, "delay": 0.1, "max_delay": 0.5})
        client.start(_STARTS_WITHIN_S)
        client.stop()
        client.close()
        yield f"127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()
