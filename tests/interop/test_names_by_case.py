"""A column of a DataFrame in another case than the table has it is refused by Apache Hudi, and by hudimeta."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import SchemaMismatch
from tests.interop.apache_hudi import ApacheHudi, HudiFailed

FIRST = pa.table({"id": ["a", "b"], "ts": [1, 1], "name": ["x", "y"]})
OTHERS = {
    "in its place": (["id", "ts", "NAME"], {}),
    "in its place, columns may be missing": (["id", "ts", "NAME"], {"hoodie.write.set.null.for.missing.columns": "true"}),
    "in its place, reconciled": (["id", "ts", "NAME"], {"hoodie.datasource.write.reconcile.schema": "true"}),
    "beside it": (["id", "ts", "name", "NAME"], {}),
    "the key": (["ID", "ts", "name"], {}),
    "the ordering column": (["id", "TS", "name"], {}),
}


def test_both_refuse_a_column_in_another_case(hudi: ApacheHudi, tmp_path: Path) -> None:
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    options["hoodie.datasource.write.precombine.field"] = "ts"
    path = tmp_path / "t"
    hudi.write(path, FIRST, options)
    before = hudimeta.Table(path).scan().to_table()
    for which, (names, more) in OTHERS.items():
        rows = pa.table([[["b", "c"], [2, 2], ["z", "w"], ["p", "q"]][n] for n in range(len(names))], names=names)
        with pytest.raises(HudiFailed):
            hudi.write(path, rows, options | more)
        with pytest.raises(SchemaMismatch, match=r"only by upper and lower case|is missing"):
            hudimeta.Table(path, more).upsert(rows)
        assert hudimeta.Table(path).scan().to_table().equals(before), which
