"""No secret is shown: not in reprs, errors, reports and warnings, and none gets into the files of a table."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import hudimeta
from hudimeta.config import OPTIONS
from hudimeta.errors import ConfigError, HudiError, StorageError, TableNotFound
from hudimeta.redaction import hidden, is_secret, shown_options, without_user
from hudimeta.sql.parser import parse
from hudimeta.storage.fsspec_store import FsspecStorage

SECRET = "xyzzy/42+"
NAMES = [
    *("hudimeta.storage.key", "hudimeta.storage.secret", "hudimeta.storage.token", "hudimeta.storage.account_key"),
    *("hudimeta.storage.sas_token", "hudimeta.storage.connection_string", "hudimeta.storage.password", "fs.s3a.access.key"),
    *("spark.hadoop.fs.s3a.secret.key", "fs.azure.sas.container.account", "aws_access_key_id", "AWS_SECRET_ACCESS_KEY"),
    *("hoodie.meta.sync.jdbc.password", "hoodie.write.lock.aws.credentials", "fs.azure.account.key.me.dfs.core.windows.net"),
]
OPEN = [
    *("hoodie.datasource.write.recordkey.field", "hoodie.table.recordkey.fields", "key", "hoodie.table.keygenerator.class"),
    *("hudimeta.storage.endpoint_url", "hoodie.index.type", "hoodie.datasource.write.keygenerator.type", "path", "sasquatch"),
]
LOCATIONS = [
    f"s3://AKIA:{SECRET}@bucket/a/t",
    f"s3a://{SECRET.replace('/', '')}@bucket/t",
    f"https://account.blob.core.windows.net/t?sv=2024&sig={SECRET}&se=1",
    f"https://bucket.s3.amazonaws.com/t?X-Amz-Signature={SECRET}",
    f"sftp://me:{SECRET}@host:22/t",
]
SHOWN = ["xyzzy"]


def says_nothing(text: str) -> bool:
    return not any(part in text for part in SHOWN)


@pytest.mark.parametrize("name", NAMES)
def test_names_of_secrets(name: str) -> None:
    assert is_secret(name)
    for text in (f"{{'{name}': '{SECRET}', 'a': 'b'}}", f"{name}={SECRET}, a=b", f"({name!r}, {SECRET!r}), 'a': 'b'"):
        assert says_nothing(hidden(text)), text
        assert hidden(text).endswith(text[-3:])
    error = ConfigError(name, SECRET, "another")
    assert says_nothing(f"{error} {error!r} {error.value} {error.__dict__}")
    assert says_nothing(repr(shown_options({name: SECRET})))


@pytest.mark.parametrize("name", OPEN)
def test_names_that_are_none(name: str) -> None:
    assert not is_secret(name)
    assert "id, ts" in str(ConfigError(name, "id, ts", "another"))
    assert hidden(f"{name}=id") == f"{name}=id"


@pytest.mark.parametrize("location", LOCATIONS)
def test_locations(location: str) -> None:
    assert says_nothing(hidden(f"at {location!r}: no"))
    for error in (TableNotFound(location), StorageError(location, f"GET {location} failed"), HudiError("x", location)):
        assert says_nothing(f"{error} {error!r} {error.message} {pickle.loads(pickle.dumps(error))}")
    assert says_nothing(repr(FsspecStorage(MemoryFileSystem(), "bucket/t", location)))


def test_options_print_without_them() -> None:
    options = OPTIONS.read({"hudimeta.storage.secret": SECRET, "hudimeta.storage.endpoint_url": LOCATIONS[0], "path": "t"})
    assert repr(options) == (
        "Options({'hudimeta.storage.secret': '***', 'hudimeta.storage.endpoint_url': 's3://***@bucket/a/t', 'path': 't'})"
    )


def test_texts_without_secrets_stay_as_they_are() -> None:
    for text in ("s3://bucket/a=1/b@c", "/home/a@b/t", "https://host/t?x=1", "it's a 'key': 'id' and \"b\"", "a:b@c", ""):
        assert hidden(text) == text
        assert without_user(text) == text
    assert without_user(f"s3://AKIA:{SECRET}@bucket/t") == "s3://bucket/t"


def test_statements_and_tasks_print_without_them() -> None:
    statement = parse(
        f"CREATE TABLE t (id BIGINT) USING hudi OPTIONS (`hudimeta.storage.secret` = '{SECRET}') LOCATION '{LOCATIONS[0]}'"
    )
    assert says_nothing(repr(statement))
    assert "hudimeta.storage.secret" in repr(statement)


_NUMBERS = itertools.count()


@pytest.fixture
def opened() -> hudimeta.Table:
    """A table in a store that takes a user part and options."""

    class Guarded(MemoryFileSystem):
        protocol = ("guarded",)

        def __init__(self, secret: str = "", **options: Any) -> None:
            super().__init__(**options)
            assert secret == SECRET

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return str(super()._strip_protocol(f"memory://{path.rpartition('@')[2]}" if "@" in path else path))

        def info(self, path: str, **options: Any) -> dict[str, Any]:
            return {**super().info(path, **options), "ETag": "0"}

        def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
            if options.get("IfMatch", "0") != "0":
                error = OSError(22, "the file has another tag")
                error.status = 412  # type: ignore[attr-defined]
                raise error
            super().pipe_file(path, value, mode)

    fsspec.register_implementation("guarded", Guarded, clobber=True)
    options = {"hudimeta.storage.secret": SECRET, "hoodie.metadata.enable": "true"}
    location = f"guarded://AKIA:{SECRET.replace('/', '')}@bucket{next(_NUMBERS)}/t"
    return hudimeta.Table.create(
        location, pa.schema([("id", pa.int64()), ("v", pa.string())]), key="id", type="MERGE_ON_READ", options=options
    )


def test_a_table_shows_none_and_writes_none_into_its_files(opened: hudimeta.Table) -> None:
    table = opened
    shown = [repr(table.insert(pa.table({"id": [1, 2], "v": ["a", "b"]})))]
    shown.append(str(table.upsert(pa.table({"id": [2], "v": ["c"]}))))
    scan = table.scan(where="id > 0")
    scan.to_table()
    shown += [repr(table), repr(scan), str(scan.report), repr(scan.report), repr(scan.task), repr(scan.plan())]
    shown += [repr(split) for split in scan.plan().splits(2)]
    shown += [repr(table.properties), repr(table.metadata), str(table.metadata.validate())]
    shown += [repr(table.compact()), repr(table.clean()), repr(table.timeline), repr(pickle.loads(pickle.dumps(scan.task)))]
    with pytest.raises(HudiError) as caught:
        hudimeta.Table(table.path + "/nothing", options={"hudimeta.storage.secret": SECRET})
    shown.append(str(caught.value))
    for text in shown:
        assert says_nothing(text), text
    storage = table._snapshot.storage
    pending = [""]
    while pending:
        for entry in storage.list(pending.pop()):
            if entry.is_folder:
                pending.append(entry.path)
            else:
                assert b"xyzzy" not in storage.read(entry.path), entry.path


@pytest.mark.timeout(25)
@pytest.mark.parametrize("part", ["a", "a://b:"])
def test_long_texts_do_not_hang(part: str) -> None:
    """With work that grows by the square of the length, as was, this takes minutes: a damaged file may hold such a text."""
    text = part * (300_000 // len(part))
    assert says_nothing(hidden(f"{text} {LOCATIONS[0]} {LOCATIONS[2]}"))
