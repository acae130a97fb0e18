"""Which key generator a table uses: Hudi's names for it, by type (versions 8 and 9) and by Java class (version 6)."""

from __future__ import annotations

import enum

__all__ = ["KeyGeneratorType", "key_generator_type"]


class KeyGeneratorType(enum.Enum):
    """How record keys and partition paths are made; the value is the text in `hoodie.table.keygenerator.type`."""

    SIMPLE = "SIMPLE"
    COMPLEX = "COMPLEX"
    NON_PARTITION = "NON_PARTITION"
    TIMESTAMP = "TIMESTAMP"
    CUSTOM = "CUSTOM"
    GLOBAL_DELETE = "GLOBAL_DELETE"
    METADATA_TABLE = "HOODIE_TABLE_METADATA"
    USER_PROVIDED = "USER_PROVIDED"


_AVRO_SUFFIX = "_AVRO"
_PACKAGE = "org.apache.hudi.keygen."
_BY_CLASS = {
    "SimpleKeyGenerator": KeyGeneratorType.SIMPLE,
    "SimpleAvroKeyGenerator": KeyGeneratorType.SIMPLE,
    "ComplexKeyGenerator": KeyGeneratorType.COMPLEX,
    "ComplexAvroKeyGenerator": KeyGeneratorType.COMPLEX,
    "NonpartitionedKeyGenerator": KeyGeneratorType.NON_PARTITION,
    "NonpartitionedAvroKeyGenerator": KeyGeneratorType.NON_PARTITION,
    "TimestampBasedKeyGenerator": KeyGeneratorType.TIMESTAMP,
    "TimestampBasedAvroKeyGenerator": KeyGeneratorType.TIMESTAMP,
    "CustomKeyGenerator": KeyGeneratorType.CUSTOM,
    "CustomAvroKeyGenerator": KeyGeneratorType.CUSTOM,
    "GlobalDeleteKeyGenerator": KeyGeneratorType.GLOBAL_DELETE,
    "GlobalAvroDeleteKeyGenerator": KeyGeneratorType.GLOBAL_DELETE,
}


def key_generator_type(type_name: str, class_name: str, n_keys: int, n_partitions: int) -> KeyGeneratorType:
    """The key generator that a table's properties name.

    Args:
        type_name: `hoodie.table.keygenerator.type`, "" when absent; it goes before the class.
        class_name: `hoodie.table.keygenerator.class`, "" when absent.
        n_keys: How many record key fields the table has.
        n_partitions: How many partition fields it has.

    Returns:
        USER_PROVIDED for classes and types that Hudi does not bring along. Where nothing is named, what Hudi would infer:
        NON_PARTITION without partition fields, SIMPLE for one of each, else COMPLEX.
    """
    if type_name:
        known = type_name.strip().upper().removesuffix(_AVRO_SUFFIX)
        return KeyGeneratorType(known) if known in _TYPE_NAMES else KeyGeneratorType.USER_PROVIDED
    if class_name:
        short = class_name.strip().removeprefix(_PACKAGE)
        return _BY_CLASS.get(short, KeyGeneratorType.USER_PROVIDED)
    if not n_partitions:
        return KeyGeneratorType.NON_PARTITION
    return KeyGeneratorType.SIMPLE if n_keys <= 1 and n_partitions == 1 else KeyGeneratorType.COMPLEX


_TYPE_NAMES = frozenset(kind.value for kind in KeyGeneratorType)
