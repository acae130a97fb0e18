"""Chooses kinds of tables by a seed: any that the release of Apache Hudi has, writes and reads by itself.

The order of the choices is part of what a seed means. Histories from seed 800 on choose more at the end: tables without record
keys, null and odd values of every partition column, and updates that log only what they set.
"""

from __future__ import annotations

import dataclasses
import random
from dataclasses import dataclass, field

from tests.interop.random_ages import EXPIRY, INLINE, POLICIES, POLICY
from tests.interop.random_columns import ON_READ
from tests.interop.random_rows import COLUMNS
from tests.interop.random_tables import CLASSES, CUSTOM, KEYGEN, PAYLOADS, VIRTUAL, Kind

TIMES = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd HH",
    "hoodie.keygen.timebased.timezone": "UTC",
}
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
DROPPED = {"hoodie.datasource.write.drop.partition.columns": "true"}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}
MERGE_MODES = {"event": "DefaultHoodieRecordPayload", "commit": "OverwriteWithLatestAvroPayload"}
"""How tables of version 6 say a merge mode."""
MOVING = ("hoodie.simple.index", "hoodie.bloom.index", "hoodie.record.index")

RINGS = {
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.min.num.buckets": "1",
    "hoodie.bucket.index.max.num.buckets": "6",
}
TIDY = {
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "2",
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
}
"""Each write cleans and archives all that it may."""

