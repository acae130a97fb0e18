"""Random histories with everything that goes back or rearranges: savepoints, restores, clustering, versions, maintenance."""

from __future__ import annotations

import sys

from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from hudimeta.api import verbs
from hudimeta.api.table import Table
from hudimeta.errors import HudiError, TableError, UndoError
from hudimeta.services import log_compaction, restore, table_type
from hudimeta.services.indexing import drop_index
from hudimeta.services.indexing.beside_writers import create_beside
from hudimeta.storage.faults import Fault
from hudimeta.testing.model import Row
from hudimeta.types import Action, TableType
from tests.write.histories import MADE, SHORT, History, Tally, run_histories

__all__ = ["ServedHistory"]

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
COPIES = {"hoodie.clustering.execution.strategy.class": "SparkBinaryCopyClusteringExecutionStrategy"}
faults = st.sampled_from([None, None, Fault.ERROR_BEFORE, Fault.ERROR_AFTER])
orders = st.sampled_from([([], None), (["x"], "linear"), (["x", "ts"], "zorder"), (["id", "x"], "hilbert")])


class ServedHistory(History):
    """What `History` does, and the services that move rows or take writes back."""

    def __init__(self) -> None:
        super().__init__()
        self.saved: dict[str, list[Row]] = {}
        """Rows of the savepointed moments."""

    # Going back

    @precondition(lambda self: self.table is not None and self.table.model.past)
    @rule(data=st.data())
    def savepoint(self, data: st.DataObject) -> None:
        instant = data.draw(st.sampled_from(sorted(self.t.model.past)))
        try:
            Table(self.t.path).savepoint(instant)
            self.saved[instant] = self.t.model.past[instant]
        except UndoError:
            event("a moment was not savepointed")

    @precondition(lambda self: self.saved)
    @rule(data=st.data())
    def give_a_savepoint_up(self, data: st.DataObject) -> None:
        instant = data.draw(st.sampled_from(sorted(self.saved)))
        Table(self.t.path).delete_savepoint(instant)
        del self.saved[instant]

    @precondition(lambda self: self.table is not None and (self.saved or self.table.model.past))
    @rule(data=st.data(), fault=faults, at=st.integers(0, 60))
    def restore(self, data: st.DataObject, fault: Fault | None, at: int) -> None:
        """Once its plan is on the timeline a restore has happened, also where it failed later."""
        instant = data.draw(st.sampled_from(sorted({*self.saved, *self.t.model.past})))
        storage = self.t.storage if fault is None else self.broken(at, fault)
        try:
            restore.restore(self.t.session(storage), instant)
            self.failed = fault is not None
        except UndoError:
            event("a restore was refused")
            self.failed |= fault is not None
            return
        except HudiError:
            event("a restore failed")
            self.failed = True
        writes = Table(self.t.path).timeline.writes
        if not any(i.time > instant and i.time in self.t.model.past for i in writes):
            self.t.model.restore(instant, self.saved.get(instant))

    @rule()
    def roll_back(self) -> None:
        writes = Table(self.t.path).timeline.writes
        past = self.t.model.past
        if len(writes) < 2 or not {writes[-1].time, writes[-2].time} <= past.keys():
            return
        try:
            Table(self.t.path).rollback(writes[-1].time)
            self.t.model.restore(writes[-2].time)
        except UndoError:
            event("a rollback was refused")

    # Another arrangement of the same rows

    @rule(order=orders)
    def cluster(self, order: tuple[list[str], str | None]) -> None:
        Table(self.t.path).cluster(*order)

    @rule()
    def copy(self) -> None:
        """A clustering that decodes no file that it need not."""
        Table(self.t.path, COPIES).cluster()

    @rule()
    def plan_a_clustering(self) -> None:
        Table(self.t.path).services.clustering.schedule()

    @precondition(lambda self: self.table is not None)
    @rule(at=st.integers(0, 40), fault=st.sampled_from([Fault.ERROR_BEFORE, Fault.ERROR_AFTER]))
    def cluster_over_bad_storage(self, at: int, fault: Fault) -> None:
        try:
            verbs.cluster(self.broken(at, fault), self.t.options)
        except HudiError:
            event("a clustering failed")
        self.failed = True

    @precondition(lambda self: self.table is not None and self.is_mor)
    @rule(fault=faults, at=st.integers(0, 40), waits=st.booleans())
    def merge_logs(self, fault: Fault | None, at: int, waits: bool) -> None:
        storage = self.t.storage if fault is None else self.broken(at, fault)
        session = self.t.session(storage, self.t.options.having({"hoodie.log.compaction.blocks.threshold": "2"}))
        try:
            log_compaction.schedule(session) if waits else log_compaction.log_compact(session)
        except HudiError:
            assert fault is not None, "nobody else is at work"
            event("a log compaction failed")
        self.failed |= fault is not None

    @rule(name=st.sampled_from(sorted(MADE)), fault=faults, at=st.integers(0, 30))
    def make_an_index_beside_writers(self, name: str, fault: Fault | None, at: int) -> None:
        if name in self.made():
            drop_index(self.t.storage, self.t.options, name)
        storage = self.t.storage if fault is None else self.broken(at, fault)
        try:
            create_beside(self.t.session(storage), **MADE[name])
        except HudiError:
            assert fault is not None, "nobody else is at work"
            event("making an index beside writers failed")
        self.failed |= fault is not None

    def make(self, name: str) -> None:
        """One that is planned, because its building died, is built by its plan."""
        if name not in self.made():
            create_beside(self.t.session(), **MADE[name])

    @rule(fault=faults, at=st.integers(0, 40))
    def change_type(self, fault: Fault | None, at: int) -> None:
        """To the other type; refused while something is pending."""
        storage = self.t.storage if fault is None else self.broken(at, fault)
        try:
            table_type.change_type(self.t.session(storage), COW if self.is_mor else MOR)
        except TableError:
            event("a change of type was refused")
        except HudiError:
            assert fault is not None, "what is at work is all that refuses a change of type"
            event("a change of type failed")
        self.failed |= fault is not None
        self.is_mor = self.t.session().properties.type is TableType.MERGE_ON_READ

    @rule(fault=faults, at=st.integers(0, 60))
    def change_version(self, fault: Fault | None, at: int) -> None:
        """To the other version; refused while something is pending."""
        storage = self.t.storage if fault is None else self.broken(at, fault)
        to, verb = (9, "upgrade") if self.t.session().properties.version == 8 else (8, "downgrade")
        try:
            verbs.change_version(storage, self.t.options, to, verb, dry_run=False)
        except TableError:
            event("a change of version was refused")
        except HudiError:
            assert fault is not None, "what is at work is all that refuses a change of version"
            event("a change of version failed")
            self.finish_change(to, verb)
        self.failed |= fault is not None

    def finish_change(self, to: int, verb: str) -> None:
        """The next call finishes what one that died has begun; what the indexes were proven by may be lost with it."""
        if self.t.session().properties.version != to:
            return
        verbs.change_version(self.t.storage, self.t.options, to, verb, dry_run=False)
        self.rebuild_metadata()

    def run_what_is_planned(self) -> None:
        super().run_what_is_planned()
        for planned in Table(self.t.path).timeline.pending:
            if planned.action is Action.CLUSTERING:
                Table(self.t.path).services.clustering.execute(planned.time)
            if planned.action is Action.LOG_COMPACTION:
                Table(self.t.path).services.log_compaction.execute(planned.time)

    @rule()
    def maintain(self) -> None:
        """What a failed run left may stay: the next write, or recover, removes it."""
        Table(self.t.path, {**self.given, **SHORT}).maintain()


if __name__ == "__main__":
    first, count, length = (int(text) for text in sys.argv[1:4])
    run_histories(first, count, length, shrink="shrink" in sys.argv, kind=ServedHistory)
    print(f"seed {first}: {Tally.histories} histories, {Tally.steps} steps hold")
