"""How a write begins and becomes visible: session, coordinator, publication, conflicts, markers, recovery, locks."""

__all__ = [
    "attempts",  # a write tried again after conflicts
    "clean_run",  # running a planned clean
    "concurrency",  # how the writers of a table get along, by their options
    "conflicts",  # may this write still be published?
    "coordinator",  # one write from its instant to its publication, or back
    "dead_indexing",  # builds of indexes that died
    "early_conflicts",  # other writers at the same file groups, seen by their markers
    "index_ahead",  # an index made before the lock
    "index_build",  # building an index over rows that are there
    "liveness",  # is the writer of a pending instant alive?
    "locks",  # the table lock, by the providers of Hudi
    "markers",  # a note of every data file, made before the file
    "metadata_again",  # which indexes a metadata table gets that is built once more
    "metadata_bootstrap",  # the metadata table of a table that has files
    "metadata_commit",  # what a commit does to the metadata table
    "planned_runs",  # services that were planned, run or taken back
    "published_schema",  # what a commit says of the table's columns
    "removal",  # files that nobody needs any more
    "report",  # CommitReport
    "restoring",  # running a planned restore
    "rollback",  # taking one instant back
    "session",  # a table opened for one write
    "strays",  # files of attempts that are no part of their write
    "stream_batches",  # batches of a stream, each written once
    "supported",  # what a write refuses
    "table_history",  # what happened to a table
    "timings",  # what a write spends its time on
]
