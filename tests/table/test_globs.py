"""Patterns of paths: what each sign means, and which partitions a pattern names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.errors import ConfigError
from hudimeta.table.globs import Glob, literal_glob, matches, split_globs


@pytest.mark.parametrize(
    ("pattern", "means", "not_these"),
    [
        ("month=*", ["month=1", "month="], ["day=1", "a/month=1"]),
        ("day=0?", ["day=01"], ["day=0", "day=012"]),
        ("[a-c]x", ["ax", "cx"], ["dx", "-x"]),
        ("[^a-c]x", ["dx"], ["ax"]),
        ("[!a]", ["b", "!"], ["a"]),
        ("[]]", ["]"], ["["]),
        ("{a,b*}.c", ["a.c", "bee.c"], ["c.c", "aXc"]),
        ("{a,{b,c}}", ["a", "b", "c"], ["d", "{a"]),
        (r"\*,\{", ["*,{"], ["x,{"]),
    ],
)
def test_signs_mean_what_they_mean_in_hadoop(pattern: str, means: list[str], not_these: list[str]) -> None:
    assert [name for name in (*means, *not_these) if matches(pattern, name)] == means


@pytest.mark.parametrize("pattern", ["[ab", "{a,b", "x[", "{a,[b}"])
def test_a_bracket_that_is_not_closed_is_named(pattern: str) -> None:
    with pytest.raises(ConfigError, match="a pattern that has its"):
        matches(pattern, "a")


@pytest.mark.parametrize("pattern", ["[b-a]", "[^]", "[!]"])
def test_a_set_that_no_letter_can_be_in_is_refused_by_the_name_of_what_holds_it(pattern: str) -> None:
    with pytest.raises(ConfigError, match=r"'hudimeta.partitions' has the value .* whose sets have letters"):
        Glob.of(f"a/{pattern}", "hudimeta.partitions")


@given(st.text())
def test_a_literal_pattern_means_its_own_path_and_survives_a_list(name: str) -> None:
    pattern = literal_glob(name)
    assert matches(pattern, name)
    assert not matches(pattern, name + "x")
    if name == name.strip():
        assert split_globs(f"{pattern},b") == [pattern, "b"]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("2026", ["2026/01", "2026/02"]),
        ("2026/*", ["2026/01", "2026/02"]),
        ("*/02/", ["2025/02", "2026/02"]),
        ("*/*/*", ["2025/02", "2026/01", "2026/02"]),
        ("2026/01/*.parquet", ["2026/01"]),
        ("2026/01/part-7.parquet", []),
        ("202", []),
    ],
)
def test_a_pattern_names_the_partitions_in_its_folders(pattern: str, names: list[str]) -> None:
    assert [path for path in ("2025/02", "2026/01", "2026/02") if Glob.of(pattern).names_partition(path)] == names


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*/", []),
        ("*/*/", ["2025/02", "2026/01", "2026/02"]),
        ("/2026/{01,03}", ["2026/01"]),
        ("*", []),
        ("*/*/*", []),
        ("2026/02", ["2026/02"]),
    ],
)
def test_a_pattern_of_whole_paths_has_their_depth(pattern: str, names: list[str]) -> None:
    assert [path for path in ("2025/02", "2026/01", "2026/02") if Glob.of(pattern).names_path(path)] == names
    assert Glob.of("").names_path("")


def test_all_files_of_a_table_without_partitions_are_its_one_partition() -> None:
    assert Glob.of("*").names_partition("")
    assert not Glob.of("2026").names_partition("")


def test_commas_in_braces_separate_no_patterns() -> None:
    assert split_globs(r"{a,b}/c, d\,e ,f") == ["{a,b}/c", r"d\,e", "f"]
