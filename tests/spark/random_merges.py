"""Random MERGE statements, and what each must make of a table as Spark describes MERGE, in plain Python.

An expression is a text of SQL beside the function that gives its value, with SQL's nulls. `{t}` and `{s}` are what the
statement calls the two sides; a clause whose rows have one side names its columns without them as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

__all__ = ["COLUMNS", "OTHERS", "Case", "Refused", "case_of", "literal_rows"]

Row: TypeAlias = dict[str, Any]
COLUMNS = {"id": "int", "X": "int", "group": "string", "n": "struct<a: int, B: string>", "ts": "bigint", "p": "string"}
OTHERS = {1: 1, 2: 2, 4: 4, 11: 5, 13: None}
"""Ids and numbers of the table that sub-queries read."""


class Refused(Exception):
    """The statement must fail. Its text is a pattern of what is said."""


@dataclass(frozen=True)
class Words:
    """An expression, and its value for a row of the table and a row of the source; None for null."""

    text: str
    value: Callable[[Row, Row], Any]


def _strict(value: Callable[..., Any], *parts: Callable[[Row, Row], Any]) -> Callable[[Row, Row], Any]:
    """Null where a part is."""

    def of(t: Row, s: Row) -> Any:
        found = [part(t, s) for part in parts]
        return None if any(one is None for one in found) else value(*found)

    return of


def _t(name: str) -> Callable[[Row, Row], Any]:
    return lambda t, s: t[name]


def _s(name: str) -> Callable[[Row, Row], Any]:
    return lambda t, s: s[name]


def _inside(part: Callable[[Row, Row], Any], name: str) -> Callable[[Row, Row], Any]:
    return _strict(lambda struct: struct[name], part)


def _either(a: Any, b: Any) -> Any:
    return True if a or b else None if a is None or b is None else False


CONDITIONS = {
    "matched": [
        Words("{t}.X > {s}.X", _strict(lambda a, b: a > b, _t("X"), _s("X"))),
        Words("{t}.X is null", lambda t, s: t["X"] is None),
        Words("{s}.`group` is not null", lambda t, s: s["group"] is not None),
        Words("{t}.p = 'p1'", _strict(lambda a: a == "p1", _t("p"))),
        Words("{s}.X + {t}.X > :four", _strict(lambda a, b: a + b > 4, _s("X"), _t("X"))),
        Words("{t}.n.a > 3", _strict(lambda a: a > 3, _inside(_t("n"), "a"))),
        Words("{t}.`group` <=> {s}.`group`", lambda t, s: t["group"] == s["group"]),
        Words("exists (select 1 from others o where o.id = {t}.id)", lambda t, s: t["id"] in OTHERS),
        Words("{s}.id in (select id from others)", lambda t, s: s["id"] in OTHERS),
        Words("true", lambda t, s: True),
        Words("{t}.id % 2 = 0", lambda t, s: t["id"] % 2 == 0),
        Words("{t}.X > 4 or {s}.n is null", lambda t, s: _either(t["X"] and t["X"] > 4, s["n"] is None)),
    ],
    "not matched": [
        Words("{s}.X > 1", _strict(lambda a: a > 1, _s("X"))),
        Words("{s}.p <> 'p2'", _strict(lambda a: a != "p2", _s("p"))),
        Words("{s}.id not in (select id from others)", lambda t, s: s["id"] not in OTHERS),
        Words("{s}.id % 2 = 0", lambda t, s: s["id"] % 2 == 0),
        Words("{s}.`group` is null", lambda t, s: s["group"] is None),
    ],
    "not matched by source": [
        Words("{t}.X > 1", _strict(lambda a: a > 1, _t("X"))),
        Words("{t}.p in ('p0', 'p1')", _strict(lambda a: a in ("p0", "p1"), _t("p"))),
        Words("{t}.id in (select id from others)", lambda t, s: t["id"] in OTHERS),
        Words("{t}.id % 2 = 1", lambda t, s: t["id"] % 2 == 1),
        Words("{t}.n.B is null", lambda t, s: t["n"] is None or t["n"]["B"] is None),
    ],
}
_NULL, _MOST = Words("null", lambda t, s: None), max(n for n in OTHERS.values() if n is not None)
VALUES: Mapping[str, Mapping[str, list[Words]]] = {
    "matched": {
        "X": [
            Words("{s}.X", _s("X")),
            Words("{t}.X + coalesce({s}.X, 0)", _strict(lambda a, b: a + b, _t("X"), lambda t, s: s["X"] or 0)),
            Words("length({t}.`group`)", _strict(len, _t("group"))),
            Words("(select max(number) from others)", lambda t, s: _MOST),
            Words(":four", lambda t, s: 4),
            Words("default", lambda t, s: None),
            _NULL,
        ],
        "group": [
            Words("{s}.`group`", _s("group")),
            Words("concat({t}.`group`, '-', {s}.`group`)", _strict(lambda a, b: f"{a}-{b}", _t("group"), _s("group"))),
            Words("'it''s -- {{no}} /* comment */'", lambda t, s: "it's -- {no} /* comment */"),
        ],
        "n": [
            Words("{s}.n", _s("n")),
            Words("named_struct('a', {t}.X, 'B', {s}.`group`)", lambda t, s: {"a": t["X"], "B": s["group"]}),
            _NULL,
        ],
        "n.a": [Words("{s}.X", _s("X")), Words("{t}.n.a + 1", _strict(lambda a: a + 1, _inside(_t("n"), "a")))],
        "ts": [
            Words("{s}.ts", _s("ts")),
            Words("{t}.ts + 1", _strict(lambda a: a + 1, _t("ts"))),
            Words("{t}.ts - 1", _strict(lambda a: a - 1, _t("ts"))),
        ],
        "p": [Words("{s}.p", _s("p")), Words("{t}.p", _t("p"))],
        "id": [Words("{s}.id", _s("id")), Words("{t}.id", _t("id"))],
    },
    "not matched": {
        "X": [Words("{s}.X", _s("X")), Words("{s}.X + 1", _strict(lambda a: a + 1, _s("X"))), _NULL],
        "group": [Words("{s}.`group`", _s("group")), Words("concat('g', {s}.id)", _strict(lambda a: f"g{a}", _s("id")))],
        "n": [Words("{s}.n", _s("n")), Words("default", lambda t, s: None), _NULL],
    },
    "not matched by source": {
        "X": [Words("{t}.X + 1", _strict(lambda a: a + 1, _t("X"))), Words("0", lambda t, s: 0), _NULL],
        "group": [Words("'gone'", lambda t, s: "gone"), Words("{t}.p", _t("p"))],
        "ts": [Words("{t}.ts + 1", _strict(lambda a: a + 1, _t("ts"))), Words("0L", lambda t, s: 0)],
        "n": [_NULL, Words("named_struct('a', 1, 'B', {t}.`group`)", lambda t, s: {"a": 1, "B": t["group"]})],
        "n.a": [Words("{t}.X", _t("X"))],
    },
}
ON = [
    Words("{t}.id = {s}.id", lambda t, s: t["id"] == s["id"]),
    Words("{s}.id <=> {t}.id", lambda t, s: t["id"] == s["id"]),
    Words("({t}.id = {s}.id)", lambda t, s: t["id"] == s["id"]),
    Words("{t}.id = {s}.id and {t}.p = {s}.p", lambda t, s: t["id"] == s["id"] and t["p"] == s["p"]),
    Words("{t}.id = {s}.id + 1 - :one", lambda t, s: t["id"] == s["id"]),
]


@dataclass(frozen=True)
class Clause:
    """One WHEN. assigned: Values by column or field; None for `*`, and of DELETE."""

    rows: str
    action: str
    condition: Words | None
    assigned: Mapping[str, Words] | None = None

    def holds(self, t: Row, s: Row) -> bool:
        """Whether a row is this clause's, if no earlier one takes it."""
        return self.condition is None or bool(self.condition.value(t, s))

    def values(self, t: Row, s: Row) -> Row:
        """The row that it makes."""
        if self.assigned is None:
            return {name: s[name] for name in COLUMNS}
        row: Row = dict.fromkeys(COLUMNS) if self.action == "insert" else dict(t)
        for path, words in self.assigned.items():
            column, _, inside = path.partition(".")
            value = words.value(t, s)
            row[column] = {**(t[column] or dict.fromkeys(("a", "B"))), inside: value} if inside else value
        return row


