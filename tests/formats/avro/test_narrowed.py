"""A record with some of another's fields defines each type that it names, and no type twice."""

from __future__ import annotations

import json

import pytest

from hudimeta.formats.avro.narrowed import narrowed
from hudimeta.formats.avro.nodes import parse_record

MONEY = {"type": "fixed", "name": "money", "namespace": "hoodie.t.r.a", "size": 4}
KIND = {"type": "enum", "name": "kind", "symbols": ["A", "B"]}
PLACE = {"type": "record", "name": "place", "namespace": "", "fields": [{"name": "kind", "type": KIND}]}
WHOLE = {
    "type": "record",
    "name": "r",
    "namespace": "hoodie.t",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "a", "type": ["null", MONEY], "default": None},
        {"name": "b", "type": ["null", {"type": "array", "items": PLACE}], "default": None},
        {"name": "c", "type": ["null", "place"], "default": None},
        {"name": "d", "type": {"type": "map", "values": "hoodie.t.r.a.money"}},
        {"name": "e", "type": ["null", "kind"], "default": None},
        {"name": "f", "type": ["null", "place"], "default": None},
    ],
}


@pytest.mark.parametrize(
    "names", [{"id"}, {"c"}, {"e"}, {"d"}, {"c", "e", "f"}, {"b", "f"}, {"e", "f"}, set("abcdef") | {"id"}]
)
def test_what_is_left_is_what_it_was(names: set[str]) -> None:
    whole, part = parse_record(json.dumps(WHOLE)), parse_record(narrowed(json.dumps(WHOLE), names))
    assert part.names == tuple(name for name in whole.names if name in names)
    kept = dict(zip(whole.names, whole.children, strict=True))
    assert part.children == tuple(kept[name] for name in part.names)


def test_a_type_is_defined_where_it_comes_first() -> None:
    c, e, f = json.loads(narrowed(json.dumps(WHOLE), {"c", "e", "f"}))["fields"]
    assert c["type"] == ["null", PLACE | {"fields": [{"name": "kind", "type": KIND}]}]
    assert (e["type"], f["type"]) == (["null", "kind"], ["null", "place"])
