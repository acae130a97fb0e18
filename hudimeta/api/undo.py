"""Going back, as the faces call it: one function a verb, from plain arguments to a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hudimeta.commit.session import WriteSession
from hudimeta.config import Options
from hudimeta.engine import Engine
from hudimeta.services import savepoints as service
from hudimeta.storage import Storage
from hudimeta.table.properties import load

if TYPE_CHECKING:
    from hudimeta.reports import Reports
    from hudimeta.services.restore import RestoreReport
    from hudimeta.services.rollback import RollbackReport
    from hudimeta.services.savepoints import Savepoint

__all__ = ["delete_savepoint", "restore", "rollback", "savepoint", "savepoints"]


def savepoint(storage: Storage, options: Options, instant: str | None, comment: str, user: str, *, dry_run: bool) -> Savepoint:
    """Pin a write; see `hudimeta.Table.savepoint`."""
    return service.save(WriteSession(storage, options), instant, comment, user, dry_run=dry_run)


def savepoints(storage: Storage, _: Options) -> Reports[Savepoint]:
    """The savepoints of a table of any version that can be read; see `hudimeta.Table.savepoints`."""
    return service.listed(load(storage).load_timeline(storage))


def delete_savepoint(storage: Storage, options: Options, instant: str, *, dry_run: bool) -> Savepoint:
    """Give a savepoint up; see `hudimeta.Table.delete_savepoint`."""
    return service.delete(WriteSession(storage, options), instant, dry_run=dry_run)


def restore(storage: Storage, options: Options, engine: Engine | None, instant: str, *, dry_run: bool) -> RestoreReport:
    """Take a table back; see `hudimeta.Table.restore`."""
    from hudimeta.services import restore as restoring

    return restoring.restore(WriteSession(storage, options, engine=engine), instant, dry_run=dry_run)


def rollback(storage: Storage, options: Options, instant: str, *, dry_run: bool) -> RollbackReport:
    """Take one instant out of a table; see `hudimeta.Table.rollback`."""
    from hudimeta.services import rollback as rolling_back

    return rolling_back.roll_back(WriteSession(storage, options), instant, dry_run=dry_run)