@dataclass(frozen=True)
class Case:
    """A table, the rows to merge, and a statement.

    Attributes:
        ordered: `ts` says which version of a row is newer: of several rows of the source the newest counts, and a row of the
            table only gives way to one that is not older, or is deleted. Otherwise the last one counts.
    """

    kind: str
    keyed: bool
    partitioned: bool
    indexed: bool
    target: Sequence[Row]
    source: Sequence[Row]
    on: Words
    clauses: Sequence[Clause]
    form: int = 0
    ordered: bool = False
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"four": 4, "one": 1})

    def text(self, table: str, source: str) -> str:
        """The statement, of tables."""
        t, s = ("t", "s") if self.form != 3 else (table, source)
        names = f"into {table} {'as ' if self.form == 1 else ''}{t}" if self.form != 3 else f"INTO default.{table}"
        using = [f"{source} s", f"(select * from {source}) as s", "rows_to_merge s", source][self.form]
        with_ = f"with rows_to_merge as (select * from {source}) " if self.form == 2 else ""
        clauses = " /* ; */ ".join(self._clause(clause, t, s) for clause in self.clauses)
        return f"{with_}merge {names} using {using} on {self.on.text.format(t=t, s=s)} {clauses}"

    @property
    def by_columns(self) -> bool:
        """Whether it is said by `mergeInto`, which knows no sub-queries, parameters and DEFAULT."""
        return self.form in (1, 3) and not any(re.search("select|:|default", words) for words in self._words())

    def _words(self) -> list[str]:
        found = [self.on.text]
        for clause in self.clauses:
            found += [words.text for words in (clause.condition, *(clause.assigned or {}).values()) if words is not None]
        return found

    def _clause(self, clause: Clause, t: str, s: str) -> str:
        def said(words: Words) -> str:
            bare = self.form % 2 and clause.rows != "matched" and "select" not in words.text
            text = words.text.replace("{t}.", "").replace("{s}.", "") if bare else words.text
            return text.format(t=t, s=s)

        head = f"when {clause.rows}" + (f" and {said(clause.condition)}" if clause.condition else "")
        if clause.action == "delete":
            return f"{head} then delete"
        if clause.assigned is None:
            return f"{head} then {'update set' if clause.action == 'update' else 'insert'} *"
        if clause.action == "update":
            sets = [f"{t + '.' if self.form else ''}{_name(path)} = {said(words)}" for path, words in clause.assigned.items()]
            return f"{head} then update set {', '.join(sets)}"
        names = ", ".join(map(_name, clause.assigned))
        return f"{head} then insert ({names}) values ({', '.join(map(said, clause.assigned.values()))})"

    def merged(self) -> list[Row]:
        """The rows afterwards. Raises Refused where nothing may be changed."""
        made, met, source = [], set(), self._newest()
        for t in self.target:
            pairs = [(number, s) for number, s in enumerate(source) if self.on.value(t, s)]
            met.update(number for number, _ in pairs)
            rows = "matched" if pairs else "not matched by source"
            chosen = [(self._chosen(rows, t, s), s) for _, s in pairs or [(0, {})]]
            changes = [(clause, s) for clause, s in chosen if clause is not None]
            changed = [
                (s.get("ts") if self.ordered else at, self._changed(clause, t, s)) for at, (clause, s) in enumerate(changes)
            ]
            made += [max(changed, key=lambda one: one[0])[1] if len(changed) > 1 else changed[0][1]] if changed else [t]
        new = [s for number, s in enumerate(source) if number not in met]
        inserted = [clause.values({}, s) for s in new if (clause := self._chosen("not matched", {}, s)) is not None]
        return [row for row in made if row is not None] + inserted

    def _newest(self) -> Sequence[Row]:
        """The source's newest row of each key, or the last, where the statement says that keys are equal."""
        if not self.keyed or self.by_columns or self.on not in (ON[0], ON[2], *([ON[3]] if self.partitioned else [])):
            return self.source
        newest: dict[Any, Row] = {}
        for row in sorted(self.source, key=lambda row: int(row["ts"])) if self.ordered else self.source:
            newest[row["id"], row["p"] if self.partitioned else None] = row
        return list(newest.values())

    def _chosen(self, rows: str, t: Row, s: Row) -> Clause | None:
        return next((clause for clause in self.clauses if clause.rows == rows and clause.holds(t, s)), None)

    def _changed(self, clause: Clause, t: Row, s: Row) -> Row | None:
        if clause.action == "delete":
            return None
        row = clause.values(t, s)
        if (self.keyed and row["id"] != t["id"]) or (self.partitioned and row["p"] != t["p"]):
            raise Refused("would change column (id|p)")
        return t if self.ordered and row["ts"] < t["ts"] else row


