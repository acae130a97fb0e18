"""What a key generator learns from the table that is stored: how keys and times are written where no property says it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from hudimeta.errors import UnsupportedFeature
from hudimeta.formats.plain_arrays import scalar_of, single_array
from hudimeta.keys import PATH_COLUMN, KeyGenerator, type_of
from hudimeta.keys.moment_text import MomentForm, MomentText, form_of, moment_folders
from hudimeta.slices.slice_keys import rows_may_be_in, slice_of
from hudimeta.slices.slice_rows import SliceRows
from hudimeta.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from hudimeta.table.key_file import KeyFile

__all__ = ["learned", "learned_from_rows"]


def learned(generator: KeyGenerator, snapshot: Snapshot) -> KeyGenerator:
    """A key generator with all that only the stored table tells, or as for an empty one.

    Raises:
        ConfigError: The table tells of something else than its properties do, or of a zone that nobody names.
        UnsupportedFeature: Its partition paths do not tell how they are made.
    """
    # Where no key is stored there is none that a new one could differ from.
    known = generator if snapshot.properties.populate_meta else generator.of_an_empty_table()
    found = _with_forms(known, snapshot)
    if not found.needs_row_to_learn:
        return found
    return learned_from_rows(found, snapshot) or found.of_an_empty_table()


def learned_from_rows(generator: KeyGenerator, snapshot: Snapshot) -> KeyGenerator | None:
    """A key generator with what rows of the table tell; None for a table without rows."""
    reader = SliceRows.of(snapshot)

    def rows_of(file: KeyFile) -> pa.Table:
        rows = reader.columns(slice_of(file), generator.told_by)
        if PATH_COLUMN not in generator.told_by:
            return rows
        own = pa.repeat(pa.scalar(file.partition_path), rows.num_rows)
        return rows.drop_columns([PATH_COLUMN] if PATH_COLUMN in rows.column_names else []).append_column(PATH_COLUMN, own)

    telling = [rows for files in _of_each_month(generator, snapshot) if (rows := _first_rows(files, rows_of)) is not None]
    if telling:
        return generator.learned_from(pa.concat_tables(telling))
    files = [file for files in snapshot.key_files().values() for file in files]
    rows = _first_rows(files, rows_of)
    return None if rows is None else generator.learned_from(rows)


def _first_rows(files: Sequence[KeyFile], rows_of: Callable[[KeyFile], pa.Table]) -> pa.Table | None:
    return next((rows for file in rows_may_be_in(files) if (rows := rows_of(file)).num_rows), None)


def _of_each_month(generator: KeyGenerator, snapshot: Snapshot) -> Iterator[Sequence[KeyFile]]:
    """The files of the newest partition of each month of the year: clocks that agree in winter differ in summer."""
    import pyarrow.compute as pc

    names = [field.name for field in generator.partitions]
    chosen: dict[str, tuple[str, str]] = {}
    for field in generator.partitions:
        if not isinstance(field.time, MomentText):
            continue
        found = moment_folders(snapshot.partitions(), names, field.name)
        found = found.filter(pc.equal(form_of(found["text"], generator.encode), scalar_of(field.time.form.name)))
        for path, text in zip(found["path"].to_pylist(), found["text"].to_pylist(), strict=True):
            month = text.lstrip("-").split("-")[1]
            chosen[month] = max(chosen.get(month, ("", "")), (text, path))
    yield from snapshot.key_files([path for _, path in chosen.values()]).values() if chosen else ()


def _with_forms(generator: KeyGenerator, snapshot: Snapshot) -> KeyGenerator:
    schema = snapshot.schema.arrow
    names = [field.name for field in generator.partitions]
    moments = [f.name for f in generator.partitions if f.time is None and pa.types.is_timestamp(type_of(schema, f.name))]
    if not moments:
        return generator
    shown = {name: _forms(generator, names, name, snapshot.partitions()) for name in moments}
    doubtful = any(len(forms) > 1 or MomentForm.UNKNOWN in forms for forms in shown.values())
    if doubtful:  # partitions without files are listed until they are cleaned
        filled = single_array(snapshot.slices()["partition_path"]).unique()
        shown = {name: _forms(generator, names, name, filled) for name in moments}
    only = {name: _only(name, forms) for name, forms in shown.items() if forms}
    texts = [name for name, form in only.items() if form is not MomentForm.NUMBER]
    if texts and snapshot.properties.drop_partition_columns:
        hint = "Nothing tells the zone of the clock, nor fractions of seconds. Write to the table with Apache Hudi."
        raise UnsupportedFeature(
            f"writing {texts[0]}, which no file holds and partition paths show by {only[texts[0]].value},", hint
        )
    return generator.with_forms(only)


def _forms(generator: KeyGenerator, names: list[str], name: str, paths: pa.Array) -> dict[MomentForm, str]:
    """The forms in which paths show a column, each with one such path."""
    found = moment_folders(paths, names, name)
    forms = single_array(form_of(found["text"], generator.encode))
    return {MomentForm[form]: found["path"][forms.index(form).as_py()].as_py() for form in forms.unique().to_pylist()}


def _only(name: str, forms: dict[MomentForm, str]) -> MomentForm:
    (form, path), *others = forms.items()
    if others:
        shown = " and ".join(f"{form.value} ({path!r})" for form, path in forms.items())
        raise UnsupportedFeature(
            f"partitions that show {name} by {shown}",
            "Rows would come twice. Read the rows of the partitions of one form, delete these partitions (delete_partition), "
            "and write the rows again: they come to those of the other.",
        )
    if form is MomentForm.UNKNOWN:
        raise UnsupportedFeature(
            f"partitions that show the timestamp {name} as {path!r}",
            f"New rows would not come to the partitions that are there. Write the rows to a new table that has {name} as text.",
        )
    return form
