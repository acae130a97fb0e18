"""Threads that read one table share what was read of its timelines and its metadata table."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from hudimeta.metadata.group_files import LogFile
from hudimeta.metadata.kept import Kept
from hudimeta.metadata.slice_files import SliceFiles
from hudimeta.storage import LocalStorage
from hudimeta.timeline.history import History
from hudimeta.timeline.instant_files import InstantFiles

MANY = 20_000


@pytest.fixture(autouse=True)
def quick_turns() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def side_by_side(*acts: Callable[[], object], seconds: float = 0.3) -> list[Exception]:
    """What goes wrong while each of some acts is done again and again by a thread of its own."""
    wrong, over = list[Exception](), time.monotonic() + seconds

    def again_and_again(act: Callable[[], object]) -> None:
        try:
            while time.monotonic() < over and not wrong:
                act()
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=again_and_again, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


def test_a_timeline_is_listed_again_while_another_thread_reads_by_the_listing_before(tmp_path):
    storage, names = LocalStorage(str(tmp_path)), [f"{number:017}.commit" for number in range(MANY // 10)]
    for name in names:
        (tmp_path / name).touch()
    files = partial(InstantFiles, storage, "", History(storage, "history", 2), "", dict.fromkeys(names, (0, 1)))
    before, left = files(), iter(names)
    found = side_by_side(lambda: before.read(next(left, names[0])), lambda: files().follow(before, small=True))
    assert not found


def test_a_metadata_table_is_opened_again_while_another_thread_reads_its_logs():
    logs = [LogFile(f"files/{number}", 1, "0", 1, (0, 0, 0)) for number in range(MANY)]
    kept, storage = Kept(((), ()), logs={log.path: [] for log in logs}), LocalStorage("/nowhere")
    before, left = SliceFiles(storage, kept=kept), iter(logs)
    found = side_by_side(
        lambda: before.prefetch([next(left, logs[0])]),
        lambda: SliceFiles(storage).follow(before, lambda _: True),
    )
    assert not found
