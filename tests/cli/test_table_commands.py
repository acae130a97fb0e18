"""`hudimeta show`, `history`, `maintain`, `call`."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hudimeta
from hudimeta.cli.output import Answer, AnswerRows, TextOutput
from hudimeta.procedures import PROCEDURES
from hudimeta.testing.builders import simple_rows
from tests.cli.test_metadata_commands import DAMAGED, DONE, REFUSED, USAGE, run, told


@pytest.fixture
def path(tmp_path: Path) -> Path:
    table = hudimeta.Table.create(tmp_path / "t", simple_rows([], 0).schema, key="id", ordering="ts", type="MERGE_ON_READ")
    for ts in range(1, 7):
        table.upsert(simple_rows(range(6), ts))
    return tmp_path / "t"


def test_show_and_history(path: Path) -> None:
    code, found = told("show", path)
    assert code == DONE
    assert (found["type"], found["record_keys"], found["ordering_fields"]) == ("MERGE_ON_READ", ["id"], ["ts"])
    assert {"column": "ts", "type": "int64"} in found["columns"]
    code, found = told("history", path, "--limit", "2")
    assert [one["rows_updated"] for one in found["instants"]] == [6, 6]
    code, text, _ = run("history", path)
    assert len(text.splitlines()) == 1 + 6


def test_maintain_runs_what_a_dry_run_tells(path: Path) -> None:
    before = hudimeta.Table(path).timeline.instants
    assert any("compaction" in line for line in told("maintain", path, "--dry-run")[1]["report"])
    assert hudimeta.Table(path).timeline.instants == before
    assert run("maintain", path)[0] == DONE
    assert hudimeta.Table(path).timeline.instants != before


def test_procedures_by_their_names(path: Path) -> None:
    code, found = told("call", path, "show_commits", "limit=2")
    assert (code, len(found["rows"])) == (DONE, 2)
    assert list(found["rows"][0]) == PROCEDURES["show_commits"].schema.names
    code, text, _ = run("call", path, "help")
    assert code == DONE
    assert all(name in text for name in PROCEDURES)
    code, found = told("call", path, "show_comits")
    assert (code, found["error"]["hint"]) == (USAGE, "Did you mean show_commits?")
    assert run("call", path, "show_commits", "limit")[0] == USAGE
    refused = next(one.name for one in PROCEDURES.values() if one.place.name == "NOWHERE")
    assert run("call", path, refused)[0] == REFUSED


def test_text_on_a_terminal_is_a_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    TextOutput().show(
        Answer({"table": "/data/[bold]t"}, [AnswerRows("files", ["name", "size"], [("a[b]", 1234567), ("c", None)])])
    )
    shown = capsys.readouterr().out
    assert "table: /data/[bold]t" in shown
    assert "┃" in shown
    assert "a[b]" in shown
    assert "1,234,567" in shown


@pytest.mark.parametrize("kept", [0, 50])
def test_damaged_properties_are_damage(path: Path, kept: int) -> None:
    properties = path / ".hoodie" / "hoodie.properties"
    properties.write_bytes(properties.read_bytes()[:kept])
    for command in (("show",), ("metadata", "stats")):
        code, out, _ = run(*command, path, "--json")
        assert (code, json.loads(out)["error"]["code"]) == (DAMAGED, "PROPERTIES_UNREADABLE")


def test_an_argument_of_a_procedure_without_a_value_is_named(path: Path) -> None:
    code, _, err = run("call", path, "show_commits", "limit")
    assert code == USAGE
    assert "a procedure's argument" in err
    assert "--option" not in err


def test_a_table_wider_than_the_terminal_is_not_folded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    rows = AnswerRows("files", ["name", "size"], [("a" * 50, 12)])
    for width, folded in (("40", False), ("80", True)):
        monkeypatch.setenv("COLUMNS", width)
        TextOutput().show(Answer(tables=[rows]))
        shown = capsys.readouterr().out
        assert "a" * 50 in shown
        assert ("┃" in shown) is folded


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_an_output_that_takes_nothing_is_told_without_a_trace(path: Path, flags: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        done = command_line("show", path, *flags, stdout=full)
    assert (done.returncode, done.stderr) == (74, "the answer cannot be written: No space left on device.\n")


def test_a_closed_output_is_told_by_the_exit_code(path: Path) -> None:
    command = f"{shlex.quote(sys.executable)} -m hudimeta show {shlex.quote(str(path))} >&-"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (74, "the answer cannot be written: standard output is closed.\n")


def test_names_that_the_terminal_cannot_show_are_escaped(tmp_path: Path) -> None:
    folder = tmp_path / "größe"
    hudimeta.Table.create(folder, simple_rows([], 0).schema, key="id")
    shown = command_line("show", folder, stdout=subprocess.PIPE)
    assert (shown.returncode, shown.stdout.splitlines()[1]) == (DONE, r"name: gr\xf6\xdfe")


def command_line(*words: str | Path, stdout: Any) -> subprocess.CompletedProcess[str]:
    """A run of the console script, on a terminal that shows ASCII."""
    script = [sys.executable, "-m", "hudimeta", *map(str, words)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    return subprocess.run(script, stdout=stdout, stderr=subprocess.PIPE, env=environment, text=True, check=False)
