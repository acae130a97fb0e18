"""SIGKILL at random moments, in the middle of a request or between two: the operating system's timer ends the writer."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path

import pytest

from hudimeta.storage import open_storage
from tests.crash.killing import Scene, check_goes_on
from tests.crash.scenes import LOGS_ALONE, SCENES
from tests.crash.starts import TYPES, Starts

KILLS = int(os.environ.get("CRASH_KILLS", "8"))
SEED = int(os.environ.get("CRASH_SEED", str(random.randrange(1 << 30))))
MOST_TRIES = 4 * KILLS
"""A timer that rings when the write is over kills nobody: then another moment is tried."""
CHOSEN = os.environ.get("CRASH_SCENES", ",".join(SCENES)).split(",")
CASES = [(name, type) for name in CHOSEN for type in TYPES if name not in LOGS_ALONE or type == "MERGE_ON_READ"]


def killed_after(scene: Scene, seconds: float | None, copy: Path) -> float | None:
    """Run the act in a child that is killed after some time; how long it took when it came to its end, else None."""
    sys.stdout.flush()
    sys.stderr.flush()
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            # Nobody handles the timer's signal, so it ends the process at once, as SIGKILL does.
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, seconds or 0)
            scene.act(copy, open_storage(copy))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGALRM
        return None
    assert os.WEXITSTATUS(status) == 0, "the writer failed instead of being killed"
    return time.monotonic() - began


def test_a_kill_at_any_moment_leaves_nothing_that_stays(starts: Starts) -> None:
    chance, took = random.Random(SEED), {}
    home = starts.home / "moments"
    home.mkdir()
    killed = 0
    for number in range(MOST_TRIES):
        if killed == KILLS:
            break
        name, type = chance.choice(CASES)
        scene = starts.scene(name, type)
        if (name, type) not in took:
            took[name, type] = killed_after(scene, None, scene.fresh(home / "whole")) or 1.0
            shutil.rmtree(home / "whole")
        copy = scene.fresh(home / str(number))
        moment = chance.uniform(0.0005, took[name, type])
        ended = killed_after(scene, moment, copy)
        if ended is None:
            killed += 1
        else:  # The first look came while the machine was busier.
            took[name, type] = min(took[name, type], ended)
        where = f"a kill of {name}, {type}, after {moment:.4f} s (CRASH_SEED={SEED}, number {number})"
        try:
            check_goes_on(scene, copy, where, recovering=chance.random() < 0.5)
        except AssertionError as error:
            if not os.environ.get("CRASH_KEEP"):
                pytest.fail(str(error))
            print(f"WRONG {error}", flush=True)
        shutil.rmtree(copy)
    print(f"{killed} kills met the writer at work")
    assert killed == KILLS
