"""Whole tables with flipped bits, cut ends, files exchanged: right answers or errors of ours, and nothing made permanent.

A small sample runs always; `make damage-tables-full` asks for more of them (HUDIMETA_DAMAGED_TABLES says how many). Over tables
that Apache Hudi wrote, whose files carry fewer checksums, wrong answers are counted and printed, and only crashes fail.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import zlib

import pytest

from tests.damage.run import lane_of_damages, shares
from tests.damage.subjects import OWN, recorded_names
from tests.damage.trial import Outcome

ASKED = int(os.environ.get("HUDIMETA_DAMAGED_TABLES") or 0)
SEED = int(os.environ.get("HUDIMETA_DAMAGE_SEED") or 1)
LANES = int(os.environ.get("HUDIMETA_DAMAGE_LANES") or os.cpu_count() or 1)
SAMPLE = ("cow_indexed", "mor_worn", "mor_captured", "cow_altered")
SAMPLED_EACH = 3


def damages(names: list[str], each: int, recorded: bool = False) -> list[Outcome]:
    """So many damages of each table, by several processes when there are many."""
    lanes = LANES if each > SAMPLED_EACH else 1
    parts = [(names[lane::lanes], SEED, each, recorded, None, None) for lane in range(lanes)]
    if lanes == 1:
        return lane_of_damages(parts[0])
    with multiprocessing.get_context("spawn").Pool(lanes) as pool:
        return [outcome for part in pool.imap_unordered(lane_of_damages, parts) for outcome in part]


def told(title: str, found: list[Outcome], capsys: pytest.CaptureFixture[str]) -> None:
    if ASKED:
        with capsys.disabled():
            print(f"\n{title}: {len(found)} damages, seed {SEED}\n{shares(found)}", file=sys.stderr)


def test_own_tables(capsys: pytest.CaptureFixture[str]) -> None:
    names = list(OWN) if ASKED else list(SAMPLE)
    found = damages(names, -(-ASKED // len(names)) if ASKED else SAMPLED_EACH)
    told("tables of ours", found, capsys)
    wrong = [str(one) for one in found if one.faults]
    assert not wrong, f"{len(wrong)} of {len(found)}:\n" + "\n".join(wrong[:20])


def test_tables_of_apache_hudi(capsys: pytest.CaptureFixture[str]) -> None:
    known = recorded_names()
    names = known if ASKED else [known[zlib.crc32(b"%d %d" % (SEED, n)) % len(known)] for n in range(3)]
    found = damages(names, -(-ASKED // len(names)) if ASKED else 3, recorded=True)
    told("tables by Apache Hudi", found, capsys)
    wrong = [str(one) for one in found if any(name == "other exception" for name, _ in one.faults)]
    assert not wrong, f"{len(wrong)} of {len(found)}:\n" + "\n".join(wrong[:20])
