"""Random histories of tables with a record window, against a model of their rows."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from hudimeta.storage import open_storage
from hudimeta.testing.invariants import ALWAYS, check_all, record_window_is_live_keys
from tests.write.windows import BOTH, FOLDER, contents, create, rows


class _Model:
    """Rows by partition and key, of a table with a window of three days."""

    def __init__(self) -> None:
        self.rows: dict[int, dict[str, int]] = {}

    def upsert(self, key: str, day: int, v: int, days: set[int]) -> None:
        for place in self._places(key, day, days) or [day]:
            self.rows.setdefault(place, {})[key] = v

    def delete(self, key: str, day: int, days: set[int]) -> None:
        for place in {*self._places(key, day, days), day}:
            self.rows.get(place, {}).pop(key, None)

    def _places(self, key: str, day: int, days: set[int]) -> list[int]:
        first = max(days) - 2
        inside = [place for place, own in self.rows.items() if place >= first and key in own]
        return inside or [place for place in (day,) if key in self.rows.get(place, {})]

    def contents(self) -> list[tuple[str, int, int]]:
        return sorted((key, day, v) for day, own in self.rows.items() for key, v in own.items())


@pytest.mark.rotation(2)
@BOTH
@pytest.mark.parametrize("seed", range(4))
def test_random_histories(tmp_path: Path, kind: str, seed: int) -> None:
    """Writes and services, while the folder is lost, damaged, or goes back to what it was: rows are those of a dictionary."""
    rng, model = random.Random(seed), _Model()
    small = rng.choice(["0", "100000000"])
    table = create(tmp_path / "t", kind, hudimeta_record_window_days="3", hoodie_parquet_small_file_limit=small)
    paths: set[int] = set()
    for step in range(20):
        newest = 3 + step // 4
        folder = tmp_path / "t" / FOLDER
        act = rng.choice(["upsert", "upsert", "upsert", "delete", "service", "lose", "damage", "go back"])
        if act in ("upsert", "delete"):
            keys = rng.sample(range(12), rng.randint(1, 5))
            given = [(f"k{key}", rng.randint(max(1, newest - 4), newest), step) for key in keys]
            getattr(table, act)(rows(*given))
            days = paths | {day for _, day, _ in given}
            for key, day, v in given:
                if act == "upsert":
                    model.upsert(key, day, v, days)
                else:
                    model.delete(key, day, days)
            paths |= set(model.rows)
        elif act == "service" and paths:
            rng.choice([table.cluster, table.clean, *([table.compact] if kind == "MERGE_ON_READ" else [])])()
        elif act == "lose" and folder.exists():
            victim = rng.choice([folder, *folder.iterdir()])
            shutil.rmtree(victim) if victim.is_dir() else victim.unlink()
        elif act == "damage" and (files := [one for one in folder.glob("*") if one.stat().st_size]):
            one = rng.choice(files)
            data = bytearray(one.read_bytes())
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            one.write_bytes(data)
        elif act == "go back":
            kept = tmp_path / "kept"
            if kept.exists() and folder.exists():
                shutil.rmtree(folder)
                shutil.copytree(kept, folder)
            elif folder.exists():
                shutil.copytree(folder, kept)
        assert contents(tmp_path / "t") == model.contents(), (step, act)
    check_all(open_storage(tmp_path / "t"), [one for one in ALWAYS if one is not record_window_is_live_keys])
