"""`hudimeta metadata …`: RFC-15's commands, in text and JSON, with their exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import hudimeta
from hudimeta.cli.metadata import metadata
from hudimeta.cli.root import root
from hudimeta.errors import ConfigError
from hudimeta.services.metadata_table.listing_cost import VIEWS as VIEWS_OF_DRAFT
from hudimeta.testing.builders import simple_rows
from tests.conftest import Unpack
from tests.recorded_tables import RICH
from tests.rotation import in_turn

DONE, FOUND, USAGE, REFUSED, DAMAGED = 0, 1, 2, 3, 5
RFC_15 = {"set", "create", "delete", "stats", "list-partitions", "list-files", "init"}
FIRST_DRAFT, HUDI_CLI = {"create", "update", "perf"}, {"validate-files"}
VIEWS = ["getAllBaseFiles", "getAllFileGroups", "getAllFileSlices", "getLatestBaseFiles", "getLatestFileSlices"]
VIEWS += ["getLatestUnCompactedFileSlices"]


def run(*words: str | Path) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    done = CliRunner().invoke(root, [str(word) for word in words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def told(*words: str | Path) -> tuple[int, dict[str, Any]]:
    """Exit code and the JSON object of a command; nothing else is on standard output."""
    code, out, _ = run(*words, "--json")
    return code, json.loads(out)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    options = {"hoodie.metadata.index.column.stats.enable": "true"}
    kind = {"key": "id", "partition_by": "part", "type": "MERGE_ON_READ", "options": options}
    table = hudimeta.Table.create(tmp_path / "t", simple_rows([], 0).schema, **kind)  # type: ignore[arg-type]
    table.insert(simple_rows(range(8), 1))
    table.upsert(simple_rows([1, 2], 2))
    return tmp_path / "t"


def files_below(path: Path) -> dict[str, bytes]:
    return {file.relative_to(path).as_posix(): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_the_commands_are_those_of_the_rfc_its_draft_and_hudis_shell() -> None:
    assert set(metadata.commands) == RFC_15 | FIRST_DRAFT | HUDI_CLI


def test_stats_have_the_names_of_the_rfc(path: Path) -> None:
    code, found = told("metadata", "stats", path)
    rfc = ["basePath", "partitionCount", "lastCompactionTimestamp", "isInSync", "logFileCount", "totalBaseFileSizeInBytes"]
    assert (code, list(found)[:6]) == (DONE, rfc)
    assert (found["partitionCount"], found["isInSync"], found["basePath"]) == (2, True, str(path))
    sizes = {one["name"]: one for one in found["partitions"]}
    assert set(sizes) == {"files", "column_stats", "partition_stats"}
    (group,) = hudimeta.Table(path).metadata.file_groups("files")
    on_disk = [(path / ".hoodie/metadata" / log.path).stat().st_size for log in group.logs]
    assert (sizes["files"]["log_files"], sizes["files"]["log_bytes"]) == (len(on_disk), sum(on_disk))
    code, text, _ = run("metadata", "stats", path)
    assert code == DONE
    assert "isInSync: true" in text
    assert f"logFileCount: {found['logFileCount']}" in text


def test_listings_say_where_they_come_from(path: Path) -> None:
    code, found = told("metadata", "list-partitions", path)
    assert (code, found["source"], found["partitions"]) == (DONE, "metadata table", [{"partition": "p0"}, {"partition": "p1"}])
    _, files = told("metadata", "list-files", "--partition", "p0", path)
    on_storage = {file.name: file.stat().st_size for file in (path / "p0").iterdir() if not file.name.startswith(".hoodie")}
    assert {one["name"]: one["size"] for one in files["files"]} == on_storage
    assert run("metadata", "delete", path)[0] == DONE
    _, listed = told("metadata", "list-partitions", path)
    assert (listed["source"], listed["partitions"]) == ("listing", found["partitions"])
    assert listed["why"] == "the table has no metadata table"
    assert told("metadata", "list-files", "--partition", "p0", path)[1]["files"] == files["files"]


def test_it_goes_comes_and_stays_away(path: Path) -> None:
    before = files_below(path)
    code, found = told("metadata", "delete", path, "--dry-run")
    assert (code, found["changed"], found["dry_run"]) == (DONE, False, True)
    assert files_below(path) == before
    assert run("metadata", "delete", path)[0] == DONE
    assert not (path / ".hoodie/metadata").exists()
    assert told("metadata", "delete", path)[0] == REFUSED
    before = files_below(path)
    assert told("metadata", "create", path, "--dry-run")[1]["partitions"] == ["column_stats", "files", "partition_stats"]
    assert files_below(path) == before
    code, text, _ = run("metadata", "create", path)
    assert code == DONE
    assert "created column_stats, files, partition_stats" in text
    assert run("metadata", "validate-files", path) == (DONE, "the metadata table lists what storage has\n", "")
    code, found = told("metadata", "create", path)
    assert (code, found["error"]["code"]) == (REFUSED, "TABLE")

    assert run("metadata", "delete", path)[0] == DONE
    assert told("metadata", "set", path, "--disable")[1]["changed"]
    hudimeta.Table(path).insert(simple_rows([20], 3))
    assert not (path / ".hoodie/metadata").exists()
    assert run("metadata", "create", path)[0] == REFUSED
    assert "switched off" in run("metadata", "create", path)[2]
    assert told("metadata", "set", path, "--enable")[1]["steps"] == ["hudimeta.table.metadata.enable=true"]
    hudimeta.Table(path).insert(simple_rows([21], 4))
    assert (path / ".hoodie/metadata").exists()


def test_modes_are_those_of_the_table_unless_an_option_says_otherwise(path: Path) -> None:
    _, modes = told("metadata", "set", path)
    assert (modes["there"], modes["enabled"], modes["validated"]) == (True, True, False)
    assert told("metadata", "set", path, "--disable", "--dry-run")[1]["changed"] is False
    assert told("metadata", "set", path)[1]["enabled"]
    assert told("metadata", "set", path, "--disable")[0] == DONE
    report = hudimeta.Table(path).scan().report
    assert report.fallbacks == ("the metadata table is switched off by hudimeta.table.metadata.enable=false",)
    _, stats = told("metadata", "stats", path)
    assert (stats["isInSync"], stats["partitionCount"], stats["why"]) == (True, 2, report.fallbacks[0])
    assert told("metadata", "validate-files", path)[0] == REFUSED
    assert hudimeta.Table(path, {"hoodie.metadata.enable": "true"}).scan().report.fallbacks == ()
    assert told("metadata", "set", path, "--enable", "--validate")[0] == DONE
    report = hudimeta.Table(path).scan().report
    assert any(note.startswith("validated: the metadata table lists the 4 files") for note in report.notes), report.notes
    assert told("metadata", "validate-files", path)[0] == told("metadata", "update", path)[0] == DONE
    assert told("metadata", "set", path)[1]["validated"]
    assert hudimeta.Table(path).metadata.validate().holds
    assert told("metadata", "set", path, "--validate")[1]["changed"] is False
    code, found = told("metadata", "set", path, "--metadata-dir", "/some/writable/dir")
    assert (code, found["error"]["code"]) == (REFUSED, "UNSUPPORTED")


def test_differences_are_found_and_end_a_read_only_in_a_warning(path: Path) -> None:
    base = next((path / "p0").glob("*.parquet"))
    stray = base.with_name("11111111-2222-3333-4444-555555555555-0" + base.name[base.name.index("_") :])
    stray.write_bytes(base.read_bytes())
    code, found = told("metadata", "validate-files", path)
    assert (code, found["differences"]) == (FOUND, 1)
    (one,) = found["files"]
    assert (one["file_name"], one["is_present_in_fs"], one["is_present_in_metadata"]) == (stray.name, True, False)
    assert told("metadata", "validate-files", path, "--verbose")[1]["differences"] == 1
    with pytest.warns(hudimeta.HudiWarning, match="on storage but not listed"):
        report = hudimeta.Table(path, {"hoodie.metadata.validate": "true"}).scan().report
    assert any("on storage but not listed" in note for note in report.notes)


def test_a_metadata_table_that_is_behind_is_told_and_brought_into_step(path: Path) -> None:
    assert run("metadata", "init", path, "--read-only")[0] == DONE
    assert "nothing was to be done" in run("metadata", "update", path)[1]
    newest = hudimeta.Table(path).timeline.writes[-1].time
    for file in (path / ".hoodie/metadata/.hoodie/timeline").glob(f"{newest}*"):
        file.unlink()
    code, found = told("metadata", "init", path, "--read-only")
    assert (code, found["in_sync"]) == (FOUND, False)
    assert newest in found["why"]
    code, found = told("metadata", "update", path, "--dry-run")
    assert (code, found["changed"]) == (FOUND, False)
    assert told("metadata", "init", path)[1]["changed"]
    assert told("metadata", "init", path, "--read-only")[0] == DONE
    assert hudimeta.Table(path).metadata.validate().holds


def test_perf_prints_the_drafts_table(path: Path) -> None:
    code, found = told("metadata", "perf", path, "--rounds", "1")
    assert (code, found["file_count"], found["partition_count"]) == (DONE, 4, 2)
    assert [one["call"] for one in found["lookups"]] == ["getAllPartitions", "getAllFilesInPartition"]
    assert [one["call"] for one in found["views"]] == VIEWS
    requests = [one["existing_requests"] for one in (*found["lookups"], *found["views"])]
    assert requests == [3, *[1] * 7], "the table's folder and each partition's; then that of one partition"
    for one in (*found["lookups"], *found["views"]):
        difference = (one["with_metadata_ms"] - one["existing_ms"]) / one["existing_ms"] * 100
        assert one["difference_percent"] == pytest.approx(difference, rel=0.05, abs=2)
    run("metadata", "delete", path)
    _, found = told("metadata", "perf", path, "--rounds", "1", "--partition", "p1")
    assert {one["with_metadata_ms"] for one in found["lookups"]} == {None}
    text = str(hudimeta.Table(path).metadata.measure(rounds=1))
    assert "getAllPartitions: " in text
    assert "/ - / -" in text
    with pytest.raises(ConfigError, match="the path of a partition with files"):
        hudimeta.Table(path).metadata.measure("p3", rounds=1)
    with pytest.raises(ConfigError, match="1 or more"):
        hudimeta.Table(path).metadata.measure(rounds=0)


def test_views_of_the_draft_count_what_hudi_counts(path: Path) -> None:
    """As Apache Hudi does: "uncompacted" are the newest slices of file groups that no planned compaction takes."""
    table = hudimeta.Table(path)
    table.compact()
    table.upsert(simple_rows([1], 3))
    before = _counted(path)
    assert table.schedule_compaction() is not None
    assert (before["getAllFileGroups"], before["getAllBaseFiles"], before["getAllFileSlices"]) == (2, 4, 4)
    assert (before["getLatestFileSlices"], before["getLatestUnCompactedFileSlices"]) == (2, 2)
    assert _counted(path)["getLatestUnCompactedFileSlices"] == 1


def _counted(path: Path) -> dict[str, int]:
    """How much each view finds in the two partitions."""
    snapshot = hudimeta.Table(path).snapshot()
    return {name: sum(len(call(snapshot, part)) for part in ("p0", "p1")) for name, call in VIEWS_OF_DRAFT.items()}


def test_exit_codes_of_errors(path: Path, tmp_path: Path) -> None:
    assert run("metadata", "stats", tmp_path / "nowhere")[0] == REFUSED
    assert run("metadata", "list-files", path)[0] == USAGE
    assert run("metadata", "list-files", path, "--partition", "p7")[0] == USAGE
    assert run("metadata", "stats", path, "--option", "hudimeta.no.such=1")[0] == USAGE
    assert run("metadata", "stats")[0] == USAGE
    assert run("metadata", "no-such-command", path)[0] == USAGE
    commit = sorted((path / ".hoodie/timeline").glob("*.deltacommit"))[-1]
    data = bytearray(commit.read_bytes())
    data[len(data) // 2] ^= 0xFF
    commit.write_bytes(data)
    code, found = told("history", path)
    assert (code, found["error"]["code"]) == (DAMAGED, "CORRUPT_FILE")
    assert commit.name in found["error"]["message"]


def test_secrets_are_never_printed(path: Path) -> None:
    secret = "wJalrXUtnFEMI"
    for words in (
        ["--storage-option", secret],
        ["--storage-option", f"secret={secret}", "--option", "hudimeta.no.such=1"],
        ["--option", f"hudimeta.storage.secrt.key={secret}"],
    ):
        code, out, error = run("metadata", "stats", path, *words)
        assert secret not in out + error
        assert code in (DONE, USAGE)


def test_help_loads_no_table(tmp_path: Path) -> None:
    """What makes the start quick: click is all that help needs."""
    program = (
        "import sys; sys.argv = ['hudimeta', *sys.argv[1:]]\n"
        "heavy = ('pyarrow', 'numpy', 'rich', 'fastavro')\n"
        "import atexit; atexit.register(lambda: print('LOADED', [name for name in heavy if name in sys.modules]))\n"
        "from hudimeta.cli.start import main; main()"
    )
    for words in (["--help"], ["metadata", "--help"], ["metadata", "perf", "--help"], ["--version"]):
        ran = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout.splitlines()[-1]) == (DONE, "LOADED []"), ran.stderr


def test_without_its_libraries_it_says_what_to_install() -> None:
    program = "import sys; sys.modules['click'] = None\nfrom hudimeta.cli.start import main; main()"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == USAGE
    assert ran.stderr == 'The command line needs click and rich. Run: pip install "hudimeta[cli]"\n'


def test_recorded_tables_of_hudi(rich_table: Unpack) -> None:
    for name in in_turn([*RICH.names()], 20):
        path = rich_table(name)
        table = hudimeta.Table(path)
        code, found = told("metadata", "list-partitions", path)
        assert code == DONE, name
        assert [one["partition"] for one in found["partitions"]] == table.snapshot().listing.partitions().to_pylist(), name
        has = table.properties.has_metadata_table
        assert told("metadata", "stats", path)[0] == (DONE if has else REFUSED), name
        assert told("metadata", "validate-files", path)[0] == (DONE if has else REFUSED), name
        assert told("show", path)[1]["version"] == table.version, name
        assert run("metadata", "perf", path, "--rounds", "1")[0] == DONE, name
