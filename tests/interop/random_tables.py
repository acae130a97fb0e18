"""Kinds of random tables: keys, partitions, merge rules, indexes and options of both writers."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tests.interop.random_columns import ON_READ, column_of
from tests.interop.random_order import ORDERS
from tests.interop.random_rows import COLUMNS, FIRST_HOUR_MS, HOUR_MS, Row

KEYGEN = "hoodie.datasource.write.keygenerator.class"
CLASSES = "org.apache.hudi.keygen."
VIRTUAL = {"hoodie.populate.meta.fields": "false"}

KEY_TYPES = {"k": pa.string(), "num": pa.int32(), "big": pa.int64()}
PLACE_TYPES = {"region": pa.string(), "zone": pa.int32(), "day": pa.date32(), "flag": pa.bool_(), "ms": pa.int64()}
PREFIXES = ("k", "k:", "ä,ö ", "a/b'", "__", "1.")
"""How texts of keys begin."""
PAYLOADS = {
    "PartialUpdateAvroPayload": "event",
    "OverwriteNonDefaultsWithLatestAvroPayload": "commit",
    "EventTimeAvroPayload": "event",
    "DefaultHoodieRecordPayload": "event",
    "OverwriteWithLatestAvroPayload": "commit",
    "AWSDmsAvroPayload": "commit",
}
BUILT_IN = ("DefaultHoodieRecordPayload", "EventTimeAvroPayload", "OverwriteWithLatestAvroPayload")
CUSTOM = tuple(set(PAYLOADS) - {"DefaultHoodieRecordPayload", "OverwriteWithLatestAvroPayload"})
"""What is no merge mode of version 8."""
FILLING = ("PartialUpdateAvroPayload", "OverwriteNonDefaultsWithLatestAvroPayload")


@dataclass(frozen=True)
class Kind:
    """What a table is.

    Attributes:
        type: COPY_ON_WRITE or MERGE_ON_READ.
        version: Of the table.
        key: Names of key columns; none where the writer makes keys up.
        place: Names of partition columns, with `:SIMPLE` or `:TIMESTAMP` for a custom key generator.
        regions: Values of the column `region`.
        ordering: Names of ordering columns; none for commit time.
        payload: A class of Hudi's, or none.
        data: Names of other columns.
        indexes: What `hoodie.index.type` may be in a turn.
        shared: Options of both writers.
        marker: Column that says of a row that it deletes; none.
        secondary: Column of a secondary index.
        expression: Whether there is an index of an expression.
        nulls: Whether every partition column has nulls.
        aged: Whether its first rows are some days old.
        order: Type of the ordering column `ts`.
        indexed: Column of the secondary index that may be made.
        repeats: Whether writes have a key several times.
        big: Type of the key column `big`.
        zone: Type of the partition column `zone`.
    """

    type: str
    version: str
    key: tuple[str, ...]
    place: tuple[str, ...]
    regions: tuple[str | None, ...]
    ordering: tuple[str, ...]
    payload: str
    data: tuple[str, ...]
    indexes: tuple[str, ...]
    shared: Mapping[str, str]
    marker: str = ""
    secondary: str = ""
    expression: bool = False
    nulls: bool = False
    aged: bool = False
    order: str = "long"
    indexed: str = "s"
    repeats: bool = False
    big: str = "long"
    zone: str = "int"

    @property
    def is_global(self) -> bool:
        return self.indexes[0].startswith("GLOBAL")

    @property
    def stays(self) -> bool:
        """Whether a row is updated where its key is, whatever its partition columns say."""
        return self.is_global and self.shared["hoodie.simple.index.update.partition.path"] == "false"

    @property
    def spells_keys_anew(self) -> bool:
        """Whether version 9 spells keys otherwise than the versions before it do, or may."""
        return len(self.key) == 1 and (len(self.place) > 1 or self.shared.get(KEYGEN, "").endswith("ComplexKeyGenerator"))

    @property
    def logs_parts(self) -> bool:
        """Whether a change of some columns may log those alone."""
        return self.type == "MERGE_ON_READ" and not self.marker and ON_READ not in self.shared

    @property
    def has_rings(self) -> bool:
        """Whether each partition has its own buckets, by consistent hashing."""
        return "hoodie.index.bucket.engine" in self.shared

    @property
    def cleans_by_versions(self) -> bool:
        """Whether cleaning keeps so many versions of each file."""
        return self.shared.get("hoodie.clean.policy") == "KEEP_LATEST_FILE_VERSIONS"

    @property
    def by_event(self) -> bool:
        return bool(self.ordering) and PAYLOADS.get(self.payload, "event") == "event"

    @property
    def place_columns(self) -> tuple[str, ...]:
        return tuple(name.partition(":")[0] for name in self.place)

    @property
    def schema(self) -> pa.Schema:
        typed = {"big": ORDERS[self.big].type, "zone": ORDERS[self.zone].type}
        named = {**KEY_TYPES, **PLACE_TYPES, **typed, **{name: column_of(name).type for name in self.data}}
        marker = {"Op": pa.string(), "_hoodie_is_deleted": pa.bool_()}
        marked = [(self.marker, marker[self.marker])] if self.marker else []
        return pa.schema([*named.items(), ("ts", ORDERS[self.order].type), ("ts2", pa.int32()), *marked])

    def moment(self, number: int) -> Any:
        """The value of the ordering column that stands for a number."""
        return ORDERS[self.order].value(number)

    def number(self, row: Row) -> int:
        """What the ordering column of a row stands for."""
        return ORDERS[self.order].number(row["ts"])

    def in_version(self, version: str) -> Kind:
        """The kind that it is after a change of version; an upgrade from 6 decides anew how rows are merged, as Hudi's does.

        Of `EventTimeAvroPayload` each release makes something else, and what its table is then only ours is told here.
        """
        if self.version != "6" or self.payload not in BUILT_IN:
            return dataclasses.replace(self, version=version)
        event = self.type == "MERGE_ON_READ" or self.payload != "OverwriteWithLatestAvroPayload"
        payload = "DefaultHoodieRecordPayload" if event else "OverwriteWithLatestAvroPayload"
        shared = {**self.shared, "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model." + payload}
        return dataclasses.replace(self, version=version, payload=payload, shared=shared)

    def mark(self, row: Row) -> Row:
        """The row that deletes the key of one."""
        return {**row, self.marker: "D" if self.marker == "Op" else True}

    def deletes(self, row: Row) -> bool:
        """Whether a row deletes its key."""
        return bool(self.marker) and row[self.marker] in ("D", True)

    def key_of(self, row: Row) -> tuple[Any, ...]:
        """What tells rows apart, where the partition does not count."""
        return tuple(row[name] for name in self.key or ("num",))

    def place_of(self, row: Row) -> tuple[Any, ...]:
        """Values that name a row's partition."""
        return tuple(row[name] // HOUR_MS if name == "ms" else row[name] for name in self.place_columns)

    def identity(self, row: Row) -> tuple[Any, ...]:
        """What tells rows apart."""
        return self.key_of(row) if self.is_global else (self.place_of(row), self.key_of(row))

    def row(self, chance: random.Random, number: int, now: int, data: Mapping[str, pa.DataType]) -> Row:
        """A row whose keys follow from its number; all else is by chance."""
        row: Row = {
            "k": f"{PREFIXES[number % len(PREFIXES)]}{number}",
            "num": number,
            "big": ORDERS[self.big].value(number << 33 if self.big == "long" else number),
        }
        zone = chance.randrange(3)
        row |= {"region": chance.choice(self.regions), "zone": ORDERS[self.zone].value(zone), "flag": chance.random() < 0.5}
        row |= {"day": COLUMNS["d"].value(random.Random(zone)), "ms": FIRST_HOUR_MS + zone * HOUR_MS + number % 1000}
        if self.nulls and chance.random() < 0.3:
            row |= dict.fromkeys({"zone", "flag", "day"} & set(self.place_columns))
        for name, type in data.items():
            column = column_of(name, type)
            row[name] = None if chance.random() < 0.2 else column.value(chance)
        marker = {self.marker: "U" if self.marker == "Op" else False} if self.marker else {}
        return {**row, "ts": self.moment(now), "ts2": chance.randrange(3), **marker}

    def options(self) -> dict[str, str]:
        """What Apache Hudi is told at every write; its services do not find out the key generator by themselves."""
        several = len(self.key) > 1 or len(self.place) > 1
        generator = "NonpartitionedKeyGenerator" if not self.place else f"{'Complex' if several else 'Simple'}KeyGenerator"
        return {
            KEYGEN: CLASSES + generator,
            "hoodie.table.name": "random",
            "hoodie.datasource.write.table.type": self.type,
            **({"hoodie.datasource.write.recordkey.field": ",".join(self.key)} if self.key else {}),
            **({"hoodie.datasource.write.partitionpath.field": ",".join(self.place)} if self.place else {}),
            **({"hoodie.datasource.write.precombine.field": ",".join(self.ordering)} if self.ordering else {}),
            **({"hoodie.write.record.merge.mode": self.shared["hoodie.record.merge.mode"]} if not self.payload else {}),
            "hoodie.table.timeline.timezone": "UTC",
            # Without it, tasks of release 1.2.0 that overwrite partitions or keep up some indexes get slices without paths.
            "hoodie.embed.timeline.server": "true",
            "hoodie.write.markers.type": "DIRECT",
            # Or 1.2.0 writes to no table of version 8 with one key column and several partition columns.
            "hoodie.write.complex.keygen.validation.enable": "false",
            "hoodie.write.table.version": self.version,
            "hoodie.write.auto.upgrade": "false",
            **self.shared,
        }

    def __str__(self) -> str:
        told = " ".join(f"{name.removeprefix('hoodie.')}={value}" for name, value in self.shared.items())
        return (
            f"{self.type} v{self.version}, key {','.join(self.key)} ({self.big}), "
            f"partitions {','.join(self.place)} ({self.zone}) {self.regions}, "
            f"order {','.join(self.ordering)} {self.order} {self.payload}, columns {','.join(self.data)}, "
            f"indexes {self.indexes} {self.marker} {self.secondary} {'expression' * self.expression} {'aged' * self.aged} "
            f"{'repeats' * self.repeats}\n  {told}"
        )
