"""Regular expressions of predicates: Java's meaning, RE2's running time, and a refusal that says what to do for the rest."""

from __future__ import annotations

import time
import unicodedata
from typing import Any

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.errors import ConfigError
from hudimeta.predicate import bind, bind_value, evaluate, parse

TEXTS = ["b", "b\n", "b\r\n", "b\n\n", "a\u2028b", "aXc", "aab", "", "é b\u000b", None]
TABLE = pa.table({"s": TEXTS})


def found(pattern: str, texts: list[str | None] = TEXTS) -> list[Any]:
    table = pa.table({"s": pa.array(texts, pa.string())})
    return evaluate(bind(parse([("s", "rlike", pattern)]), table.schema), table).to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("pattern", "matching"),
    [
        ("^b$", ["b", "b\n", "b\r\n"]),  # $ also stands before a line end that ends the text
        (r"^b\Z", ["b", "b\n", "b\r\n"]),
        (r"^b\z", ["b"]),
        ("(a|b)$|c$", ["b", "b\n", "b\r\n", "a\u2028b", "aXc", "aab"]),
        ("a.b", ["aab"]),  # no line end of Java's is any character
        ("(?s)a.b", ["a\u2028b", "aab"]),
        ("(?i)Ax[B-D]", ["aXc"]),
        ("(?i:A)X", ["aXc"]),
        (r"\s$", ["b\n", "b\r\n", "b\n\n", "é b\u000b"]),
        (r"^[^\S\r\n]|\x{e9}\x20\u0062", ["é b\u000b"]),
        (r"\Qa.b\E|\p{Lu}", ["aXc"]),
        ("^(?<first>a)+?X", ["aXc"]),
        (r"\bb\b", ["b", "b\n", "b\r\n", "b\n\n", "a\u2028b", "é b\u000b"]),
        ("^$", [""]),
        ("", [text for text in TEXTS if text is not None]),
    ],
)
def test_what_java_finds(pattern: str, matching: list[str]) -> None:
    assert [text for text, is_found in zip(TEXTS, found(pattern), strict=True) if is_found] == matching


@pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|a?)+$", "(.*)*x", "(a|aa)+$", "(?:a?){50}a{50}b"])
def test_no_pattern_takes_longer_than_its_text(pattern: str) -> None:
    began = time.process_time()
    assert found(pattern, ["a" * 20_000 + "!"]) == [False]
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?=a)b", "looks ahead"),
        ("(?<!a)b", "looks back"),
        (r"(a)\1", "refers back"),
        ("a++", "possessive"),
        ("(?>a)", "atomic"),
        ("(?m)^a", "flag 'm'"),
        ("a$b", r"goes on after a \$"),
        ("[a[b]]", "class within a class"),
        (r"\p{IsLatin}", "class that is not known"),
        ("a{2000}", "RE2 can hold"),
        ("a**", "two quantifiers"),
        ("(a", "lacks a"),
        ("a)", "too many"),
        ("[a", "breaks off"),
        ("a\\", "breaks off"),
        ("(" * 200 + ")" * 200, "nested"),
    ],
)
def test_what_cannot_be_matched_so_is_refused_before_any_file_is_read(pattern: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        bind(parse([("s", "rlike", pattern)]), TABLE.schema)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("regexp_replace('axb', 'x*', '-')", "-a--b-"),
        ("regexp_replace('xxaxb', 'x*|a', '<$0>')", "<xx><>a<x><>b<>"),
        ("regexp_replace('ab\n', 'b$', 'c')", "ac\n"),
        ("regexp_replace('ab', '(?<one>a)(b)', '${one}$2$1\\\\$\\\\\\\\')", "aba$\\"),
        ("regexp_replace('a1b22', '[0-9]+', '')", "ab"),
        ("regexp_extract('x\nab\n', '(a)(b)$', 2)", "b"),
        ("regexp_extract('ab\r\n', 'b$', 0)", "b"),
        ("regexp_extract('ab', '(x)?b', 1)", ""),
    ],
)
def test_replacing_and_taking_out(written: str, value: str) -> None:
    one = pa.table({"x": [1]})
    assert evaluate(bind_value(parse(written), one.schema), one).to_pylist() == [value]


def test_a_scan_with_a_hostile_pattern_ends(tmp_path: Any) -> None:
    rows = pa.table({"id": ["1", "2"], "s": ["a" * 5000 + "!", "aaa"]})
    table = Table.create(str(tmp_path / "t"), rows.schema, key="id")
    table.insert(rows)
    assert table.scan(where="s RLIKE '(a+)+$'", columns=["id"]).to_table().to_pylist() == [{"id": "2"}]


LETTERS = [
    chr(code)
    for code in (*range(0x20, 0x180), 0x2C6, 0x300, 0x488, 0x903, 0x1C5, 0x2028, 0x2029, 0x203F, 0x2167, 0x20AC, 0xE000)
]
"""A few of every category that the versions of Unicode agree on."""
CATEGORIES = [
    "L",
    "Lu",
    "Ll",
    "Lt",
    "Lm",
    "Lo",
    "M",
    "Mn",
    "Mc",
    "Me",
    "N",
    "Nd",
    "Nl",
    "No",
    "P",
    "Pc",
    "Pd",
    "Ps",
    "Pe",
    "Pi",
    "Pf",
    "Po",
    "S",
    "Sm",
    "Sc",
    "Sk",
    "So",
    "Z",
    "Zs",
    "Zl",
    "Zp",
]


@pytest.mark.parametrize("prefix", ["", "Is"])
def test_categories_are_those_of_unicode(prefix: str) -> None:
    for category in CATEGORIES:
        is_in = [unicodedata.category(letter).startswith(category) for letter in LETTERS]
        assert any(is_in), f"no letter of {category} is asked"
        assert found(rf"\p{{{prefix}{category}}}", LETTERS) == is_in
        assert found(rf"\P{{{prefix}{category}}}", LETTERS) == [not each for each in is_in]
