"""Schema of a delete block's content (`HoodieDeleteRecordList`), whose ordering value is a union of wrapper records."""

from __future__ import annotations

from typing import Any

from hudimeta.formats.avro.schemas.notation import NAMESPACE, array_of, optional, record, required

__all__ = ["DELETE_RECORD_LIST", "DELETE_RECORD_LIST_1_0"]


def _wrapper(name: str, kind: Any) -> dict[str, Any]:
    return record(name, required("value", kind))


_WRAPPERS = (
    _wrapper("BooleanWrapper", "boolean"),
    _wrapper("IntWrapper", "int"),
    _wrapper("LongWrapper", "long"),
    _wrapper("FloatWrapper", "float"),
    _wrapper("DoubleWrapper", "double"),
    _wrapper("BytesWrapper", "bytes"),
    _wrapper("StringWrapper", "string"),
    _wrapper("DateWrapper", "int"),
    _wrapper("DecimalWrapper", {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15}),
    _wrapper("TimeMicrosWrapper", {"type": "long", "logicalType": "time-micros"}),
    _wrapper("TimestampMicrosWrapper", "long"),
)

_ARRAY_WRAPPER = record(
    "ArrayWrapper",
    optional("wrappedValues", array_of(["null", *(w["name"] for w in _WRAPPERS), _wrapper("LocalDateWrapper", "int")])),
)


def _list_of(*branches: dict[str, Any]) -> dict[str, Any]:
    item = record(
        "HoodieDeleteRecord",
        optional("recordKey", "string"),
        optional("partitionPath", "string"),
        {"name": "orderingVal", "type": ["null", *branches], "default": None},
    )
    return record("HoodieDeleteRecordList", required("deleteRecordList", array_of(item)), namespace=NAMESPACE)


DELETE_RECORD_LIST_1_0 = _list_of(*_WRAPPERS)
"""As Hudi 1.0 has it: branches 0 (null) to 11."""

DELETE_RECORD_LIST = _list_of(*_WRAPPERS, _ARRAY_WRAPPER)
"""As Hudi 1.1 and later have it: branch 12 holds the values of several ordering fields."""
