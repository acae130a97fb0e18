"""How many buckets a partition has, by rules for its path (RFC-89), written down in the table.

    .hoodie/.bucket_index/partition_bucket_index_meta/configs/<instant>.hashing_config
        JSON {expressions, defaultBucketNumber, rule, version, instant}
        expressions    "<regular expression>,<buckets>;…": the first that is found in the path counts
        rule           "regex", nothing else is defined
    .hoodie/.bucket_index/partition_bucket_index_meta/archive/<instant>.hashing_config
        those before the active timeline, which writers need no more

The newest file counts. That of a replacement which is pending does not count yet; what takes the replacement back deletes it.
Apache Hudi's rollback only does so where its options bring rules, and its writers go by what was left: it is removed here.
Apache Hudi's Spark writers make no file when they create a table: they go by options until buckets are counted anew.
Where hudimeta wrote rules, hoodie.properties names their instant (`RULES_KEY`), so that a lost file is noticed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from hudimeta.config import options as keys
from hudimeta.errors import ConfigError, CorruptFileError, HudiError, UnsupportedFeature
from hudimeta.formats.json_text import parse_json
from hudimeta.formats.seal import sealed_json, verify_json
from hudimeta.predicate import search_regex
from hudimeta.storage import Storage, join
from hudimeta.timeline import Timeline
from hudimeta.types import Action

__all__ = [
    "FIRST_INSTANT",
    "RULES_KEY",
    "PartitionRules",
    "committed_rules",
    "decode_rules",
    "encode_rules",
    "forget_rules",
    "load_rules",
    "put_rules",
    "remove_taken_back",
]

FOLDER = ".hoodie/.bucket_index/partition_bucket_index_meta/configs"
SUFFIX = ".hashing_config"
FIRST_INSTANT = "00000000000000"
"""Of rules that a table was made with."""
MOST_BUCKETS = 100_000_000
RULES_KEY = "hudimeta.bucket.rules"
"""Property that names the instant of the newest rules which hudimeta wrote."""
_VERSION, _REGEX = 1, "regex"
_EXPRESSIONS = keys.BUCKET_RULES.key
_FORM = "<regular expression>,<buckets>;…, without commas and semicolons in the expressions"


@dataclass(frozen=True)
class PartitionRules:
    """The rules of a table.

    Attributes:
        expressions: In the form of the module's head.
        default: Buckets of a partition in which none of them is found.
        instant: Of the write that brought them; `FIRST_INSTANT` where the table was made with them.
    """

    expressions: str
    default: int
    instant: str = FIRST_INSTANT

    @property
    def rules(self) -> tuple[tuple[str, int], ...]:
        """Regular expressions with their numbers of buckets.

        Raises:
            ConfigError: The text has another form.
        """
        found = []
        for rule in self.expressions.rstrip(";").split(";") if self.expressions else ():
            pattern, comma, count = (part.strip() for part in rule.partition(","))
            if not comma or not (count.isascii() and count.isdigit()) or not 0 < int(count) <= MOST_BUCKETS:
                raise ConfigError(_EXPRESSIONS, self.expressions, f"{_FORM}, 1 to {MOST_BUCKETS:,} buckets")
            found.append((pattern, int(count)))
        return tuple(found)

    def count_of(self, partition: str) -> int:
        """Buckets of a partition, by its path.

        Raises:
            ConfigError: A regular expression that Java does not know, or that looks around or back.
        """
        path = pa.array([partition], pa.string())
        return next((count for pattern, count in self.rules if search_regex(path, pattern)[0].as_py()), self.default)

    def check(self) -> PartitionRules:
        """The rules, when they can be used. Raises as `rules` and `count_of` do."""
        for pattern, _ in self.rules:
            search_regex(pa.array([], pa.string()), pattern)
        return self


def decode_rules(data: bytes, path: str = "") -> PartitionRules:
    """Read a `hashing_config` file.

    Raises:
        CorruptFileError: Not the JSON that it should be, or rules that cannot be read.
        UnsupportedFeature: Rules of another kind.
    """
    verify_json(data, path)
    try:
        found = parse_json(data)
        kind, version = str(found["rule"]), int(found["version"])
        rules = PartitionRules(str(found["expressions"]), int(found["defaultBucketNumber"]), str(found["instant"]))
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptFileError(path, 0, "JSON with the rules of a bucket index", repr(error)) from error
    if kind.lower() != _REGEX or version != _VERSION:
        hint = "Write to this table with the release of Apache Hudi that wrote them."
        raise UnsupportedFeature(f"buckets by rules of kind {kind!r}, version {version}", hint)
    if not 0 < rules.default <= MOST_BUCKETS:
        raise CorruptFileError(path, 0, f"1 to {MOST_BUCKETS:,} buckets", rules.default)
    try:
        return rules.check()
    except HudiError as error:
        raise CorruptFileError(path, 0, "rules that can be used", str(error)) from error


def encode_rules(rules: PartitionRules) -> bytes:
    """The inverse of `decode_rules`, spelled as Apache Hudi spells it, and sealed."""
    told = {
        "expressions": rules.expressions,
        "defaultBucketNumber": rules.default,
        "rule": _REGEX,
        "version": _VERSION,
        "instant": rules.instant,
    }
    return sealed_json(json.dumps(told, indent=2, separators=(",", " : ")).encode(), f"{rules.instant}{SUFFIX}")


def load_rules(storage: Storage, timeline: Timeline, properties: Mapping[str, str]) -> PartitionRules | None:
    """The rules that count; None for a table that has none.

    Args:
        storage: Rooted at the table.
        timeline: Of the table.
        properties: Of the table.

    Raises:
        CorruptFileError: They cannot be read, or are not there any more.
        UnsupportedFeature: Rules of another kind.
    """
    times = _times(storage)
    gone = _taken_back(times, timeline)
    newest = max((time for time in times if time not in gone and _counts(timeline, time)), default="")
    stated = properties.get(RULES_KEY, "")
    if stated > newest and _was_completed(timeline, stated):
        hint = "Restore the file from a copy: without it nobody knows in which bucket a key is."
        raise CorruptFileError(join(FOLDER, f"{stated}{SUFFIX}"), 0, "the rules of the table's buckets", "no file", hint)
    return _read(storage, newest) if newest else None


def committed_rules(storage: Storage, timeline: Timeline) -> list[PartitionRules]:
    """All rules that counted or count, the newest last. Raises as `decode_rules` does.

    Args:
        storage: Rooted at the table.
        timeline: Of the table.
    """
    times = _times(storage)
    gone = _taken_back(times, timeline)
    return [_read(storage, time) for time in sorted(times) if time not in gone and _counts(timeline, time)]


def _times(storage: Storage) -> list[str]:
    names = [entry.name for entry in storage.list(FOLDER) if not entry.is_folder and entry.name.endswith(SUFFIX)]
    return [name.removesuffix(SUFFIX) for name in names]


def _taken_back(times: Iterable[str], timeline: Timeline) -> set[str]:
    """Those that are no writes any more."""
    old = {time for time in times if time != FIRST_INSTANT and timeline.get(time) is None}
    return old & timeline.rolled_back if old else old


def _counts(timeline: Timeline, time: str) -> bool:
    return time == FIRST_INSTANT or timeline.is_committed(time)


def _was_completed(timeline: Timeline, time: str) -> bool:
    """Whether a write was, of one that may have been taken back long ago."""
    return time == FIRST_INSTANT or time in timeline.completion_times or time in timeline.archived_completions([time])


def _read(storage: Storage, time: str) -> PartitionRules:
    path = join(FOLDER, f"{time}{SUFFIX}")
    rules = decode_rules(storage.read(path), path)
    if rules.instant != time:
        raise CorruptFileError(path, 0, f"the rules of {time}", f"those of {rules.instant}")
    return rules


def put_rules(storage: Storage, rules: PartitionRules) -> None:
    """Write rules down at their instant; of a run that died the same file may be there."""
    storage.put(join(FOLDER, f"{rules.instant}{SUFFIX}"), encode_rules(rules))


def remove_taken_back(storage: Storage, timeline: Timeline) -> None:
    """Remove rules that were taken back and left there; for writes, since others go by these rules until then.

    Args:
        storage: Rooted at the table.
        timeline: Of the table.
    """
    if any(instant.action in (Action.ROLLBACK, Action.RESTORE) for instant in timeline):
        forget_rules(storage, _taken_back(_times(storage), timeline))


def forget_rules(storage: Storage, instants: Iterable[str]) -> None:
    """Remove the rules that instants brought which are taken back, and their folder if it is empty: Apache Hudi fails on it."""
    names = {f"{instant}{SUFFIX}" for instant in instants}
    found = [entry.name for entry in storage.list(FOLDER)] if names else []
    gone = [name for name in found if name in names]
    for name in gone:
        storage.delete(join(FOLDER, name))
    if gone and not storage.list(FOLDER):
        storage.delete_folder(FOLDER)
