"""Names of time zones as Java's `ZoneId.of` reads them, with what Spark allows besides."""

from __future__ import annotations

import re
import zoneinfo

__all__ = ["JAVA_BLANKS", "java_zone"]

JAVA_BLANKS = "".join(map(chr, range(0x21)))
"""What `String.trim` takes off."""
_ONE_DIGIT_HOUR, _ONE_DIGIT_MINUTE = re.compile(r"([+-])([0-9]):"), re.compile(r"([+-][0-9]{2}):([0-9])$")
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?:$|:([0-9]{2})(?::([0-9]{2}))?$|(?<=[0-9]{2})([0-9]{2})([0-9]{2})?$)")
_REGION = re.compile(r"[A-Za-z][A-Za-z0-9~/._+-]+")
_LARGEST_OFFSET = 18 * 3600
_SHORT_ZONES = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "EST": "-05",
    "HST": "-10",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "MST": "-07",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
"""Java's `ZoneId.SHORT_IDS`."""


def java_zone(name: str) -> str | int | None:
    """The zone, or the offset in seconds, that Java's `ZoneId.of` makes of a text; None when it refuses."""
    name = _ONE_DIGIT_HOUR.sub(r"\g<1>0\2:", name.strip(JAVA_BLANKS), count=1)
    name = _ONE_DIGIT_MINUTE.sub(r"\1:0\2", name)
    if name in ("Z", "UTC", "GMT", "UT"):
        return 0
    offset = _OFFSET.match(name)
    if offset:
        hours, minutes, seconds = (int(part or 0) for part in (offset[2], offset[3] or offset[5], offset[4] or offset[6]))
        total = hours * 3600 + minutes * 60 + seconds
        fits = minutes < 60 and seconds < 60 and total <= _LARGEST_OFFSET
        return (-total if offset[1] == "-" else total) if fits else None
    name = _SHORT_ZONES.get(name, name)
    if not _REGION.fullmatch(name):
        return int(name) * 3600 if name in ("-05", "-07", "-10") else None
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None
    return name
