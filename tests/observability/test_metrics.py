"""Metrics of tables: RFC-15's eleven and Hudi's, by their names; where they go; and that they are off unless asked for."""

from __future__ import annotations

import json
import logging
import re
import shutil
import socket
import threading
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry, generate_latest

import hudimeta
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS, HudiWarning
from hudimeta.errors import ConfigError, LockTimeout
from hudimeta.metering import NO_METER, Metric, meter_of
from hudimeta.observability import REGISTRY, FigureKind, Registry
from hudimeta.observability.exporters import OpenTelemetry, PushGateway, prometheus_collector, prometheus_name
from hudimeta.observability.meters import TableMeter
from hudimeta.testing.builders import simple_rows
from tests.recorded_tables import SHARED

ON = {"hoodie.metrics.on": "true", "hoodie.metrics.lock.enable": "true"}
RFC_15 = [
    "HoodieMetadata.initialize.duration",
    "HoodieMetadata.initialize.count",
    "HoodieMetadata.sync.duration",
    "HoodieMetadata.sync.count",
    "HoodieMetadata.validate_errors.count",
    "HoodieMetadata.validate_partitions.duration",
    "HoodieMetadata.lookup_partitions.count",
    "HoodieMetadata.validate_files.duration",
    "HoodieMetadata.lookup_files.count",
    "HoodieMetadata.scan.duration",
    "HoodieMetadata.scan.count",
]


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    REGISTRY.clear()
    yield
    REGISTRY.clear()


def made(path: Path, **more: str) -> hudimeta.Table:
    kind = {"key": "id", "partition_by": "part", "type": "MERGE_ON_READ", "name": "trips", "options": {**ON, **more}}
    return hudimeta.Table.create(path, simple_rows([], 0).schema, **kind)  # type: ignore[arg-type]


def told(name: str) -> float:
    found = REGISTRY.value("trips", name)
    assert found is not None, f"{name} was not told: {[s.name for s in REGISTRY.samples()]}"
    return found


def test_the_names_are_those_of_the_rfc() -> None:
    assert [metric.value for metric in Metric if metric.value.startswith("HoodieMetadata.")] == RFC_15
    text = SHARED / "seeds" / "rfc-15-metadata-table.txt"
    if text.is_file():
        assert (
            re.findall(r"^(HoodieMetadata\.[a-z_.]+(?:duration|count))", text.read_text(encoding="utf-8"), re.MULTILINE)
            == RFC_15
        )


def test_each_of_the_eleven_is_told_when_it_happens(tmp_path: Path) -> None:
    table = made(tmp_path / "t", **{"hoodie.metadata.enable": "false"})
    table.insert(simple_rows(range(4), 1))
    assert REGISTRY.value("trips", "HoodieMetadata.sync.count") is None
    table = hudimeta.Table(tmp_path / "t", ON)
    table.upsert(simple_rows([1], 2))
    assert told("HoodieMetadata.initialize.count") == 1
    assert told("HoodieMetadata.initialize.duration") > 0
    assert told("HoodieMetadata.sync.count") == 1
    table.upsert(simple_rows([2], 3))
    assert told("HoodieMetadata.sync.count") == 2
    assert told("HoodieMetadata.sync.duration") > 0

    reader = hudimeta.Table(tmp_path / "t", ON)
    names = ("lookup_partitions", "lookup_files", "scan")
    before = {name: REGISTRY.value("trips", f"HoodieMetadata.{name}.count") or 0 for name in names}
    reader.metadata.partitions()
    reader.metadata.files()
    assert {name: told(f"HoodieMetadata.{name}.count") - before[name] for name in names} == dict.fromkeys(names, 1)
    assert told("HoodieMetadata.scan.duration") > 0

    assert REGISTRY.value("trips", "HoodieMetadata.validate_files.duration") is None
    base = next((tmp_path / "t/p0").glob("*.parquet"))
    shutil.copy(base, base.with_name("11111111-2222-3333-4444-555555555555-0" + base.name[base.name.index("_") :]))
    with pytest.warns(HudiWarning, match="on storage but not listed"):
        assert hudimeta.Table(tmp_path / "t", {**ON, "hoodie.metadata.validate": "true"}).scan().report.notes
    assert told("HoodieMetadata.validate_errors.count") == 1
    assert told("HoodieMetadata.validate_partitions.duration") > 0
    assert told("HoodieMetadata.validate_files.duration") > 0
    assert {sample.name for sample in REGISTRY.samples("trips")} >= set(RFC_15)


