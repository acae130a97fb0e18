"""CREATE TABLE, ALTER TABLE, DROP TABLE and their kin, and SET."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hudimeta.redaction import redacted
from hudimeta.sql.columns import (
    AFTER_TYPE,
    ColumnPlace,
    DeclaredColumn,
    column_place,
    declared_column,
    declared_columns,
    skip_type,
)
from hudimeta.sql.cursor import Cursor, Unread
from hudimeta.sql.insertion import partition_values
from hudimeta.sql.statement import (
    AlterEntry,
    AlterTable,
    CreateLike,
    CreateTable,
    DropTable,
    Partitions,
    PartitionValues,
    PartitionVerb,
    SetOption,
    SetTableProperties,
    TableName,
)

__all__ = [
    "alter_table",
    "create_table",
    "drop_table",
    "properties",
    "repair_table",
    "set_option",
    "truncate_table",
]

_QUERY = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "(")


@redacted
@dataclass
class _Clauses:
    """What was read of a CREATE TABLE after its columns. read: The words that its clauses begin with."""

    read: list[str] = field(default_factory=list)
    provider: str = ""
    partition_by: list[str] = field(default_factory=list)
    partition_columns: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    location: str | None = None
    comment: str | None = None
    query: str | None = None
    odd: str | None = None


def create_table(cursor: Cursor) -> CreateTable | CreateLike:
    """CREATE [OR REPLACE] [EXTERNAL] TABLE [IF NOT EXISTS] name [(columns)] clauses [AS query], or REPLACE TABLE …."""
    creates = not cursor.accept("REPLACE")
    if creates:
        cursor.expect("CREATE")
    replaces = not creates or cursor.accept("OR", "REPLACE")
    external = cursor.accept("EXTERNAL")
    cursor.expect("TABLE")
    if_not_exists = not replaces and cursor.accept("IF", "NOT", "EXISTS")
    name = TableName(cursor.dotted())
    if not replaces and cursor.accept("LIKE"):
        return _like(cursor, name, if_not_exists)
    columns = None
    if cursor.peek() == "(":
        columns = cursor.inside().rest()
    clauses = _Clauses()
    while not cursor.done:
        _clause(cursor, clauses)
    if external and clauses.location is None and "path" not in map(str.lower, clauses.options):
        cursor.fail()  # Spark refuses it
    return CreateTable(
        name,
        clauses.provider,
        if_not_exists,
        columns,
        tuple(clauses.partition_by),
        ", ".join(clauses.partition_columns),
        clauses.options,
        clauses.location,
        clauses.comment,
        clauses.query,
        clauses.odd,
        replaces,
        creates,
    )


def _like(cursor: Cursor, name: TableName, if_not_exists: bool) -> CreateLike:
    source, found = TableName(cursor.dotted()), _Clauses()
    while not cursor.done:
        if cursor.peek() not in ("USING", "TBLPROPERTIES", "LOCATION", "COMMENT"):
            cursor.fail()
        _clause(cursor, found)
    return CreateLike(name, source, found.provider, if_not_exists, found.options, found.location, found.comment)


def _clause(cursor: Cursor, found: _Clauses) -> None:
    word = cursor.peek()
    if word in found.read:
        cursor.fail()  # Spark refuses what comes twice
    found.read.append(word)
    if cursor.accept("USING"):
        found.provider = ".".join(cursor.dotted()).lower()
    elif cursor.accept("OPTIONS") or cursor.accept("TBLPROPERTIES"):
        for key, value in properties(cursor.inside()).items():
            if found.options.setdefault(key, value) != value:
                found.odd = found.odd or f"{key} with two values in CREATE TABLE"
    elif cursor.accept("PARTITIONED", "BY"):
        _partitions(cursor.inside(), found)
    elif cursor.accept("LOCATION"):
        found.location = cursor.string()
    elif cursor.accept("COMMENT"):
        found.comment = cursor.string()
    elif cursor.accept("AS") or cursor.peek() in _QUERY:
        found.query = cursor.rest()
    elif cursor.peek() in ("CLUSTER", "CLUSTERED", "ROW", "STORED", "DEFAULT", "SKEWED"):
        words = cursor.next().upper + (" COLLATION" if cursor.peek() == "COLLATION" else "")
        found.odd = found.odd or f"{words} in CREATE TABLE"
        cursor.until("USING", "OPTIONS", "TBLPROPERTIES", "PARTITIONED", "LOCATION", "COMMENT", "AS")
    else:
        cursor.fail()


def _partitions(inside: Cursor, found: _Clauses) -> None:
    while True:
        begin = inside.at
        name = inside.identifier()
        if inside.peek() == "(":
            found.odd = found.odd or f"the partition transform {name}(…)"
        if not inside.done and inside.peek() != ",":
            inside.until(",")
            found.partition_columns.append(inside.between(begin, inside.at))
        found.partition_by.append(name)
        if not inside.accept(","):
            return inside.finish()


def properties(inside: Cursor) -> dict[str, str]:
    """What stands in the parentheses of OPTIONS and TBLPROPERTIES."""
    found = {}
    while True:
        word = inside.next()
        key = word.text
        while word.kind != "string" and inside.accept("."):
            key += "." + inside.next().text
        inside.accept("=")
        if key in found:
            inside.fail()  # Spark refuses it
        found[key] = inside.string() if inside.is_string else inside.until(",")
        if not inside.accept(","):
            inside.finish()
            return found


def drop_table(cursor: Cursor) -> DropTable:
    """DROP TABLE [IF EXISTS] name [PURGE]."""
    cursor.expect("DROP", "TABLE")
    if_exists = cursor.accept("IF", "EXISTS")
    name = TableName(cursor.dotted())
    purge = cursor.accept("PURGE")
    cursor.finish()
    return DropTable(name, if_exists, purge)


def truncate_table(cursor: Cursor) -> Partitions:
    """TRUNCATE TABLE name [PARTITION (…)]."""
    cursor.expect("TRUNCATE", "TABLE")
    name = TableName(cursor.dotted())
    if cursor.accept("PARTITION"):
        given = partition_values(cursor.inside())
        cursor.finish()
        return Partitions(name, PartitionVerb.TRUNCATE, (given,))
    cursor.finish()
    return Partitions(name, PartitionVerb.TRUNCATE, ())


def repair_table(cursor: Cursor) -> Partitions:
    """[MSCK] REPAIR TABLE name [ADD | DROP | SYNC PARTITIONS]."""
    cursor.accept("MSCK")
    cursor.expect("REPAIR", "TABLE")
    name = TableName(cursor.dotted())
    if any(cursor.accept(word) for word in ("ADD", "DROP", "SYNC")):
        cursor.expect("PARTITIONS")
    cursor.finish()
    return Partitions(name, PartitionVerb.ADD, ())


def set_option(cursor: Cursor) -> SetOption:
    """SET key = value."""
    cursor.expect("SET")
    key, equals, value = cursor.rest().partition("=")
    if not equals:
        cursor.fail()
    return SetOption(key.strip().strip("`"), value.strip())


def alter_table(cursor: Cursor) -> AlterTable | AlterEntry | Partitions | SetTableProperties:
    """ALTER TABLE name ADD COLUMNS (…) | RENAME COLUMN a TO b | DROP COLUMNS (…) | ALTER COLUMN a …, or of the entry."""
    cursor.expect("ALTER", "TABLE")
    name = TableName(cursor.dotted())
    entry = _entry_change(cursor, name)
    if entry is not None:
        return entry
    if cursor.accept("RENAME", "COLUMN"):
        old = ".".join(cursor.dotted())
        cursor.expect("TO")
        new = cursor.identifier()
        cursor.finish()
        return AlterTable(name, rename=(old, new))
    if cursor.accept("ALTER") or cursor.accept("CHANGE"):
        return _altered_column(cursor, name)
    if cursor.accept("ADD"):
        _columns_word(cursor)
        return _added_columns(cursor, name)
    cursor.expect("DROP")
    _columns_word(cursor)
    lenient = cursor.accept("IF", "EXISTS")
    inside = cursor.inside() if cursor.peek() == "(" else cursor
    names = [".".join(inside.dotted())]
    while inside.accept(","):
        names.append(".".join(inside.dotted()))
    inside.finish()
    cursor.finish()
    return AlterTable(name, drop=tuple(names), lenient=lenient)


_ENTRY_CHANGES = (
    ("REPLACE", "COLUMNS"),
    ("SET", "LOCATION"),
    ("SET", "SERDE"),
    ("SET", "FILEFORMAT"),
    ("ADD", "CONSTRAINT"),
    ("DROP", "CONSTRAINT"),
    ("DEFAULT", "COLLATION"),
    ("CLUSTER", "BY"),
    ("PARTITION",),
)
"""What ALTER TABLE does to an entry, by the words after the table's name."""


