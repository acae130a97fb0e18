"""Options by their older names mean the same: what the plain source does before a read must not go by one of the names."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from pyspark_hudimeta.plain.source import DefaultSource

from hudimeta.errors import SchemaError
from tests.spark.tables import create, rows

BEGIN = "hoodie.datasource.read.begin.instanttime"


@pytest.mark.parametrize("name", ["hoodie.datasource.query.type", "hoodie.datasource.view.type"])
@pytest.mark.parametrize("kind", ["incremental", "INCREMENTAL", "snapshot"])
def test_a_query_of_changes_is_held_at_no_moment(tmp_path: Path, name: str, kind: str) -> None:
    table = create(tmp_path, rows([0, 5]))
    changes = kind.lower() == "incremental"
    source = DefaultSource({"path": str(tmp_path), name: kind, **({BEGIN: "earliest"} if changes else {})})
    schema = source.schema()
    copied: DefaultSource = pickle.loads(pickle.dumps(source))
    table.upsert(rows([10], 2))
    reader = copied.reader(schema)
    found = [row["id"] for share in reader.partitions() for batch in reader.read(share) for row in batch.to_pylist()]
    assert sorted(found) == ([0, 5, 10] if changes else [0, 5])


def test_a_column_that_only_the_schema_names_is_told_as_one_of_the_schema(tmp_path: Path) -> None:
    """Nobody has given the option by which the plain source asks for it."""
    create(tmp_path, rows([0]))
    source = DefaultSource({"path": str(tmp_path)})
    schema = source.schema().add("pert", "string")
    with pytest.raises(
        SchemaError, match=r"no column 'pert', which the schema names .* Did you mean part\? Allowed are columns"
    ):
        source.reader(schema)
