"""A table's key generator: record keys and partition paths of whole batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.formats.plain_arrays import scalar_of
from hudimeta.keys.columns import Rows
from hudimeta.keys.kinds import KeyGeneratorType, generator_type, split_fields
from hudimeta.keys.moment_text import MomentForm, MomentText
from hudimeta.keys.partition_path import finish_path, simple_segment
from hudimeta.keys.record_key import composite_keys, generated_keys, plain_keys
from hudimeta.keys.timestamp_partition import ZONE_KEY, TimestampPartition
from hudimeta.keys.zones import machine_zone

__all__ = ["KeyGenerator", "PartitionField"]

FIRST_VERSION_WITH_PREFIX = 9
"""From this table version on COMPLEX writes `field:value` for a single key field, whatever release writes."""

PATH_COLUMN = "_hoodie_partition_path"
NEW_ENCODING = "hoodie.write.complex.keygen.new.encoding"


@dataclass(frozen=True)
class PartitionField:
    """One partition field: its (dotted) column, and the time settings when it is time-based, or a timestamp named by a text."""

    name: str
    time: TimestampPartition | MomentText | None = None

    @property
    def levels(self) -> int:
        """How many folders its part of the path has; a plain value that is not URL encoded may hold slashes of its own."""
        return self.time.levels if self.time else 1


@dataclass(frozen=True)
class KeyGenerator:
    """How a table makes record keys and partition paths.

    Attributes:
        kind: The type.
        record_fields: Key columns, empty when keys are generated.
        partitions: Partition fields, in order.
        hive: `field=value` folders.
        encode: URL encoding of values.
        consistent_timestamp: Timestamps become date texts in keys instead of numbers.
        complex_single_field_prefix: Whether COMPLEX with one key field writes `field:value` (True) or `value` (False). It is a
            property of the table *and of who wrote it*: version 9 always prefixes; below that Hudi 0.14.1 to 1.0.2 wrote the
            bare value and every other release the prefix, and nothing in the table says which. None: unknown, to be learned
            from a row of the table with `learned_from`; a wrong guess would double every row.
        unstored: Partition columns that no file holds, as the table has them: paths are made of values of these types.
    """

    kind: KeyGeneratorType
    record_fields: tuple[str, ...]
    partitions: tuple[PartitionField, ...] = ()
    hive: bool = False
    encode: bool = False
    consistent_timestamp: bool = False
    complex_single_field_prefix: bool | None = None
    unstored: tuple[pa.Field, ...] = ()

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> KeyGenerator:
        """The generator of a table.

        Args:
            properties: `hoodie.properties` of the table, with the write options that matter to keys laid over them.

        Raises:
            UnsupportedFeature: A user-provided generator, or a layout of partitions that we do not write.
            ConfigError: Settings that contradict each other.
        """
        kind = generator_type(properties)
        hive, encode = _flag(properties, "hive_style_partitioning"), _flag(properties, "partitionpath.urlencode")
        consistent = _flag(properties, "keygenerator.consistent.logical.timestamp.enabled")
        if _flag(properties, "slash.separated.date.partitioning"):
            raise UnsupportedFeature("hoodie.datasource.write.slash.separated.date.partitioning", "Use yyyy-MM-dd folders.")
        keys = split_fields(properties.get("hoodie.table.recordkey.fields"))
        if kind in (KeyGeneratorType.SIMPLE, KeyGeneratorType.TIMESTAMP) and len(keys) > 1:
            raise ConfigError(
                "hoodie.table.recordkey.fields",
                ",".join(keys),
                f"one field with key generator {kind.value}",
                "Use COMPLEX.",
            )
        names = split_fields(properties.get("hoodie.table.partition.fields"))
        fields = _partition_fields(kind, names, properties, hive, encode, consistent)
        return cls(kind, keys, fields, hive, encode, consistent, _prefix(kind, keys, properties))

    @property
    def generates_keys(self) -> bool:
        """True for a table without key fields: keys are `<instant>_<task>_<row>` and never come from the data."""
        return not self.record_fields

    @property
    def fixed_columns(self) -> tuple[str, ...]:
        """Top-level columns that say which row a row is: those of the record key and of the partition path."""
        named = (*self.key_columns, *(field.name.partition(".")[0] for field in self.partitions))
        return tuple(dict.fromkeys(named))

    @property
    def key_columns(self) -> tuple[str, ...]:
        """Top-level columns of the record key."""
        return tuple(dict.fromkeys(name.partition(".")[0] for name in self.record_fields))

    @property
    def needs_row_to_learn(self) -> bool:
        """True while something is unknown that only a row of the table tells."""
        return self.lacks_prefix or self.lacks_zone

    @property
    def lacks_prefix(self) -> bool:
        """True while it is unknown how a single COMPLEX key field is written."""
        return self._single_complex and self.complex_single_field_prefix is None

    @property
    def lacks_zone(self) -> bool:
        """True while it is unknown in which zone times are shown by partition paths."""
        return any(field.time is not None and field.time.lacks_zone for field in self.partitions)

    @property
    def told_by(self) -> tuple[str, ...]:
        """The columns, beside the record key, of which rows tell what `learned_from` learns."""
        return (*self.record_fields, *((PATH_COLUMN, *(f.name for f in self.partitions)) if self.lacks_zone else ()))

    @property
    def _single_complex(self) -> bool:
        return self.kind is KeyGeneratorType.COMPLEX and len(self.record_fields) == 1

    def learned_from(self, rows: Rows) -> KeyGenerator:
        """The same generator, with the encoding of a single COMPLEX key field and the zone of times as rows of the table tell.

        Args:
            rows: Rows with `_hoodie_record_key` and the columns of `told_by`. Without rows nothing is learned.

        Raises:
            ConfigError: They tell of something else than the table's properties do, or of a zone that nobody names.
        """
        if not rows.num_rows:
            return self
        return self._with_prefix_of(rows)._with_zone_of(rows)

    def _with_prefix_of(self, rows: Rows) -> KeyGenerator:
        if not self.lacks_prefix:
            return self
        field = self.record_fields[0]
        first = rows.slice(0, 1)
        key = first.column("_hoodie_record_key")[0].as_py()
        bare = plain_keys(first, field, self.consistent_timestamp)[0].as_py()
        if key not in (bare, f"{field}:{bare}"):
            raise ConfigError(
                "hoodie.table.recordkey.fields",
                field,
                f"a field that gives the key {key!r}",
                f"The row's value is {bare!r}.",
            )
        return replace(self, complex_single_field_prefix=key != bare)

    def _with_zone_of(self, rows: Rows) -> KeyGenerator:
        """A zone in which all rows lie where they would be written: that of this machine, as Java takes it, or UTC."""
        if not self.lacks_zone:
            return self
        import pyarrow.compute as pc

        stored = rows.column(PATH_COLUMN)
        zones = dict.fromkeys((machine_zone(), "UTC"))
        for zone in zones:
            found = self._in_zone(zone)
            lies = pc.equal(stored, found.partition_paths(rows))
            # A text of seconds is no accident, and beside the row that made it lie those that stayed when their column changed.
            told = len(stored.filter(lies).unique()) == len(stored.unique()) if self._has_texts else pc.all(lies).as_py()
            if told:
                return found
        wrong = f"Rows lie in {stored[0].as_py()!r} and the like, where a writer in {' or '.join(zones)} would not put them. "
        if self._has_texts:
            hint = "Write in a process of the zone that Apache Hudi writes in: set TZ in its environment."
            raise ConfigError(
                "TZ", machine_zone(), "the zone of the clock by which the table's partitions are named", wrong + hint
            )
        allowed = "the zone in which the table's partitions are named"
        raise ConfigError(ZONE_KEY, None, allowed, wrong + "Pass the option with every write.")

    @property
    def _has_texts(self) -> bool:
        return any(isinstance(field.time, MomentText) for field in self.partitions)

    def with_forms(self, forms: Mapping[str, MomentForm]) -> KeyGenerator:
        """The same generator, with timestamp columns named in the forms that the table's paths show; their zone is unknown."""

        def named(field: PartitionField) -> PartitionField:
            form = forms.get(field.name, MomentForm.NUMBER)
            return replace(field, time=MomentText(form, self.hive, self.encode)) if form is not MomentForm.NUMBER else field

        return replace(self, partitions=tuple(named(field) for field in self.partitions))

    def _in_zone(self, zone: str) -> KeyGenerator:
        fields = (f if f.time is None else replace(f, time=f.time.in_zone(zone)) for f in self.partitions)
        return replace(self, partitions=tuple(fields))

    def of_an_empty_table(self) -> KeyGenerator:
        """The same generator for the first rows of a table: a single COMPLEX key is the bare value, if nothing states it.

        So writes Hudi 1.0. Later releases refuse to guess, for version 8, until their option says the same. Times are shown in
        the zone of this machine, if nothing states one, as Hudi shows them.
        """
        found = replace(self, complex_single_field_prefix=False) if self.lacks_prefix else self
        return found._in_zone(machine_zone()) if found.lacks_zone else found

    def record_keys(self, rows: Rows) -> pa.StringArray:
        """The record key of every row.

        Args:
            rows: Table or record batch with the key columns.

        Returns:
            Strings, none of them null or empty.

        Raises:
            SchemaMismatch: A key column is missing or of a nested type, or a row's key is null or empty.
            ConfigError: The table has no key fields (see `generated_keys`), or the encoding is unknown.
        """
        fields = self.record_fields
        if not fields:
            raise ConfigError("hoodie.table.recordkey.fields", "", "at least one field; this table generates its keys")
        if len(fields) > 1 or self.kind is KeyGeneratorType.GLOBAL_DELETE:
            return composite_keys(rows, fields, self.consistent_timestamp)
        if self.lacks_prefix:
            raise ConfigError(
                NEW_ENCODING,
                None,
                "true (keys are bare values) or false (keys are field:value)",
                "The table does not say how it writes a single COMPLEX key: look at _hoodie_record_key of any row.",
            )
        if self._single_complex and self.complex_single_field_prefix:
            return composite_keys(rows, fields, self.consistent_timestamp)
        return plain_keys(rows, fields[0], self.consistent_timestamp)

    def generated_keys(self, count: int, instant: str, task: int, first: int = 0) -> pa.StringArray:
        """Keys for `count` new rows of a table without key fields."""
        return generated_keys(count, instant, task, first)

    def partition_paths(self, rows: Rows) -> pa.StringArray:
        """The partition path of every row, relative to the table; "" everywhere when the table is not partitioned.

        Raises:
            SchemaMismatch: A partition column is missing or cannot be rendered, or a path would leave the table.
        """
        if not self.partitions:
            return pa.repeat(pa.scalar("", pa.string()), rows.num_rows)
        paths = self._joined([self._segment(rows, field) for field in self.partitions])
        uncut = [f.time.uncut(self.consistent_timestamp) if isinstance(f.time, MomentText) else f.time for f in self.partitions]
        if len(uncut) == 1 or all(time is field.time for time, field in zip(uncut, self.partitions, strict=True)):
            return paths
        import pyarrow.compute as pc

        # As SQL of Apache Hudi leaves moments where the value of another column holds a slash.
        fits = pc.equal(pc.count_substring(paths, "/"), scalar_of(len(uncut) - 1, pa.int32()))
        if pc.all(fits).as_py():
            return paths
        fields = [replace(field, time=time) for field, time in zip(self.partitions, uncut, strict=True)]
        return pc.if_else(fits, paths, self._joined([self._segment(rows, field) for field in fields]))

    def cuts(self, rows: Rows) -> bool:
        """True where a partition column of some row has a fraction that its folder does not show."""
        return any(isinstance(f.time, MomentText) and f.time.cuts(rows, f.name) for f in self.partitions)

    def _joined(self, segments: list[pa.Array]) -> pa.StringArray:
        return finish_path(segments, [field.name for field in self.partitions])

    def _segment(self, rows: Rows, field: PartitionField) -> pa.Array:
        if field.time is not None:
            return field.time.segment(rows, field.name)
        return simple_segment(
            rows, field.name, hive=self.hive, encode=self.encode, consistent_timestamp=self.consistent_timestamp
        )


