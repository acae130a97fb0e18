"""Random changes of a table: a text or a number in one of its files becomes hostile."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path
from typing import Any

from tests.hostile.rewriting import change_container, hostile_number, hostile_text, leaves, make_foreign, set_leaf

__all__ = ["mutate"]


def mutate(table: Path, random_: random.Random) -> str:
    """Make the table one of somebody else, and one thing in it hostile. Returns what, for a failing test."""
    make_foreign(table)
    paths = [p for p in sorted(table.rglob("*")) if p.is_file() and p.stat().st_size]
    path = random_.choice(paths)
    data = path.read_bytes()
    if data[:4] == b"Obj\x01":
        change_container(path, lambda record: _spoil(record, random_, table.parent))
    elif path.name == "hoodie.properties":
        lines = data.decode("latin-1").splitlines()
        at = random_.randrange(len(lines))
        lines[at] = (
            lines[at].partition("=")[0] + "=" + hostile_text(random_, table.parent).replace("\0", "").replace("\u202e", "")
        )
        path.write_bytes("\n".join([*lines, ""]).encode("latin-1"))
    elif data[:1] == b"{":
        value = json.loads(data)
        _spoil(value, random_, table.parent)
        path.write_text(json.dumps(value))
    else:
        size = random_.choice([1, 2, 4, 8])
        at = random_.randrange(max(1, len(data) - size))
        number = struct.pack(">q", hostile_number(random_))
        path.write_bytes(data[:at] + number[-size:] + data[at + size :])
    return str(path.relative_to(table))


def _spoil(value: Any, random_: random.Random, outside: Path) -> None:
    """One leaf, or the name of a branch."""
    places = list(leaves(value))
    if not places:
        return
    at = random_.choice(places)
    if random_.random() < 0.2 and (inner := [n for n, step in enumerate(at) if isinstance(step, str) and n]):
        depth = random_.choice(inner)
        for step in at[:depth]:
            value = value[step]
        if isinstance(value, dict) and all(isinstance(one, (list, dict)) for one in value.values()):
            value[hostile_text(random_, outside)] = value.pop(at[depth])
            return
        at = at[depth:]
    found = value
    for step in at:
        found = found[step]
    set_leaf(value, at, hostile_text(random_, outside) if isinstance(found, str) else _number_like(found, random_))


def _number_like(found: int, random_: random.Random) -> int:
    """Within 32 bits where it may be an Avro int."""
    number = hostile_number(random_)
    return number if abs(found) >= 1 << 31 else max(-(1 << 31), min(number, (1 << 31) - 1))
