"""ScanReport: what a read looked at, what it left out and by which knowledge, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hudimeta.reports import Report

if TYPE_CHECKING:
    import pyarrow as pa

    from hudimeta.indexes.decisions import Decisions

__all__ = ["ScanReport", "Skip", "Unused"]


@dataclass(frozen=True, slots=True)
class Skip:
    """One reason for which file slices were left out.

    Attributes:
        by: The knowledge that decided: `partition` (values in the partition's path), or the name of an index, which is that of
            its metadata partition.
        conjunct: The part of the predicate that no row can satisfy, as SQL; "" when it was not the predicate.
        partitions: Partitions left out whole; their slices were not looked up, unless `slices` says so.
        slices: File slices left out.
        files: Their base and log files.
    """

    by: str
    conjunct: str
    partitions: int = 0
    slices: int = 0
    files: int = 0

    def __str__(self) -> str:
        parts = [f"{n:,} {what}" for n, what in ((self.partitions, "partitions"), (self.slices, "slices")) if n]
        files = f" ({self.files:,} files)" if self.files else ""
        return f"{' and '.join(parts) or 'nothing'}{files} by {self.by}" + (f": {self.conjunct}" if self.conjunct else "")


@dataclass(frozen=True, slots=True)
class Unused:
    """An index of the table, or one that would have helped, that left nothing out.

    Attributes:
        index: The name of its metadata partition, or `footers`.
        why: Why it was not asked, in words.
    """

    index: str
    why: str

    def __str__(self) -> str:
        return f"{self.index} not used: {self.why}"


@dataclass(frozen=True, repr=False)
class ScanReport(Report):
    """What a scan did. Figures of reading rows are 0 until rows were read.

    Attributes:
        table: Its location.
        instant: Requested time of the newest write that is visible; None in an empty table.
        as_of: The moment that was asked for; None for the latest.
        query_type: As in `hoodie.datasource.query.type`.
        predicate: As SQL, "" without one.
        columns: What is returned.
        partitions, partitions_kept: Of the table, and those whose files were looked up.
        slices, files: Of the partitions that were looked up.
        slices_kept, files_kept: What is read.
        bytes_kept: Bytes of the files that are read.
        log_files_kept: How many of them are log files.
        skipped: What was left out.
        unused: The indexes that were not asked, and why.
        notes: The same in words, and whatever else kept more from being left out.
        row_groups, row_groups_skipped: Of base files that were opened and need no merging, and those not read, as the files'
            footers say that no row matches.
        logs_asked, logs_passed_by: Log files that were asked for the record keys of the predicate, and those not read, as they
            touch none of these.
        planned: What decided, file by file; see `decisions`.
        fallbacks: Where the metadata table did not answer and storage was listed, with the reason.
        corrupt: Spans of log files that are no blocks and were passed over, as Hudi does.
        rows: Rows returned so far.
        rows_read: Rows before the predicate.
        rows_passed_by: Those among them of which only the predicate's columns were unpacked, as no row of their pages matches.
        rows_ruled_out: Rows that were not read, as the bounds of their pages say that none matches.
        log_blocks: Blocks that were merged.
        blocks_ignored: Blocks of unfinished, later, rolled back or compacted writes.
        blocks_outdone: Blocks among the merged ones that were not unpacked, as later ones have all of their keys.
        spilled: Bytes that went to temporary files, because a slice's log did not fit `hudimeta.merge.memory.bytes`.
        requests: By (kind, purpose).
        bytes_read: Bytes that requests with a known length returned.
        seconds: By phase: `open`, `plan`, `read`.
    """

    table: str
    instant: str | None = None
    as_of: str | None = None
    query_type: str = "snapshot"
    predicate: str = ""
    columns: tuple[str, ...] = ()
    partitions: int = 0
    partitions_kept: int = 0
    slices: int = 0
    slices_kept: int = 0
    files: int = 0
    files_kept: int = 0
    log_files_kept: int = 0
    bytes_kept: int = 0
    skipped: tuple[Skip, ...] = ()
    unused: tuple[Unused, ...] = ()
    notes: tuple[str, ...] = ()
    fallbacks: tuple[str, ...] = ()
    corrupt: tuple[str, ...] = ()
    rows: int = 0
    rows_read: int = 0
    rows_passed_by: int = 0
    rows_ruled_out: int = 0
    row_groups: int = 0
    row_groups_skipped: int = 0
    logs_asked: int = 0
    logs_passed_by: int = 0
    log_blocks: int = 0
    blocks_ignored: int = 0
    blocks_outdone: int = 0
    spilled: int = 0
    requests: Mapping[tuple[str, str], int] = field(default_factory=dict)
    bytes_read: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    planned: Decisions | None = field(default=None, repr=False, compare=False)

    def decisions(self) -> pa.Table:
        """For each file whether it is read, and if not, what decided: see `Decisions.to_arrow` for the columns."""
        from hudimeta.indexes.decisions import Decisions

        return (self.planned or Decisions()).to_arrow()

    def requests_of(self, kind: str) -> int:
        """How many requests of one kind (LIST, GET, HEAD) were made."""
        return sum(n for (k, _), n in self.requests.items() if k == kind)

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values; requests are `{"GET timeline": 2}`."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "planned"}
        plain["skipped"] = [
            {"by": s.by, "conjunct": s.conjunct, "partitions": s.partitions, "slices": s.slices, "files": s.files}
            for s in self.skipped
        ]
        plain["unused"] = [{"index": u.index, "why": u.why} for u in self.unused]
        plain["requests"] = {f"{kind} {purpose}": n for (kind, purpose), n in self.requests.items()}
        plain["seconds"] = dict(self.seconds)
        return {k: list(v) if isinstance(v, tuple) else v for k, v in plain.items()}

    def to_json(self, *, files: bool = True, indent: int | None = None) -> str:
        """Everything as JSON text, with `files` also `decisions`: one object a file."""
        import json

        plain = self.to_dict()
        if files:
            plain["decisions"] = self.decisions().to_pylist()
        return json.dumps(plain, indent=indent)

    def to_arrow(self) -> pa.Table:
        """What was decided about each file (see `decisions`); metadata `hudimeta.report` of the schema is the rest as JSON."""
        return self.decisions().replace_schema_metadata({"hudimeta.report": self.to_json(files=False)})

    def to_text(self, *, files: bool = False) -> str:
        """The report as `str` prints it, with `files` also a line for each file."""
        if not files:
            return str(self)
        lines = [str(self), ""]
        for row in self.decisions().to_pylist():
            name = "/".join(part for part in (row["partition_path"], row["file_name"] or "*") if part)
            lines.append(f"  {name}: " + _decided(row))
        return "\n".join(lines)

    def _lines(self) -> list[tuple[str, str]]:
        when = f"as of {self.as_of}, newest write {self.instant}" if self.as_of else f"newest write {self.instant}"
        lines = [("table", f"{self.table} ({self.query_type}, {when})")]
        if self.predicate:
            lines.append(("where", self.predicate))
        lines.append(("partitions", f"{self.partitions_kept:,} of {self.partitions:,} looked up"))
        logs = f", {self.log_files_kept:,} of them log files" if self.log_files_kept else ""
        lines.append(
            (
                "slices",
                f"{self.slices_kept:,} of {self.slices:,} kept: "
                f"{self.files_kept:,} of {self.files:,} files{logs}, {self.bytes_kept:,} bytes",
            )
        )
        lines += [("skipped", str(skip)) for skip in self.skipped]
        lines += [("note", note) for note in self.notes]
        lines += [("listing", reason) for reason in self.fallbacks]
        lines += [("corrupt", span) for span in self.corrupt]
        if self.rows_read or self.rows:
            lines.append(("rows", f"{self.rows:,} returned of {self.rows_read:,} read"))
        if self.rows_ruled_out:
            lines.append(("pages", f"of {self.rows_ruled_out:,} rows not read, by their bounds"))
        if self.rows_passed_by:
            lines.append(("pages", f"of {self.rows_passed_by:,} rows only the columns of the predicate unpacked"))
        if self.row_groups_skipped:
            lines.append(("row groups", f"{self.row_groups_skipped:,} of {self.row_groups:,} not read, by footers"))
        if self.logs_passed_by:
            lines.append(("logs", f"{self.logs_passed_by:,} of {self.logs_asked:,} log files not read, by their keys"))
        if self.log_blocks or self.blocks_ignored:
            lines.append(("log blocks", f"{self.log_blocks:,} merged, {self.blocks_ignored:,} ignored"))
        if self.blocks_outdone:
            lines.append(("log blocks", f"{self.blocks_outdone:,} of them not unpacked, as later ones have all of their keys"))
        if self.spilled:
            lines.append(("spilled", f"{self.spilled:,} bytes of log and base rows to temporary files"))
        if self.requests:
            asked = ", ".join(f"{n} {kind} {purpose}" for (kind, purpose), n in sorted(self.requests.items()))
            lines.append(("requests", f"{asked}; {self.bytes_read:,} bytes"))
        if self.seconds:
            lines.append(("seconds", ", ".join(f"{name} {took:.3f}" for name, took in self.seconds.items())))
        return lines

    def __str__(self) -> str:
        return "\n".join(f"{name:<11} {text}" for name, text in self._lines())

    def _repr_html_(self) -> str:
        """For notebooks: the figures, and below them the files."""
        figures = _table([(_cell(name, "th"), _cell(text)) for name, text in self._lines()])
        files = self.decisions()
        shown = files.slice(0, _FILES_IN_HTML).to_pylist()
        rows = [(_cell(r["partition_path"]), _cell(r["file_name"] or "all files"), _cell(_decided(r))) for r in shown]
        more = f"<p>and {files.num_rows - len(rows):,} more</p>" if files.num_rows > len(rows) else ""
        return f"{figures}<details><summary>{files.num_rows:,} decisions</summary>{_table(rows)}{more}</details>"


_LEFT = "text-align:left"
_FILES_IN_HTML = 200


def _decided(row: Mapping[str, object]) -> str:
    """What was decided about a file, in words."""
    because = f": {row['conjunct']}" if row["conjunct"] else ""
    if not row["kept"]:
        return f"left out by {row['decided_by']}{because}"
    return f"opened, no row read by {row['decided_by']}{because}" if row["decided_by"] else "read"


def _cell(text: object, kind: str = "td") -> str:
    from html import escape

    return f"<{kind} style='{_LEFT}'>{escape(str(text))}</{kind}>"


def _table(rows: Sequence[Sequence[str]]) -> str:
    return "<table>" + "".join(f"<tr>{''.join(cells)}</tr>" for cells in rows) + "</table>"
