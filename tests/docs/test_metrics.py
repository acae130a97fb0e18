"""docs/metrics.md: its example runs, and it names every metric and reporter that there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from hudimeta.config import OPTIONS
from hudimeta.config import options as keys
from hudimeta.metering import Metric
from hudimeta.observability import REGISTRY

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")


def test_the_example_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec(compile(example.replace("/tmp/", f"{tmp_path}/"), "docs/metrics.md", "exec"), names)
    assert "HoodieMetadata.sync.count counter 1.0" in capsys.readouterr().out
    shown = {re.sub(r"^(commit|deltacommit)\.", "ACTION.", sample.name) for sample in REGISTRY.samples("rides")}
    assert shown <= set(re.findall(r"`([A-Za-z_.]+)`", PAGE))
    REGISTRY.clear()


def test_the_page_names_what_there_is() -> None:
    for metric in Metric:
        assert f"`{metric.value}`" in PAGE, metric
    reporters = set(re.findall(r"^\| `([A-Z_0-9]+)`", PAGE, re.MULTILINE))
    assert reporters == set(keys.METRICS_REPORTER.allowed.split(", "))
    for option in re.findall(r"`((?:hoodie|hudimeta)\.metrics\.[a-z.]+)(?:=\w+)?`", PAGE):
        assert OPTIONS.find(option) is not None, option
