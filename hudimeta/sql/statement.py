"""Statements as values. Text in them (queries, conditions, expressions, types) is the user's own, in Spark's dialect."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from hudimeta.redaction import redacted
from hudimeta.sql.columns import ColumnPlace, DeclaredColumn

__all__ = [
    "AlterEntry",
    "AlterTable",
    "Analyze",
    "CreateIndex",
    "CreateLike",
    "CreateTable",
    "Delete",
    "DropIndex",
    "DropTable",
    "Execute",
    "Explain",
    "Insert",
    "MergeStatement",
    "MergeAction",
    "MergeClause",
    "MergeRows",
    "Optimize",
    "PartitionValues",
    "PartitionVerb",
    "Partitions",
    "RefreshIndex",
    "Restore",
    "SetOption",
    "TableName",
    "SetTableProperties",
    "Update",
    "Vacuum",
    "quoted",
]


def quoted(name: str) -> str:
    """A name between backticks."""
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True)
class TableName:
    """A table's name as it was written. parts: Unquoted, the table itself last."""

    parts: tuple[str, ...]

    @property
    def table(self) -> str:
        """The last part."""
        return self.parts[-1]

    @property
    def is_folder(self) -> bool:
        """True of hudimeta.`/folder`."""
        return len(self.parts) == 2 and self.parts[0].lower() == "hudimeta" and ("/" in self.table or "\\" in self.table)

    @property
    def sql(self) -> str:
        """The name quoted."""
        return ".".join(quoted(part) for part in self.parts)


Assignments: TypeAlias = "tuple[tuple[tuple[str, ...], str], ...]"
"""Columns, by the parts of their names, and the expressions of their new values."""

PartitionValues: TypeAlias = "tuple[tuple[str, str | None], ...]"
"""What PARTITION names: columns with the expression of their value, or None where it gives none."""


@redacted
@dataclass(frozen=True)
class CreateTable:
    """CREATE TABLE.

    Attributes:
        provider: The word after USING, lower case.
        columns: Text of the column list; None without one.
        partition_by: Names of partition columns.
        partition_columns: Text of those that PARTITIONED BY declares with types.
        options: Of OPTIONS and TBLPROPERTIES, names as written.
        location, comment: Unquoted.
        query: What AS names; None without.
        odd: A clause that hudimeta has no meaning for.
        replaces: A table of this name gives way to it.
        creates: It is also made where there is none of this name.
    """

    name: TableName
    provider: str
    if_not_exists: bool = False
    columns: str | None = None
    partition_by: tuple[str, ...] = ()
    partition_columns: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None
    comment: str | None = None
    query: str | None = None
    odd: str | None = None
    replaces: bool = False
    creates: bool = True


@redacted
@dataclass(frozen=True)
class CreateLike:
    """CREATE TABLE … LIKE. source: The table that it is like. Everything else as of `CreateTable`."""

    name: TableName
    source: TableName
    provider: str = ""
    if_not_exists: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None
    comment: str | None = None


@dataclass(frozen=True)
class Insert:
    """INSERT INTO and INSERT OVERWRITE.

    Attributes:
        query: Whose rows. columns: The list of columns, None without. by_name: They are matched by name.
        where: Of REPLACE WHERE: which rows of the table give way; None without.
        if_not_exists: Nothing happens where the partition of PARTITION has rows.
        partition: Of PARTITION: columns with the expression of their value, or None where the rows say it; None without.
    """

    name: TableName
    query: str
    overwrite: bool = False
    columns: tuple[str, ...] | None = None
    by_name: bool = False
    partition: PartitionValues | None = None
    where: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True)
class Update:
    """UPDATE. alias: What expressions call the table, None without. where: None for all. queries: As of a MERGE."""

    name: TableName
    alias: str | None
    assignments: Assignments
    where: str | None
    queries: str = ""


@dataclass(frozen=True)
class Delete:
    """DELETE FROM. alias: What the condition calls the table, None without. where: None for all. queries: As of a MERGE."""

    name: TableName
    alias: str | None
    where: str | None
    queries: str = ""


class MergeRows(enum.Enum):
    """Which rows a clause of a MERGE is about."""

    MATCHED = "MATCHED"
    NOT_MATCHED = "NOT MATCHED"
    NOT_MATCHED_BY_SOURCE = "NOT MATCHED BY SOURCE"


class MergeAction(enum.Enum):
    """What a clause of a MERGE does with them."""

    UPDATE = "UPDATE"
    DELETE = "DELETE"
    INSERT = "INSERT"


@dataclass(frozen=True)
class MergeClause:
    """One WHEN clause. condition: None for none. assignments: None for `*`, which takes every column of the source."""

    rows: MergeRows
    action: MergeAction
    condition: str | None = None
    assignments: Assignments | None = None