def _flag(properties: Mapping[str, str], name: str) -> bool:
    return properties.get(f"hoodie.datasource.write.{name}", "false").strip().lower() == "true"


def _prefix(kind: KeyGeneratorType, keys: tuple[str, ...], properties: Mapping[str, str]) -> bool | None:
    if kind is not KeyGeneratorType.COMPLEX or len(keys) != 1:
        return None
    if int(properties.get("hoodie.table.version", FIRST_VERSION_WITH_PREFIX)) >= FIRST_VERSION_WITH_PREFIX:
        return True
    stated = properties.get(NEW_ENCODING)
    return None if stated is None else stated.strip().lower() != "true"


def _partition_fields(
    kind: KeyGeneratorType, names: tuple[str, ...], properties: Mapping[str, str], hive: bool, encode: bool, consistent: bool
) -> tuple[PartitionField, ...]:
    if kind in (KeyGeneratorType.NON_PARTITION, KeyGeneratorType.GLOBAL_DELETE):
        return ()

    def time() -> TimestampPartition:
        return TimestampPartition.from_properties(properties, hive=hive, encode=encode, consistent=consistent)

    if kind is KeyGeneratorType.CUSTOM:
        pairs = [_typed(name) for name in names]
        return tuple(PartitionField(name, time() if how == "TIMESTAMP" else None) for name, how in pairs)
    plain = tuple(name.partition(":")[0] for name in names)
    if kind is not KeyGeneratorType.COMPLEX and len(plain) != 1:
        raise ConfigError("hoodie.table.partition.fields", ",".join(names), f"one field with key generator {kind.value}")
    if kind is KeyGeneratorType.TIMESTAMP:
        return (PartitionField(plain[0], time()),)
    return tuple(PartitionField(name) for name in plain)


def _typed(field: str) -> tuple[str, str]:
    name, _, how = field.partition(":")
    how = how.strip().upper()
    if how not in ("SIMPLE", "TIMESTAMP"):
        raise ConfigError(
            "hoodie.table.partition.fields",
            field,
            "field:SIMPLE or field:TIMESTAMP with the key generator CUSTOM",
            "Tables before version 8 do not store the types: pass the option with them.",
        )
    return name.strip(), how
