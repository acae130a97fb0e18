"""Servers of Google's and Azure's protocols for one command: `python -m tests.storage.cloud_servers COMMAND [ARGUMENT ...]`.

Azurite comes from npm's index and fake-gcs-server is built by go, so both programs must be on the path.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.concurrency.servers import free_port, running, wait_for

_AZURITE, _GOOGLE = "azurite@3.37.0", "github.com/fsouza/fake-gcs-server@v1.56.1"
_STARTS_WITHIN_S = 600.0
"""Their first start fetches and builds them."""
_ACCOUNT = "AccountName=devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Azurite's own, which everybody knows."""


@contextlib.contextmanager
def _google(folder: Path) -> Iterator[str]:
    port = free_port()
    where = f"127.0.0.1:{port}"
    options = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory", "-public-host", where]
    log = folder / "google.log"
    with running(["go", "run", _GOOGLE, *options], log) as server:
        wait_for(f"http://{where}/storage/v1/b", server, log, _STARTS_WITHIN_S)
        yield f"http://{where}"


@contextlib.contextmanager
def _azure(folder: Path) -> Iterator[str]:
    port = free_port()
    options = ["--inMemoryPersistence", "--silent", "--disableTelemetry", "--skipApiVersionCheck", "--blobPort", str(port)]
    command = ["npx", "--yes", "--package", _AZURITE, "azurite-blob", *options]
    url, log = f"http://127.0.0.1:{port}/devstoreaccount1", folder / "azure.log"
    with running(command, log) as server:
        wait_for(url, server, log, _STARTS_WITHIN_S)
        yield f"DefaultEndpointsProtocol=http;{_ACCOUNT};AccountKey={_KEY};BlobEndpoint={url};"


def main(command: list[str]) -> int:
    """Run the command while both servers run; its exit code."""
    missing = [name for name in ("go", "npx") if shutil.which(name) is None]
    if missing:
        sys.exit(f"error: {' and '.join(missing)} not found: install Go and Node.js, which bring the servers")
    with tempfile.TemporaryDirectory() as home, _google(Path(home)) as google, _azure(Path(home)) as azure:
        variables = {**os.environ, "HUDIMETA_TEST_GOOGLE": google, "HUDIMETA_TEST_AZURE": azure}
        return subprocess.run(command, env=variables, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
