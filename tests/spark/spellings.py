"""One script of all kinds of statements about a table, and the ways to spell them that must not change what they do.

In a statement `{t}` is the table, `{u}` another one, `[name]` a column and `<'text'>` a literal that a parameter can stand for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

__all__ = ["COLUMN", "SCRIPT", "SPELLINGS", "commented", "in_full", "said", "spelt"]

SCRIPT = [
    "create table {t} ([id] int, [Name] string default <'none'>, [price] double, [s] struct<a: int, B: string>, [day] string) "
    "using hudimeta partitioned by ([day]) tblproperties (primaryKey = <'id'>, type = <'mor'>)",
    "insert into {t} values (<1>, <'a'>, 1.5D, named_struct('a', 1, 'B', 'x'), <'d1'>), (2, 'it''s', null, null, 'd2')",
    "insert into {t} ([day], [id], [price]) values (<'d2'>, <3>, 3.5D), ('d1', 4, default)",
    "insert into {t} partition ([day] = <'d3'>) select <5>, 'e; -- no', 5.5D, null",
    "insert into {t} partition ([day] = <'d3'>) ([id]) select 6",
    "insert overwrite {t} partition ([day] = <'d3'>) select 7, <'g'>, 7.5D, named_struct('a', 7, 'B', null)",
    "insert into {t} replace where [day] = <'d3'> select 8, <'h'>, 8.5D, null, 'd3'",
    "update {t} set [price] = [price] + <1>, [s].[a] = <9> where [id] = <1>",
    "update {t} as x set x.[price] = <2.5D>, x.[s].[B] = concat(x.[Name], <'!'>) "
    "where x.[id] in (select [id] from {t} where [id] = <2>)",
    "with w as (select <8> as k) update {t} set [Name] = default where [id] in (select k from w)",
    "delete from {t} where [id] = <4> and [day] = <'d1'>",
    "merge into {t} t using (select [id] + 1 as k, [Name] as n from {t}) s on t.[id] = s.k "
    "when matched and t.[price] > <3> then update set t.[Name] = concat(s.n, <'+'>), [s].[a] = <0> "
    "when not matched and s.k > <8> then insert ([id], [Name], [day]) values (s.k, s.n, <'d9'>) "
    "when not matched by source and t.[day] = <'d1'> then update set [price] = <0>",
    "merge into {t} t using (select <9> as id, <'star'> as Name, 1D as price, null as s, <'d9'> as day) s on t.[id] = s.id "
    "when matched then update set * when not matched then insert *",
    "merge with schema evolution into {t} t using (select 9 as id, <'wide'> as wide) s on t.[id] = s.id "
    "when matched then update set *",
    "select [id], [s].[B], {t}.[wide] from {t} where [day] <> <'d2'> order by [id]",
    "select [id] from {t} timestamp as of <'2999-01-01'> where [price] > <1>",
    "create temporary view {u} as select [id] as i, [Name] as n from {t} timestamp as of '2999-01-01'",
    "select n from {u} where i = <1>",
    "drop view {u}",
    "show columns in {t}",
    "show partitions {t}",
    "show partitions {t} partition ([day] = <'d2'>)",
    "alter table {t} add columns ([added] int comment <'it''s added'>)",
    "alter table {t} add columns ([s].[c] string, [before] bigint first)",
    "alter table {t} alter column [added] type bigint",
    "alter table {t} alter column [price] comment <'what it costs'>",
    "alter table {t} alter column [added] first",
    "alter table {t} alter column [added] after [Name]",
    "alter table {t} alter column [s].[c] first",
    "alter table {t} alter column [added] set default <3>",
    "insert into {t} ([id], [day]) values (<20>, <'d1'>)",
    "alter table {t} alter column [added] drop default",
    "alter table {t} rename column [added] to more",
    "alter table {t} drop column [before]",
    "alter table {t} drop columns if exists ([more], nothing)",
    "alter table {t} alter column [price] drop not null",
    "alter table {t} set tblproperties ('note' = <'of me'>)",
    "show tblproperties {t} (<'note'>)",
    "alter table {t} unset tblproperties if exists ('note', 'nothing')",
    "alter table {t} add partition ([day] = <'d7'>)",
    "alter table {t} drop if exists partition ([day] = <'d7'>), partition ([day] = <'d8'>)",
    "comment on table {t} is <'about it'>",
    "describe table {t} Name",
    "describe {t}",
    "show create table {t}",
    "create index record_index on {t} ([id])",
    "create index by_name on {t} using secondary_index ([Name])",
    "create index by_length on {t} using column_stats ([Name]) options (expr = <'length'>)",
    "show indexes from {t}",
    "refresh index by_name on {t}",
    "drop index by_name on {t}",
    "drop index if exists nothing on {t}",
    "optimize {t} where [day] = <'d1'> zorder by ([price])",
    "vacuum {t} retain <24> hours dry run",
    "describe history {t} limit <1>",
    "describe detail {t}",
    "analyze table {t} compute statistics for columns [id], [price]",
    "explain update {t} set [price] = <1> where [id] = <1>",
    "execute immediate 'select ? + [id] from {t} where [id] < 3' using <2>",
    "select count(*) from hudi_timeline(<'{plain}'>)",
    "call show_commits(table => <'{plain}'>, limit => <2>)",
    "call show_table_properties(table => <'{plain}'>)",
    "call run_compaction(op => <'schedule'>, table => <'{plain}'>)",
    "call run_clean(table => <'{plain}'>)",
    "create table {u} like {t} using hudimeta",
    "insert into {u} select * from {t} where [id] = <1>",
    "create or replace table {u} using hudimeta partitioned by ([day]) tblproperties (primaryKey = <'id'>) "
    "as select [id], [Name] as v, [day] from {t}",
    "select * from {u} order by [id]",
    "drop table {u}",
    "create table if not exists {u} using hudimeta tblproperties (primaryKey = <'id'>) as select [id], <'v'> as v from {t}",
    "truncate table {u}",
    "drop table if exists {u} purge",
    "truncate table {t} partition ([day] = <'d1'>)",
    "delete from {t}",
    "drop table {t}",
]

Spelling: TypeAlias = "Callable[[str], tuple[str, Any]]"
COLUMN = re.compile(r"\[(\w+)\]")
"""A column in a statement of the script."""
_LITERAL = re.compile(r"<('(?:[^'<>]|'')*'|\d[\w.]*)>")
_QUOTED = re.compile(r"('(?:[^']|'')*'|`[^`]*`)")


def _plainly(text: str) -> str:
    return _LITERAL.sub(r"\1", COLUMN.sub(r"\1", text))


def _as_written(text: str) -> tuple[str, Any]:
    return _plainly(text), None


def _outside(text: str, change: Callable[[str], str]) -> str:
    """A text with what stands outside of quotes changed."""
    return "".join(part if number % 2 else change(part) for number, part in enumerate(_QUOTED.split(text)))


def commented(text: str) -> str:
    """A statement with comments wherever there is a space."""
    inside = _outside(text, lambda part: part.replace(" ", " /* it's; [\"` */\n\t"))
    return f"-- it's `\n{inside} -- \"end\n;"


def in_full(text: str, *tables: str) -> str:
    """A statement with tables named by all three parts."""
    name = re.compile(rf"(?<![.`\w])({'|'.join(tables)})(?![`\w(])")
    return _outside(text, lambda part: name.sub(r"`spark_catalog`.default.`\1`", part))


def _commented(text: str) -> tuple[str, Any]:
    return commented(_plainly(text)), None


_KEPT = {"wide", "more", "i", "n", "v", "expr", "type"}
"""Columns that a statement makes, and keys of properties."""


def _swapped(text: str) -> tuple[str, Any]:
    """Keywords, and columns that are there, in the other case."""
    if not text.startswith(("create", "alter table {t} add")):
        text = COLUMN.sub(lambda found: found[1].swapcase(), text)

    def capitals(part: str) -> str:
        return re.sub(r"(?<![.{\w\[])[a-z]+(?![\w}.:(\]])", lambda word: word[0] if word[0] in _KEPT else word[0].upper(), part)

    return _plainly(_outside(text, capitals)), None


def _quoted(text: str) -> tuple[str, Any]:
    return _LITERAL.sub(r"\1", COLUMN.sub(r"`\1`", text)), None


def _named(text: str) -> tuple[str, Any]:
    values: dict[str, Any] = {}

    def named(found: re.Match[str]) -> str:
        name = f"p{len(values)}"
        values[name] = _value(found[1])
        return f":{name}"

    return _LITERAL.sub(named, COLUMN.sub(r"\1", text)), values or None


def _placed(text: str) -> tuple[str, Any]:
    values: list[Any] = []

    def placed(found: re.Match[str]) -> str:
        values.append(_value(found[1]))
        return "?"

    return _LITERAL.sub(placed, COLUMN.sub(r"\1", text)), values or None


def _value(literal: str) -> Any:
    if literal.startswith("'"):
        return literal[1:-1].replace("''", "'")
    return float(literal.rstrip("D")) if "." in literal else int(literal)


SPELLINGS: Mapping[str, tuple[Spelling, str]] = {
    "as written": (_as_written, "{}"),
    "comments": (_commented, "{}"),
    "the other case": (_swapped, "{}"),
    "backquotes": (_quoted, "`{}`"),
    "names of three parts": (_as_written, "spark_catalog.default.{}"),
    "three quoted parts": (_commented, "`spark_catalog` . `default`.`{}`"),
    "parameters by name": (_named, "default.{}"),
    "parameters by place": (_placed, "{}"),
}
"""How a statement is written, and its tables."""


PHYSICAL = "== Physical Plan =="
"""Where the plan of what a statement reads begins."""


def spelt(statement: str, spelling: str, table: str, other: str) -> tuple[str, Any]:
    """A statement and its parameters."""
    spell, names = SPELLINGS[spelling]
    views = "{}" if "temporary view" in statement or "drop view" in statement or "from {u} where i" in statement else names
    text, values = spell(statement)

    def put(part: str) -> str:
        named = part.replace("{t}", names.format(table)).replace("{u}", views.format(other))
        return named.replace("{plain}", table)

    if isinstance(values, dict):
        values = {name: put(value) if isinstance(value, str) else value for name, value in values.items()}
    elif values is not None:
        values = [put(value) if isinstance(value, str) else value for value in values]
    return put(text), values


def said(rows: list[Any], table: str, other: str) -> list[str]:
    """What a statement answers, without what differs from table to table (names, instants, ids of files, times).

    Nor with the physical plan of what it reads: an attached session reads files natively where a plain one has a batch scan.
    """
    found = []
    for row in rows:
        text = str(tuple(row)).split(PHYSICAL)[0].replace(table, "T").replace(other, "U")
        text = re.sub(r"\b[0-9a-f]{8}-[0-9a-f-]{27}(-\d)?\b", "ID", text)
        text = re.sub(r"#\d+L?|_\d+-\d+-\d+|\b\d{4,}\b|datetime\.\w+\([^)]*\)|\w{3} \w{3} \d+ [\d:]{8}", "N", text)
        found.append(re.sub(r"_hudimeta_change_\d+", "VIEW", text))
    return sorted(found)
