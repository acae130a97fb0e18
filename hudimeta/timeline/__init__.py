"""Time: instants, the active timeline and its history, the clock that makes new instants."""

from hudimeta.timeline.active import DEFAULT_FOLDER, Timeline
from hudimeta.timeline.clock import (
    OF_BOOTSTRAPS,
    TIMEZONE_KEY,
    Clock,
    InstantGenerator,
    SystemClock,
    format_instant,
    normalise_instant,
    one_earlier,
    parse_instant,
    range_bound,
    timeline_zone,
)
from hudimeta.timeline.history import History
from hudimeta.timeline.transitions import TimelineWriter

__all__ = [
    "DEFAULT_FOLDER",
    "OF_BOOTSTRAPS",
    "TIMEZONE_KEY",
    "Clock",
    "History",
    "InstantGenerator",
    "SystemClock",
    "Timeline",
    "TimelineWriter",
    "archived",  # what archived instants said
    "archiving",  # moving instants to the history
    "clean_record",  # what a clean deletes
    "content",  # what the instants' files say
    "format_instant",
    "history",  # files of the archived timeline
    "history_writer",  # writing those files
    "naming",  # names of the timeline's files
    "normalise_instant",
    "one_earlier",
    "parse_instant",
    "range_bound",
    "restore_record",  # the records of a restore
    "rollback_record",  # the records of a rollback
    "savepoint_record",  # what a savepoint keeps
    "summary",  # a timeline as a table
    "timeline_zone",
]
