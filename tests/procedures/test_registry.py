"""Every procedure of Apache Hudi is here by name, with its parameters and columns; arguments are held to them."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

import hudimeta
from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.procedures import PROCEDURES, RunPlace, bind, find, help_text
from hudimeta.testing.builders import simple_rows

ROOT = Path(__file__).resolve().parents[2]
HUDI = json.loads((ROOT / "tests" / "data" / "procedures" / "hudi-1.2.0.json").read_text(encoding="utf-8"))
"""What Apache Hudi 1.2.0 says of its own procedures: [name, type, required, default], and [column, type, nullable]."""


@pytest.fixture
def table(tmp_path: Path) -> hudimeta.Table:
    table = hudimeta.Table.create(tmp_path / "t", simple_rows([], 0).schema, key="id")
    table.insert(simple_rows([1, 2, 3], 1))
    return table


def test_names_are_those_of_apache_hudi() -> None:
    assert list(PROCEDURES) == sorted(HUDI)


@pytest.mark.parametrize("name", sorted(HUDI))
def test_parameters_and_columns_are_those_of_apache_hudi(name: str) -> None:
    ours = PROCEDURES[name]
    assert [[p.name, p.type, p.required, p.default] for p in ours.parameters] == HUDI[name]["parameters"]
    types = {"string": "string", "int": "int32", "bigint": "int64", "double": "double", "boolean": "bool"}
    theirs = [(column, types[kind], nullable) for column, kind, nullable in HUDI[name]["columns"]]
    assert [(f.name, str(f.type), f.nullable) for f in ours.schema] == theirs


def test_what_does_not_run_says_why_and_what_instead() -> None:
    for one in PROCEDURES.values():
        assert (one.run is None) == (one.place is not RunPlace.ENGINE), one.name
        assert bool(one.why) == (one.run is None), one.name


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("hive_sync", "Hive metastore"),
        ("set_audit_lock", "audit"),
        ("run_bootstrap", "hudimeta.bootstrap"),
        ("copy_to_temp_view", "without a session of Spark"),
    ],
)
def test_calls_that_do_not_run_are_refused_with_the_reason(table: hudimeta.Table, name: str, says: str) -> None:
    needed: dict[str, Any] = {p.name: "x" for p in find(name).parameters if p.required and not p.names_table}
    before = table.timeline.instants
    with pytest.raises(UnsupportedFeature, match=says):
        table.call(name, **needed)
    assert table.timeline.instants == before


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("show_comits", {}, "Did you mean show_commits"),
        ("show_commits", {"limti": 3}, "a parameter of show_commits: limit"),
        ("show_commits", {"limit": "many"}, "a whole number"),
        ("show_commits", {"limit": -1}, "0 or more"),
        ("show_commits", {"table": "t"}, "a parameter of show_commits: limit"),
        ("show_commit_files", {}, "show_commit_files needs it"),
        ("show_clustering", {"show_involved_partition": "perhaps"}, "true or false"),
        ("show_timeline", {"filter": "nosuch = 1"}, "nosuch"),
        ("run_compaction", {"op": "run", "options": "hoodie.a"}, "key=value"),
    ],
)
def test_wrong_calls_are_refused_by_name(tmp_path: Path, name: str, arguments: dict[str, Any], says: str) -> None:
    table = hudimeta.Table.create(tmp_path / "t", simple_rows([], 0).schema, key="id", type="MERGE_ON_READ")
    with pytest.raises(ConfigError, match=says):
        table.call(name, **arguments)
    assert table.timeline.instants == ()


def test_arguments_are_bound_by_name_in_any_case_or_by_place() -> None:
    procedure = find("SHOW_TIMELINE")
    named = bind(procedure, (), {"TABLE": "t", "showarchived": "TRUE"}, on_table=False)
    placed = bind(procedure, ("t", None, 20, True), {}, on_table=False)
    assert named == placed
    assert (named["showArchived"], named["limit"], named["path"]) == (True, 20, None)
    mixed = bind(procedure, ("t",), {"limit": 20, "showArchived": True}, on_table=False)
    assert mixed == placed
    with pytest.raises(ConfigError, match="one value for table"):
        bind(procedure, ("t",), {"table": "u"}, on_table=False)
    with pytest.raises(ConfigError, match="8 arguments"):
        bind(procedure, ("t", *[None] * 7), {}, on_table=False)


def test_help_tells_of_all_and_of_one(table: hudimeta.Table) -> None:
    everything = table.call("help")["result"][0].as_py()
    assert [line.split("\t")[0] for line in everything.splitlines()] == list(PROCEDURES)
    one = table.call("help", cmd="show_fsview_latest")["result"][0].as_py()
    assert one == help_text("show_fsview_latest")
    assert "limit int = 10" in one
    assert "delta_files_compaction_scheduled string" in one


def test_the_page_of_procedures_is_what_the_registry_says() -> None:
    made = runpy.run_path(str(ROOT / "tools" / "procedure_docs.py"))["text"]()
    assert (ROOT / "docs" / "procedures.md").read_text(encoding="utf-8") == made, "run: python tools/procedure_docs.py"
