"""Options of the machine: `hudi-defaults.conf` gives what nobody else gave, for new tables and every write."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.config import OPTIONS
from hudimeta.config.options import MAX_FILE_SIZE, RECORD_INDEX, TABLE_TYPE
from hudimeta.errors import ConfigError, UnsupportedFeature

SAMPLES = Path(__file__).resolve().parents[2] / "conf"
SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64())])


@pytest.fixture
def conf(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that this machine's options stand in, in a folder of a new name: a process reads each folder's once."""
    folder = tmp_path_factory.mktemp("conf")
    monkeypatch.setenv("HUDI_CONF_DIR", str(folder))
    return folder / "hudi-defaults.conf"


def test_a_new_table_is_what_the_machine_says_and_a_job_may_say_otherwise(conf: Path, tmp_path: Path) -> None:
    conf.write_text("# ours\n\nhoodie.table.type    MERGE_ON_READ\nhoodie.metadata.record.index.enable = true\n")
    usual = hudimeta.Table.create(tmp_path / "usual", SCHEMA, key="id")
    assert usual.properties.type.value == "MERGE_ON_READ"
    assert "record_index" in usual.properties.metadata_partitions
    told = {"hoodie.table.type": "COPY_ON_WRITE", RECORD_INDEX.aliases[0]: "false"}
    other = hudimeta.Table.create(tmp_path / "other", SCHEMA, key="id", options=told)
    assert other.properties.type.value == "COPY_ON_WRITE"
    assert "record_index" not in other.properties.metadata_partitions


def test_a_table_that_is_there_stays_what_it_is(conf: Path, tmp_path: Path) -> None:
    conf.write_text("hoodie.datasource.write.table.type=MERGE_ON_READ\nhoodie.datasource.write.recordkey.field=other\n")
    table = hudimeta.Table.create(tmp_path / "t", SCHEMA, key="id", type="COPY_ON_WRITE")
    table.upsert({"id": ["a"], "n": [1]})
    assert hudimeta.Table(tmp_path / "t").scan().to_table().column("n").to_pylist() == [1]


def test_a_table_of_buckets_stays_one(conf: Path, tmp_path: Path) -> None:
    conf.write_text("hoodie.index.type=SIMPLE\n")
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    table = hudimeta.Table.create(tmp_path / "t", SCHEMA, key="id", options=buckets)
    for number in range(2):
        table.upsert({"id": ["a"], "n": [number]})
        table.insert({"id": ["b"], "n": [number]})
    rows = hudimeta.Table(tmp_path / "t").scan().to_table().select(["id", "n"]).to_pylist()
    assert sorted(map(str, rows)) == ["{'id': 'a', 'n': 1}", "{'id': 'b', 'n': 1}"]


def test_files_include_others_and_the_last_word_counts(conf: Path) -> None:
    conf.write_text("hoodie.parquet.max.file.size 1000\ninclude=more.conf\n")
    (conf.parent / "more.conf").write_text("hoodie.parquet.max.file.size   2000\nspark.sql.shuffle.partitions 7\n")
    assert OPTIONS.read({}).get(MAX_FILE_SIZE) == 2000
    assert OPTIONS.read({"hoodie.parquet.max.file.size": 3000}).get(MAX_FILE_SIZE) == 3000


def test_options_travel_with_what_the_machine_said(conf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf.write_text("hoodie.table.type=MERGE_ON_READ\n")
    sent = pickle.dumps(OPTIONS.read({"hoodie.parquet.max.file.size": "5"}))
    monkeypatch.delenv("HUDI_CONF_DIR")
    received = pickle.loads(sent)
    assert (received.get(TABLE_TYPE), received.get(MAX_FILE_SIZE)) == ("MERGE_ON_READ", 5)
    assert OPTIONS.read({}).get(TABLE_TYPE) == "COPY_ON_WRITE"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hoodie.parquet.max.file.size=many", "allowed is a whole number"),
        ("hoodie.parquet.max.file.sise=5", "Did you mean hoodie.parquet.max.file.size?"),
        ("include=hudi-defaults.conf", "files that do not include each other"),
        ("include=absent.conf", "absent.conf"),
    ],
)
def test_bad_files_are_refused_by_name(conf: Path, text: str, said: str) -> None:
    conf.write_text(text + "\n")
    with pytest.raises(ConfigError, match=re.escape(said)):
        OPTIONS.read({})


def test_what_is_not_done_is_refused_here_too(conf: Path) -> None:
    conf.write_text("hoodie.datasource.hive_sync.enable true\n")
    with pytest.raises(UnsupportedFeature, match=r"hudi-defaults\.conf"):
        OPTIONS.read({})


def test_a_named_folder_must_hold_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUDI_CONF_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match="nowhere"):
        OPTIONS.read({})


def test_the_samples_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUDI_CONF_DIR", str(SAMPLES))
    assert OPTIONS.read({}).texts == {}


def test_what_the_samples_offer_is_allowed(conf: Path) -> None:
    offered = 0
    for sample in SAMPLES.glob("*.conf"):
        text, number = re.subn(r"^#(?=[a-z])", "", sample.read_text(encoding="utf-8"), flags=re.MULTILINE)
        (conf.parent / sample.name).write_text(text)
        offered += number - text.count("\ninclude=")
    options = OPTIONS.read({})
    assert options.get(RECORD_INDEX) is True
    assert [key for key in options.usual if not (OPTIONS.find(key) or key.startswith("hudimeta.storage."))] == []
    assert len(options.usual) == offered
