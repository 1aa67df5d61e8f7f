"""The pipeline by cost tables of a machine a hundred times slower, and faster: every arm judged, every table made."""

import json
import subprocess
from pathlib import Path

import pandas as pd
import pytest
import yaml
from config_files import raw_config
from cost_tables import costs_of
from snakemake.utils import update_config
from workflow_runs import ROOT, snakemake

from sgtune.study.config.sections import studied
from sgtune.study.report import form_of, requested

pytestmark = pytest.mark.optimised

STUDY = {
    "models": ["pmf"],
    "samplers": ["sgld-cv"],
    "reference": {"chains": 1, "n_warmup": 10, "n_draws": 20, "block": 30},
    # A hundred times as many steps must still end soon.
    "per_model": {"pmf": {"evaluation": {"seconds": 0.01, "curves": {"seconds": [0.005, 0.01]}}}},
}
SECONDS_PER_STEP = 5e-4
"""About the cost of a step of a small factorisation on two cores."""


def tables_of(config: dict) -> list[str]:
    """The tables of the study in the workflow's default target."""
    return [name for name in requested(studied(config), ["pmf"], []) if form_of(name) == "table"]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory) -> Path:
    """A folder with the configuration of a small study, whose cost file does not exist yet."""
    folder = tmp_path_factory.mktemp("costs")
    (folder / "config").symlink_to(ROOT / "config")
    study = {**STUDY, "run": "costs", "calibration": {"table": str(folder / "costs.json")}}
    (folder / "study.yaml").write_text(yaml.safe_dump(study))
    return folder


@pytest.fixture(scope="module", params=[100, 0.01], ids=["slower", "faster"])
def finished(request, workplace) -> tuple[float, Path, str]:
    """The factor, the results of a small study with such costs, and what Snakemake printed.

    Both factors use one folder, so with the second factor's costs only the results that depend on costs are made again.
    """
    config = raw_config("tiny")
    update_config(config, yaml.safe_load((workplace / "study.yaml").read_text()))
    models = {"pmf": costs_of(config, "pmf", request.param * SECONDS_PER_STEP)}
    (workplace / "costs.json").write_text(json.dumps({"models": models}))
    overlays = ["--configfile", str(ROOT / "tests/tiny.yaml"), str(workplace / "study.yaml")]
    # Only figures 1 and 2 show the estimates; figures drawn from tables have separate tests.
    targets = [f"tables/{name}.html" for name in tables_of(config)] + ["estimates/pmf.json"]
    command = snakemake(workplace, *(f"results/costs/{target}" for target in targets), *overlays)
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return request.param, workplace / "results/costs", done.stdout + done.stderr


@pytest.mark.slow
def test_every_arm_is_judged_on_ten_steps_or_more(finished):
    factor, results, _ = finished
    record = json.loads((results / "tuning/pmf/sgld-cv.json").read_text())
    mamba = record["tuners"][0]
    first = [rung for rung in mamba["rungs"] if rung["rung"] == 1]
    assert len(first) == 6
    assert mamba["best"] is not None
    if factor > 1:
        assert {rung["steps"] for rung in first} == {10}
        assert mamba["seconds"]["overrun"] > mamba["seconds"]["nominal"]
        assert any("made 10 steps" in line for line in mamba["warnings"])
    else:
        assert min(rung["steps"] for rung in first) > 1_000
        assert mamba["seconds"]["overrun"] == 0
    evaluation = json.loads((results / "evaluation/pmf/sgld-cv.json").read_text())
    steps = {run["table"]["n_samples"] for run in evaluation["runs"] if run["table"] is not None}
    assert steps == {10 if factor > 1 else int(0.01 / (factor * SECONDS_PER_STEP))}


@pytest.mark.slow
def test_every_table_is_made_and_costs_are_shown_beside_those_measured(finished):
    factor, results, printed = finished
    assert "(100%) done" in printed
    made = {path.stem for path in (results / "tables").glob("*.html") if path.stat().st_size > 1_000}
    of_costs = (
        "table2",
        "table4",
        "table7",
        "table8",
        "regret",
        "tuning_time",
        "xi_by_block",
        "cost",
        "timings",
    )
    assert made >= {*of_costs}
    assert made == {path.stem for path in (results / "tables").glob("*.json")}
    cost = pd.read_csv(results / "tables/cost.csv").set_index("metric")["value"]
    assert (cost["step_ratio"] > 0).all()
    assert cost["table_step_ms"].tolist() == pytest.approx(
        [1e3 * factor * SECONDS_PER_STEP] * len(cost["step_ms"])
    )
