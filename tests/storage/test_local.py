"""The local disk, where Hadoop reads and writes too: its local file system keeps a hidden checksum beside each of its files."""

from __future__ import annotations

from pathlib import Path

from hudimeta.storage import open_storage


def test_a_checksum_of_hadoop_does_not_outlive_the_content_that_it_is_of(tmp_path: Path) -> None:
    (tmp_path / "replaced").write_bytes(b"old")
    (tmp_path / "deleted").write_bytes(b"old")
    for name in ("replaced", "deleted", "kept"):
        (tmp_path / f".{name}.crc").write_bytes(b"crc\x00")
    storage = open_storage(tmp_path)
    storage.put("replaced", b"new")
    assert storage.delete("deleted")
    assert sorted(f.name for f in tmp_path.iterdir()) == [".kept.crc", "replaced"]
