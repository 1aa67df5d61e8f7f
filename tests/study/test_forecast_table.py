"""The table of a forecast, and the rule that prints it."""

import subprocess

import pytest
from config_files import ROOT
from workflow_runs import snakemake

from sgtune.study.pipeline.forecast import Forecast, Row


def test_timed_jobs_run_one_at_a_time_and_the_others_as_many_as_there_are_cores():
    rows = [Row("a", "m", [3600.0, 1800.0], timed=True), Row("b", "m", [3600.0] * 4), Row("c", "", [7200.0])]
    assert Forecast("mine", rows).hours(1) == pytest.approx(1.5 + 6)
    assert Forecast("mine", rows).hours(2) == pytest.approx(1.5 + 3)
    # Two jobs that each use both cores take as long as one after the other.
    crowded = [Row("b", "m", [3600.0] * 4, beside=2.0)]
    assert [Forecast("mine", crowded).hours(n) for n in (1, 2, 4)] == pytest.approx([4, 4, 4])
    assert Forecast("mine", [Row("b", "m", [3600.0] * 4, beside=1.5)]).hours(2) == pytest.approx(3)
    # No number of cores makes one job shorter.
    assert Forecast("mine", rows).hours(100) == pytest.approx(1.5 + 2)


def test_the_table_is_aligned_and_has_hours_of_two_digits():
    rows = [
        Row("tune_sampler", "logistic", [3600.0, 1800.0], timed=True),
        Row("find_map", "pmf", [12_345.6]),
        Row("no", "", []),
    ]
    lines = list(Forecast("mine", rows, ["a table"], ["the weather"]).lines(2))
    assert lines[0] == "The expected time of the run mine"
    assert lines[2] == "Rule                    Model      Jobs     Seconds    Hours  Longest (h)"
    assert lines[3] == "tune_sampler            logistic      2       5,400     1.50         1.00  timed"
    assert lines[4] == "find_map                pmf           1      12,346     3.43         3.43"
    assert lines[-8:] == [
        "others, on 2 cores                           12,346     3.43",
        "in all, on 2 cores                           17,746     4.93",
        *("", "It is based on:", "- a table", "", "It does not know:", "- the weather"),
    ]


def test_the_rule_prints_the_table_and_runs_nothing_else(tmp_path):
    (tmp_path / "config").symlink_to(ROOT / "config")
    command = snakemake(tmp_path, "forecast", "--configfile", str(ROOT / "config/paper.yaml"))
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "The expected time of the run paper" in done.stdout
    assert "in all, on" in done.stdout
    assert "config/cost/quick.json" in done.stdout
    assert {path.name for path in (tmp_path / "results/paper").iterdir()} == {"logs"}
