"""The file of a table's properties survives writers that are at work, and bits that flip."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudimeta.errors import CorruptFileError, HudiError, TableError, TableNotFound
from hudimeta.formats.properties import decode_properties, encode_properties, table_checksum
from hudimeta.storage import CountingStorage, LocalStorage, RequestLog, Storage, open_storage
from hudimeta.table import properties as table_properties
from hudimeta.table.properties_file import BACKUP_PATH, PROPERTIES_PATH, RETRY_PAUSES_S
from tests.table.minimal import MINIMAL, no_waiting


class FixedClock:
    def now_ms(self) -> int:
        return 1_767_225_600_123


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(tmp_path)


def put(storage: Storage, values: dict[str, str], path: str = PROPERTIES_PATH) -> None:
    storage.put(path, encode_properties(values))


# Reading while others write


def test_no_table(storage: Storage) -> None:
    with pytest.raises(TableNotFound) as caught:
        table_properties.load(storage, no_waiting)
    assert caught.value.path == storage.root


def test_one_request_opens_a_table(storage: Storage) -> None:
    put(storage, MINIMAL)
    log = RequestLog()
    table_properties.load(CountingStorage(storage, log), no_waiting)
    assert len(log) == 1


@pytest.mark.parametrize(
    "main",
    [None, b"", b"#Updated at", encode_properties({**MINIMAL, "hoodie.table.name": "other"}), encode_properties(MINIMAL)[:-3]],
    ids=["missing", "empty", "comment only", "wrong checksum", "cut short"],
)
def test_the_backup_stands_in(storage: Storage, main: bytes | None) -> None:
    if main is not None:
        storage.put(PROPERTIES_PATH, main)
    put(storage, {**MINIMAL, "from": "backup"}, BACKUP_PATH)
    assert table_properties.load(storage, no_waiting)["from"] == "backup"


def test_a_backup_that_was_removed_between_two_looks(storage: Storage) -> None:
    """The writer finishes just after we looked for the main file: the next look finds it."""
    looks: list[str] = []

    class Racing:
        root = storage.root

        def read_range(self, path: str, offset: int, length: int) -> bytes:
            looks.append(path)
            if path == BACKUP_PATH:
                put(storage, MINIMAL)
            return storage.read_range(path, offset, length)

    found = table_properties.load(Racing(), no_waiting)  # type: ignore[arg-type]
    assert found.name == "t"
    assert looks == [PROPERTIES_PATH, BACKUP_PATH, PROPERTIES_PATH]


def arriving(storage: Storage, at_pause: int) -> tuple[Callable[[float], None], list[float]]:
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == at_pause:
            put(storage, MINIMAL)

    return sleep, pauses


def test_an_empty_file_is_awaited(storage: Storage) -> None:
    storage.put(PROPERTIES_PATH, b"")
    sleep, pauses = arriving(storage, at_pause=2)
    assert table_properties.load(storage, sleep).name == "t"
    assert len(pauses) == 2


def test_a_file_that_stays_empty_is_an_error(storage: Storage) -> None:
    storage.put(PROPERTIES_PATH, b"")
    sleep, pauses = arriving(storage, at_pause=99)
    with pytest.raises(TableError, match="empty or cut short"):
        table_properties.load(storage, sleep)
    assert pauses == [pause for pause in RETRY_PAUSES_S if pause]


def test_a_file_without_checksum_is_taken_when_it_stays(storage: Storage) -> None:
    put(storage, {key: text for key, text in MINIMAL.items() if "checksum" not in key})
    sleep, pauses = arriving(storage, at_pause=99)
    assert table_properties.load(storage, sleep).checksum is None
    assert pauses


def test_a_wrong_checksum_says_what_to_do(storage: Storage) -> None:
    put(storage, {**MINIMAL, "hoodie.table.checksum": "1"})
    with pytest.raises(TableError) as caught:
        table_properties.load(storage, lambda seconds: None)
    assert f"set hoodie.table.checksum={table_checksum('', 't')}" in str(caught.value)


# Writing


def test_an_update_keeps_what_it_does_not_know(storage: Storage) -> None:
    put(storage, {**MINIMAL, "hoodie.some.future.key": "x=y:z", "gone": "1"})
    put(storage, MINIMAL, BACKUP_PATH)
    written = table_properties.update(storage, {"hoodie.database.name": "db", "gone": None}, FixedClock(), no_waiting)
    text = storage.read(PROPERTIES_PATH)
    assert text.decode().splitlines()[:2] == ["#Updated at 2026-01-01T00:00:00.123Z", "#Thu Jan 01 00:00:00 UTC 2026"]
    assert (
        decode_properties(text)
        == dict(written)
        == {
            **MINIMAL,
            "hoodie.some.future.key": "x=y:z",
            "hoodie.database.name": "db",
            "hoodie.table.checksum": str(table_checksum("db", "t")),
        }
    )
    assert storage.stat(BACKUP_PATH) is None, "or Hudi would bring the old properties back"
    assert table_properties.load(storage, no_waiting) == written


def test_an_update_that_changes_nothing_writes_nothing(storage: Storage) -> None:
    put(storage, MINIMAL)
    log = RequestLog()
    table_properties.update(CountingStorage(storage, log), {"hoodie.table.name": "t", "absent": None}, FixedClock(), no_waiting)
    assert len(log) == 1


class Raced(LocalStorage):
    """A store in which somebody replaces the properties after they were read and before they are replaced, so many times."""

    times = 0

    def put_if_unchanged(self, path: str, data: bytes, expected: bytes) -> bool:
        """See `Storage.put_if_unchanged`."""
        if self.times:
            self.times -= 1
            put(self, {**MINIMAL, "theirs": str(self.times)})
        return super().put_if_unchanged(path, data, expected)


def test_what_others_wrote_meanwhile_is_kept(storage: Storage) -> None:
    put(storage, MINIMAL)
    raced = Raced(storage.root)
    raced.times = 2
    written = table_properties.update(raced, {"ours": "1"}, FixedClock(), no_waiting)
    assert (written["ours"], written["theirs"]) == ("1", "0")
    assert table_properties.load(storage, no_waiting) == written
    raced.times = 9
    with pytest.raises(TableError, match="was changed 5 times by somebody who does not hold the table's lock"):
        table_properties.update(raced, {"ours": "2"}, FixedClock(), no_waiting)
    assert table_properties.load(storage, no_waiting)["theirs"] == "4"


def test_a_request_that_arrives_late_does_not_undo_what_came_since(storage: Storage) -> None:
    put(storage, MINIMAL)
    late = storage.read(PROPERTIES_PATH)
    table_properties.update(storage, {}, FixedClock(), no_waiting, anew=True)
    assert not storage.put_if_unchanged(PROPERTIES_PATH, late + b"hoodie.table.metadata.partitions=files\n", late)
    assert "hoodie.table.metadata.partitions" not in table_properties.load(storage, no_waiting)


@pytest.mark.parametrize("bit", range(8))
def test_no_bit_of_what_we_wrote_changes_unseen(bit: int, storage: Storage) -> None:
    put(storage, {**MINIMAL, "hoodie.table.recordkey.fields": "id"})
    table_properties.update(storage, {}, FixedClock(), no_waiting, anew=True)
    text = storage.read(PROPERTIES_PATH)
    for at in range(len(text)):
        storage.put(PROPERTIES_PATH, text[:at] + bytes([text[at] ^ 1 << bit]) + text[at + 1 :])
        with pytest.raises(HudiError, match=r"hoodie\.properties|version|hoodie\."):
            table_properties.load(storage, lambda seconds: None)


def test_what_java_rewrites_claims_nothing(storage: Storage) -> None:
    """Java keeps the properties, not the comments."""
    put(storage, MINIMAL)
    table_properties.update(storage, {}, FixedClock(), no_waiting, anew=True)
    values = decode_properties(storage.read(PROPERTIES_PATH))
    storage.put(PROPERTIES_PATH, encode_properties({**values, "hoodie.database.name": ""}, ["Updated at now"]))
    assert table_properties.load(storage, no_waiting)["hoodie.table.name"] == "t"


def test_a_sound_backup_stands_in_for_a_damaged_file(storage: Storage) -> None:
    put(storage, MINIMAL)
    written = table_properties.update(storage, {}, FixedClock(), no_waiting, anew=True)
    text = storage.read(PROPERTIES_PATH)
    storage.put(BACKUP_PATH, text)
    storage.put(PROPERTIES_PATH, text.replace(b"COPY_ON_WRITE", b"MERGE_ON_READ"))
    assert table_properties.load(storage, lambda seconds: None) == written


def test_a_name_that_is_nearly_a_property_is_damage(storage: Storage) -> None:
    put(storage, {**MINIMAL, "hoodie.table.recordkey.fieldr": "id"})
    with pytest.raises(CorruptFileError, match=r"expected the property hoodie\.table\.recordkey\.fields"):
        table_properties.load(storage, lambda seconds: None)
    put(storage, {**MINIMAL, "hoodie.table.recordkey.fields": "id", "hoodie.some.future.key": "1"})
    assert table_properties.load(storage, no_waiting).record_keys == ("id",)