@dataclass(frozen=True)
class MergeStatement:
    """MERGE INTO.

    Attributes:
        source: A table's name or a query in parentheses, as written, without its alias.
        source_alias: Of both.
        evolves: WITH SCHEMA EVOLUTION: columns that only the source has become the table's.
        queries: The WITH clause before it, as written; "" without one.
    """

    name: TableName
    alias: str | None
    source: str
    source_alias: str | None
    on: str
    clauses: tuple[MergeClause, ...]
    evolves: bool = False
    queries: str = ""


@dataclass(frozen=True)
class AlterTable:
    """ALTER TABLE that changes columns.

    Attributes:
        add: The new columns.
        rename: Old and new name.
        drop: Names.
        retype: A name and the text of its new type.
        change: A column as it shall be, but for its name.
        move: Columns, each with the place that it shall have.
        nullable: A name, for DROP NOT NULL.
        default: A name and the expression of its default value, None for none.
        lenient: DROP COLUMNS IF EXISTS.
    """

    name: TableName
    add: tuple[DeclaredColumn, ...] = ()
    rename: tuple[str, str] | None = None
    drop: tuple[str, ...] = ()
    retype: tuple[str, str] | None = None
    change: DeclaredColumn | None = None
    move: Mapping[str, ColumnPlace] = field(default_factory=dict)
    nullable: str | None = None
    default: tuple[str, str | None] | None = None
    lenient: bool = False


@dataclass(frozen=True)
class AlterEntry:
    """A statement that in Spark changes the catalog's entry of a table, and nothing of the table.

    Attributes:
        what: Its words, such as `SET LOCATION`.
        new_name: Of the table, where it renames it.
    """

    name: TableName
    what: str
    new_name: TableName | None = None


@dataclass(frozen=True)
class SetOption:
    """SET key = value."""

    key: str
    value: str


@dataclass(frozen=True)
class DropTable:
    """DROP TABLE."""

    name: TableName
    if_exists: bool = False
    purge: bool = False


@dataclass(frozen=True)
class CreateIndex:
    """CREATE INDEX.

    Attributes:
        index: Its name.
        kind: The word after USING, lower case; "" without.
        columns: Names.
        options: Of OPTIONS.
    """

    name: TableName
    index: str
    kind: str
    columns: tuple[str, ...]
    options: Mapping[str, str]
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropIndex:
    """DROP INDEX."""

    name: TableName
    index: str
    if_exists: bool = False


@dataclass(frozen=True)
class RefreshIndex:
    """REFRESH INDEX."""

    name: TableName
    index: str


@dataclass(frozen=True)
class Optimize:
    """OPTIMIZE. where: Which partitions, None for all. columns: Of ZORDER BY; empty without."""

    name: TableName
    where: str | None = None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Vacuum:
    """VACUUM. hours: Of RETAIN, None without."""

    name: TableName
    hours: int | None = None
    dry_run: bool = False


@dataclass(frozen=True)
class Restore:
    """RESTORE TABLE … TO. moment: The expression after AS OF. by_version: It is an instant."""

    name: TableName
    moment: str
    by_version: bool


@dataclass(frozen=True)
class Explain:
    """EXPLAIN. mode: Its word, lower case, "simple" without one. text: Of the statement."""

    mode: str
    text: str


@dataclass(frozen=True)
class Execute:
    """EXECUTE IMMEDIATE.

    Attributes:
        text: An expression, most often a text or a variable, whose value is the statement.
        given: Of USING: expressions, with their names or "" where they have none.
        into: Variables that the one row of the query goes into; empty without INTO.
        literal: The statement, where `text` is nothing but a text in quotes; None otherwise.
    """

    text: str
    given: tuple[tuple[str, str], ...] = ()
    into: tuple[TableName, ...] = ()
    literal: str | None = None


@dataclass(frozen=True)
class Analyze:
    """ANALYZE TABLE. what: The words after the name and PARTITION. columns: Those that it names."""

    name: TableName
    what: str
    columns: tuple[str, ...] = ()
    partition: PartitionValues = ()


class PartitionVerb(enum.Enum):
    """What a statement does with partitions."""

    ADD = "ALTER TABLE … ADD PARTITION"
    DROP = "ALTER TABLE … DROP PARTITION"
    TRUNCATE = "TRUNCATE TABLE"


@dataclass(frozen=True)
class Partitions:
    """ALTER TABLE … ADD or DROP PARTITION, TRUNCATE TABLE [… PARTITION].

    Attributes:
        given: Of each PARTITION; none for all that TRUNCATE finds, and where MSCK REPAIR and RECOVER look for partitions.
        lenient: IF EXISTS, IF NOT EXISTS.
    """

    name: TableName
    verb: PartitionVerb
    given: tuple[PartitionValues, ...]
    lenient: bool = False


@dataclass(frozen=True)
class SetTableProperties:
    """ALTER TABLE … SET or UNSET TBLPROPERTIES. changes: None for those that go."""

    name: TableName
    changes: Mapping[str, str | None]