_PARTITIONS: tuple[tuple[tuple[str, ...], PartitionVerb, bool], ...] = (
    (("ADD", "PARTITION"), PartitionVerb.ADD, False),
    (("ADD", "IF", "NOT", "EXISTS", "PARTITION"), PartitionVerb.ADD, True),
    (("DROP", "PARTITION"), PartitionVerb.DROP, False),
    (("DROP", "IF", "EXISTS", "PARTITION"), PartitionVerb.DROP, True),
)


def _entry_change(cursor: Cursor, name: TableName) -> AlterEntry | Partitions | SetTableProperties | None:
    """The change of an entry that comes next; None where a change of columns does."""
    for words in _ENTRY_CHANGES:
        if cursor.accept(*words):
            return AlterEntry(name, f"ALTER TABLE … {' '.join(words)}")
    if cursor.accept("RENAME", "TO"):
        return AlterEntry(name, "ALTER TABLE … RENAME TO", new_name=TableName(cursor.dotted()))
    if cursor.accept("SET", "TBLPROPERTIES") or cursor.accept("SET", "SERDEPROPERTIES"):
        return SetTableProperties(name, properties(cursor.inside()))
    if cursor.accept("UNSET", "TBLPROPERTIES"):
        cursor.accept("IF", "EXISTS")
        return SetTableProperties(name, dict.fromkeys(_property_names(cursor.inside())))
    if cursor.accept("RECOVER", "PARTITIONS"):
        return Partitions(name, PartitionVerb.ADD, ())
    for said, verb, lenient in _PARTITIONS:
        if cursor.accept(*said):
            given = tuple(_partitions_named(cursor))
            return (
                Partitions(name, verb, given, lenient) if cursor.done else AlterEntry(name, f"{verb.value} … {cursor.peek()}")
            )
    return None


