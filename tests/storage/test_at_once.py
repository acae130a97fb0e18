"""Requests at once: answers in order, errors told, and usable in a process that was forked after the threads had begun."""

from __future__ import annotations

import multiprocessing
import threading

import pytest

from hudimeta.errors import NotFound
from hudimeta.storage import open_storage
from hudimeta.storage.at_once import PARALLEL_FILES, PARALLEL_REQUESTS, at_once, files_at_once, pieces_at_once
from tests.elsewhere import only_when

FORK = "fork" in multiprocessing.get_all_start_methods()


def test_answers_come_in_the_order_of_the_items(tmp_path):
    storage = open_storage(str(tmp_path))
    names = [f"f{i}" for i in range(3 * PARALLEL_REQUESTS)]
    for name in names:
        storage.put(name, name.encode())
    assert at_once(storage.read, names) == [name.encode() for name in names]


def test_several_are_asked_at_the_same_time():
    together = threading.Barrier(PARALLEL_REQUESTS, timeout=60)
    assert sorted(at_once(lambda _: together.wait(), list(range(PARALLEL_REQUESTS)))) == list(range(PARALLEL_REQUESTS))


def test_one_request_needs_no_thread():
    assert at_once(lambda _: threading.current_thread(), [1]) == [threading.current_thread()]
    assert at_once(lambda _: threading.current_thread(), []) == []


def test_the_first_error_is_raised_and_the_threads_go_on(tmp_path):
    storage = open_storage(str(tmp_path))
    storage.put("there", b"1")
    with pytest.raises(NotFound):
        at_once(storage.read, ["there", "not there"])
    assert at_once(storage.read, ["there", "there"]) == [b"1", b"1"]


def test_files_of_a_store_far_away_are_worked_on_at_once_each_by_requests_of_its_own(tmp_path, monkeypatch):
    storage = open_storage(str(tmp_path))
    names = [f"f{number}" for number in range(PARALLEL_FILES)]
    for name in names:
        storage.put(name, name.encode())
    together = threading.Barrier(PARALLEL_FILES, timeout=60)

    def work(name):
        together.wait()
        # Whoever works on files beside others does not wait for these to end.
        (inner,) = set(files_at_once(lambda _: threading.current_thread(), [1, 2], storage))
        assert inner is threading.current_thread()
        return pieces_at_once(storage.read, [name] * 3, storage)

    monkeypatch.setattr("hudimeta.storage.at_once.is_nearby", lambda storage: False)
    assert files_at_once(work, names, storage) == [[name.encode()] * 3 for name in names]


def test_files_nearby_are_read_by_the_caller(tmp_path):
    storage = open_storage(str(tmp_path))
    caller = threading.current_thread()
    assert set(files_at_once(lambda _: threading.current_thread(), range(50), storage)) == {caller}
    assert set(pieces_at_once(lambda _: threading.current_thread(), range(50), storage)) == {caller}


@only_when(FORK, "a system that forks processes")
def test_a_forked_process_starts_threads_of_its_own():
    assert at_once(abs, [-1, -2]) == [1, 2]
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=lambda: answers.put(at_once(abs, [-3, -4])))
    child.start()
    assert answers.get() == [3, 4]
    child.join()
    assert child.exitcode == 0