KEYS = ("k", "k", "num", "big", "k,num", "one of complex")
PLACES = ("", "region", "region", "zone", "day", "flag", "region,day", "zone,flag", "time", "custom")
SAFE = ("north", "a b", "ü", "1+1", "dot.")
ODD = ("north", "a/b", "50%", "x=y", "ü &#", "q?*", "it's")
ODDER = ("%", "a%2Fb", "null", "2026-01-01", "A\\B", "007", None)
SORTS = ("s", "ts,num", "s,num", "num,region,s")
CLEANS = (
    {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"},
    {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "2"},
    {"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": "24"},
)
LOCAL_INDEXES = ("SIMPLE", "BLOOM")
GLOBAL_INDEXES = ("GLOBAL_SIMPLE", "GLOBAL_BLOOM")


def choose_kind(chance: random.Random, release: str, wide: bool) -> Kind:
    """A kind that `release` of Apache Hudi has and can write by itself; `wide` for histories from seed 800 on."""
    type = chance.choice(("COPY_ON_WRITE", "MERGE_ON_READ"))
    version = chance.choice(("6", "8", "8", "8", "8") if release == "1.0.2" else ("6", "8", "8", "9", "9", "9"))
    kind = _Choices(chance, release, type, version).kind()
    return _widened(chance, kind) if wide else kind


def _widened(chance: random.Random, kind: Kind) -> Kind:
    shared = {**kind.shared, "hoodie.spark.sql.merge.into.partial.updates": chance.choice(("true", "true", "false"))}
    named = "hoodie.keygen.timebased.timezone" in shared or KEYGEN in shared or DROPPED.keys() & shared.keys()
    nulls = chance.random() < 0.3 and not named and bool(kind.place)
    if chance.random() < 0.5 and ENCODED.keys() <= shared.keys():
        kind = dataclasses.replace(kind, regions=ODDER)
    fit = not named and not kind.is_global and kind.indexes != ("BUCKET",) and not kind.payload and kind.version != "6"
    if chance.random() < 0.3 and fit and not VIRTUAL.keys() & shared.keys():
        shared["hoodie.record.merge.mode"] = "COMMIT_TIME_ORDERING"
        return dataclasses.replace(kind, key=(), ordering=(), marker="", secondary="", shared=shared, nulls=nulls)
    return dataclasses.replace(kind, shared=shared, nulls=nulls)


def latest_kind(chance: random.Random, kind: Kind, release: str) -> Kind:
    """More choices of histories from seed 900 on."""
    shared, data = dict(kind.shared), kind.data
    # Numbers that name partitions by time 1.0.2 shows as text, which it cannot read row by row.
    if chance.random() < 0.75 and "ms" not in kind.place_columns:
        shared[ON_READ] = "true"
        # How 1.2.0 spells its type in the history of columns it cannot read, and then takes the history for none.
        data = tuple(name for name in data if name != "ntz")
        # What it finds in renamed fields of structs it finds row by row, where it cannot read floats that became doubles.
        data = tuple(name for name in data if name not in ("f", "f2") or not {"st", "ar2"} & set(data))
        if release != "1.0.2" and kind.type == "MERGE_ON_READ" and kind.is_global:
            # Then it looks no keys up in slices with Parquet blocks ("Failed to get commit time from filename").
            shared["hoodie.logfile.data.block.format"] = "avro"
    if chance.random() < 0.6:
        sort, curve = chance.choice(SORTS), chance.choice(("linear", "z-order", "z-order", "hilbert"))
        shared["hoodie.clustering.plan.strategy.sort.columns"] = sort
        # By a column that no file holds 1.2.0 cannot sort, and after such a clustering 1.0.2 has no rows.
        sort = "s,num" if "region" in sort and DROPPED.keys() & shared.keys() else sort
        # Apache Hudi's Hilbert curve wants two dimensions.
        shared["hoodie.layout.optimize.strategy"] = "linear" if (sort, curve) == ("s", "hilbert") else curve
        shared["hoodie.layout.optimize.curve.build.method"] = chance.choice(("direct", "sample"))
    if chance.random() < 0.4:
        shared |= chance.choice(CLEANS)
    aged = chance.random() < 0.5 and bool(kind.place) and kind.version != "6" and "hoodie.populate.meta.fields" not in shared
    # Apache Hudi's generator of partitions by time takes one key column.
    key = kind.key[:1] if "ms" in kind.place_columns else kind.key
    return dataclasses.replace(kind, key=key, shared=shared, data=data, aged=aged)


def expiring_kind(chance: random.Random, release: str, kind: Kind) -> Kind:
    """What histories from seed 1000 on choose besides: whether each write looks for partitions that have outlived their time.

    Apache Hudi does so where it runs any other service after writes. For versions of files see `random_limits.nobody_can`.
    """
    if not kind.aged or kind.secondary or kind.expression or chance.random() < 0.3:
        return kind
    shared = {**kind.shared, **EXPIRY, INLINE: "true", POLICY: chance.choice(POLICIES)}
    if kind.type == "MERGE_ON_READ" and chance.random() < 0.5:
        shared |= {"hoodie.compact.inline": "true"}
    else:
        shared = {**TIDY, **shared, "hoodie.clean.automatic": "true", "hoodie.archive.automatic": "true"}
    expiring = dataclasses.replace(kind, shared=shared)
    return kind if expiring.cleans_by_versions and release != "1.0.2" else expiring


@dataclass
class _Choices:
    """What was chosen so far, and `shared` options of both writers. See `Kind` for what is not told here."""

    chance: random.Random
    release: str
    type: str
    version: str
    shared: dict[str, str] = field(default_factory=dict)

    def kind(self) -> Kind:
        """All choices, one after the other."""
        keys, places = self.chance.choice(KEYS), self.chance.choice(PLACES)
        key = ("k",) if keys == "one of complex" else tuple(keys.split(","))
        place = self._generator(keys, places)
        regions, dropped = self._folders(places)
        plain = places not in ("time", "custom") and not dropped
        # 1.2.0 doubles rows of its own: it looks the one key of a generator for several up as `k:…`, and merges without `k:`.
        doubles = self.release != "1.0.2" and len(key) == 1 and (keys == "one of complex" or len(place) > 1)
        self.virtual = self.type == "COPY_ON_WRITE" and plain and self._once_in(0.12) and not doubles
        if self.virtual:
            self.shared |= VIRTUAL
        payload, ordering = self._merging()
        data = self._columns()
        indexes, secondary, expression = self._indexes(dropped)
        self._storage()
        if self.release == "1.0.2" and self.type == "MERGE_ON_READ" and self.has_stats:
            # The release fails on statistics of fields of structs that are null, and of null dates in blocks of Avro.
            unfit = {"st", "d"} if self.shared["hoodie.logfile.data.block.format"] == "avro" else {"st"}
            data = tuple(name for name in data if name not in unfit)
        if payload:
            self.shared["hoodie.datasource.write.payload.class"] = "org.apache.hudi.common.model." + payload
        else:
            self.shared["hoodie.record.merge.mode"] = "EVENT_TIME_ORDERING" if ordering else "COMMIT_TIME_ORDERING"
        if self.type == "MERGE_ON_READ" and self.release != "1.0.2" and payload in CUSTOM:
            # The release writes to no such table of version 8 (`ArrayIndexOutOfBoundsException`), its own neither.
            expression = False
        marker = "Op" if payload == "AWSDmsAvroPayload" else "_hoodie_is_deleted" if self._once_in(0.2) else ""
        named = (key, place, regions, ordering, payload, data, indexes)
        return Kind(self.type, self.version, *named, self.shared, marker, secondary, expression)

    @property
    def has_stats(self) -> bool:
        """Whether columns have statistics."""
        return self.shared["hoodie.metadata.index.column.stats.enable"] == "true"

    def _once_in(self, share: float) -> bool:
        return self.chance.random() < share

    def _generator(self, keys: str, places: str) -> tuple[str, ...]:
        """The key generator; returns the partition columns."""
        if places == "time":
            self.shared |= {**TIMES, KEYGEN: CLASSES + "TimestampBasedKeyGenerator"}
            return ("ms",)
        if places == "custom":
            self.shared[KEYGEN] = CLASSES + "CustomKeyGenerator"
            # Not with a time: tables of its own Apache Hudi cannot read then (`Failed to cast value ... to LongType`).
            return ("region:SIMPLE", "zone:SIMPLE")
        if keys == "one of complex" and places:
            self.shared[KEYGEN] = CLASSES + "ComplexKeyGenerator"
        return tuple(places.split(",")) if places else ()

    def _folders(self, places: str) -> tuple[tuple[str | None, ...], bool]:
        """How partitions are called; returns the values of `region`, and whether partition columns are dropped."""
        regions: tuple[str | None, ...] = SAFE[: self.chance.choice((2, 3, 5))]
        if self._once_in(0.5):
            self.shared |= HIVE
        if self._once_in(0.3):
            self.shared |= ENCODED
            regions = ODD
        if self._once_in(0.3) and places != "custom":
            regions = (*regions[:3], None)
        # Of columns that no file holds Apache Hudi's tables know no type: they come back as text.
        dropped = self._once_in(0.15) and places == "region"
        if dropped:
            self.shared |= {**DROPPED, **HIVE}
            regions = SAFE[:3]
        return regions, dropped

    def _merging(self) -> tuple[str, tuple[str, ...]]:
        """A payload class, and the ordering columns."""
        payload = self.chance.choice(tuple(PAYLOADS)) if self._once_in(0.3) and not self.virtual else ""
        order = PAYLOADS[payload] if payload else self.chance.choice(("commit", "event", "event"))
        if order == "event" and self.version == "9" and self._once_in(0.4) and not payload:
            return payload, ("ts", "ts2")
        if self.version == "6" and not payload:
            payload = MERGE_MODES[order]
        return payload, ("ts",) if order == "event" or payload else ()

    def _columns(self) -> tuple[str, ...]:
        """Release 1.0.2 knows no timestamps without a zone."""
        known = sorted(COLUMNS) if self.release != "1.0.2" else sorted(set(COLUMNS) - {"ntz"})
        data = tuple(self.chance.sample(known, self.chance.choice((3, 6, 9))))
        return data if "s" in data else (*data, "s")

    def _indexes(self, dropped: bool) -> tuple[tuple[str, ...], str, bool]:
        """Indexes of writers, the column of a secondary index, and whether there is one of an expression."""
        is_global = self._once_in(0.35) and not self.virtual and not dropped
        bucket = not is_global and not self.virtual and self._once_in(0.15)
        indexes = GLOBAL_INDEXES if is_global else LOCAL_INDEXES[: 1 if self.virtual else 2]
        if bucket:
            indexes = ("BUCKET",)
            self.shared |= BUCKETS
            if self.type == "MERGE_ON_READ" and self._once_in(0.5):
                self.shared |= RINGS
        metadata = self._once_in(0.85)
        stats, bloom = metadata and self._once_in(0.6), metadata and self._once_in(0.4) and not self.virtual
        record = metadata and not self.virtual and self._once_in(0.7 if is_global else 0.15) and not bucket
        if record:
            indexes = (*GLOBAL_INDEXES, "RECORD_INDEX", "RECORD_INDEX")
        new = self.version != "6"
        secondary = "s" if record and self._once_in(0.4) and new else ""
        expression = metadata and self._once_in(0.15) and not self.virtual and new
        self.shared |= {
            "hoodie.metadata.enable": str(metadata).lower(),
            "hoodie.metadata.index.column.stats.enable": str(stats).lower(),
            "hoodie.metadata.index.partition.stats.enable": str(stats and self._once_in(0.7) and new).lower(),
            "hoodie.metadata.index.bloom.filter.enable": str(bloom).lower(),
            "hoodie.metadata.record.index.enable": str(record).lower(),
        }
        return indexes, secondary, expression

    def _moves(self) -> dict[str, str]:
        """Whether a row whose partition changes goes there; of times that name partitions the column itself would not say."""
        moves = self._once_in(0.7) or "hoodie.keygen.timebased.timezone" in self.shared
        return {f"{index}.update.partition.path": str(moves).lower() for index in MOVING}

    def _storage(self) -> None:
        """Sizes, change capture, log files and compactions."""
        self.shared |= {
            "hoodie.metadata.compact.max.delta.commits": str(self.chance.choice((2, 3, 10))),
            "hoodie.parquet.small.file.limit": self.chance.choice(("0", "104857600")),
            **self._moves(),
            "hoodie.clean.automatic": "false",
            "hoodie.archive.automatic": "false",
        }
        if self._once_in(0.25):
            self.shared |= TIDY
        if self._once_in(0.3) and not self.virtual:
            mode = self.chance.choice(("DATA_BEFORE_AFTER", "OP_KEY_ONLY", "DATA_BEFORE"))
            self.shared |= {"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": mode}
        if self.type == "MERGE_ON_READ":
            self.shared["hoodie.logfile.data.block.format"] = self.chance.choice(("parquet", "avro"))
            self.shared["hoodie.compact.inline"] = self.chance.choice(("true", "false", "false"))
            self.shared["hoodie.compact.inline.max.delta.commits"] = "2"
