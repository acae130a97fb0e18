"""`python -m pyspark_hudimeta`: sessions that are attached without a line of Python in the job."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark_hudimeta.sessions.command import main
from pyspark_hudimeta.sessions.statements import run_all

from hudimeta.sql import split
from tests.elsewhere import REMOTE, only_when

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOB = """
import json, sys, threading
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
folder, *rest = sys.argv[1:]
spark.sql(f"create table t (id int, x int) using hudimeta tblproperties (primaryKey = 'id') location '{folder}/t'")
spark.sql("insert into t values (1, 1), (2, 2)")
spark.sql("update t set x = 5 where id = 1")
seen = {"rows": sorted(map(tuple, spark.sql("select * from t").collect())), "arguments": rest}
seen["conf"] = spark.conf.get("spark.hudimeta.test")
seen["new"] = spark.newSession().sql("delete from t where id = 2").first()[0]
def elsewhere():
    seen["thread"] = spark.sql("update t set x = 7").first()[0]
thread = threading.Thread(target=elsewhere)
thread.start()
thread.join()
json.dump(seen, open(f"{folder}/seen", "w"))
sys.exit(3)
"""


@pytest.mark.spark
@pytest.mark.xdist_group("sessions of their own")
@pytest.mark.timeout(300)
@only_when(not REMOTE, "classic sessions, which can be attached")
def test_a_submitted_script_has_attached_sessions_only(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(JOB, encoding="utf-8")
    options = ["--master", "local[1]", "--conf", "spark.hudimeta.test=set", "--conf", "spark.ui.enabled=false"]
    options += ["--conf", "spark.driver.extraJavaOptions=-XX:+UseSerialGC -XX:TieredStopAtLevel=1"]
    command = [sys.executable, "-m", "pyspark_hudimeta", "submit", *options, str(script), str(tmp_path), "a b", "--master"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 3, ran.stderr[-4000:]
    seen = json.loads((tmp_path / "seen").read_text())
    assert seen == {"rows": [[1, 5], [2, 2]], "arguments": ["a b", "--master"], "conf": "set", "new": 1, "thread": 1}


def test_statements_are_run_until_one_fails(spark: SparkSession, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    create = f"create table shelled using hudimeta location '{tmp_path / 'none'}'"
    text = "select 'a;b' as x; -- one; two\nselect 2 as `y;z` /* ; */;;" + f"{create}; select 3"
    assert list(split(text)) == [
        "select 'a;b' as x",
        "-- one; two\nselect 2 as `y;z` /* ; */",
        create,
        "select 3",
    ]
    assert run_all(spark, text, 5) == 1
    shown = capsys.readouterr()
    assert "|a;b|" in shown.out
    assert "|y;z|" in shown.out
    assert "|3" not in shown.out
    assert "HUDIMETA_TABLE_NOT_FOUND" in shown.err
    assert run_all(spark, "select 1", 5) == 0


def test_what_is_asked_wrongly_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["--help"]) == 0
    assert "submit [OPTIONS" in capsys.readouterr().out
    assert main([]) == main(["start"]) == main(["submit"]) == 2
    assert "usage:" in capsys.readouterr().err
    assert main(["submit", "--deploy-mode", "cluster", "job.py"]) == 2
    assert "Leave --deploy-mode out" in capsys.readouterr().err
    assert main(["sql", "-f", str(tmp_path / "nothing.sql")]) == 2
    assert "a file that can be read" in capsys.readouterr().err
