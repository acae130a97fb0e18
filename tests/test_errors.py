"""The tree of errors: codes in front, facts as attributes, alive across process borders."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from hudimeta import errors
from hudimeta.errors import HudiError

SAMPLES = [
    errors.ConfigError("k", "v", "x or y", "Choose one."),
    errors.TableNotFound("/p"),
    errors.MissingLibrary("polars"),
    errors.PropertiesUnreadable("/p", "is empty", "Restore it."),
    errors.UnsupportedTableVersion(5, (6, 8, 9)),
    errors.UnsupportedFeature("time machines", "Wait."),
    errors.CorruptFileError("f", 3, "a", "b"),
    errors.MetadataOutOfSync("files", "instant 1"),
    errors.IndexDropped("expr_index_low", "its definition"),
    errors.IndexNotReady("record_index", "not built"),
    errors.CommitConflict("UPSERT", [("p", "f1"), ("", "f2"), ("p", "f3"), ("p", "f4")], "2025"),
    errors.CommitConflict("append", (), "another process", what="the metadata table", did="removed meanwhile"),
    errors.ClusteringPending("UPSERT", [("p", "f1")], "2025", "Wait."),
    errors.CommitOutcomeUnknown("2025", "lost"),
    errors.DuplicateKeys(2, ["k1", "k2"]),
    errors.InstantExists("2025"),
    errors.LockTimeout("l", "me", 60.0),
    errors.UndoError("rollback of", "2025", "it is savepointed", "Give the savepoint up first."),
    errors.LockLost("l", "you"),
    errors.SchemaMismatch("c", "int", "string"),
    errors.UnsupportedEvolution("c", "narrowed"),
    errors.ValidationFailed("report"),
    errors.NotFound("f"),
    errors.FileRemoved("f", "2025"),
    errors.MetadataFileMissing("f", "column_stats"),
    errors.AlreadyExists("f"),
    errors.Throttled("f", 5),
]


@pytest.mark.parametrize("error", SAMPLES, ids=lambda e: type(e).__name__)
def test_text_begins_with_the_code_and_ends_with_a_next_step(error: HudiError) -> None:
    assert str(error).startswith(f"HUDIMETA_{type(error).code}: ")
    assert str(error).endswith((".", "?"))
    assert error.hint, "says what to do next"


@pytest.mark.parametrize("error", SAMPLES, ids=lambda e: type(e).__name__)
def test_errors_cross_process_borders_with_their_facts(error: HudiError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert copy.__dict__.keys() == error.__dict__.keys()


def test_a_conflict_says_in_one_sentence_what_met() -> None:
    def told(*args: Any, **how: Any) -> str:
        return errors.CommitConflict(*args, **how).message

    groups = [("p", "f1"), ("", "f2"), ("p", "f3"), ("p", "f4")]
    assert told("UPSERT", groups, "2025") == (
        "UPSERT touches file groups that instant 2025 changed meanwhile: p/f1, f2, p/f3 and 1 more"
    )
    assert told("UPSERT", groups[:1], "2025", keys=2, sample="k1") == (
        "UPSERT touches 2 of its rows, such as the one with the key 'k1', that instant 2025 changed meanwhile: p/f1"
    )
    assert told("look-up", (), "another process", what="an index", did="dropped meanwhile") == (
        "look-up rests on an index, which another process dropped meanwhile"
    )
    assert errors.ClusteringPending("UPSERT", groups[:1], "2025", "Wait.").message == (
        "UPSERT touches file groups that the pending clustering 2025 is going to replace: p/f1"
    )


def test_codes_are_unique() -> None:
    kinds = [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, HudiError)]
    codes = [k.code for k in kinds if "code" in vars(k)]
    assert len(codes) == len(set(codes))
    assert {k.__name__ for k in kinds} - {"HudiError"} <= set(errors.__all__)
