"""What a write knows of the keys of files before it looks into them."""

from __future__ import annotations

import pyarrow as pa

from hudimeta.snapshot.key_files import ranges_by_name


def test_files_of_one_name_in_several_partitions_have_the_range_of_them_all() -> None:
    names = ["a.parquet", "b.parquet", "a.parquet", "c.parquet", "c.parquet", "c.parquet"]
    lows, highs = ["k1", "k5", "k8", "k1", None, "k3"], ["k2", "k6", "k9", "k2", None, "k4"]
    found = ranges_by_name(pa.table({"file_name": names, "min": lows, "max": highs}))
    assert found == {"a.parquet": ("k1", "k9"), "b.parquet": ("k5", "k6"), "c.parquet": (None, None)}
