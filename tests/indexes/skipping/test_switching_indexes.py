"""Switching any index on or off changes which files are opened, never which rows come out."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import hudimeta
from hudimeta.config import OPTIONS, Options
from hudimeta.indexes.allowed import KINDS
from hudimeta.predicate import bind, evaluate, parse
from hudimeta.read.planner import plan_slices
from hudimeta.slices.reader import SliceReader
from hudimeta.snapshot.file_slice import slices_of
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import CountingStorage, open_storage
from tests.conftest import Unpack
from tests.indexes.skipping.generated_queries import Generator
from tests.indexes.skipping.own_tables import EXPRESSION, OWN, build
from tests.recorded_tables import CONFORMANCE, RICH

QUERIES = int(os.environ.get("HUDIMETA_SKIPPING_QUERIES", "2016"))
"""Predicates over all tables together."""
FULL = "HUDIMETA_SKIPPING_QUERIES" in os.environ
"""Every predicate is planned and read with all indexes, with each of them off, and with none."""
READ_EVERY = 1 if FULL else 24
"""One predicate of so many is also read, with all indexes, with one of them off and with none; the others are only planned."""
ALONE_EVERY = 6
"""One predicate of so many is also planned with one index alone, each index in turn."""
QUICK = ("own_cow", "own_mor", "own_cow_statistics")
"""Those of our own tables that are not for searches alone."""
MANY_LOGS = ("big_mor", "mdt_all_v9", "mor__avro__v9_txns_simple_meta")
"""Tables whose metadata takes longer to plan from: they get half as many predicates."""

WHOLE_INDEXES = {
    "big_mor": True,
    "mdt_all_v8": True,
    "mdt_all_v9": False,
    "expr_index_v9": True,
    "part_rli": True,
    "v8_by_11_all": True,
    "trips__mor__avro__v8_trips_8i3u1d": True,
    "cow__v9_txns_simple_meta": True,
    "cow__v9_txns_complex_meta": True,
    "mor__avro__v9_txns_simple_meta": True,
    "single_complex_key": True,
    "zstd_no_dict": True,
    "all_types_cow8": True,
    "compacted_mor": True,
    "deletes_mor": True,
    "event_late_mor": True,
    "odd_partitions": True,
    "clustered_zorder": True,
    **dict.fromkeys(OWN, True),
}
"""The tables, and whether their record and secondary indexes know every row."""
MINUTE = "from_unixtime(ts, 'yyyy-MM-dd HH:mm')"
EXPRESSIONS = {"expr_index_v9": (MINUTE, ["1970-01-01 00:18", "1970-01-01 02:17", "1970-01-01 02:20"])}
EXPRESSIONS |= {name: (EXPRESSION, ["ab", "note 3", "z" * 40, "AB", "none"]) for name in OWN if "statistics" not in name}


@dataclass
class Recorded:
    """A table, its rows by file slice, and its snapshots under different options."""

    path: Path

    def snapshot(self, **options: str) -> Snapshot:
        given = {"hudimeta.index.use": options.get("use", ""), "hudimeta.index.trust": options.get("trust", "false")}
        key = tuple(sorted(given.items()))
        if key not in self._snapshots:
            storage = CountingStorage(open_storage(str(self.path)))
            self._snapshots[key] = Snapshot.open(storage, Options(OPTIONS, given))
        return self._snapshots[key]

    @cached_property
    def _snapshots(self) -> dict[object, Snapshot]:
        return {}

    def read(self, where: str, trust: str, use: str) -> pa.Table:
        """Rows under some options; a table stays open."""
        key = trust, use
        if key not in self._tables:
            self._tables[key] = hudimeta.Table(self.path, {"hudimeta.index.trust": trust, "hudimeta.index.use": use})
        return self._tables[key].scan(where=where).to_table()

    @cached_property
    def _tables(self) -> dict[tuple[str, str], hudimeta.Table]:
        return {}

    @cached_property
    def slices(self) -> list[tuple[str, str]]:
        """(partition path, file id) of every slice."""
        plan = hudimeta.Table(self.path).scan().plan().slices
        return [(s.partition_path, s.file_id) for s in slices_of(plan)]

    @cached_property
    def rows(self) -> pa.Table:
        return pa.concat_tables(self._by_slice)

    @cached_property
    def slice_of_row(self) -> npt.NDArray[np.int64]:
        return np.repeat(np.arange(len(self._by_slice)), [t.num_rows for t in self._by_slice])

    @cached_property
    def _by_slice(self) -> list[pa.Table]:
        scan = hudimeta.Table(self.path).scan()
        reader = SliceReader(scan.task, open_storage(str(self.path)))
        none = scan.schema.empty_table()
        return [pa.concat_tables([none, *reader.tables(s)]) for s in slices_of(scan.plan().slices)]

    @cached_property
    def favoured(self) -> list[str]:
        """Columns that indexes of whole tables are about."""
        metadata = self.snapshot().metadata
        assert metadata is not None
        sources = [d.source_fields[0] for n, d in metadata.index_definitions.items() if n.startswith("secondary_index_")]
        return ["_hoodie_record_key", *self.snapshot().properties.record_keys, *sources]


def kept(recorded: Recorded, where: str, **options: str) -> set[tuple[str, str]]:
    """(partition path, file id) of the slices that a plan reads."""
    snapshot = recorded.snapshot(**options)
    plan = plan_slices(snapshot, bind(parse(where), snapshot.schema.arrow))
    columns = (plan.slices.column(name).to_pylist() for name in ("partition_path", "file_id"))
    return set(zip(*columns, strict=True))


def as_rows(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))


def names() -> list[object]:
    own = set(OWN if FULL else QUICK)
    found = [n for n in WHOLE_INDEXES if n in own or CONFORMANCE.archive(n) is not None or RICH.archive(n) is not None]
    return list(found) or [pytest.param("none", marks=pytest.mark.shared)]


@pytest.fixture(scope="module")
def some_table(recorded_table: Unpack, tmp_path_factory: pytest.TempPathFactory) -> Unpack:
    """A table of Apache Hudi's or of ours by its name."""
    made: dict[str, Path] = {}

    def find(name: str) -> Path:
        if name not in OWN:
            return recorded_table(name)
        if name not in made:
            made[name] = build(name, tmp_path_factory.mktemp("own"))
        return made[name]

    return find