def _name(path: str) -> str:
    return path.replace("group", "`group`")


def _row(random: Random, number: int, moved: float) -> Row:
    partition = random.choice("012") if random.random() < moved else str(number % 3)
    return {
        "id": number,
        "X": random.choice([None, 1, 5, number]),
        "group": random.choice([None, f"g{number % 4}"]),
        "n": random.choice([None, {"a": number, "B": random.choice([None, "b"])}]),
        "ts": random.randint(1, 15),
        "p": f"p{partition}",
    }


def _clauses(random: Random) -> list[Clause]:
    found: list[Clause] = []
    for rows, most, actions in (
        ("matched", 3, ["update", "update", "delete", "update *"]),
        ("not matched", 2, ["insert", "insert *"]),
        ("not matched by source", 2, ["update", "delete"]),
    ):
        number = random.randint(0, most)
        for place in range(number):
            last = place == number - 1 and random.random() < 0.5
            condition = None if last else random.choice(CONDITIONS[rows])
            action, _, star = random.choice(actions).partition(" ")
            assigned = None if star or action == "delete" else _assigned(random, rows)
            found.append(Clause(rows, action, condition, assigned))
    return found or _clauses(random)


def _assigned(random: Random, rows: str) -> dict[str, Words]:
    choices = VALUES[rows]
    names = random.sample(list(choices), random.randint(1, min(3, len(choices))))
    if "n" in names and "n.a" in names:
        names.remove("n")
    found = {name: random.choice(choices[name]) for name in names}
    if rows == "not matched":
        found |= {name: Words(f"{{s}}.{name}", _s(name)) for name in ("id", "ts", "p")}
        found = dict(random.sample(list(found.items()), len(found)))
    return found