def test_commits_and_services_have_hudis_names_and_the_figures_of_their_reports(tmp_path: Path) -> None:
    table = made(tmp_path / "t", **{"hoodie.metadata.record.index.enable": "true", "hoodie.index.type": "RECORD_INDEX"})
    table.insert(simple_rows(range(4), 1))
    report = table.upsert(simple_rows([1, 2, 9], 2))
    action = "deltacommit"
    assert told(f"{action}.totalRecordsWritten") == report.inserted + report.updated == 3
    assert (told(f"{action}.totalUpdateRecordsWritten"), told(f"{action}.totalInsertRecordsWritten")) == (2, 1)
    assert told(f"{action}.totalBytesWritten") == report.bytes_written
    assert told(f"{action}.totalPartitionsWritten") == report.partitions
    assert told(f"{action}.duration") == pytest.approx(sum(report.seconds.values()) * 1000)
    assert told("index.lookup.duration") == pytest.approx(report.seconds["look-up"] * 1000)
    assert (told("lookup_record_index_key_count"), told("lookup_record_index_key_hit_count")) == (3, 2)
    table.compact()
    assert not table.compact(), "there is nothing to compact, and nothing is counted"
    assert told("compaction.compaction.completed.counter") == told("compaction.compaction.requested.counter") == 1
    assert told("compaction.totalBytesWritten") > 0
    table.upsert(simple_rows([1, 2], 3))
    table.compact()
    keep_one = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    assert hudimeta.Table(tmp_path / "t", {**ON, **keep_one}).clean().deleted == told("clean.numFilesDeleted") > 0
    other = made(tmp_path / "u")
    other.insert(simple_rows(range(4), 1))
    written = other.upsert(simple_rows([3], 4))
    assert other.rollback(written.instant).deleted == told("rollback.numFilesDeleted") > 0
    assert told("lock.acquire.attempts") == told("lock.acquire.success") > 0
    assert told("lock.acquire.duration") > 0
    assert told("conflict_resolution.success.counter") > 0


def test_a_lock_that_is_not_had(tmp_path: Path) -> None:
    table = made(
        tmp_path / "t", **{"hoodie.write.lock.wait_time_ms": "1", "hoodie.write.num.retries.on.conflict.failures": "0"}
    )
    table.insert(simple_rows(range(4), 1))

    options = OPTIONS.read({**ON, "hoodie.write.lock.wait_time_ms": "1"})
    session = WriteSession(table._snapshot.storage, options)
    failed = REGISTRY.value("trips", "lock.acquire.failure") or 0
    other = WriteSession(table._snapshot.storage.inner, options)
    with other.lock.held(), pytest.raises(LockTimeout), session.lock.held():
        raise AssertionError("two writers have the lock")
    assert told("lock.acquire.failure") == failed + 1


def test_nothing_is_told_unless_it_is_asked_for(tmp_path: Path) -> None:
    table = hudimeta.Table.create(tmp_path / "t", simple_rows([], 0).schema, key="id")
    table.insert(simple_rows([1], 1))
    assert meter_of(table._snapshot.storage) is NO_METER
    assert REGISTRY.samples() == []
    quiet = hudimeta.Table(tmp_path / "t", {"hoodie.metrics.on": "true", "hoodie.metrics.reporter.metricsname.prefix": "mine"})
    quiet.insert(simple_rows([2], 2))
    assert {sample.table for sample in REGISTRY.samples()} == {"mine"}
    assert not [sample for sample in REGISTRY.samples() if sample.name.startswith("lock.")]


def test_prometheus_is_told_when_it_asks(tmp_path: Path) -> None:
    made(tmp_path / "t").insert(simple_rows([1], 1))
    collected = CollectorRegistry()
    collected.register(prometheus_collector(REGISTRY))
    text = generate_latest(collected).decode()
    assert 'HoodieMetadata_sync_count_total{table="trips"} 1.0' in text
    assert 'deltacommit_totalInsertRecordsWritten{table="trips"} 1.0' in text
    assert prometheus_name("HoodieMetadata.scan.count") == "HoodieMetadata_scan_count"


def test_prometheus_asks_at_a_port(tmp_path: Path) -> None:
    from urllib.request import urlopen

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    more = {"hoodie.metrics.reporter.type": "prometheus", "hoodie.metrics.prometheus.port": str(port)}
    made(tmp_path / "t", **more).insert(simple_rows([1], 1))
    with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        assert b'HoodieMetadata_sync_count_total{table="trips"} 1.0' in answer.read()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        more["hoodie.metrics.prometheus.port"] = str(taken.getsockname()[1])
        with pytest.warns(HudiWarning, match="cannot ask for metrics at the port"):
            assert hudimeta.Table(tmp_path / "t", {**ON, **more}).scan().count() == 1


def test_a_push_gateway_that_is_away_fails_no_write(tmp_path: Path) -> None:
    pushed: list[str] = []

    def push(address: str, job: str, registry: CollectorRegistry) -> None:
        pushed.append(f"{address} {job} {len(generate_latest(registry))}")
        if len(pushed) > 1:
            raise urllib.error.URLError("nobody there")

    registry = Registry()
    registry.set("trips", "deltacommit.duration", 5)
    gateway = PushGateway("gate:9091", "hudimeta-trips", registry, push=push)
    gateway.show(registry, "trips")
    with pytest.warns(HudiWarning, match=r"cannot be pushed to gate:9091: .*nobody there"):
        gateway.show(registry, "trips")
    assert pushed[0].startswith("gate:9091 hudimeta-trips ")
    more = {"hoodie.metrics.reporter.type": "PROMETHEUS_PUSHGATEWAY", "hoodie.metrics.pushgateway.port": "1"}
    more["hoodie.metrics.pushgateway.delete.on.shutdown"] = "false"
    with pytest.warns(HudiWarning, match="cannot be pushed to localhost:1"):
        report = made(tmp_path / "t", **more).insert(simple_rows([1], 1))
    assert report.inserted == 1