def _partitions_named(cursor: Cursor) -> Iterator[PartitionValues]:
    """One PARTITION (…) after another; the first word is read already, and LOCATION or PURGE may follow."""
    yield partition_values(cursor.inside())
    while not cursor.done and cursor.peek() not in ("LOCATION", "PURGE"):
        cursor.accept(",")
        cursor.expect("PARTITION")
        yield partition_values(cursor.inside())


def _property_names(inside: Cursor) -> Iterator[str]:
    while not inside.done:
        word = inside.next()
        key = word.text
        while word.kind != "string" and inside.accept("."):
            key += "." + inside.next().text
        yield key
        if not inside.done and inside.peek() != ",":
            inside.until(",")
        inside.accept(",")


def _added_columns(cursor: Cursor, name: TableName) -> AlterTable | AlterEntry:
    """What is not read is refused: Spark might read it, and change its catalog alone."""
    try:
        added = tuple(declared_columns(cursor.inside() if cursor.peek() == "(" else cursor))
        cursor.finish()
    except Unread:
        return AlterEntry(name, "ALTER TABLE … ADD COLUMNS, as it stands here,")
    return AlterTable(name, add=added)


def _altered_column(cursor: Cursor, name: TableName) -> AlterTable | AlterEntry:
    """What ALTER | CHANGE [COLUMN] does to a column: but for a comment alone, which is Spark's, a change of the table."""
    cursor.accept("COLUMN")
    path = cursor.dotted()
    column, begin = ".".join(path), cursor.at
    changed = _one_change(cursor, name, column)
    if changed is not None:
        if cursor.done:
            return changed
    elif cursor.peek() in ("FIRST", "AFTER"):
        return AlterTable(name, move=_moves(cursor, column))
    elif cursor.peek() == "COMMENT":
        if _comments(cursor):
            cursor.fail()  # Spark's alone; what else is done to a column is not
    elif (change := _declared_anew(cursor, path)) is not None:
        return AlterTable(name, change=change)
    said = cursor.between(begin, len(cursor.words)) if begin < len(cursor.words) else ""
    return AlterEntry(name, f"ALTER TABLE … ALTER COLUMN {said}".rstrip())


def _comments(cursor: Cursor) -> bool:
    """True where all that follows are comments of this column and of others."""
    while cursor.accept("COMMENT"):
        cursor.string()
        if cursor.done:
            return True
        if cursor.accept(","):
            cursor.dotted()
    return False


def _one_change(cursor: Cursor, name: TableName, column: str) -> AlterTable | None:
    """What is done to a column alone; more may follow, such as a comma and another column, which only Spark would read."""
    if cursor.accept("TYPE"):
        begin = cursor.at
        skip_type(cursor, *AFTER_TYPE)
        return AlterTable(name, retype=(column, cursor.between(begin, cursor.at)))
    if cursor.accept("SET", "DEFAULT"):
        return AlterTable(name, default=(column, cursor.until(",")))
    if cursor.accept("DROP", "DEFAULT"):
        return AlterTable(name, default=(column, None))
    return AlterTable(name, nullable=column) if cursor.accept("DROP", "NOT", "NULL") else None


def _declared_anew(cursor: Cursor, path: tuple[str, ...]) -> DeclaredColumn | None:
    """What CHANGE COLUMN says of a column that keeps its name; None for what it does not say."""
    if cursor.done or cursor.peek() in _OF_COLUMNS or cursor.identifier().lower() != path[-1].lower():
        return None
    column = declared_column(cursor, path)
    return None if cursor.peek() == "," or column.required or column.default is not None else column


def _moves(cursor: Cursor, column: str) -> dict[str, ColumnPlace]:
    """FIRST | AFTER name, of one column and of others that follow after commas."""
    found: dict[str, ColumnPlace] = {}
    while True:
        if column in found:
            cursor.fail()
        found[column] = column_place(cursor)
        if not cursor.accept(","):
            cursor.finish()
            return found
        column = ".".join(cursor.dotted())


_OF_COLUMNS = ("SET", "DROP", ",")
"""What may follow a column's name in Spark beside what is read, other than the name itself."""


def _columns_word(cursor: Cursor) -> None:
    if not cursor.accept("COLUMNS"):
        cursor.expect("COLUMN")
