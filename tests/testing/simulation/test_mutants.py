"""The rules that `make simulation-mutants` breaks are where it looks for them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

TOOLS = Path(__file__).resolve().parents[3] / "tools"


def _tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_mutant_changes_a_program_into_another_one() -> None:
    for name in ("mutations", "mutants"):
        _tool(name)
    tool = _tool("simulation_mutants")
    assert len(tool.MUTANTS) == 12
    for name in tool.MUTANTS:
        for path, source in tool.sources(name).items():
            assert source != (TOOLS.parent / path).read_text()
            compile(source, path, "exec")
