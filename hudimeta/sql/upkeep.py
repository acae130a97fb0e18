"""OPTIMIZE, VACUUM, RESTORE and ANALYZE: services of a table, in the words of Delta Lake and Spark."""

from __future__ import annotations

from hudimeta.sql.cursor import Cursor
from hudimeta.sql.insertion import partition_values
from hudimeta.sql.relations import moment
from hudimeta.sql.statement import Analyze, Execute, Explain, Optimize, Restore, TableName, Vacuum

__all__ = ["analyze", "execute", "explain", "optimize", "restore", "vacuum"]


def optimize(cursor: Cursor) -> Optimize:
    """OPTIMIZE name [WHERE condition] [ZORDER BY (columns)]."""
    cursor.expect("OPTIMIZE")
    name = TableName(cursor.dotted())
    where = cursor.until("ZORDER") if cursor.accept("WHERE") else None
    columns = []
    if cursor.accept("ZORDER", "BY"):
        inside = cursor.inside() if cursor.peek() == "(" else cursor
        columns = [".".join(inside.dotted())]
        while inside.accept(","):
            columns.append(".".join(inside.dotted()))
        inside.finish()
    cursor.finish()
    return Optimize(name, where, tuple(columns))


def vacuum(cursor: Cursor) -> Vacuum:
    """VACUUM name [RETAIN n HOURS] [DRY RUN]."""
    cursor.expect("VACUUM")
    name = TableName(cursor.dotted())
    hours = None
    if cursor.accept("RETAIN"):
        number = cursor.next().text
        if not (number.isascii() and number.isdigit()) or not (cursor.accept("HOURS") or cursor.accept("HOUR")):
            cursor.fail()
        hours = int(number)
    dry = cursor.accept("DRY", "RUN")
    cursor.finish()
    return Vacuum(name, hours, dry)


def restore(cursor: Cursor) -> Restore:
    """RESTORE [TABLE] name [TO] VERSION|TIMESTAMP AS OF expression."""
    cursor.expect("RESTORE")
    cursor.accept("TABLE")
    name = TableName(cursor.dotted())
    cursor.accept("TO")
    when = moment(cursor)
    if when is None:
        cursor.fail()
    cursor.finish()
    return Restore(name, *when)


def explain(cursor: Cursor) -> Explain:
    """EXPLAIN [EXTENDED | FORMATTED | COST | CODEGEN] statement."""
    cursor.expect("EXPLAIN")
    mode = "simple"
    for word in ("EXTENDED", "FORMATTED", "COST", "CODEGEN"):
        if cursor.accept(word):
            mode = word.lower()
    return Explain(mode, cursor.rest())


def execute(cursor: Cursor) -> Execute:
    """EXECUTE IMMEDIATE expression [INTO variable, …] [USING expression [AS name], …]."""
    cursor.expect("EXECUTE", "IMMEDIATE")
    begin = cursor.at
    text, given, into = cursor.until("INTO", "USING"), [], []
    literal = cursor.words[begin].text if cursor.at == begin + 1 and cursor.words[begin].kind == "string" else None
    if cursor.accept("INTO"):
        into = [TableName(cursor.dotted())]
        while cursor.accept(","):
            into.append(TableName(cursor.dotted()))
    if cursor.accept("USING"):
        inside = cursor.inside() if cursor.peek() == "(" else cursor
        while True:
            value = inside.until("AS", ",")
            given.append((inside.identifier() if inside.accept("AS") else "", value))
            if not inside.accept(","):
                break
        inside.finish()
    cursor.finish()
    return Execute(text, tuple(given), tuple(into), literal)


def analyze(cursor: Cursor) -> Analyze:
    """ANALYZE TABLE name [PARTITION (…)] COMPUTE STATISTICS … [FOR COLUMNS a, b | FOR ALL COLUMNS]."""
    cursor.expect("ANALYZE", "TABLE")
    name, columns = TableName(cursor.dotted()), []
    partition = partition_values(cursor.inside()) if cursor.accept("PARTITION") else ()
    what = cursor.until("FOR")
    if cursor.accept("FOR", "COLUMNS"):
        columns = [cursor.identifier()]
        while cursor.accept(","):
            columns.append(cursor.identifier())
    elif not cursor.done:
        cursor.expect("FOR", "ALL", "COLUMNS")
    cursor.finish()
    return Analyze(name, what, tuple(columns), partition)
