"""Random MERGEs into tables of every kind: the rows are those of a model in plain Python, or nothing has changed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark_hudimeta
import pytest
from pyspark.sql.functions import expr

from tests.elsewhere import REMOTE
from tests.spark.random_merges import COLUMNS, OTHERS, Case, Refused, Words, case_of, literal_rows
from tests.spark.tables import check

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

NUMBER = count()
MERGES = int(os.environ.get("HUDIMETA_MERGES", "6"))
"""How many; in classic sessions an attached one has every other."""
FIRST = int(os.environ.get("HUDIMETA_MERGES_SEED", "0"))
"""The number of the first."""
DECLARED = ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items())


@pytest.fixture
def session(door: SparkSession) -> Iterator[SparkSession]:
    door.sql("create table others (id int, number int) using parquet")
    values = ", ".join(f"({key}, {'null' if value is None else value})" for key, value in OTHERS.items())
    door.sql(f"insert into others values {values}")
    yield door
    door.sql("drop table others")


@pytest.mark.timeout(60 + 30 * MERGES)
def test_rows_after_random_merges_are_those_of_the_model(session: SparkSession, tmp_path: Path) -> None:
    wrong = []
    turns = range(FIRST, FIRST + MERGES)
    for seed in turns if REMOTE else [seed for seed in turns if seed % 2 == hasattr(session, "is_attached")]:
        case = case_of(seed)
        try:
            said = _run(session, case, tmp_path)
        except Exception as error:
            said = f"{type(error).__name__} {str(error)[:600]}"
        if said:
            kind = f"{case.kind} {case.keyed=} {case.partitioned=} {case.indexed=} {case.ordered=} {case.by_columns=}"
            wrong.append(f"HUDIMETA_MERGES_SEED={seed} {kind}: {case.text('t', 'source')}\n{said}")
    assert not wrong, "\n".join(wrong)


def _run(session: SparkSession, case: Case, folder: Path) -> str:
    """Empty where the statement did what the model says."""
    number = next(NUMBER)
    table, source, path = f"merged_{number}", f"merging_{number}", folder / f"t{number}"
    partitions = "partitioned by (p)" if case.partitioned else ""
    key = "primaryKey = 'id', " if case.keyed else ""
    order = ", orderingFields = 'ts'" if case.ordered else ""
    index = ", 'hoodie.metadata.record.index.enable' = 'true'" if case.indexed else ""
    session.sql(
        f"create table {table} ({DECLARED}) using hudimeta {partitions} location '{path}' "
        f"tblproperties ({key}type = '{case.kind}'{order}{index})"
    )
    session.sql(f"create table {source} ({DECLARED}) using parquet")
    try:
        if case.target:
            session.sql(f"insert into {table} values {literal_rows(case.target)}")
        if case.source:
            # In one file, because without an order the last row counts.
            session.sql(f"insert into {source} select /*+ coalesce(1) */ * from values {literal_rows(case.source)}")
        before, text = _shown(session, table), case.text(table, source)
        if before != _sorted(case.target):
            return f"inserted {case.target}, read {before}"
        parameters = {name: value for name, value in case.parameters.items() if f":{name}" in text}
        merge: Callable[[], Any] = partial(session.sql, text, parameters)
        if case.by_columns:
            merge = partial(_by_columns, session, case, table, source)
        try:
            want = _sorted(case.merged())
        except Refused as refused:
            with pytest.raises(Exception, match=re.compile(str(refused))):
                merge()
            found = _shown(session, table)
            check(path)
            return f"refused, and yet {before} became {found}" if found != before else ""
        merge()
        found = _shown(session, table)
        check(path)
        return "" if found == want else f"before {before}\nsource {case.source}\nwanted {want}\nfound {found}"
    finally:
        session.sql(f"drop table {table}")
        session.sql(f"drop table {source}")


def _by_columns(session: SparkSession, case: Case, table: str, source: str) -> None:
    """The same by `mergeInto`."""

    def said(words: Words) -> Column:
        return expr(words.text.format(t=table, s="s"))

    merging: Any = pyspark_hudimeta.merge_into(session.table(source).alias("s"), table, said(case.on))
    whens = {"matched": "whenMatched", "not matched": "whenNotMatched", "not matched by source": "whenNotMatchedBySource"}
    for clause in case.clauses:
        when = getattr(merging, whens[clause.rows])(said(clause.condition) if clause.condition is not None else None)
        if clause.action == "delete":
            merging = when.delete()
        elif clause.assigned is None:
            merging = when.updateAll() if clause.action == "update" else when.insertAll()
        else:
            values = {f"`{path}`" if "." not in path else path: said(words) for path, words in clause.assigned.items()}
            merging = when.update(values) if clause.action == "update" else when.insert(values)
    merging.merge()


def _shown(session: SparkSession, table: str) -> list[str]:
    names = ", ".join(f"`{name}`" for name in COLUMNS)
    return _sorted([row.asDict(True) for row in session.sql(f"select {names} from {table}").collect()])


def _sorted(rows: Any) -> list[str]:
    return sorted(str({name: row[name] for name in COLUMNS}) for row in rows)
