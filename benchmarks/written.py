"""Tables of lineitem rows, written by each side itself, kept between runs; and copies of them that a run may change."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import lineitem, ours
from benchmarks.case import Settings, apache_of
from benchmarks.job import Job

if TYPE_CHECKING:
    from tests.interop.apache_hudi import ApacheHudi

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
RANDOM, LOCAL = "random", "local"


@dataclass(frozen=True)
class Written:
    """A table and how it is written.

    Attributes:
        kind: Table type.
        share: Of lineitem's quarter, 1 for 1.5 million rows.
        indexes: Beside `files`.
        updated: Share of the rows that one upsert changed afterwards, at random.
        codec: Of Apache Hudi's files; ours have zstd.
        pieces: Bulk inserts that made it, each of other rows.
    """

    kind: str
    share: float = 1
    indexes: tuple[str, ...] = ("column_stats", "record_index")
    updated: float = 0
    codec: str = "zstd"
    pieces: int = 1

    def settings(self, settings: Settings) -> Settings:
        """Those under which `lineitem` gives the table's rows."""
        return Settings(settings.scale * self.share, settings.data, settings.rounds)

    def sources(self, settings: Settings) -> list[Path]:
        """Parquet files with its rows, one for each bulk insert."""
        own = self.settings(settings)
        if self.pieces == 1:
            return [lineitem.rows_file(own)]
        return [lineitem.piece_file(own, number, self.pieces) for number in range(1, self.pieces + 1)]

    def folder(self, settings: Settings, writer: str) -> Path:
        """Where it is kept."""
        stem = self.sources(settings)[0].stem
        parts = [stem, writer.replace(" ", "-"), self.kind.split("_")[0], *self.indexes, f"{self.updated:g}"]
        parts += [self.codec] if self.codec != "zstd" else []
        return settings.data / "-".join(parts).lower()


def hudi_options(written: Written, operation: str) -> dict[str, str]:
    """The same table, in Apache Hudi's words, with the index that it finds keys by where it keeps one."""
    options = {
        "hoodie.table.name": "lineitem",
        "hoodie.datasource.write.operation": operation,
        "hoodie.datasource.write.table.type": written.kind,
        "hoodie.datasource.write.recordkey.field": lineitem.KEY,
        "hoodie.datasource.write.partitionpath.field": lineitem.PARTITION,
        "hoodie.datasource.write.precombine.field": lineitem.ORDERING,
        "hoodie.metadata.index.column.stats.enable": str("column_stats" in written.indexes).lower(),
        "hoodie.metadata.record.index.enable": str("record_index" in written.indexes).lower(),
        "hoodie.parquet.compression.codec": written.codec,
    }
    return options | ({"hoodie.index.type": "RECORD_INDEX"} if "record_index" in written.indexes else {})


def by_us(settings: Settings, written: Written) -> Path:
    """The table that hudimeta wrote."""
    path = written.folder(settings, "ours")
    with _once(path) as unfinished:
        if unfinished is not None:
            first, *others = written.sources(settings)
            rows = pq.read_table(first)
            ours.bulk_insert(unfinished, rows, list(written.indexes), written.kind)
            for other in others:
                ours.open_table(unfinished).bulk_insert(pq.read_table(other))
            if written.updated:
                ours.upsert(unfinished, changed(rows, round(len(rows) * written.updated), RANDOM, 0))
    return path


def by_hudi(job: Job, process: ApacheHudi, written: Written) -> Path:
    """The table that this side's version of Apache Hudi wrote."""
    path, own = written.folder(job.settings, apache_of(job.side)), written.settings(job.settings)
    with _once(path) as unfinished:
        if unfinished is not None:
            sources, options = written.sources(job.settings), hudi_options(written, "bulk_insert")
            for source in sources:
                process.call("write", timeout=1200, path=str(unfinished), rows=str(source), options=options)
            if written.updated:
                count = round(pq.read_metadata(sources[0]).num_rows * written.updated)
                batch, options = str(batch_file(own, count, RANDOM, 0)), hudi_options(written, "upsert")
                process.call("write", timeout=1200, path=str(unfinished), rows=batch, options=options)
    return path


