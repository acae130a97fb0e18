"""What the check of a history accepts and refuses."""

from __future__ import annotations

import pytest

from hudimeta.errors import ValidationFailed
from hudimeta.testing.builders import simple_place, simple_rows
from hudimeta.testing.model import ModelTable
from hudimeta.testing.simulation.consistency import ReadSeen, State, WriteDone, WriterOutcome, check_serial
from hudimeta.types import Operation


def write(
    name: str,
    begun: float,
    ended: float,
    outcome: WriterOutcome = WriterOutcome.ACKNOWLEDGED,
    operation: Operation = Operation.UPSERT,
) -> WriteDone:
    """A write of the row 0, whose value is where it ended; completed at that time."""
    return WriteDone(name, operation, simple_rows([0], 1, ended), begun, ended, outcome, str(ended))


def read(begun: float, ended: float, *values: float) -> ReadSeen:
    return ReadSeen("a read", begun, ended, state(*values))


def state(*values: float) -> State:
    return tuple(("p0", "k0000", value) for value in values)


def check(writes: list[WriteDone], reads: list[ReadSeen], *without: str) -> list[str]:
    published = {one.name: one.completion or "" for one in writes if one.name not in without}
    return check_serial(ModelTable(simple_place, "ts"), writes, published, reads)


def test_a_read_sees_what_was_told_before_it_began_and_may_see_more() -> None:
    writes = [write("a", 1, 2), write("b", 3, 5)]
    assert [line.split()[1] for line in check(writes, [read(3, 4, 2.0), read(4, 6, 5.0), read(6, 7, 5.0)])] == ["a", "b"]
    with pytest.raises(ValidationFailed, match="a read saw what no 2 to 2 of these writes come to"):
        check(writes, [read(6, 7, 2.0)])
    with pytest.raises(ValidationFailed, match="no 0 to 0"):
        check(writes, [read(0.5, 0.7, 2.0)])


def test_what_is_lost_or_doubled_is_told() -> None:
    with pytest.raises(ValidationFailed, match="lost: a UPSERT"):
        check([write("a", 1, 2)], [], "a")
    with pytest.raises(ValidationFailed, match="too many"):
        check([write("a", 1, 2)], [read(3, 4, 2.0, 2.0)])


def test_a_refused_write_is_absent_and_one_of_unknown_outcome_may_be_there() -> None:
    with pytest.raises(ValidationFailed, match="published though it was refused"):
        check([write("a", 1, 2, WriterOutcome.REFUSED)], [])
    check([write("a", 1, 2, WriterOutcome.UNKNOWN)], [read(3, 4, 2.0)])
    check([write("a", 1, 2, WriterOutcome.UNKNOWN)], [read(3, 4)], "a")


def test_a_delete_may_miss_what_came_after_it_began_and_all_reads_agree_on_that() -> None:
    writes = [write("a", 1, 2), write("b", 1.5, 3, operation=Operation.DELETE)]
    check(writes, [read(4, 5), read(6, 7)])
    check(writes, [read(4, 5, 2.0), read(6, 7, 2.0)])
    with pytest.raises(ValidationFailed):
        check(writes, [read(4, 5), read(6, 7, 2.0)])
    with pytest.raises(ValidationFailed):
        check([write("a", 1, 2), write("b", 2.5, 3, operation=Operation.DELETE)], [read(4, 5, 2.0)])


def test_what_ended_before_another_write_began_completed_before_it() -> None:
    early = WriteDone("early", Operation.UPSERT, simple_rows([0], 1), 1, 2, WriterOutcome.ACKNOWLEDGED, "9")
    with pytest.raises(ValidationFailed, match="early ended before late began"):
        check([early, write("late", 3, 4)], [])
