"""A table's own files say where it was bootstrapped from: secrets of its store do not go there."""

from __future__ import annotations

import fsspec
from fsspec.implementations.memory import MemoryFileSystem

from hudimeta.slices.bootstrap import BASE_PATH_KEY, BootstrapSource
from hudimeta.storage import open_storage


def test_another_store_gets_no_secrets() -> None:
    given: list[dict[str, object]] = []

    class Foreign(MemoryFileSystem):
        protocol = ("foreign",)

        def __init__(self, **options: object) -> None:
            given.append(options)
            super().__init__()

    fsspec.register_implementation("foreign", Foreign, clobber=True)
    options = {"hudimeta.storage.secret": "xyzzy"}
    BootstrapSource(open_storage("memory://bucket/t"), {BASE_PATH_KEY: "foreign://elsewhere/t"}, options)
    assert given == [{}]
    BootstrapSource(open_storage("foreign://here/t", options), {BASE_PATH_KEY: "foreign://elsewhere/t"}, options)
    assert given[1:] == [{"secret": "xyzzy"}] or given[1:] == [{"secret": "xyzzy"}] * 2
