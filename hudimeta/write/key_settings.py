"""What a new table stores of keys and partition columns, and the combinations that cannot work."""

from __future__ import annotations

import pyarrow as pa

from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.indexes.planned import refuse_without_keys
from hudimeta.keys import KeyGenerator
from hudimeta.table.key_generator import KeyGeneratorType
from hudimeta.table.properties import TableProperties

__all__ = ["check_key_settings", "key_settings", "stored_columns"]

_VIRTUAL_KINDS = (KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX, KeyGeneratorType.NON_PARTITION)


def key_settings(options: Options) -> dict[str, str]:
    """Properties of a new table that its options ask for."""
    found = {}
    if not options.get(keys.POPULATE_META_FIELDS):
        found[keys.POPULATE_META_FIELDS.key] = "false"
    if options.get(keys.DROP_PARTITION_COLUMNS):
        found[keys.DROP_PARTITION_COLUMNS.key] = "true"
    return found


def stored_columns(schema: pa.Schema, options: Options) -> pa.Schema:
    """The columns of a new table that its files will hold."""
    gone = {name.partition(":")[0] for name in options.get(keys.PARTITION_PATH)}
    if not options.get(keys.DROP_PARTITION_COLUMNS) or not gone:
        return schema
    return pa.schema([f for f in schema if f.name not in gone], schema.metadata)


def check_key_settings(properties: TableProperties, schema: pa.Schema) -> None:
    """Refuse what cannot work.

    Args:
        properties: Of the new table.
        schema: All its data columns.

    Raises:
        UnsupportedFeature: Virtual keys, or partition columns left out, with something that they rule out.
        ConfigError: Nothing but partition columns.
    """
    generator = KeyGenerator.from_properties(properties)
    if not properties.populate_meta:
        _check_virtual(properties, generator)
    if properties.drop_partition_columns:
        _check_dropped(properties, generator, schema)


def _check_virtual(properties: TableProperties, generator: KeyGenerator) -> None:
    if generator.kind not in _VIRTUAL_KINDS:
        raise UnsupportedFeature(
            f"virtual keys with the key generator {generator.kind.value}",
            "Apache Hudi has them with SIMPLE, COMPLEX and NON_PARTITION only; leave out hoodie.populate.meta.fields.",
        )
    if generator.generates_keys:
        raise UnsupportedFeature("virtual keys without key columns", "Name the columns of the record key.")
    refuse_without_keys(properties, properties.metadata_partitions)


def _check_dropped(properties: TableProperties, generator: KeyGenerator, schema: pa.Schema) -> None:
    names = properties.partition_fields
    hint = "Leave out hoodie.datasource.write.drop.partition.columns."
    if any(field.time is not None for field in generator.partitions):
        raise UnsupportedFeature("leaving out columns whose partition paths do not state their value (time-based)", hint)
    if any(name not in schema.names for name in names):
        raise UnsupportedFeature("leaving fields of structs out of the files", hint)
    ordering = set(names) & {name.partition(".")[0] for name in properties.ordering_fields}
    if ordering:
        raise UnsupportedFeature(f"ordering by {', '.join(sorted(ordering))}, which would not be in the files", hint)
    if not properties.populate_meta and set(names) & set(generator.record_fields):
        raise UnsupportedFeature("computing keys of columns that are not in the files", hint)
    if set(schema.names) <= set(names):
        key = keys.DROP_PARTITION_COLUMNS.key
        raise ConfigError(key, "true", "false for a table of partition columns alone", "Add a column that is none.")
