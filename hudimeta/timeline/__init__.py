"""Time: instants, the active timeline and its history, the clock that makes new instants."""

from hudimeta.timeline.active import Timeline, WriteTimes
from hudimeta.timeline.clock import (
    Clock,
    InstantGenerator,
    SystemClock,
    format_instant,
    normalise_instant,
    parse_instant,
    timeline_zone,
)
from hudimeta.timeline.history import History
from hudimeta.timeline.transitions import TimelineWriter

__all__ = [
    "Clock",
    "History",
    "InstantGenerator",
    "SystemClock",
    "Timeline",
    "TimelineWriter",
    "WriteTimes",
    "format_instant",
    "normalise_instant",
    "parse_instant",
    "timeline_zone",
]
