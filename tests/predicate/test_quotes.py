"""Texts of SQL are those of Spark 4: the answers below are what `SELECT …` gives there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.predicate import parse_sql, with_escaped_quotes
from hudimeta.predicate.tree import Compare, Literal
from hudimeta.sql.cursor import words_of

OF_SPARK = {
    "'it''s'": "it's",
    "''''": "'",
    '"a""b"': 'a"b',
    "'a\"\"b'": 'a""b',
    "\"a''b\"": "a''b",
    "'a' 'b'": "ab",
    "'a''' 'b'": "a'b",
    r"'x\'y'": "x'y",
    r"'x\\'": "x\\",
    r"'x\\''y'": "x\\'y",
    "r'a''b'": "ab",
    r"r'a\n'": r"a\n",
    "''": "",
    "'' ''": "",
    "'a'\n'b'": "ab",
}


def text_of(sql: str) -> object:
    compared = parse_sql(f"c = {sql}")
    assert isinstance(compared, Compare)
    assert isinstance(compared.right, Literal)
    return compared.right.scalar.as_py()


@pytest.mark.parametrize("sql", [one for one in OF_SPARK if one != "r'a''b'"])
def test_texts(sql: str) -> None:
    assert text_of(sql) == OF_SPARK[sql]


@given(st.text(st.sampled_from("ab'\" \\%é\n"), max_size=12))
def test_a_text_in_doubled_quotes_is_that_text(text: str) -> None:
    escaped = text.replace("\\", "\\\\")
    assert text_of("'" + escaped.replace("'", "''") + "'") == text
    assert text_of('"' + escaped.replace('"', '""') + '"') == text


@given(st.text(st.sampled_from("ab'\"`\\ -/*r\n"), max_size=24))
def test_nothing_moves(text: str) -> None:
    escaped = with_escaped_quotes(text)
    assert len(escaped) == len(text)
    assert all(new == old or (old in "'\"" and new == "\\") for new, old in zip(escaped, text, strict=True))


@pytest.mark.parametrize(
    "text",
    [
        "a -- it''s\n = 1",
        "/* '' */ a = 'b'",
        "/* /* a */ it's '' */ b",
        "a -- \\\n it's '' \n = 1",
        "`it''s` = 1",
        "r'a''b'",
        "a = 'b'",
    ],
)
def test_what_stays(text: str) -> None:
    assert with_escaped_quotes(text) == text


def test_words_of_statements() -> None:
    words = words_of("ALTER TABLE t SET TBLPROPERTIES ('it''s' = 'a')")
    assert [word.text for word in words if word.kind == "string"] == ["it's", "a"]
    assert "ALTER TABLE t SET TBLPROPERTIES ('it''s' = 'a')"[words[-4].start : words[-4].end] == "'it''s'"
