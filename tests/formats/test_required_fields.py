"""Random rows with fields that are `not null` below null structs: whatever the slice, Parquet gives back the same values."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudimeta.formats.required_fields import cast_table, without_hidden_nulls
from hudimeta.schema import conform

PAIR = pa.struct([pa.field("a", pa.int32(), nullable=False), pa.field("s", pa.string(), nullable=False)])
PAIRS = pa.list_(pa.field("element", PAIR))
INSIDE = pa.struct([pa.field("x", PAIR, nullable=False), pa.field("y", PAIRS, nullable=False)])
SCHEMA = pa.schema([("pair", PAIR), ("pairs", PAIRS), ("named", pa.map_(pa.string(), PAIR)), ("inside", INSIDE)])


def row(dice: random.Random) -> dict[str, Any]:
    def maybe(make: Callable[[], Any]) -> Any:
        return make() if dice.random() < 0.6 else None

    def pair() -> dict[str, Any]:
        return {"a": dice.randrange(9), "s": "t"}

    def pairs() -> list[Any]:
        return [maybe(pair) for _ in range(dice.randrange(3))]

    named = [(f"k{number}", one) for number, one in enumerate(pairs())]
    return {
        "pair": maybe(pair),
        "pairs": maybe(pairs),
        "named": maybe(lambda: named),
        "inside": maybe(lambda: {"x": pair(), "y": pairs()}),
    }


@pytest.mark.parametrize("seed", range(40))
def test_parquet_gives_back_the_same_values(seed: int) -> None:
    dice = random.Random(seed)
    given = [row(dice) for _ in range(dice.randrange(7))]
    whole = conform(pa.Table.from_pylist(given, schema=SCHEMA), SCHEMA)
    rows = whole.slice(dice.randrange(len(given) + 1), dice.randrange(len(given) + 1))
    stored = without_hidden_nulls(rows)
    assert stored.to_pylist() == rows.to_pylist()
    sink = io.BytesIO()
    pq.write_table(stored, sink)
    read = pq.read_table(sink)
    assert cast_table(read, read.schema).to_pylist() == rows.to_pylist()
