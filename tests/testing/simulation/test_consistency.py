"""What the check of a history accepts and refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hudimeta.errors import ValidationFailed
from hudimeta.testing.builders import simple_place, simple_rows
from hudimeta.testing.model import ModelTable, Place, Row
from hudimeta.testing.simulation.consistency import Seen, check_serial
from hudimeta.testing.simulation.events import PollSeen, ReadSeen, SavedSeen, State, UndoDone, WriteDone, WriterOutcome
from hudimeta.testing.simulation.ledger import Ledger, Published, Undone
from hudimeta.types import Action, Operation

BEFORE = {("0", Action.COMMIT): ModelTable(simple_place, "ts")}


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


def check(
    writes: list[WriteDone],
    reads: list[ReadSeen],
    *without: str,
    undone: tuple[Undone, ...] = (),
    undos: tuple[UndoDone, ...] = (),
    polls: tuple[PollSeen, ...] = (),
    saved: tuple[SavedSeen, ...] = (),
) -> tuple[str, ...]:
    done = [one for one in writes if one.name not in without]
    published = {one.name: Published(one.name, one.name, Action.COMMIT, one.completion or "", ("p0",)) for one in done}
    return check_serial(BEFORE, Ledger(published, undone), Seen(writes, undos, reads, polls, saved))


def undoes(time: str, *names: str) -> Undone:
    return Undone(time, frozenset((name, Action.COMMIT) for name in names))


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
    with pytest.raises(ValidationFailed, match="yet completed later:\n 9 early"):
        check([early, write("late", 3, 4)], [])


def test_what_was_undone_is_gone_for_who_reads_later_and_the_last_ones_alone_can_be() -> None:
    writes = [write("a", 1, 2), write("b", 3, 4), write("c", 7, 8)]
    undo = UndoDone("a", "restore", 5, 6, WriterOutcome.ACKNOWLEDGED, "5")
    reads = [read(4.5, 4.7, 4.0), read(4.5, 6, 4.0), read(5.5, 6, 2.0), read(6.5, 6.7, 2.0), read(8, 9, 8.0)]
    check(writes, reads, undone=(undoes("5", "b"),), undos=(undo,))
    with pytest.raises(ValidationFailed, match="a read saw what no 3 to 3"):
        check(writes, [read(6.5, 6.7, 4.0)], undone=(undoes("5", "b"),), undos=(undo,))
    with pytest.raises(ValidationFailed, match="did not come last"):
        check(writes, [], undone=(undoes("5", "a"),), undos=(undo,))


def test_what_is_undone_and_what_was_told_of_it_agree() -> None:
    writes = [write("a", 1, 2)]
    told = UndoDone("a", "restore", 3, 4, WriterOutcome.ACKNOWLEDGED, "3")
    with pytest.raises(ValidationFailed, match="undone, as was told, and yet nothing is"):
        check(writes, [read(5, 6, 2.0)], undos=(told,))
    refused = UndoDone("a", "restore", 3, 4, WriterOutcome.REFUSED)
    with pytest.raises(ValidationFailed, match="undone though it was refused"):
        check(writes, [read(5, 6)], undone=(undoes("3", "a"),), undos=(refused,))
    died = UndoDone("a", "restore", 3, 4, WriterOutcome.UNKNOWN)
    for seen in (read(5, 6), read(5, 6, 2.0)):  # nobody knows when it was finished
        check(writes, [seen], undone=(undoes("3", "a"),), undos=(died,))


def test_polls_see_the_rows_and_the_changes_of_their_range() -> None:
    writes = [write("a", 1, 2), write("b", 3, 4), write("c", 5, 6, operation=Operation.DELETE)]
    created, changed = ("i", "k0000", "", "2.0"), ("u", "k0000", "2.0", "4.0")
    polls = [
        PollSeen("rows", "", "2.0", state(2.0)),
        PollSeen("rows", "2.0", "6.0"),
        PollSeen("changes", "", "4.0", changes=(created, changed)),
        PollSeen("changes", "4.0", "6.0", changes=(("d", "k0000", "4.0", ""),)),
    ]
    check(writes, [], polls=tuple(polls))
    for wrong in (PollSeen("rows", "2.0", "4.0", state(2.0)), PollSeen("changes", "2.0", "4.0", changes=(created,))):
        with pytest.raises(ValidationFailed, match="which is to be"):
            check(writes, [], polls=(wrong,))


def test_polls_see_nothing_of_what_came_back_by_an_undo() -> None:
    writes = [write("a", 1, 2), write("b", 3, 4)]
    undo = UndoDone("a", "restore", 5, 6, WriterOutcome.ACKNOWLEDGED, "5")
    polls = (PollSeen("rows", "2.0", "5"), PollSeen("changes", "2.0", "5", changes=()))
    check(writes, [read(7, 8, 2.0)], undone=(undoes("5", "b"),), undos=(undo,), polls=polls)


def test_what_was_written_lately_does_not_expire() -> None:
    writes = [write("a", 1, 2), replace(write("b", 3, 4, operation=Operation.DELETE_PARTITION), expires=True)]
    with pytest.raises(ValidationFailed, match="let rows expire that had just been written"):
        check(writes, [read(5, 6)])
    old = ModelTable(simple_place, "ts")
    old.write(Operation.UPSERT, simple_rows([0], 1))
    published = {"b": Published("b", "b", Action.REPLACE_COMMIT, "4", ("p0",))}
    check_serial({("0", Action.COMMIT): old}, Ledger(published), Seen([replace(writes[1], completion="4")], (), [read(5, 6)]))


def test_a_change_sees_one_moment_and_loses_no_update_of_others() -> None:
    def doubled(seen: ModelTable) -> dict[Place, list[Row]]:
        return {place: [{**row, "x": row["x"] * 2} for row in rows] for place, rows in seen.rows.items()}

    writes = [write("a", 1, 2), write("b", 2.5, 3.5), replace(write("c", 3, 4), change=doubled)]
    check(writes, [read(5, 6, 7.0)])
    with pytest.raises(ValidationFailed, match="nearest to 3 of them"):
        check(writes, [read(5, 6, 4.0)])


def test_a_saved_moment_stays_what_it_was() -> None:
    writes = [write("a", 1, 2), write("b", 3, 4)]
    check(writes, [], saved=(SavedSeen("a", state(2.0)), SavedSeen("b", state(4.0))))
    with pytest.raises(ValidationFailed, match="saved at a is"):
        check(writes, [], saved=(SavedSeen("a", state(4.0)),))
    overtaken = [replace(writes[0], name="z"), writes[1]]  # requested later than the one that completed after it
    check(overtaken, [], saved=(SavedSeen("z", state(4.0)),))


def test_polls_may_see_a_row_that_lost_against_an_older_one() -> None:
    newer = WriteDone("a", Operation.UPSERT, simple_rows([0], 5, 2.0), 1, 2, WriterOutcome.ACKNOWLEDGED, "2.0")
    writes = [newer, write("b", 3, 4)]
    for seen in (state(4.0), ()):
        check(writes, [read(5, 6, 2.0)], polls=(PollSeen("rows", "2.0", "4.0", seen),))
