"""Base files in ORC, read stripe by stripe through pyarrow.

Hudi writes them as its Avro schema maps to ORC. Moments are ORC timestamps there: the wall clock of the writer's zone, which
pyarrow gives as it is, so the zone is looked up (`formats.orc_tail`) and the moments are restored. pyarrow shows neither the
statistics of stripes nor their sizes, so nothing is left out inside a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.formats.orc_tail import writer_zones

if TYPE_CHECKING:
    from hudimeta.formats.parquet import ParquetFooter

__all__ = ["OrcFile"]


class OrcFile:
    """An open ORC file; see `base_file.BaseFile`. A stripe counts as a row group.

    Attributes:
        path: Relative to the storage.
        schema, names: Its columns.
        num_rows: Its rows.
    """

    def __init__(self, path: str, file: Any) -> None:
        from pyarrow import orc

        self.path = path
        self._file = file
        self._orc = orc.ORCFile(file)
        self.schema: pa.Schema = self._orc.schema.remove_metadata()
        self.names: tuple[str, ...] = tuple(self.schema.names)
        self.num_rows: int = self._orc.nrows

    @property
    def row_groups(self) -> int:
        """How many stripes it has."""
        return int(self._orc.nstripes)

    @property
    def group_sizes(self) -> list[int]:
        """As if all stripes were alike."""
        return [1] * self.row_groups

    @property
    def footer(self) -> ParquetFooter | None:
        """None: statistics are not at hand."""
        return None

    @property
    def page_index(self) -> None:
        """None: as `footer`."""
        return None

    def rows_of(self, number: int) -> int:
        """Rows of one stripe."""
        return int(self._orc.read_stripe(number, columns=list(self.names[:1])).num_rows)

    def read_group(self, number: int, columns: Sequence[str]) -> pa.Table:
        """The rows of one stripe with some of its columns."""
        rows = pa.Table.from_batches([self._orc.read_stripe(number, columns=list(columns))])
        for at, field in enumerate(rows.schema):
            if pa.types.is_timestamp(field.type) and field.type.tz is None:
                rows = rows.set_column(at, field.name, self._moments(rows.column(at), number))
        return rows

    def read_matching(self, number: int, columns: Sequence[str], matches: object) -> None:
        """None: stripes are read whole."""

    def _moments(self, clocks: pa.ChunkedArray, number: int) -> pa.ChunkedArray:
        """What the wall clock of the writer showed, as moments."""
        import pyarrow.compute as pc

        zone = self._zones[number] or "UTC"
        zoned = pc.assume_timezone(clocks.cast(pa.timestamp("us")), zone, ambiguous="earliest", nonexistent="latest")
        return zoned.cast(pa.timestamp("us", "UTC"))

    @cached_property
    def _zones(self) -> list[str]:
        def read_range(offset: int, length: int) -> bytes:
            self._file.seek(offset)
            return bytes(self._file.read(length))

        return writer_zones(read_range, int(self._file.size()), self.path)
