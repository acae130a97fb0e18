"""`maintain`: one verb for a table that keeps itself well."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hudimeta.config import checked

if TYPE_CHECKING:
    from hudimeta.config import Options
    from hudimeta.engine import Engine
    from hudimeta.services.maintenance import MaintenancePlan, MaintenanceReport
    from hudimeta.storage import Storage

__all__ = ["Maintaining"]


@checked
class Maintaining:
    """Gives `TableServices` its verb `maintain`."""

    _changing: Callable[[], tuple[Storage, Options]]
    _engine: Engine | None

    def maintain(
        self, *, max_bytes: int | None = None, max_seconds: float | None = None, dry_run: bool = False
    ) -> MaintenanceReport | MaintenancePlan:
        """Run the services that are due, in the order that saves most; writers go on meanwhile.

        What is due follows from the options `hoodie.compact.*`, `hoodie.clustering.*` (where
        `hoodie.clustering.inline=true` asks for it), `hoodie.clean.*` and `hoodie.keep.*`. No row changes, but that partitions
        expire where `hoodie.partition.ttl.inline=true` asks for that.

        >>> print(table.services.maintain(dry_run=True))                       # doctest: +SKIP
        compaction  8 log files in 4 file slices (hoodie.compact.inline.max.delta.commits) (51,200 bytes to merge)
        clean       12 files that no retained moment needs (hoodie.clean.commits.retained) (43,511 bytes to delete)

        Args:
            max_bytes: A service that merges more than what is left of it waits for another call; a compaction takes as many
                file slices as fit. None for all.
            max_seconds: No service begins after so many. None for no end.
            dry_run: Only say what is due.

        Returns:
            What was done, and what is left; what is due, with `dry_run`.

        Raises:
            ConfigError: A budget that is not positive.
        """
        from hudimeta.services import maintenance

        storage, options = self._changing()
        if dry_run:
            return maintenance.plan(storage, options)
        return maintenance.maintain(storage, options, max_bytes=max_bytes, max_seconds=max_seconds, engine=self._engine)

    def watch(self, every: float = 60.0, tell: Callable[[MaintenanceReport], object] = print) -> None:
        """Maintain the table for ever, in a process or thread of its own; returns only by an exception.

        Where another process is in the way (`CommitError`, `LockError`), a HudiWarning says so; the next look tries again.

        >>> table.services.watch(every=300)                                    # doctest: +SKIP

        Args:
            every: About so many seconds between two looks, more or less by a fifth.
            tell: Takes the report of each look that did anything; what it raises ends the watch.

        Raises:
            ConfigError: `every` is not positive.
            HudiError: A service failed for another reason.
        """
        from hudimeta.services import maintenance

        maintenance.watch(*self._changing(), every, tell, self._engine)
