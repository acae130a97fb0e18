"""Where figures go. What pulls (Prometheus, OpenTelemetry) is begun once a process; what is pushed is shown each report.

Exporters never fail a write: what a gateway or a file refuses is a warning.
"""

from __future__ import annotations

import json
import logging
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from hudimeta.config import HudiWarning
from hudimeta.config.options import (
    METRICS_FILE,
    METRICS_REPORTER,
    PROMETHEUS_PORT,
    PUSHGATEWAY_DELETE,
    PUSHGATEWAY_HOST,
    PUSHGATEWAY_JOB,
    PUSHGATEWAY_PORT,
)
from hudimeta.engine.machine import now_ms
from hudimeta.errors import ConfigError, MissingLibrary
from hudimeta.forking import FreeWhenForked
from hudimeta.observability.registry import FigureKind, Registry, Sample

if TYPE_CHECKING:
    from hudimeta.config import Options

__all__ = [
    "Exporter",
    "JsonLines",
    "Logging",
    "OpenTelemetry",
    "PushGateway",
    "exporters_for",
    "prometheus_collector",
    "prometheus_name",
]

LOGGER = logging.getLogger("hudimeta.metrics")


class Exporter(Protocol):
    """Is shown the figures after each report."""

    def show(self, registry: Registry, table: str) -> None:
        """Show them.

        Args:
            registry: All figures.
            table: Whose report came.
        """


def exporters_for(options: Options, table: str, registry: Registry) -> list[Exporter]:
    """The exporters that options ask for; what is asked by others is begun.

    Raises:
        ConfigError: JSON lines without a file.
        MissingLibrary: What the exporter needs is not installed.
    """
    kind = options.get(METRICS_REPORTER)
    if kind == "PROMETHEUS":
        try:
            _serve(options.get(PROMETHEUS_PORT), registry)
        except (OSError, OverflowError) as error:  # the latter for a number that no port has
            _tell(f"Prometheus cannot ask for metrics at the port {options.get(PROMETHEUS_PORT)}: {error}")
    elif kind == "PROMETHEUS_PUSHGATEWAY":
        job = options.get(PUSHGATEWAY_JOB) or f"hudimeta-{table}"
        address = f"{options.get(PUSHGATEWAY_HOST)}:{options.get(PUSHGATEWAY_PORT)}"
        return [PushGateway(address, job, registry, options.get(PUSHGATEWAY_DELETE))]
    elif kind == "SLF4J":
        return [Logging()]
    elif kind == "OPENTELEMETRY":
        return [_open_telemetry(registry)]
    elif kind == "JSON_LINES":
        path = options.get(METRICS_FILE)
        if path is None:
            raise ConfigError(METRICS_FILE.key, None, "a file", "JSON_LINES appends to the file that this option names.")
        return [JsonLines(path)]
    return []


class Logging:
    """One line a report, to the logger `hudimeta.metrics`."""

    def show(self, registry: Registry, table: str) -> None:
        """See `Exporter.show`."""
        if LOGGER.isEnabledFor(logging.INFO):
            LOGGER.info("%s %s", table, " ".join(f"{s.name}={s.value:g}" for s in registry.samples(table)))


class JsonLines:
    """One line of JSON a report, appended to a file of this machine.

    Args:
        path: The file.
    """

    _lock = FreeWhenForked()

    def __init__(self, path: str) -> None:
        self._path = path

    def show(self, registry: Registry, table: str) -> None:
        """See `Exporter.show`."""
        figures = {sample.name: sample.value for sample in registry.samples(table)}
        line = json.dumps({"time_ms": now_ms(), "table": table, "metrics": figures})
        try:
            with self._lock, open(self._path, "a", encoding="utf-8") as file:
                file.write(f"{line}\n")
        except (OSError, ValueError) as error:  # the latter for a name that no file has
            _tell(f"metrics cannot be appended to {self._path!r}: {error}")


# Prometheus


