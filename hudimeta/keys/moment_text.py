"""Plain timestamp columns in partition paths: the number that is stored, or one of two texts that writers of Apache Hudi make.

=======  ========================================  =====================================================================
form     the folder                                who writes it
=======  ========================================  =====================================================================
NUMBER   `1767323045500000`                        DataFrame writers, and hudimeta in tables without partitions
CLOCK    `2026-01-02 03%3A04%3A05`                 SQL: cut to milliseconds (towards zero), shown in seconds, always escaped
STAMP    `2026-01-02 03:04:05.5`, or escaped       `bulk_insert` of DataFrames, and all DataFrame writers where the table has
         where the table encodes                   `…consistent.logical.timestamp.enabled`: in milliseconds, one digit at least
=======  ========================================  =====================================================================

The texts are of the clock of the Java process, in a zone that the table does not say: rows tell it. SQL leaves the number where
the path has not one folder a column. A row that is written under another form than its last version comes twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import pyarrow as pa

from hudimeta.errors import SchemaMismatch
from hudimeta.formats.plain_arrays import array_of, scalar_of
from hudimeta.keys.columns import Rows, column, first_row
from hudimeta.keys.joda import FIRST_SHOWN, LAST_SHOWN, format_times
from hudimeta.keys.partition_path import DEFAULT_PARTITION, PURPOSE, decorate
from hudimeta.keys.zones import offsets_at
from hudimeta.schema.java_text import java_text

__all__ = ["MomentForm", "MomentText", "form_of", "moment_folders"]

DAY_RE = r"^-?\d{4,}-\d\d-\d\d "


class MomentForm(Enum):
    """How a partition path shows a moment; the values are for people."""

    NUMBER = "the number that is stored"
    CLOCK = "a clock's text in seconds"
    STAMP = "a clock's text with a fraction of the second"
    UNKNOWN = "a text of no known form"


@dataclass(frozen=True)
class MomentText:
    """A timestamp column whose folders are texts.

    Attributes:
        form: CLOCK or STAMP.
        hive: `field=value` folders.
        encode: URL encoding of values; CLOCK is escaped in any case.
        zone: Of the clock; None where it is not known.
    """

    form: MomentForm
    hive: bool
    encode: bool
    zone: str | None = None

    @property
    def levels(self) -> int:
        """How many folders it takes."""
        return 1

    @property
    def lacks_zone(self) -> bool:
        """True until rows have told the zone."""
        return self.zone is None

    def in_zone(self, zone: str) -> MomentText:
        """The same form, by the clock of a zone where none is known yet."""
        return replace(self, zone=zone) if self.lacks_zone else self

    def uncut(self, consistent: bool) -> MomentText | None:
        """What SQL leaves where it makes no text of a folder: that of `consistent.logical.timestamp`, or None: the number."""
        if self.form is not MomentForm.CLOCK:
            return self
        return replace(self, form=MomentForm.STAMP) if consistent else None

    def cuts(self, rows: Rows, field: str) -> bool:
        """True where some row's moment has a fraction that its text does not show."""
        import pyarrow.compute as pc

        values = column(rows, field, PURPOSE)
        shown = pc.floor_temporal(values, unit="second" if self.form is MomentForm.CLOCK else "millisecond")
        return bool(pc.any(pc.not_equal(shown, values)).as_py())

    def segment(self, rows: Rows, field: str) -> pa.Array:
        """The part of the path that the column gives, one text per row.

        Raises:
            SchemaMismatch: The column is missing or not a timestamp, or a moment has no text.
        """
        import pyarrow.compute as pc

        values = column(rows, field, PURPOSE)
        if not pa.types.is_timestamp(values.type):
            raise SchemaMismatch(field, values.type, "a timestamp, as the table's", "Cast the column before writing.")
        coded = values.dictionary_encode()
        texts = self._texts(coded.dictionary, field).take(coded.indices)
        shown = pc.fill_null(texts, scalar_of(DEFAULT_PARTITION))
        return decorate(shown, field, hive=self.hive, encode=self.encode or self.form is MomentForm.CLOCK)

    def _texts(self, moments: pa.Array, field: str) -> pa.Array:
        import pyarrow.compute as pc

        zone, clock = self.zone, self.form is MomentForm.CLOCK
        if zone is None:
            raise ValueError(f"rows have yet to tell the zone of {field}")  # see `learned_keys`
        # Java cuts the number for CLOCK, which goes up before 1970, and the moment for STAMP, which goes down.
        numbers = pc.cast(moments, pa.int64())
        per_second = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[moments.type.unit]
        if per_second > 1_000:
            cut = numbers if clock else pc.cast(pc.floor_temporal(moments, unit="millisecond"), pa.int64())
            numbers = pc.divide(cut, scalar_of(per_second // 1_000))
        elif per_second == 1:
            numbers = pc.multiply(numbers, scalar_of(1_000))
        times = numbers.to_numpy(zero_copy_only=False)
        odd = first_row(array_of((times < FIRST_SHOWN) | (times > LAST_SHOWN)))
        if odd is not None and (clock or zone != "UTC"):
            what = f"a moment of the years 1 to 9999, as partitions are named by {self.form.value}"
            raise SchemaMismatch(field, f"{times[odd]} ms after 1970", what, "Correct the value.")
        if clock:
            return format_times(times, "yyyy-MM-dd HH:mm:ss", zone)
        return java_text(array_of(times + offsets_at(times, zone)).cast(pa.timestamp("ms")), field, consistent_timestamp=True)


def moment_folders(paths: pa.Array, names: list[str], name: str) -> pa.Table:
    """The folders of a column: of the paths that have one folder a column, and a value.

    Args:
        paths: Partition paths.
        names: The partition columns.
        name: The one whose folders are wanted.

    Returns:
        Columns `path`, and `text` without the column's name in front.
    """
    import pyarrow.compute as pc

    slashes = pc.count_substring(paths, "/")
    paths = paths.filter(pc.equal(slashes, scalar_of(len(names) - 1, pa.int32())))
    texts = pc.list_element(pc.split_pattern(paths, "/"), names.index(name))
    named = pc.starts_with(texts, f"{name}=")
    texts = pc.if_else(named, pc.utf8_slice_codeunits(texts, len(name) + 1), texts)
    found = pa.table({"path": paths, "text": texts})
    return found.filter(pc.not_equal(texts, scalar_of(DEFAULT_PARTITION)))


def form_of(texts: pa.Array, encode: bool) -> pa.Array:
    """The name of the form of each folder, for a table that URL encodes values or does not."""
    import pyarrow.compute as pc

    colon = "%3A" if encode else ":"
    found = scalar_of(MomentForm.UNKNOWN.name)
    patterns = {
        MomentForm.NUMBER: r"^-?\d+$",
        MomentForm.CLOCK: DAY_RE + r"\d\d%3A\d\d%3A\d\d$",
        MomentForm.STAMP: DAY_RE + rf"\d\d{colon}\d\d{colon}\d\d\.\d{{1,3}}$",
    }
    for form, pattern in patterns.items():
        found = pc.if_else(pc.match_substring_regex(texts, pattern), scalar_of(form.name), found)
    return found
