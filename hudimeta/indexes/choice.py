"""Which index a write uses: the one that is asked for, else the one that the table has.

    hoodie.index.type is given, as an option or in the properties    that one
    the table has a record index                                     it, when it is proven complete; else the files themselves
    the table has a record window                                    it
    neither                                                          SIMPLE

An index that is asked for and cannot be used is an error. With `hudimeta.index.allow.fallback` the files are read instead, to
the same result, and the report says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hudimeta.config import Option, Options
from hudimeta.config import options as keys
from hudimeta.errors import ConfigError, IndexNotReady, UnsupportedFeature
from hudimeta.indexes.record_window.settings import WindowSettings
from hudimeta.indexes.tagging import IndexKind
from hudimeta.metadata.index_definitions import IndexDefinition
from hudimeta.table.properties import TableProperties
from hudimeta.types import TableType

__all__ = ["BucketSettings", "IndexChoice", "bucket_settings", "choose_index", "named_index"]

_RECORD_INDEX = "record_index"
_NAMES = {"GLOBAL_RECORD_LEVEL_INDEX": IndexKind.RECORD_INDEX, "RECORD_LEVEL_INDEX": IndexKind.RECORD_INDEX}
_GLOBAL = (IndexKind.GLOBAL_SIMPLE, IndexKind.GLOBAL_BLOOM)
_MOVES: Mapping[IndexKind, Option[bool]] = {
    IndexKind.GLOBAL_SIMPLE: keys.SIMPLE_MOVES,
    IndexKind.GLOBAL_BLOOM: keys.BLOOM_MOVES,
    IndexKind.RECORD_INDEX: keys.RECORD_INDEX_MOVES,
    IndexKind.RECORD_WINDOW: keys.RECORD_INDEX_MOVES,
}


_COUNTS = (keys.BUCKET_COUNT, keys.BUCKET_RULES)
"""Options that say how many buckets there are."""
_MAKE_WINDOW = "t.indexes.create(type='record_window', options={'days': 3}) makes one."


@dataclass(frozen=True)
class BucketSettings:
    """How a bucket index cuts partitions.

    Attributes:
        count: Buckets of a partition, of a new one when consistent.
        fields: Key fields that are hashed.
        consistent: By consistent hashing.
        rules: Other counts for some partitions, as options or properties have them; "" for none. Rules that the table has in a
            file count instead.
        stated: Whether options of the write say how many.
    """

    count: int
    fields: tuple[str, ...]
    consistent: bool
    rules: str = ""
    stated: bool = False


@dataclass(frozen=True)
class IndexChoice:
    """The index of a write.

    Attributes:
        kind: Which.
        is_global: Keys are unique in the whole table, not only in their partition.
        moves: A row whose partition changed leaves its old partition; False: it stays there. For global indexes.
        stated: Somebody asked for it.
        buckets: Of a bucket index.
        note: For the report; "" for nothing.
        unproven: Why a record index that is used may lack rows; "" when it cannot.
        fallback: What reads the files instead, where that is allowed.
        window: Of a record window.
    """

    kind: IndexKind
    is_global: bool = False
    moves: bool = False
    stated: bool = False
    buckets: BucketSettings | None = None
    note: str = ""
    unproven: str = ""
    fallback: IndexKind | None = None
    window: WindowSettings | None = None

    @property
    def finds_anywhere(self) -> bool:
        """Whether a key is found in whichever partition it lies: a record window knows those of its days alone."""
        return self.is_global and self.window is None


def named_index(options: Options, properties: TableProperties) -> str:
    """The index that a user names, else the table, else this machine: in capitals, "" where none of them does."""
    stated = options.stated().get(keys.INDEX_TYPE) or properties.get(keys.INDEX_TYPE.key) or options.get(keys.INDEX_TYPE)
    return (stated or "").strip().upper()


def choose_index(
    options: Options,
    properties: TableProperties,
    is_proven: Callable[[], bool],
    definitions: Callable[[], Mapping[str, IndexDefinition]],
) -> IndexChoice:
    """The index of a write; see the module's head.

    Args:
        options: Of the write.
        properties: Of the table.
        is_proven: Whether the record index is proven to lack no row; asked only when there is one.
        definitions: Of the table's indexes; asked only for a record index.

    Raises:
        IndexNotReady: It is asked for and not there.
        UnsupportedFeature: It cannot be used with this table.
        ConfigError: Settings that contradict each other or the table.
    """
    name = named_index(options, properties)
    if not name:
        return _of_the_table(options, properties, is_proven, definitions)
    kind = _NAMES.get(name) or next((known for known in IndexKind if known.value == name), None)
    if kind is None:  # an option is judged when it is read, what stands in the properties is not
        raise ConfigError(keys.INDEX_TYPE.key, name, keys.INDEX_TYPE.allowed, "Correct it in hoodie.properties.")
    may_fall_back = options.get(keys.INDEX_ALLOW_FALLBACK)
    if kind is IndexKind.BUCKET:
        return IndexChoice(kind, stated=True, buckets=bucket_settings(options, properties))
    if kind is IndexKind.RECORD_INDEX:
        return _record_index(name, options, properties, is_proven, definitions)
    if kind is IndexKind.RECORD_WINDOW:
        return _record_window(options, properties, stated=True)
    if not properties.populate_meta and kind in (IndexKind.BLOOM, IndexKind.GLOBAL_BLOOM):
        plain = IndexKind.SIMPLE if kind is IndexKind.BLOOM else IndexKind.GLOBAL_SIMPLE
        why = "files without meta columns have no bloom filters"
        if not may_fall_back:
            raise UnsupportedFeature(f"{name} on a table with virtual keys: {why}", f"Use {plain.value}. {_advice()}")
        return _with_moves(IndexChoice(plain, plain in _GLOBAL, stated=True, note=f"instead of {name}: {why}"), options)
    return _with_moves(IndexChoice(kind, kind in _GLOBAL, stated=True), options)


def _of_the_table(
    options: Options,
    properties: TableProperties,
    is_proven: Callable[[], bool],
    definitions: Callable[[], Mapping[str, IndexDefinition]],
) -> IndexChoice:
    if _RECORD_INDEX not in properties.metadata_partitions:
        has_window = WindowSettings.of(properties) is not None
        wanted = options.is_set(keys.WINDOW_DAYS) and options.get(keys.WINDOW_DAYS)
        note = f"{keys.WINDOW_DAYS.key} makes no record window of a table that is there: {_MAKE_WINDOW}" if wanted else ""
        return _record_window(options, properties) if has_window else IndexChoice(IndexKind.SIMPLE, note=note)
    is_global = not _is_partitioned(definitions())
    plain = IndexKind.GLOBAL_SIMPLE if is_global else IndexKind.SIMPLE
    if why := _why_unproven(is_proven):
        # A live key that it lacks would be stored twice; without being asked nobody takes that risk.
        choice = IndexChoice(plain, is_global, note=f"not the record index: {why}")
    else:
        choice = IndexChoice(IndexKind.RECORD_INDEX, is_global, fallback=plain)
    # Whichever of the two finds a row: what becomes of it must be the same.
    return IndexChoice(
        choice.kind,
        is_global,
        is_global and options.get(keys.RECORD_INDEX_MOVES),
        note=choice.note,
        fallback=choice.fallback if options.get(keys.INDEX_ALLOW_FALLBACK) else None,
    )


def _record_index(
    name: str,
    options: Options,
    properties: TableProperties,
    is_proven: Callable[[], bool],
    definitions: Callable[[], Mapping[str, IndexDefinition]],
) -> IndexChoice:
    may_fall_back = options.get(keys.INDEX_ALLOW_FALLBACK)
    if _RECORD_INDEX not in properties.metadata_partitions:
        is_global = name != "RECORD_LEVEL_INDEX" and not options.get(keys.RECORD_INDEX_BY_PARTITION)
        plain = IndexKind.GLOBAL_SIMPLE if is_global else IndexKind.SIMPLE
        if not (may_fall_back or _is_built_first(options)):
            builds = keys.RECORD_INDEX if is_global else keys.RECORD_INDEX_BY_PARTITION
            why = f"not built, but asked for by {keys.INDEX_TYPE.key}. A write with {builds.key}=true builds it. {_advice()}"
            raise IndexNotReady(_RECORD_INDEX, why)
        note = "instead of the record index, which the table does not have"
        moves = is_global and options.get(keys.RECORD_INDEX_MOVES)
        return IndexChoice(plain, is_global, moves, stated=True, note=note)
    is_global = not _is_partitioned(definitions())
    if name == ("RECORD_LEVEL_INDEX" if is_global else "GLOBAL_RECORD_LEVEL_INDEX"):
        have = "one for the whole table" if is_global else "one for each partition"
        raise ConfigError(keys.INDEX_TYPE.key, name, f"the record index that the table has: {have}")
    plain = IndexKind.GLOBAL_SIMPLE if is_global else IndexKind.SIMPLE
    return IndexChoice(
        IndexKind.RECORD_INDEX,
        is_global,
        is_global and options.get(keys.RECORD_INDEX_MOVES),
        stated=True,
        unproven=_why_unproven(is_proven),
        fallback=plain if may_fall_back else None,
    )


def _is_built_first(options: Options) -> bool:
    """Whether the write builds a record index before it looks keys up; see `write.asked_indexes`."""
    asked = (keys.RECORD_INDEX, keys.RECORD_INDEX_BY_PARTITION)
    return options.get(keys.METADATA_ENABLE) and any(options.is_set(key) and options.get(key) for key in asked)


def _record_window(options: Options, properties: TableProperties, *, stated: bool = False) -> IndexChoice:
    window = WindowSettings.of(properties)
    if window is None:
        raise IndexNotReady("record_window", f"not there, but asked for by {keys.INDEX_TYPE.key}. {_MAKE_WINDOW}")
    moves = options.get(keys.RECORD_INDEX_MOVES)
    return IndexChoice(IndexKind.RECORD_WINDOW, True, moves, stated, window=window)


def _with_moves(choice: IndexChoice, options: Options) -> IndexChoice:
    option = _MOVES.get(choice.kind)
    if option is None:
        return choice
    return IndexChoice(choice.kind, choice.is_global, options.get(option), choice.stated, note=choice.note)


def _advice() -> str:
    return f"With {keys.INDEX_ALLOW_FALLBACK.key}=true keys are looked up in the files instead."


def _is_partitioned(definitions: Mapping[str, IndexDefinition]) -> bool:
    definition = definitions.get(_RECORD_INDEX)
    return definition is not None and definition.is_partitioned


def _why_unproven(is_proven: Callable[[], bool]) -> str:
    """Why nothing proves that the record index lacks no row; "" when it is proven complete."""
    if is_proven():
        return ""
    return "nothing proves that it lacks no row; see t.metadata.validate()"


def bucket_settings(options: Options, properties: TableProperties) -> BucketSettings:
    """How buckets are cut, by the options and, where they say nothing, by what the table was created with.

    Raises:
        ConfigError: Settings that contradict each other or the table.
        UnsupportedFeature: Consistent hashing in a copy-on-write table, which Apache Hudi does not have either.
    """

    def text(option: Option[str | None]) -> str | None:
        return options.get(option) if options.is_set(option) else properties.get(option.key) or options.get(option)

    stored = properties.get(keys.BUCKET_COUNT.key)
    count = options.get(keys.BUCKET_COUNT) if stored is None or options.is_set(keys.BUCKET_COUNT) else int(stored)
    if count < 1:
        raise ConfigError(keys.BUCKET_COUNT.key, count, "1 or more")
    if stored is not None and count != int(stored):
        raise ConfigError(keys.BUCKET_COUNT.key, count, f"what the table was created with: {stored}")
    given = options.get(keys.BUCKET_FIELDS) or tuple(f for f in properties.get(keys.BUCKET_FIELDS.key, "").split(",") if f)
    fields = given or properties.record_keys
    strange = [name for name in fields if name not in properties.record_keys]
    if strange or not fields:
        allowed = f"columns of the record key: {', '.join(properties.record_keys) or 'the table has none'}"
        raise ConfigError(keys.BUCKET_FIELDS.key, ",".join(fields), allowed)
    consistent = text(keys.BUCKET_ENGINE) == "CONSISTENT_HASHING"
    if consistent and properties.type is not TableType.MERGE_ON_READ:
        raise UnsupportedFeature("consistent hashing in a copy-on-write table", "Use hoodie.index.bucket.engine=SIMPLE.")
    rules = text(keys.BUCKET_RULES) or ""
    if rules and consistent:
        hint = "Leave it out: buckets split and merge as partitions grow."
        raise ConfigError(keys.BUCKET_RULES.key, rules, f"nothing beside {keys.BUCKET_ENGINE.key}=CONSISTENT_HASHING", hint)
    return BucketSettings(count, fields, consistent, rules, any(map(options.is_set, _COUNTS)))
