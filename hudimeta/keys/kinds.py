"""Which key generator a table has: types, legacy class names, and what is inferred when a table names none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hudimeta.errors import UnsupportedFeature
from hudimeta.table.key_generator import KeyGeneratorType

__all__ = ["KeyGeneratorType", "generator_type", "split_fields"]

TYPE_KEY = "hoodie.table.keygenerator.type"
CLASS_KEY = "hoodie.table.keygenerator.class"


_BY_CLASS: dict[str, KeyGeneratorType] = {
    "SimpleKeyGenerator": KeyGeneratorType.SIMPLE,
    "ComplexKeyGenerator": KeyGeneratorType.COMPLEX,
    "NonpartitionedKeyGenerator": KeyGeneratorType.NON_PARTITION,
    "TimestampBasedKeyGenerator": KeyGeneratorType.TIMESTAMP,
    "CustomKeyGenerator": KeyGeneratorType.CUSTOM,
    "GlobalDeleteKeyGenerator": KeyGeneratorType.GLOBAL_DELETE,
}

_BY_NAME = {kind.value: kind for kind in _BY_CLASS.values()}

_INFERRED_NAMES = frozenset({"SPARK_SQL", "SPARK_SQL_UUID", "SPARK_SQL_MERGE_INTO"})
_INFERRED_CLASSES = frozenset(
    {
        "SqlKeyGenerator",
        "UuidKeyGenerator",
        "MergeIntoKeyGenerator",
        "AutoRecordGenWrapperKeyGenerator",
        "AutoRecordGenWrapperAvroKeyGenerator",
    }
)
"""Spark SQL's wrappers: behind them works the generator that the fields imply."""


def split_fields(text: str | None) -> tuple[str, ...]:
    """A comma-separated property as names: blanks around names and empty names go, None gives ()."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def generator_type(properties: Mapping[str, str]) -> KeyGeneratorType:
    """The table's key generator.

    Args:
        properties: Table properties: the type (v8 and later) or class (v6, user-provided), and both lists of fields.

    Raises:
        UnsupportedFeature: A class that is not one of Hudi's own.
    """
    name = properties.get(TYPE_KEY, "").strip().upper()
    class_name = properties.get(CLASS_KEY, "").strip()
    if name and name != "USER_PROVIDED" and name not in _INFERRED_NAMES:
        return _by_type_name(name)
    if class_name and name not in _INFERRED_NAMES:
        short = class_name.rpartition(".")[2].rpartition("$")[2]
        if short not in _INFERRED_CLASSES:
            return _by_class_name(short, class_name)
    keys = split_fields(properties.get("hoodie.table.recordkey.fields"))
    return _inferred(keys, split_fields(properties.get("hoodie.table.partition.fields")))


def _by_type_name(name: str) -> KeyGeneratorType:
    found = _BY_NAME.get(name.removesuffix("_AVRO"))
    if found is None:
        raise UnsupportedFeature(f"the key generator type {name}", "Reading works; write with Apache Hudi.")
    return found


def _by_class_name(short: str, class_name: str) -> KeyGeneratorType:
    """The package does not matter: it changed over the releases (com.uber.hoodie, org.apache.hudi, org.apache.hudi.keygen)."""
    found = _BY_CLASS.get(short.replace("AvroKeyGenerator", "KeyGenerator"))
    if found is None:
        raise UnsupportedFeature(f"the user-provided key generator {class_name}", "Reading works; write with Apache Hudi.")
    return found


def _inferred(keys: Sequence[str], partitions: Sequence[str]) -> KeyGeneratorType:
    if not partitions:
        return KeyGeneratorType.NON_PARTITION
    if ":" in partitions[0]:
        return KeyGeneratorType.CUSTOM
    single = len(keys) <= 1 and len(partitions) == 1
    return KeyGeneratorType.SIMPLE if single else KeyGeneratorType.COMPLEX
