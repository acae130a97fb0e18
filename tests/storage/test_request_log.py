"""The log of requests that reports are made from."""

import pyarrow as pa

import hudimeta
from hudimeta.storage import RequestKind, RequestLog
from hudimeta.storage.counting import MARKS_KEPT, REQUESTS_KEPT

LATER = {("GET", "timeline"): 1_000, ("PUT", "data"): REQUESTS_KEPT}


def filled() -> tuple[RequestLog, int]:
    """A log, and a mark after which more requests came than it keeps one by one."""
    log = RequestLog()
    log.add(RequestKind.LIST, ".hoodie/timeline")
    mark = log.mark()
    for number in range(1_000):
        log.add(RequestKind.GET, f".hoodie/timeline/{number}.commit", 10, refused=number == 7)
    for number in range(REQUESTS_KEPT):
        log.add(RequestKind.PUT, f"part/{number}.parquet", 1)
    return log, mark


def test_a_long_action_reports_all_of_its_requests():
    log, mark = filled()
    assert log.by_purpose(mark) == LATER
    assert log.counts(mark) == {"GET": 1_000, "PUT": REQUESTS_KEPT}
    assert (log.refused(mark), log.n_bytes(mark)) == (1, 10_000 + REQUESTS_KEPT)
    assert log.by_purpose() == {("LIST", "timeline"): 1, **LATER}
    assert len(log) == 1_001 + REQUESTS_KEPT
    assert log.by_purpose(len(log) - 3) == {("PUT", "data"): 3}, "a place that nobody marked, among those that are kept"
    assert log.mark() == len(log)
    assert not log.by_purpose(len(log))


def test_a_mark_stays_while_others_are_made():
    log, mark = filled()
    for _ in range(MARKS_KEPT - 1):
        log.add(RequestKind.HEAD, "part/0.parquet")
        log.mark()
    assert log.by_purpose(mark) == {**LATER, ("HEAD", "data"): MARKS_KEPT - 1}


def test_a_table_that_is_open_for_days_does_not_keep_all_of_its_requests():
    log = RequestLog()
    for number in range(3 * REQUESTS_KEPT):
        log.add(RequestKind.GET, f".hoodie/timeline/{number:017}.commit")
        if number % 10 == 0:
            log.mark()
    assert len(log.since(0)) == REQUESTS_KEPT
    assert len(log.marks) == MARKS_KEPT + 1


def test_reports_count_whatever_the_table_did_before(tmp_path):
    rows = pa.table({"id": ["a"], "n": [1]})
    table = hudimeta.Table.create(str(tmp_path / "t"), rows.schema, key="id")
    first = table.upsert(rows).requests
    log = table.snapshot().storage.log
    for _ in range(2 * REQUESTS_KEPT):
        log.add(RequestKind.GET, "elsewhere")
    scan = table.scan(where="n = 1")
    assert scan.to_table().num_rows == 1
    assert 0 < scan.report.requests["GET", "data"] < 5
    assert sum(table.upsert(rows).requests.values()) < 2 * sum(first.values())
