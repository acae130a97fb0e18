"""Files as HBase and Hudi 1.1 shape them: several index levels, fake keys, keys without suffix, blocks in another order."""

from __future__ import annotations

import itertools

import pytest

from hudimeta.formats.hfile import Compression, HFileReader
from hudimeta.formats.hfile.layout import BlockKind
from tests.formats.hfile_shapes import Pair, Place, Shape

PAIRS: list[Pair] = [(b"key-%06d" % (3 * i), b"value %d" % i * (i % 4)) for i in range(2_000)]


def blocks(pairs: list[Pair], size: int) -> list[list[Pair]]:
    return [pairs[i : i + size] for i in range(0, len(pairs), size)]


def levelled(levels: int, codec: Compression, width: int = 7) -> bytes:
    """Leaf blocks stand among the data, as HBase writes them; intermediate ones after it."""
    shape = Shape(codec=codec)
    leaves: list[Place] = []
    for group in blocks([(b"", b"")] * 200, width):
        places = []
        for _ in group:
            begin = shape.entries
            places.append(shape.data(PAIRS[begin : begin + 10]))
        leaves.append(shape.index(BlockKind.LEAF_INDEX, places))
    above = leaves
    for _ in range(levels - 2):
        above = [shape.index(BlockKind.INTERMEDIATE_INDEX, above[i : i + width]) for i in range(0, len(above), width)]
    return shape.finish(above, levels=levels)


@pytest.mark.parametrize("codec", [Compression.GZ, Compression.NONE])
@pytest.mark.parametrize("levels", [2, 3, 4])
def test_files_of_several_index_levels(levels: int, codec: Compression) -> None:
    data = levelled(levels, codec)
    reader = HFileReader(data)
    found = reader.scan()
    assert list(zip(found.keys.to_pylist(), found.values.to_pylist(), strict=True)) == PAIRS
    assert reader.blocks_opened == 200
    for at in (0, 9, 10, 69, 70, 1_234, 1_999):
        reader = HFileReader(data)
        assert reader.lookup([PAIRS[at][0]]).values.to_pylist() == [PAIRS[at][1]]
        assert reader.blocks_opened == 1
    reader = HFileReader(data)
    assert len(reader.lookup([b"key-000001", b"zzz"])) == 0
    assert reader.prefix([b"key-0012"]).keys.to_pylist() == [k for k, _ in PAIRS if k.startswith(b"key-0012")]
    assert sum(len(batch) for batch in reader.scan_batches(1_000)) == 2_000


def test_a_fake_index_key_is_never_taken_for_a_key() -> None:
    shape = Shape()
    first, second = [(b"apple", b"1")], [(b"banana-split", b"2"), (b"cherry", b"3")]
    data = shape.finish([shape.data(first), shape.data(second, index_key=b"b")])
    reader = HFileReader(data)
    assert reader.scan().keys.to_pylist() == [b"apple", b"banana-split", b"cherry"]
    assert reader.lookup([b"b"]).keys.to_pylist() == []
    assert reader.lookup([b"banana-split"]).values.to_pylist() == [b"2"]
    assert reader.prefix([b"ban", b"a"]).values.to_pylist() == [b"1", b"2"]


@pytest.mark.parametrize("size", [1, 10, 113, 114, 115, 125, 126, 127, 128, 253, 254, 300, 20_000])
@pytest.mark.parametrize("native", [True, False])
def test_index_keys_of_both_writers_at_every_length(size: int, native: bool) -> None:
    pairs = [(b"%d" % i + b"k" * (size - 1), b"v%d" % i) for i in range(4)]
    shape = Shape(native=native, minor=0 if native else 3)
    reader = HFileReader(shape.finish([shape.data([pair]) for pair in pairs]))
    assert reader.root_index.keys == [key for key, _ in pairs]
    for key, value in pairs:
        assert reader.lookup([key]).values.to_pylist() == [value]


def test_a_file_info_in_any_order_and_without_cell_version() -> None:
    shape = Shape()
    shape.info = {"zeta": b"1", "schema": b'"x"', "alpha": b""}
    reader = HFileReader(shape.finish([shape.data([(b"k", b"v")])]))
    assert dict(reader.file_info) == {"zeta": b"1", "schema": b'"x"', "alpha": b""}
    assert reader.scan().values.to_pylist() == [b"v"]


def test_a_file_not_ordered_by_bytes_is_still_read_right() -> None:
    """Keys beyond U+FFFF sort before U+E000 in Java's order of strings."""
    astral, private = "\U0001f600".encode(), "\ue000".encode()
    assert astral > private
    shape = Shape()
    reader = HFileReader(shape.finish([shape.data([(astral, b"1")]), shape.data([(private, b"2")])]))
    assert reader.lookup(sorted([private, astral])).values.to_pylist() == [b"1", b"2"]
    assert reader.prefix([private]).values.to_pylist() == [b"2"]


def test_equal_keys_at_the_head_of_several_blocks_are_all_found() -> None:
    shape = Shape()
    runs = [[(b"a", b"1"), (b"a", b"2")], [(b"b", b"3")], [(b"b", b"4")], [(b"c", b"5")]]
    reader = HFileReader(shape.finish([shape.data(run) for run in runs]))
    assert reader.lookup([b"b"]).values.to_pylist() == [b"3", b"4"]
    assert reader.lookup([b"a", b"aa", b"b", b"bb", b"c"] + [b"x%03d" % i for i in range(40)]).values.to_pylist() == [
        value for _, value in itertools.chain(*runs)
    ]