def in_pieces(settings: Settings, pieces: int) -> Path:
    """A table of ours with the same rows in so many bulk inserts, each of new files."""
    path = settings.data / f"{lineitem.rows_file(settings).stem}-in-{pieces}"
    with _once(path) as unfinished:
        if unfinished is not None:
            rows = lineitem.rows(settings)
            cuts = [len(rows) * at // pieces for at in range(pieces + 1)]
            ours.bulk_insert(unfinished, rows.slice(0, cuts[1]), ["column_stats"], COW)
            for first, end in itertools.pairwise(cuts[1:]):
                ours.open_table(unfinished).bulk_insert(rows.slice(first, end - first))
    return path


def large(settings: Settings, kind: str, *, record_index: bool = True) -> Path:
    """A table of ours with 10.5 million rows, loaded in seven commits, and a record index that was built over them."""
    stem = f"{lineitem.piece_file(settings, 1).stem}-large-{kind.split('_')[0]}".lower()
    path = settings.data / (stem if record_index else f"{stem}-no-index")
    with _once(path) as unfinished:
        if unfinished is not None:
            first, *more = [lineitem.piece_file(settings, number) for number in range(1, lineitem.PIECES + 1)]
            ours.bulk_insert(unfinished, pq.read_table(first), ["column_stats"], kind)
            for file in more:
                ours.open_table(unfinished).bulk_insert(pq.read_table(file))
            if record_index:
                ours.open_table(unfinished).metadata.create_index(type="record_index")
    return path


def large_batches(settings: Settings, count: int, rounds: int) -> list[Path]:
    """Batches of changed rows at random from all of that table."""
    made = []
    for seed in range(1, rounds + 1):
        path = settings.data / "batches" / f"{lineitem.piece_file(settings, 1).stem}-large-{count}-{seed}.parquet"
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            share = -(-count // lineitem.PIECES)
            pieces = [pq.read_table(lineitem.piece_file(settings, n)) for n in range(1, lineitem.PIECES + 1)]
            batch = pa.concat_tables([changed(rows, share, RANDOM, seed) for rows in pieces]).slice(0, count)
            pq.write_table(batch, path)
        made.append(path)
    return made


@contextlib.contextmanager
def _once(path: Path) -> Iterator[Path | None]:
    """A folder to fill in, renamed to `path` when that is done; None when it is there."""
    if path.is_dir():
        yield None
        return
    unfinished = path.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    yield unfinished
    unfinished.rename(path)


def copied(path: Path, folder: Path) -> Path:
    """A copy that may be written to: data files, which nobody changes, are linked."""

    def copy(source: str, target: str) -> None:
        if "/.hoodie/" in source:
            shutil.copy2(source, target)
        else:
            os.link(source, target)

    return Path(shutil.copytree(path, folder / "t", copy_function=copy))


def changed(rows: pa.Table, count: int, how: str, seed: int) -> pa.Table:
    """Rows with another comment: some at random, or the last ones of the source, whose keys lie together."""
    count = min(count, len(rows))
    random = np.random.default_rng(seed)
    chosen = random.choice(len(rows), count, replace=False) if how == RANDOM else np.arange(len(rows) - count, len(rows))
    batch = rows.take(pa.array(np.sort(chosen)))
    at = batch.schema.get_field_index("l_comment")
    return batch.set_column(at, "l_comment", pa.repeat(pa.scalar(f"changed {seed}"), len(batch)))


def batch_file(settings: Settings, count: int, how: str, seed: int) -> Path:
    """`changed` as a Parquet file, so that no side needs the memory of all rows to make its batch."""
    source = lineitem.rows_file(settings)
    path = settings.data / "batches" / f"{source.stem}-{count}-{how}-{seed}.parquet"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        pq.write_table(changed(pq.read_table(source), count, how, seed), unfinished)
        unfinished.rename(path)
    return path


def batches(settings: Settings, count: int, how: str, rounds: int) -> list[Path]:
    """A batch for each round."""
    return [batch_file(settings, count, how, seed) for seed in range(1, rounds + 1)]