def prometheus_name(name: str) -> str:
    """A name as Prometheus takes it; Hudi's exporter does the same."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", name)


def prometheus_collector(registry: Registry) -> Any:
    """What `prometheus_client.CollectorRegistry.register` takes: asked for figures, it gives those of now.

    >>> prometheus_client.REGISTRY.register(prometheus_collector(REGISTRY))    # doctest: +SKIP

    Args:
        registry: Whose figures.

    Raises:
        MissingLibrary: prometheus_client is not installed.
    """
    core = _library("prometheus_client.core", "prometheus_client")

    class Collector:
        def describe(self) -> Iterable[Any]:
            return []

        def collect(self) -> Iterator[Any]:
            by_name: dict[str, list[Sample]] = {}
            for sample in registry.samples():
                by_name.setdefault(sample.name, []).append(sample)
            for name, samples in by_name.items():
                kind = core.CounterMetricFamily if samples[0].kind is FigureKind.COUNTER else core.GaugeMetricFamily
                family = kind(prometheus_name(name), name, labels=["table"])
                for sample in samples:
                    family.add_metric([sample.table], sample.value)
                yield family

    return Collector()


@cache
def _serve(port: int, registry: Registry) -> None:
    """Answer Prometheus at a port, once a process."""
    client = _library("prometheus_client", "prometheus_client")
    collected = client.CollectorRegistry()
    collected.register(prometheus_collector(registry))
    client.start_http_server(port, registry=collected)


class PushGateway:
    """Pushes all figures to a gateway.

    Args:
        address: `host:port`.
        job: Under which the gateway keeps them.
        registry: Whose figures.
        forget: Delete the job there when the process ends.
        push: Pushes `(address, job, registry)`; that of prometheus_client when None.
    """

    def __init__(
        self, address: str, job: str, registry: Registry, forget: bool = False, push: Callable[..., None] | None = None
    ) -> None:
        client = _library("prometheus_client", "prometheus_client")
        self._address, self._job = address, job
        self._collected = client.CollectorRegistry()
        self._collected.register(prometheus_collector(registry))
        self._push: Callable[..., None] = push or client.push_to_gateway
        if forget:
            _forget_at_exit(address, job)

    def show(self, registry: Registry, table: str) -> None:
        """See `Exporter.show`."""
        from http.client import HTTPException

        try:
            self._push(self._address, job=self._job, registry=self._collected)
        except (OSError, HTTPException) as error:  # no gateway there, or something else that answers
            _tell(f"metrics cannot be pushed to {self._address}: {error}")


@cache
def _forget_at_exit(address: str, job: str) -> None:
    import atexit
    from http.client import HTTPException

    client = _library("prometheus_client", "prometheus_client")

    def forget() -> None:
        try:
            client.delete_from_gateway(address, job=job)
        except (OSError, HTTPException) as error:
            LOGGER.warning("the job %s stays at %s: %s", job, address, error)

    atexit.register(forget)


# OpenTelemetry


@cache
def _open_telemetry(registry: Registry) -> OpenTelemetry:
    return OpenTelemetry(registry)


class OpenTelemetry:
    """Observable instruments by the same names, made when a name first appears; the SDK's readers ask for the figures.

    Args:
        registry: Whose figures.
        meter: OpenTelemetry's; that of the process's provider when None.
    """

    def __init__(self, registry: Registry, meter: Any = None) -> None:
        api = _library("opentelemetry.metrics", "opentelemetry-sdk")
        self._observation: Callable[[float, Mapping[str, str]], Any] = api.Observation
        self._meter = meter if meter is not None else api.get_meter("hudimeta")
        self._known: set[str] = set()
        self._lock = FreeWhenForked()
        self._registry = registry

    def show(self, registry: Registry, table: str) -> None:
        """See `Exporter.show`."""
        with self._lock:
            for sample in registry.samples():
                if sample.name not in self._known:
                    self._known.add(sample.name)
                    self._instrument(sample)

    def _instrument(self, sample: Sample) -> None:
        counter = sample.kind is FigureKind.COUNTER
        make = self._meter.create_observable_counter if counter else self._meter.create_observable_gauge

        def now(_: object) -> list[Any]:
            found = (s for s in self._registry.samples() if s.name == sample.name)
            return [self._observation(s.value, {"table": s.table}) for s in found]

        make(sample.name, callbacks=[now])


def _library(module: str, name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingLibrary(name) from error


def _tell(text: str) -> None:
    warnings.warn(text, HudiWarning, stacklevel=3)
