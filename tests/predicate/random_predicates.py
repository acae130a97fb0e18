"""Random expressions in Spark's SQL over the columns of a table: every operator and function, constants of every type."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable

import pyarrow as pa

from tests.predicate.all_types import EPOCH, ODD_TEXTS, TIME_TEXTS, days, decimals, doubles, integers, moments, number_text

PATTERNS = ["a", "^a", "b$", "(a+)+$", "[a-c]+", "a.b", r"\d+", r"\s", r"\w+$", "(?i)ABC", "é|ß", "[^a-z]", "(a)(b)?", "x{2,3}"]
PATTERNS += [r"^\S+@?", "a*?b", r"\bfoo\b", "", ".", "^$", r"[\d\s,]", r"\.", r"\p{Lu}", "(?:ab|a)c?"]
LIKES = ["a%", "%a", "%b%", "_", "a_c%", "%", "", "a\\%", "\\_%", "%\n%", "A%", "str%e", "__", "%é%", "5"]
DATE_PATTERNS = [
    "yyyy-MM-dd",
    "yyyy/MM/dd HH:mm",
    "dd.MM.yyyy",
    "yyyyMM",
    "HH:mm:ss.SSS",
    "D",
    "E",
    "EEEE",
    "MMM d",
    "a h",
    "yy",
    "Q",
]
UNITS = ["year", "quarter", "month", "week", "day", "hour", "minute", "second", "MM", "yyyy", "MON", "decade"]
COMPARE = ["=", "<>", "<", "<=", ">", ">=", "<=>", "!=", "=="]
NUMBERS, TEXTS, TIMES = ("int", "dec", "dbl"), ("str",), ("date", "ts", "ntz")
KINDS = (*NUMBERS, *TEXTS, *TIMES, "bool", "bin")
TARGETS = ["BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"]
TARGETS += ["DECIMAL(10,2)", "DECIMAL(38,10)", "DECIMAL(4,0)", "BINARY"]


def kind_of(t: pa.DataType) -> str | None:
    """The kind of expression that a column of a type is; None for nested types."""
    if pa.types.is_dictionary(t):
        return kind_of(t.value_type)
    if pa.types.is_timestamp(t):
        return "ntz" if t.tz is None else "ts"
    tests = {
        "int": pa.types.is_integer,
        "dec": pa.types.is_decimal,
        "dbl": pa.types.is_floating,
        "bool": pa.types.is_boolean,
        "date": pa.types.is_date,
        "str": lambda each: pa.types.is_string(each) or pa.types.is_large_string(each),
        "bin": lambda each: pa.types.is_binary(each) or pa.types.is_fixed_size_binary(each),
    }
    return next((kind for kind, test in tests.items() if test(t)), None)


def quoted(text: str) -> str:
    """A constant in Spark's quotes."""
    for plain, written in (("\\", "\\\\"), ("'", "\\'"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"), ("\0", "\\0")):
        text = text.replace(plain, written)
    return f"'{text}'"


class Predicates:
    """Expressions over one schema, reproducible from a seed.

    Args:
        schema: Columns; struct fields are reached by their paths.
    """

    def __init__(self, schema: pa.Schema, seed: int) -> None:
        self.random = random.Random(seed)
        self.columns: dict[str, list[str]] = {}
        self.lists: dict[str, list[str]] = {}
        self.maps: dict[tuple[str, str], list[str]] = {}
        for field in schema:
            self._add(f"`{field.name}`" if not field.name.isidentifier() else field.name, field.type)

    def _add(self, name: str, t: pa.DataType) -> None:
        if pa.types.is_struct(t):
            for field in t:
                self._add(f"{name}.{field.name}", field.type)
        elif pa.types.is_map(t):
            key, item = kind_of(t.key_type), kind_of(t.item_type)
            if key and item:
                self.maps.setdefault((key, item), []).append(name)
        elif pa.types.is_list(t) or pa.types.is_large_list(t):
            kind = kind_of(t.value_type)
            if kind:
                self.lists.setdefault(kind, []).append(name)
        else:
            kind = kind_of(t)
            if kind:
                self.columns.setdefault(kind, []).append(name)

    def one(self, *of: str) -> str:
        """One of several texts."""
        return self.random.choice(of)

    def column(self, kind: str) -> str:
        """A column of a kind, else a constant."""
        names = self.columns.get(kind)
        return self.random.choice(names) if names else self.constant(kind)

    def any_column(self) -> str:
        """Any column that is not nested."""
        return self.random.choice([name for names in self.columns.values() for name in names])

    def constant(self, kind: str) -> str:
        """A constant of a kind."""
        pick = self.random
        if pick.random() < 0.03:
            return "NULL"
        if kind == "int":
            bits, suffix = pick.choice([(8, "Y"), (16, "S"), (32, ""), (64, "L"), (8, ""), (8, "")])
            return (
                f"{pick.randint(-4, 9)}" if pick.random() < 0.4 else f"{max(integers(pick, bits), 1 - (1 << bits - 1))}{suffix}"
            )
        if kind == "dec":
            precision, scale = pick.choice([(3, 1), (9, 3), (20, 7), (38, 18), (5, 5), (10, 2)])
            return f"{decimals(pick, precision, scale):f}" + pick.choice(["", "BD"])
        if kind == "dbl":
            odd = ["double('NaN')", "double('-Infinity')", "float('0.1')", "-0.0D", "CAST('1e20' AS DOUBLE)", "float('NaN')"]
            value = doubles(pick)
            plain = f"{value!r}D" if "n" not in repr(value) else "0.1D"
            return (
                pick.choice(odd)
                if pick.random() < 0.2
                else pick.choice([plain, f"{pick.randint(-9, 9) / 4}D", "1e3", "2.5e-1"])
            )
        if kind == "str":
            pool = [pick.choice(ODD_TEXTS), number_text(pick), pick.choice(TIME_TEXTS), "abc", "a", "5"]
            return quoted(pick.choice(pool))
        if kind == "date":
            return f"DATE '{dt.date.fromordinal(days(pick) + EPOCH)}'"
        if kind in ("ts", "ntz"):
            moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=moments(pick))
            return f"{'TIMESTAMP' if kind == 'ts' else 'TIMESTAMP_NTZ'} '{moment.isoformat(' ')}'"
        if kind == "bool":
            return pick.choice(["TRUE", "FALSE"])
        return pick.choice(["X''", "X'616263'", "X'FF00'", "X'35'"])

    def value(self, kind: str, depth: int = 2) -> str:
        """An expression of a kind."""
        roll = self.random.random()
        if depth <= 0 or roll < 0.45:
            return self.column(kind) if roll < 0.8 or depth > 0 else self.constant(kind)
        if roll < 0.55:
            return self.constant(kind)
        made = getattr(self, f"_{kind}")(depth - 1)
        return str(made)

    def some(self, depth: int, *kinds: str) -> str:
        """A value of one of the kinds."""
        return self.value(self.random.choice(kinds), depth)

    def chosen(self, makers: list[Callable[[], str]]) -> str:
        """What one of the makers makes."""
        return self.random.choice(makers)()

    def _either(self, kind: str, depth: int) -> list[Callable[[], str]]:
        """What any kind can come from."""

        def value() -> str:
            return self.value(kind, depth)

        lists = self.lists.get(kind, [])
        maps = [(key, name) for (key, item), names in self.maps.items() if item == kind for name in names]
        makers = [
            lambda: f"coalesce({value()}, {value()})",
            lambda: f"if({self.predicate(depth - 1)}, {value()}, {value()})",
            lambda: f"nullif({value()}, {value()})",
            lambda: f"CASE WHEN {self.predicate(depth - 1)} THEN {value()} ELSE {value()} END",
            lambda: f"nvl2({value()}, {value()}, {value()})",
        ]
        if kind not in ("bool", "bin"):
            makers.append(lambda: f"{self.one('greatest', 'least')}({value()}, {value()}, {value()})")
        if lists:
            makers.append(lambda: f"{self.one(*lists)}[{self.random.randint(0, 2)}]")
            makers.append(
                lambda: f"{self.one('element_at', 'try_element_at')}({self.one(*lists)}, {self.one('1', '-1', '2', '4')})"
            )
            makers.append(lambda: f"{self.one('array_max', 'array_min')}({self.one(*lists)})")
            makers.append(lambda: f"get({self.one(*lists)}, {self.random.randint(-1, 3)})")
        if maps:
            key, name = self.random.choice(maps)
            constant = {"int": "2", "str": "'a'"}.get(key, self.constant(key))
            makers.append(lambda: self.one(f"{name}[{constant}]", f"element_at({name}, {constant})"))
        return makers

    def _int(self, depth: int) -> str:
        held = [name for names in (*self.lists.values(), *self.maps.values()) for name in names]
        makers = [
            *self._either("int", depth),
            lambda: f"({self.value('int', depth)} {self.one('+', '-', '*', '%')} {self.value('int', depth)})",
            lambda: f"({self.some(depth, 'int', 'dec')} DIV {self.some(depth, 'int', 'dec')})",
            lambda: f"{self.one('abs', 'negative', 'positive', '-', '~')}({self.value('int', depth)})",
            lambda: f"{self.one('mod', 'pmod')}({self.value('int', depth)}, {self.value('int', depth)})",
            lambda: f"({self.value('int', depth)} {self.one('&', '|', '^')} {self.value('int', depth)})",
            lambda: f"{self.one('length', 'char_length', 'octet_length', 'bit_length', 'ascii')}({self.some(depth, 'str')})",
            lambda: f"{self.one('instr', 'locate')}({self.some(depth, 'str')}, {self.some(depth, 'str')})",
            lambda: f"{self.one(*_DATE_PARTS)}({self.some(depth, 'date', 'ts', 'ntz')})",
            lambda: f"{self.one('hour', 'minute', 'second')}({self.some(depth, 'ts', 'ntz')})",
            lambda: f"datediff({self.some(depth, 'date', 'ts')}, {self.some(depth, 'date', 'ntz')})",
            lambda: f"{self.one('ceil', 'floor')}({self.some(depth, 'dbl', 'int')})",
            lambda: f"TRY_CAST({self.some(depth, *KINDS[:7])} AS {self.one('INT', 'BIGINT', 'SMALLINT', 'TINYINT')})",
            lambda: f"CAST({self.some(depth, 'int', 'dec', 'dbl', 'bool')} AS {self.one('INT', 'BIGINT', 'SMALLINT')})",
            lambda: f"unix_timestamp({self.some(depth, 'ts')})",
            lambda: f"round({self.value('int', depth)}, {self.random.randint(-3, 2)})",
            lambda: f"{self.one('unix_date', 'unix_seconds', 'unix_millis', 'unix_micros')}({self.some(depth, 'date', 'ts')})",
            lambda: f"{self.one('shiftleft', 'shiftright')}({self.value('int', depth)}, {self.random.randint(0, 5)})",
            lambda: f"crc32({self.some(depth, 'bin', 'str')})",
        ]
        if held:
            makers.append(lambda: f"{self.one('size', 'cardinality')}({self.one(*held)})")
        return self.chosen(makers)

    def _dec(self, depth: int) -> str:
        return self.chosen([
            *self._either("dec", depth),
            lambda: f"({self.value('dec', depth)} {self.one('+', '-', '*', '/', '%')} {self.some(depth, 'dec', 'int')})",
            lambda: f"{self.one('mod', 'pmod')}({self.value('dec', depth)}, {self.some(depth, 'dec', 'int')})",
            lambda: f"{self.one('abs', 'negative')}({self.value('dec', depth)})",
            lambda: f"{self.one('ceil', 'floor')}({self.value('dec', depth)})",
            lambda: f"round({self.value('dec', depth)}, {self.random.randint(-2, 4)})",
            lambda: f"TRY_CAST({self.some(depth, *NUMBERS, 'str')} AS {self.one('DECIMAL(10,2)', 'DECIMAL(38,10)')})",
        ])  # fmt: skip

    def _dbl(self, depth: int) -> str:
        return self.chosen([
            *self._either("dbl", depth),
            lambda: f"({self.value('dbl', depth)} {self.one('+', '-', '*', '/', '%')} {self.some(depth, 'dbl', 'int', 'dec')})",
            lambda: f"({self.value('int', depth)} / {self.value('int', depth)})",
            lambda: f"{self.one('abs', 'negative', 'sqrt', 'sign', 'rint')}({self.some(depth, 'dbl', 'int')})",
            lambda: f"CAST({self.some(depth, 'int', 'dec', 'dbl')} AS {self.one('FLOAT', 'DOUBLE')})",
            lambda: f"TRY_CAST({self.some(depth, 'str')} AS {self.one('FLOAT', 'DOUBLE')})",
            lambda: f"round({self.value('dbl', depth)}, {self.random.randint(-2, 4)})",
            lambda: f"nanvl({self.value('dbl', depth)}, {self.value('dbl', depth)})",
        ])  # fmt: skip

    def _str(self, depth: int) -> str:
        def text() -> str:
            return self.value("str", depth)

        def pattern() -> str:
            return quoted(self.one(*PATTERNS))

        return self.chosen([
            *self._either("str", depth),
            lambda: f"{self.one('lower', 'upper', 'trim', 'ltrim', 'rtrim', 'reverse', 'initcap', 'lcase')}({text()})",
            lambda: f"substring({text()}, {self.random.randint(-4, 4)}, {self.random.randint(-1, 5)})",
            lambda: f"{self.one('left', 'right', 'repeat')}({text()}, {self.random.randint(-1, 3)})",
            lambda: f"concat({text()}, {self.some(depth, 'str', 'int', 'date')})",
            lambda: f"({text()} || {text()})",
            lambda: f"concat_ws('-', {text()}, {text()})",
            lambda: f"replace({text()}, {quoted(self.one('a', 'b', '', ' '))}, {quoted(self.one('', 'xx'))})",
            lambda: f"translate({text()}, 'abé', {quoted(self.one('', 'xy', 'éba'))})",
            lambda: f"{self.one('lpad', 'rpad')}({text()}, {self.random.randint(-1, 6)}, {quoted(self.one('x', 'yz', ''))})",
            lambda: f"regexp_replace({text()}, {pattern()}, {quoted(self.one('', '-', '<$0>'))})",
            lambda: f"regexp_extract({text()}, {quoted(self.one('(a+)', '([0-9]+)', '(.)(.)'))}, {self.one('0', '1')})",
            lambda: f"substring_index({text()}, {quoted(self.one(',', 'a', ' '))}, {self.random.randint(-2, 2)})",
            lambda: f"split_part({text()}, ',', {self.one('1', '2', '-1')})",
            lambda: f"{self.one('hex', 'md5', 'sha1', 'base64')}({self.some(depth, 'bin')})",
            lambda: f"hex({self.some(depth, 'int', 'str')})",
            lambda: f"CAST({self.some(depth, 'int', 'dec', 'bool', 'date', 'ts', 'ntz', 'dbl')} AS STRING)",
            lambda: f"date_format({self.some(depth, 'date', 'ts', 'ntz')}, {quoted(self.one(*DATE_PATTERNS))})",
            lambda: f"from_unixtime({self.value('int', depth)})",
            lambda: f"{self.one('dayname', 'monthname')}({self.value('date', depth)})",
            lambda: f"trim({self.one('LEADING', 'TRAILING', 'BOTH')} {quoted(self.one('a', ' a', 'xé'))} FROM {text()})",
        ])  # fmt: skip

    def _date(self, depth: int) -> str:
        return self.chosen([
            *self._either("date", depth),
            lambda: f"{self.one('date_add', 'date_sub')}({self.some(depth, 'date', 'ts')}, {self.random.randint(-40, 400)})",
            lambda: f"add_months({self.value('date', depth)}, {self.random.randint(-30, 30)})",
            lambda: f"last_day({self.some(depth, 'date')})",
            lambda: f"next_day({self.value('date', depth)}, {quoted(self.one('MO', 'Sunday', 'fri'))})",
            lambda: f"trunc({self.value('date', depth)}, {quoted(self.one(*UNITS))})",
            lambda: f"{self.one('to_date', 'date')}({self.some(depth, 'ts', 'ntz', 'date')})",
            lambda: f"TRY_CAST({self.some(depth, 'str', 'ts')} AS DATE)",
            lambda: f"date_from_unix_date({self.random.randint(-9999, 40000)})",
            lambda: f"make_date({self.random.randint(1900, 2100)}, {self.random.randint(1, 12)}, {self.random.randint(1, 28)})",
        ])  # fmt: skip

    def _ts(self, depth: int) -> str:
        return self.chosen([
            *self._either("ts", depth),
            lambda: f"date_trunc({quoted(self.one(*UNITS))}, {self.some(depth, 'ts', 'date')})",
            lambda: f"CAST({self.some(depth, 'date', 'ntz')} AS TIMESTAMP)",
            lambda: f"TRY_CAST({self.some(depth, 'str')} AS TIMESTAMP)",
            lambda: f"{self.one('timestamp_seconds', 'timestamp_millis')}({self.column('int')})",
            lambda: f"{self.one('from_utc_timestamp', 'to_utc_timestamp')}({self.value('ts', depth)}, 'America/New_York')",
        ])  # fmt: skip

    def _ntz(self, depth: int) -> str:
        return self.chosen([
            *self._either("ntz", depth),
            lambda: f"date_trunc({quoted(self.one(*UNITS))}, {self.value('ntz', depth)})",
            lambda: f"CAST({self.some(depth, 'date', 'ts')} AS TIMESTAMP_NTZ)",
        ])  # fmt: skip

    def _bin(self, depth: int) -> str:
        return self.chosen([
            *self._either("bin", depth),
            lambda: f"CAST({self.value('str', depth)} AS BINARY)",
            lambda: f"unhex({quoted(self.one('616263', 'F', 'zz', ''))})",
        ])  # fmt: skip

    def _bool(self, depth: int) -> str:
        return f"({self.predicate(depth)})"

    def predicate(self, depth: int = 2) -> str:
        """A BOOLEAN expression."""
        roll = self.random.random()
        if depth > 0 and roll < 0.22:
            parts = [self.predicate(depth - 1) for _ in range(self.random.randint(2, 3))]
            return "(" + f" {self.one('AND', 'OR')} ".join(parts) + ")"
        if depth > 0 and roll < 0.28:
            return f"NOT ({self.predicate(depth - 1)})"
        if roll < 0.45:  # any column against any constant
            kinds = list(self.columns)
            kind = self.random.choice(kinds)
            other = kind if self.random.random() < 0.4 else self.random.choice(KINDS)
            return f"{self.column(kind)} {self.one(*COMPARE)} {self.constant(other)}"
        if roll < 0.68:
            kind = self.random.choice(KINDS)
            group = next((group for group in (NUMBERS, TIMES) if kind in group), (kind,))
            return f"{self.value(kind, depth)} {self.one(*COMPARE)} {self.some(depth, *group)}"
        return self.chosen([
            lambda: self.listed(depth),
            lambda: self.between(depth),
            lambda: f"{self.some(depth, *KINDS)} IS {self.one('', 'NOT ')}NULL",
            lambda: f"{self.value('str', depth)} {self.one('', 'NOT ')}{self.one('LIKE', 'ILIKE')} {quoted(self.one(*LIKES))}",
            lambda: f"{self.value('str', depth)} RLIKE {quoted(self.one(*PATTERNS))}",
            lambda: f"{self.one('startswith', 'endswith', 'contains')}({self.value('str', depth)}, {self.constant('str')})",
            lambda: f"isnan({self.some(depth, 'dbl')})",
            lambda: f"CAST({self.some(depth, 'int', 'str')} AS BOOLEAN)",
            lambda: f"({self.predicate(depth - 1)}) IS {self.one('TRUE', 'NOT FALSE', 'UNKNOWN')}",
            lambda: self.held(depth),
            lambda: f"equal_null({self.any_column()}, {self.constant(self.random.choice(KINDS))})",
            lambda: self.column("bool"),
        ])  # fmt: skip

    def listed(self, depth: int) -> str:
        """IN, of constants of the column's kind or of any other."""
        kind = self.random.choice(KINDS)
        group = next((group for group in (NUMBERS, TIMES) if kind in group), (kind, "str"))
        items = [self.constant(self.random.choice(group)) for _ in range(self.random.randint(1, 4))]
        items += ["NULL"] if self.random.random() < 0.1 else []
        return f"{self.value(kind, depth - 1)} {self.one('', 'NOT ')}IN ({', '.join(items)})"

    def between(self, depth: int) -> str:
        """BETWEEN two constants of one kind."""
        kind = self.random.choice(KINDS[:7])
        group = next((group for group in (NUMBERS, TIMES) if kind in group), (kind, "str"))
        return f"{self.value(kind, depth - 1)} BETWEEN {self.some(0, *group)} AND {self.constant(self.random.choice(group))}"

    def held(self, depth: int) -> str:
        """What is in a list or a map."""
        lists = [(kind, name) for kind, names in self.lists.items() for name in names]
        maps = [(key, name) for (key, _item), names in self.maps.items() for name in names]
        if lists and (not maps or self.random.random() < 0.6):
            kind, name = self.random.choice(lists)
            return f"array_contains({name}, {self.value(kind, depth - 1)})"
        if maps:
            kind, name = self.random.choice(maps)
            return f"map_contains_key({name}, {self.constant(kind)})"
        return f"{self.any_column()} IS NULL"


_DATE_PARTS = ["year", "month", "day", "quarter", "dayofyear", "weekofyear", "dayofweek", "weekday", "dayofmonth"]