def answers_as_another_service(listening: socket.socket) -> None:
    connection, _ = listening.accept()
    with connection:
        while connection.recv(1 << 16)[-1:] != b"\n":
            continue
        connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")


def test_what_cannot_be_told_fails_no_write(tmp_path: Path) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        answering = threading.Thread(target=answers_as_another_service, args=(listening,))
        answering.start()
        gateway = "hoodie.metrics.pushgateway"
        push = {"hoodie.metrics.reporter.type": "PROMETHEUS_PUSHGATEWAY", f"{gateway}.delete.on.shutdown": "false"}
        ways = {
            "cannot be pushed to 127": {
                **push,
                f"{gateway}.host": "127.0.0.1",
                f"{gateway}.port": str(listening.getsockname()[1]),
            },
            "cannot be pushed to my host": {**push, f"{gateway}.host": "my host"},
            "cannot be appended to": {"hoodie.metrics.reporter.type": "JSON_LINES", "hudimeta.metrics.file": "/no/folder"},
            "at the port 99999": {"hoodie.metrics.reporter.type": "PROMETHEUS", "hoodie.metrics.prometheus.port": "99999"},
        }
        for number, (told_so, options) in enumerate(ways.items()):
            with pytest.warns(HudiWarning, match=told_so):
                assert made(tmp_path / str(number), **options).insert(simple_rows([1], 1)).inserted == 1
        answering.join()


class FailsAtAll:
    def show(self, registry: Registry, table: str) -> None:
        raise RuntimeError(f"no {table}")


def test_a_library_that_fails_fails_no_write(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.snapshot().storage.log.meter = TableMeter(REGISTRY, "trips", exporters=[FailsAtAll()])
    with pytest.warns(HudiWarning, match="FailsAtAll does not show metrics of trips: RuntimeError: no trips"):
        assert table.insert(simple_rows([1], 1)).inserted == 1


def test_open_telemetry_has_the_same_names() -> None:
    registry, reader = Registry(), InMemoryMetricReader()
    exporter = OpenTelemetry(registry, MeterProvider([reader]).get_meter("hudimeta"))
    registry.add("trips", "HoodieMetadata.sync.count", 2)
    exporter.show(registry, "trips")
    registry.set("trips", "deltacommit.duration", 7)
    exporter.show(registry, "trips")
    registry.add("trips", "HoodieMetadata.sync.count", 1)
    data = reader.get_metrics_data()
    assert data is not None
    metrics = {m.name: m.data.data_points[0] for m in data.resource_metrics[0].scope_metrics[0].metrics}
    known = {name: point.value for name, point in metrics.items()}
    assert known == {"hoodiemetadata.sync.count": 3, "deltacommit.duration": 7}, "OpenTelemetry's names are in lower case"
    assert dict(metrics["deltacommit.duration"].attributes or {}) == {"table": "trips"}


def test_json_lines_and_logging(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "metrics.jsonl"
    table = made(tmp_path / "t", **{"hoodie.metrics.reporter.type": "JSON_LINES", "hudimeta.metrics.file": str(file)})
    table.insert(simple_rows([1, 2], 1))
    table.insert(simple_rows([3], 1))
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [line["metrics"]["deltacommit.totalInsertRecordsWritten"] for line in lines] == [2, 1]
    assert {line["table"] for line in lines} == {"trips"}
    with pytest.raises(ConfigError, match=r"hudimeta\.metrics\.file"):
        hudimeta.Table(tmp_path / "t", {**ON, "hoodie.metrics.reporter.type": "JSON_LINES"})
    with caplog.at_level(logging.INFO, "hudimeta.metrics"):
        hudimeta.Table(tmp_path / "t", {**ON, "hoodie.metrics.reporter.type": "SLF4J"}).insert(simple_rows([4], 1))
    assert "HoodieMetadata.sync.count=" in caplog.text


def test_figures_are_counters_or_gauges() -> None:
    registry = Registry()
    registry.add("b", "x", 1)
    registry.add("b", "x", 2)
    registry.set("a", "y", 5)
    registry.set("a", "y", 4)
    assert [(s.table, s.name, s.kind, s.value) for s in registry.samples()] == [
        ("a", "y", FigureKind.GAUGE, 4.0),
        ("b", "x", FigureKind.COUNTER, 3.0),
    ]
    assert registry.value("a", "x") is None
