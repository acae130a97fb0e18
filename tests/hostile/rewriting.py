"""Files of a table taken apart, changed, and put together again without seals, as a hostile writer would leave them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hudimeta.formats.avro.container import decode_container, decode_container_schema, encode_container
from hudimeta.formats.hfile import HFileInfo, HFileReader, write_hfile
from hudimeta.formats.log import BlockType, HeaderKey, encode_block, read_blocks

__all__ = [
    "change_container",
    "change_metadata",
    "hostile_number",
    "hostile_text",
    "leaves",
    "make_foreign",
    "replaced",
    "set_leaf",
]


def change_container(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the record of an instant's file."""
    data = path.read_bytes()
    schema, records = decode_container_schema(data), decode_container(data)
    named = {field["name"] for field in schema["fields"]}
    for record in records:
        change(record)
    path.write_bytes(encode_container(schema, [{k: v for k, v in record.items() if k in named} for record in records]))


def change_metadata(folder: Path, change: Callable[[bytes], bytes]) -> int:
    """Change keys and values of every HFile of a metadata partition, in its base files and logs. Returns how many changed."""
    changed = 0
    for path in sorted(folder.iterdir()):
        if path.suffix == ".hfile":
            before, after = path.read_bytes(), _changed_hfile(path.read_bytes(), change)
        elif ".log." in path.name:
            before = path.read_bytes()
            parts = []
            for block in read_blocks(before).blocks:
                held = block.type is BlockType.HFILE_DATA
                content = _changed_hfile(bytes(block.content), change) if held else bytes(block.content)
                header = {k: v for k, v in block.header.items() if k is not HeaderKey.TARGET_INSTANT_TIME}
                parts.append(encode_block(block.type, header, content))
            after = b"".join(parts)
        else:
            continue
        if before != after:
            changed += 1
            path.write_bytes(after)
    return changed


def _changed_hfile(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    reader = HFileReader(data)
    found = reader.scan()
    pairs = zip(found.keys.to_pylist(), found.values.to_pylist(), strict=True)
    records = sorted((change(key), change(value)) for key, value in pairs)
    return write_hfile([k for k, _ in records], [v for _, v in records], HFileInfo(reader.schema_text), unique=False)


def make_foreign(table: Path) -> None:
    """Take away what only we write, so that nothing but the content speaks for itself."""
    properties = table / ".hoodie" / "hoodie.properties"
    properties.write_text("".join(f"{line}\n" for line in properties.read_text().splitlines() if not line.startswith("#")))

    def change(record: dict[str, Any]) -> None:
        entries = record.get("extraMetadata") or {}
        for name in [name for name in entries if name.startswith("hudimeta.")]:
            del entries[name]

    for folder in (table / ".hoodie" / "timeline", table / ".hoodie" / "metadata" / ".hoodie" / "timeline"):
        for path in folder.iterdir():
            if path.is_file() and path.read_bytes()[:4] == b"Obj\x01":
                change_container(path, change)


def replaced(old: str, new: str) -> Callable[[bytes], bytes]:
    """Replaces a text by one of the same length, in Avro as well."""
    assert len(old.encode()) == len(new.encode())
    return lambda data: data.replace(old.encode(), new.encode())


def leaves(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all texts and numbers in a record."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from leaves(one, (*at, key))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from leaves(one, (*at, number))
    elif isinstance(value, (str, int)) and not isinstance(value, bool):
        yield at


def set_leaf(value: Any, at: tuple[Any, ...], hostile: Any) -> None:
    """Put something hostile at a place."""
    for step in at[:-1]:
        value = value[step]
    value[at[-1]] = hostile


def hostile_text(random_: random.Random, outside: Path) -> str:
    """A path or text that means no good."""
    odd = ["..", "../victim/canary", "../../victim/canary", str(outside / "canary"), "/", "", ".", "a//b", "%2e%2e/victim"]
    odd += ["a\0b", "\n", "\u202e", "x" * 5000, "../" * 50, "null", "9" * 400, "-1", "[" * 2000, "{}", "NaN", "file:///etc"]
    return random_.choice(odd)


def hostile_number(random_: random.Random) -> int:
    """A length or count that means no good."""
    return random_.choice([0, -1, 1, (1 << 31) - 1, -(1 << 31), (1 << 63) - 1, -(1 << 63), 1 << 40])
