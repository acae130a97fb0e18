"""Two writers in two processes over S3, whose requests fail before or after their effect and whose lists come late: nothing is
lost or doubled.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import boto3
import pytest

from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.errors import CommitOutcomeUnknown, HudiError
from hudimeta.read.scan import Scan
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import Storage
from hudimeta.testing.builders import SIMPLE_OPTIONS, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.creation import create_table
from hudimeta.write.table_writer import write_rows
from tests.concurrency.s3 import BUCKET, Faults, s3_storage
from tests.concurrency.servers import aws_server
from tests.concurrency.side_by_side import together
from tests.concurrency.stopped import quiet

WRITERS = 2
TURNS = int(os.environ.get("HUDIMETA_S3_TURNS", "3"))
SEED = int(os.environ.get("HUDIMETA_S3_SEED", "11"))
SHARE = float(os.environ.get("HUDIMETA_S3_SHARE", "0.02"))
"""Of the requests that fail: some in each write."""
STALE = 0.1
"""Of the lists that lack what was put last."""
OPTIONS_OF_WRITERS = OPTIONS.read(
    {
        **SIMPLE_OPTIONS,
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.metadata.record.index.min.filegroup.count": "1",
        "hoodie.write.num.retries.on.conflict.failures": "10",
        "hoodie.write.lock.storage.validity.timeout.secs": "6",
        "hoodie.write.lock.storage.renew.interval.secs": "2",
    }
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with aws_server(tmp_path_factory.mktemp("aws")) as url:
        keys = {"aws_access_key_id": "x", "aws_secret_access_key": "y"}
        boto3.client("s3", endpoint_url=url, region_name="us-east-1", **keys).create_bucket(Bucket=BUCKET)
        yield url


def calm(url: str) -> Storage:
    return s3_storage(url, "t", Faults(0, 0))


def writer(url: str, number: int, told: Path) -> Callable[[], None]:
    """Writes a few times, and writes down what it was told."""

    def run() -> None:
        faults = Faults(SEED + number, SHARE, repeats=2 * number, stale=STALE)
        storage = s3_storage(url, "t", faults)
        outcome: dict[str, list[int]] = {"done": [], "refused": [], "unknown": []}
        for turn in range(TURNS):
            key = 1000 * (number + 1) + turn
            try:
                with quiet():
                    write_rows(WriteSession(storage, OPTIONS_OF_WRITERS), Operation.UPSERT, simple_rows([key, turn], 10 + key))
                outcome["done"].append(key)
            except CommitOutcomeUnknown:
                outcome["unknown"].append(key)
            except HudiError:
                outcome["refused"].append(key)
        told.write_text(json.dumps({**outcome, "requests": len(storage.log), "struck": faults.struck}))

    return run


def test_nothing_is_lost(server: str, tmp_path: Path) -> None:
    create_table(calm(server), simple_rows([], 0).schema, OPTIONS_OF_WRITERS)
    files = [tmp_path / f"{number}.json" for number in range(WRITERS)]
    assert together([writer(server, number, file) for number, file in enumerate(files)]) == [0] * WRITERS
    told = [json.loads(file.read_text()) for file in files]
    storage = calm(server)
    for beat in storage.list(".hoodie/.heartbeat"):
        storage.delete(beat.path)  # both processes are gone
    WriteSession(storage, OPTIONS_OF_WRITERS).coordinator.recover()
    rows = Scan(Snapshot.open(s3_storage(server, "t", Faults(0, 0)), OPTIONS.read({}))).to_table()
    keys = Counter(int(key[1:]) for key in rows["id"].to_pylist())
    assert set(keys.values()) <= {1}, "a key is doubled"
    done, unknown = ({key for one in told for key in one[what]} for what in ("done", "unknown"))
    written = {key for key in keys if key >= 1000}
    assert done <= written <= done | unknown
    check_all(storage)
    struck = sum((Counter(one["struck"]) for one in told), Counter())
    assert sum(count for kind, count in struck.items() if kind), "no request failed"
    assert done, "nobody wrote anything"
    print(f"{len(done)} writes done, {sum(len(one['refused']) for one in told)} refused, {len(unknown)} unknown; "
          f"{sum(one['requests'] for one in told)} requests, {dict(struck)}")  # fmt: skip