def case_of(seed: int) -> Case:
    """The case of a number."""
    random = Random(seed)
    target = [_row(random, number, 0.0) for number in random.sample(range(1, 13), random.randint(0, 9))]
    moved = random.choice([0.0, 0.0, 0.6])
    source = [_row(random, number, moved) for number in random.sample(range(3, 17), random.randint(0, 8))]
    there = {row["id"] for row in target}
    if source and random.random() < 0.25:  # some keys twice
        doubled = [row["id"] for row in source if row["id"] in there]
        source += [_row(random, number, 0.0) for number in doubled[: random.randint(0, 2)]]
    ages = random.sample(range(1, 20), len(source))  # which of two rows of a key is newer is never open
    source = [{**row, "ts": age} for row, age in zip(source, ages, strict=True)]
    clauses = _clauses(random)
    on = random.choice(ON)
    if "p = " in on.text and any(clause.rows == "not matched" for clause in clauses):
        on = ON[0]  # a row of another partition would be inserted under a key that is there
    kind, form = random.choice(["cow", "mor"]), random.randrange(4)
    keyed, partitioned, indexed = (random.random() < often for often in (0.8, 0.6, 0.4))
    ordered = keyed and random.random() < 0.5
    return Case(kind, keyed, partitioned, keyed and indexed, target, source, on, clauses, form, ordered)


def literal_rows(rows: Sequence[Row]) -> str:
    """Rows as VALUES."""

    def literal(value: Any) -> str:
        if isinstance(value, dict):
            return f"named_struct('a', {literal(value['a'])}, 'B', {literal(value['B'])})"
        return "null" if value is None else repr(value)

    return ", ".join(f"({', '.join(literal(row[name]) for name in COLUMNS)})" for row in rows)
