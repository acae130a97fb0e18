"""Object stores whose real clients tests use: S3 of moto, and those of Google and Azure where their servers run.

`make stores` runs S3 alone. `HUDIMETA_TEST_GOOGLE=http://host:port` names a fake-gcs-server, `HUDIMETA_TEST_AZURE` the
connection string of an Azurite; `make stores-full` starts both.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hudimeta.storage import Storage, open_storage
from tests.concurrency.servers import aws_server

__all__ = ["STORES", "RealStore", "real_store"]

_GOOGLE, _AZURE = os.environ.get("HUDIMETA_TEST_GOOGLE"), os.environ.get("HUDIMETA_TEST_AZURE")
_NUMBERS = itertools.count()


@dataclass(frozen=True)
class RealStore:
    """A bucket of a store, with the options that a table there is opened with."""

    bucket: str
    options: Mapping[str, str]

    def new_table(self) -> str:
        """The URI of a folder that nobody has used."""
        return f"{self.bucket}/t{next(_NUMBERS)}"

    def open(self, uri: str) -> Storage:
        """As a table opens it."""
        return open_storage(uri, self.options)


def _options(given: Mapping[str, str]) -> dict[str, str]:
    return {f"hudimeta.storage.{key}": value for key, value in given.items()}


def _with_bucket(protocol: str, scheme: str, given: Mapping[str, Any]) -> RealStore:
    import fsspec

    name = f"lake-{uuid.uuid4().hex[:12]}"
    fsspec.filesystem(protocol, skip_instance_cache=True, **given).mkdir(name)
    return RealStore(f"{scheme}://{name}", _options(given))


@contextlib.contextmanager
def _amazon(folder: Path) -> Iterator[RealStore]:
    with aws_server(folder) as url:
        yield _with_bucket("s3", "s3", {"endpoint_url": url, "key": "x", "secret": "y"})


@contextlib.contextmanager
def _google(folder: Path) -> Iterator[RealStore]:
    # Else gcsfs asks Google's control plane what kind of bucket it is, which that server has not.
    os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"
    yield _with_bucket("gcs", "gs", {"endpoint_url": _GOOGLE, "token": "anon", "project": "tests"})


@contextlib.contextmanager
def _azure(folder: Path) -> Iterator[RealStore]:
    yield _with_bucket("abfs", "abfs", {"connection_string": _AZURE})


_SERVED: Mapping[str, Callable[[Path], contextlib.AbstractContextManager[RealStore]]] = {
    "amazon": _amazon,
    **({"google": _google} if _GOOGLE else {}),
    **({"azure": _azure} if _AZURE else {}),
}
STORES = tuple(_SERVED)
"""Names of the stores that this run can reach."""


def real_store(name: str, folder: Path) -> contextlib.AbstractContextManager[RealStore]:
    """A new bucket of one of `STORES`; what its server keeps and prints is in the folder."""
    return _SERVED[name](folder)