@pytest.mark.rotation(6)
@pytest.mark.timeout(3600 if FULL else 300)
@pytest.mark.parametrize("name", names())
def test_no_combination_of_indexes_loses_a_row(name: str, some_table: Unpack) -> None:
    recorded = Recorded(some_table(name))
    trust = "true" if WHOLE_INDEXES[name] else "false"
    expression, values = EXPRESSIONS.get(name, ("", []))
    generator = Generator(
        recorded.rows, recorded.favoured, {expression: values} if expression else {}, seed=zlib.crc32(name.encode())
    )
    kinds = [k for k in KINDS if k != "footers"]
    opened = every = 0
    share = QUERIES // (2 * len(WHOLE_INDEXES) - len(MANY_LOGS))
    for number in range(share if name in MANY_LOGS else 2 * share):
        where = generator.predicate()
        matches = evaluate(bind(parse(where), recorded.rows.schema), recorded.rows).fill_null(False)
        needed = {recorded.slices[i] for i in recorded.slice_of_row[np.asarray(matches)]}
        chosen = kept(recorded, where, trust=trust)
        assert needed <= chosen, f"{where}: rows of {needed - chosen} are not read"
        opened, every = opened + len(chosen), every + len(recorded.slices)
        if number % ALONE_EVERY == 0:
            kind = kinds[number // ALONE_EVERY % len(kinds)]
            alone = kept(recorded, where, trust=trust, use=kind)
            assert needed <= alone, f"{where}: rows of {needed - alone} are not read with {kind} alone"
            assert chosen <= alone, f"{where}: all indexes open {chosen - alone}, which {kind} leaves out"
        if number % READ_EVERY == 0:
            expected = as_rows(recorded.rows.filter(matches))
            for off in KINDS if FULL else (KINDS[number // READ_EVERY % len(KINDS)],):
                without = ",".join(k for k in KINDS if k != off)
                left = kept(recorded, where, trust=trust, use=without)
                assert needed <= left, f"{where}: rows of {needed - left} are not read without {off}"
                # Partitions are few here: without statistics of their files, statistics of whole partitions are asked.
                assert off == "column_stats" or chosen <= left, f"{where}: without {off} less is read"
                # The same slices, read by the same rules, give the same rows; footers are asked while reading.
                if left != chosen or off == "footers" or not FULL:
                    assert as_rows(recorded.read(where, trust, without)) == expected, (where, off)
            for use in ("", "none"):
                assert as_rows(recorded.read(where, trust, use)) == expected, (where, use)
    assert opened < every, "the queries are such that indexes help"


def every_table() -> list[object]:
    return [*CONFORMANCE.names(), *RICH.names()] or [pytest.param("none", marks=pytest.mark.shared)]


@pytest.mark.rotation(5)
@pytest.mark.parametrize("name", every_table())
def test_whatever_is_used_by_default_loses_no_row(name: str, recorded_table: Unpack) -> None:
    """Tables of every kind of type, merge and evolution, above all for what footers of base files say."""
    recorded = Recorded(recorded_table(name))
    if not recorded.slices:
        return
    table, generator = hudimeta.Table(recorded.path), Generator(recorded.rows, [], {}, seed=zlib.crc32(name.encode()))
    for _ in range(max(QUERIES // 500, 1)):
        where = generator.predicate()
        matches = evaluate(bind(parse(where), recorded.rows.schema), recorded.rows).fill_null(False)
        assert as_rows(table.scan(where=where).to_table()) == as_rows(recorded.rows.filter(matches)), where


@pytest.mark.rotation(3)
@pytest.mark.parametrize("name", names())
def test_an_index_of_keys_opens_the_file_groups_of_the_keys_and_no_other(name: str, some_table: Unpack) -> None:
    recorded = Recorded(some_table(name))
    metadata = recorded.snapshot().metadata
    assert metadata is not None
    if "record_index" not in metadata.ready or not WHOLE_INDEXES[name]:
        return
    for number, key in enumerate(recorded.rows.column("_hoodie_record_key").to_pylist()[:40]):
        here = recorded.slices[recorded.slice_of_row[number]]
        assert kept(recorded, f"_hoodie_record_key = '{key}'", use="record_index", trust="true") == {here}
        unproven = kept(recorded, f"_hoodie_record_key = '{key}'", use="record_index")
        assert unproven == {here} if name in OWN else len(unproven) == len(recorded.slices)
    assert not kept(recorded, "_hoodie_record_key IN ('no such key', 'nor this')", use="record_index", trust="true")


def test_an_index_that_lacks_a_row_does_not_hide_it(rich_table: Unpack) -> None:
    """In this table the record index lacks a live key, and one of two secondary indexes is stale."""
    recorded = Recorded(rich_table("mdt_all_v9"))
    rows = recorded.rows.to_pylist()
    table, believing = hudimeta.Table(recorded.path), hudimeta.Table(recorded.path, {"hudimeta.index.trust": "true"})
    lost = 0
    for row in rows:
        for where in (f"id = '{row['id']}'", f"note = '{row['note']}'" if row["note"] else "note IS NULL"):
            scan = table.scan(where=where, columns=["id"])
            assert row["id"] in scan.to_table().column(0).to_pylist(), where
            lost += row["id"] not in believing.scan(where=where, columns=["id"]).to_table().column(0).to_pylist()
    assert lost, "the indexes of this table do lack rows, and believing them is the user's own decision"
    report = table.scan(where=f"id = '{rows[0]['id']}'").plan().report
    (why,) = [note for note in report.notes if note.startswith("record_index not used")]
    assert "hudimeta.index.trust=true" in why
    assert "hudimeta.index.trust=true" in why
