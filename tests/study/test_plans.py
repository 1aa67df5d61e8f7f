"""Dry runs of the workflow: which jobs there are, what they wait for, and which jobs a change reruns."""

import os
import re
from collections import Counter
from pathlib import Path

import pytest
from config_files import ROOT, raw_config, snakemake

from sgtune.study.studies import STUDIES, files_of

TIMED = {"calibrate_cost", "tune_sampler", "compare_clocks", "calibrate_adam_mcmc", "compare_preconditioned"}
"""The timed rules of a run with a given cost table; evaluation by the wall clock is one more."""


@pytest.fixture(scope="module")
def workplace(tmp_path_factory) -> Path:
    """A folder with nothing but the configuration."""
    folder = tmp_path_factory.mktemp("workplace")
    (folder / "config").symlink_to(ROOT / "config")
    return folder


def dry_run(folder: Path, *arguments: str) -> str:
    """What a dry run in ``folder`` prints."""
    done = snakemake(folder, "--dry-run", *arguments)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def blocks_of(printed: str) -> list[tuple[str, str]]:
    """The rule of each job of a dry run, and what is printed of the job."""
    return re.findall(r"^(?:local)?rule (\w+):\n(.*?)(?=^\[|\Z)", printed, re.M | re.S)


def jobs_of(printed: str) -> Counter:
    """The number of jobs of each (rule, model) in a dry run; rules without a model have None."""
    models = [(rule, re.search(r"wildcards: .*\bmodel=(\w+)", block)) for rule, block in blocks_of(printed)]
    return Counter((rule, model and model[1]) for rule, model in models)


def outputs_of(printed: str) -> set[Path]:
    """The files that the jobs of a dry run would make."""
    outputs = re.findall(r"^ +output: (.+)$", printed, re.M)
    return {Path(path) for line in outputs for path in line.split(", ")}


# The run by the clock has the cost table of quick, which decides, so that tuning shares the machine.
@pytest.mark.parametrize(
    ("by_the_clock", "timed"), [(False, TIMED), (True, TIMED - {"tune_sampler"} | {"evaluate_sampler"})]
)
def test_every_rule_takes_the_machine_and_timed_rules_the_whole_of_it(
    by_the_clock, timed, workplace, tmp_path
):
    targets = ["all", "publish", "publish_ccadl", "publish_adam_mcmc", "collect_costs", *STUDIES]
    (tmp_path / "clock.yaml").write_text("run: clock\nevaluation: {clock: wall}\n")
    overlay, seen = tmp_path / "clock.yaml" if by_the_clock else ROOT / "config/paper.yaml", {}
    for rule, block in blocks_of(dry_run(workplace, "--forceall", *targets, "--configfile", str(overlay))):
        if rule not in ("all", *STUDIES):
            machine = re.search(r"machine=(\d+)", block)
            assert machine, f"{rule} does not take the resource machine"
            seen[rule] = int(machine[1])
    assert {rule for rule, machine in seen.items() if machine == 1000} == timed
    assert set(seen.values()) == {1, 1000}
    assert len(seen) >= 20


def test_every_artifact_of_a_run_is_a_target(workplace):
    files = {Path(path).stem: path for study in STUDIES for path in files_of(raw_config("quick"), study)}
    assert set(map(Path, files.values())) <= outputs_of(dry_run(workplace, *files))
    assert "make_table" not in dry_run(workplace, "figure3")


def test_a_run_has_the_jobs_of_all_three_models(workplace):
    jobs = jobs_of(dry_run(workplace))
    for model in ("logistic", "pmf", "bnn"):
        for rule in ("tune_sampler", "evaluate_sampler"):
            assert jobs[rule, model] == 6
        # Regret of PMF would need a reference that this run does not have, and the network's would need more minutes.
        for rule in ("screen_grid", "rerun_finalists"):
            assert jobs[rule, model] == (6 if model == "logistic" else 0)
        for rule in ("find_map", "calibrate_cost", "estimate_discrepancies"):
            assert jobs[rule, model] == 1
    for model, n_chains in {"logistic": 2, "pmf": 2, "bnn": 0}.items():
        assert jobs["sample_nuts", model] == n_chains
        assert jobs["combine_nuts", model] == jobs["measure_widths", model] == (n_chains > 0)
    assert {rule for rule, _ in jobs} >= {"simulate_logistic", "prepare_movielens", "prepare_mnist"}
    assert jobs["measure_ladder", None] == len(raw_config("quick")["ladder"]["dimensions"])


def test_a_models_name_is_the_target_of_its_study_and_of_no_other(workplace):
    jobs = jobs_of(dry_run(workplace, "bnn"))
    assert {of_model for _, of_model in jobs} == {"bnn", None}
    assert {"tune_sampler", "evaluate_sampler", "estimate_discrepancies"} <= {rule for rule, _ in jobs}
    assert jobs["prepare_ood", None] == 1
    assert min(jobs["make_table", None], jobs["make_figure", None]) >= 1


def test_a_model_without_a_reference_waits_for_none(workplace, tmp_path):
    overlay, own = tmp_path / "own.yaml", "{reference: {nuts: false}, regret: {prediction_draws: 5}}"
    overlay.write_text(f"run: bare\nmodels: [pmf]\nper_model: {{pmf: {own}}}\n")
    jobs = jobs_of(dry_run(workplace, "--configfile", str(overlay)))
    assert jobs["evaluate_sampler", "pmf"] == 6
    assert not {"sample_nuts", "combine_nuts", "measure_widths"} & {rule for rule, _ in jobs}


def test_a_result_that_was_deleted_is_made_again_although_all_artifacts_are_there(tmp_path):
    """Empty files of the same age stand in for a finished run."""
    (tmp_path / "config").symlink_to(ROOT / "config")
    small = ["--config", "models=[logistic, bnn]", "samplers=[sgld]"]
    for path in outputs_of(dry_run(tmp_path, *small)):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
        os.utime(tmp_path / path, (2e9, 2e9))
    assert not jobs_of(dry_run(tmp_path, *small, "--rerun-triggers", "mtime"))
    (tmp_path / "results/quick/evaluation/logistic/sgld.json").unlink()
    printed = dry_run(tmp_path, *small, "--rerun-triggers", "mtime")
    jobs, names = jobs_of(printed), {path.name for path in outputs_of(printed)}
    assert jobs["evaluate_sampler", "logistic"] == 1
    assert not jobs["tune_sampler", "logistic"] + jobs["evaluate_sampler", "bnn"]
    assert {"table1.html", "figure3.svg", "manifest.json"} <= names
    assert not {"table3.html", "figure5.svg"} & names
