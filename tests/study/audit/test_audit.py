"""The audit: each defect by itself, and everything else as in the main study."""

import copy
from itertools import product

import numpy as np
import pytest
from config_files import changed, valid
from job_pieces import Log
from small_models import small_logistic_model

from sgtune import CostTable
from sgtune.stein import fssd_at, optimise_locations
from sgtune.study.audit import runs
from sgtune.study.audit.artifacts import DEFECTS, audited, settings_of, tuners_with
from sgtune.study.audit.claims import defects
from sgtune.study.audit.runs import audit_sampler, explicit, fssd_u_statistic, with_defect
from sgtune.study.config.sections import fingerprint
from sgtune.study.experiments.evaluate import evaluate_tuned
from sgtune.study.experiments.tune import chosen_arms, tune_sampler
from sgtune.study.report.records import load_records
from sgtune.support.files import write_json
from sgtune.tuning import TUNERS

COST = CostTable({("sghmc", batch_size, 2): 1e-3 for batch_size in (20, 200)})
SAMPLER = "sghmc"


def settings(defect):
    grids = {"log10_step_sizes": [-3, -4], "batch_fractions": [0.1], "n_leapfrogs": [2]}
    tuning = {"replicates": 2, "validation_fraction": 0}
    own = {"grids__logistic": grids, "tuning": tuning, "mamba__seconds": 0.03, "grid__n_steps": 20}
    config = valid(**own, heuristic={"batch_fraction": 0.1, "n_leapfrog": 2})
    config["evaluation"] |= {"seconds": 0.02, "replicates": 2, "ksd_points": 20, "thin": 1}
    return settings_of(config, defect, SAMPLER)


@pytest.fixture(scope="module")
def model():
    return small_logistic_model(n_data=200)


@pytest.fixture
def run(model, tmp_path):
    def one(defect):
        return audit_sampler(Log(tmp_path / defect, model, SAMPLER, cost=COST).task, defect, settings(defect))

    return one


def test_the_u_statistic_is_over_pairs_of_different_draws_at_one_location_and_may_be_negative():
    rng, values = np.random.default_rng(0), []
    for seed in range(20):
        x = rng.standard_normal((40, 3)).astype(np.float32)
        location = optimise_locations(x[::2], -x[::2], seed=seed, n_locations=1)
        odd = x[1::2]
        squares = [fssd_at(odd[[i, i]], -odd[[i, i]], location) ** 2 for i in range(20)]
        whole = fssd_at(odd, -odd, location) ** 2
        values.append(fssd_u_statistic(x, -x, seed))
        assert values[-1] == pytest.approx((20 * whole - np.mean(squares)) / 19, rel=1e-4, abs=1e-7)
    # Of exact draws, but for the optimisation on the other half, the expectation is 0.
    assert min(values) < 0 < max(values)
    assert fssd_u_statistic(np.full((8, 3), np.nan, np.float32), np.ones((8, 3), np.float32), 0) == np.inf


def test_each_defect_concerns_its_tuners_alone():
    config = valid()
    assert tuners_with(config, "explicit", "sghmc-cv") == ["mamba-ksd", "mamba-fssd", "grid", "heuristic"]
    assert tuners_with(config, "explicit", "sgnht") == tuners_with(config, "none", "sghmc") == []
    assert tuners_with(config, "u_statistic", "sgld") == ["mamba-fssd"]
    assert len(audited(config)) == 2 + 3 * 6
    assert audited(valid(models=["pmf"])) == []
    for name in ("mamba-ksd", "mamba-fssd", "grid"):
        tuner = TUNERS[name]
        restarts = name != "grid"
        assert with_defect(tuner, name, "explicit") == tuner
        assert with_defect(tuner, name, "restarts").restarts == restarts
        assert (with_defect(tuner, name, "u_statistic").judge != tuner.judge) == (name == "mamba-fssd")
    both = with_defect(TUNERS["mamba-fssd"], "mamba-fssd", "as_published")
    assert both.restarts
    assert both.judge != TUNERS["mamba-fssd"].judge


def without_times(runs):
    return [one | {"table": one["table"] | {"wall_seconds": None}} for one in runs]


def evaluated(task, arms):
    """By the main study, which has curves, too."""
    own = settings("none")["evaluation"]
    return evaluate_tuned(task, arms, own | {"curves": own["curves"] | {"replicates": 0}})


def test_explicit_kicks_are_those_of_the_published_sampler_and_the_heuristic_has_no_other_arm(model, run):
    found = run("explicit")
    published = explicit(Log(None, model, SAMPLER, cost=COST).task)
    assert published.sampler == "sghmc-as-published"
    arms = {one["tuner"]: one["arms"] for one in found["tuners"]}
    expected = evaluated(published, arms)
    assert without_times(found["runs"]) == without_times(expected["runs"])
    assert [one["tuner"] for one in found["tuners"]] == ["mamba-ksd", "mamba-fssd", "grid", "heuristic"]
    assert [len(one["arms"]) for one in found["tuners"]] == [2, 2, 2, 1]
    (arm,) = found["tuners"][-1]["arms"]
    assert arm == {"step_size": 1 / 200, "batch_size": 20, "n_leapfrog": 2}
    assert all(run["table"]["n_samples"] == 20 and run["curves"] == [] for run in found["runs"])


def test_without_a_defect_races_and_runs_are_those_of_the_main_study(model, run, monkeypatch):
    """So that the defect is all that differs: of a defect that concerns no chain, the same numbers."""
    monkeypatch.setattr(runs, "with_defect", lambda tuner, name, defect: tuner)
    found, task = run("restarts"), Log(None, model, SAMPLER, cost=COST).task
    expected = evaluated(task, chosen_arms(tune_sampler(task, settings("restarts")["tuners"])))
    assert found["tuners"] == expected["tuners"]
    assert without_times(found["runs"]) == without_times(expected["runs"])


def test_its_section_is_no_part_of_other_settings():
    config = valid()
    before = fingerprint(settings_of(config, "explicit", "sghmc"))
    after = changed(copy.deepcopy(config), audit__samplers=["sghmc"])
    assert fingerprint(settings_of(after, "explicit", "sghmc")) == before
    assert audited(after) == [(defect, "sghmc") for defect in DEFECTS if defect != "none"]


def test_the_table_has_each_defect_beside_the_main_study(run, tmp_path):
    about = {"model": "logistic", "sampler": SAMPLER, "n_data": 200}
    found = {defect: about | run(defect) for defect in ("explicit", "restarts")}
    for defect, record in found.items():
        write_json(tmp_path / f"files/audits/{defect}/sghmc.json", record)
    for sampler in (SAMPLER, "sgld"):
        record = found["explicit"] | {"sampler": sampler}
        write_json(tmp_path / f"files/evaluation/logistic/{sampler}.json", record)
    (tmp_path / "files/published.csv").write_text(
        "table,model,sampler,tuner,metric,value\n"
        "table1,logistic,sghmc,grid,ksd,1310\ntable6,logistic,sghmc,grid,ksd,1310.5\n"
        "table1,logistic,sgld,grid,ksd,7\ntable2,pmf,sghmc,grid,ksd,8\ntable1,logistic,sghmc,grid,accuracy_percent,9\n"
    )
    paths = [path for path in (tmp_path / "files").rglob("*") if path.is_file()]
    cells = defects(load_records(paths, ("audits", "evaluation", "published")))
    (of_paper,) = (cell for cell in cells if cell.detail == "paper")
    assert (of_paper.sampler, of_paper.tuner, of_paper.shown) == (SAMPLER, "grid", "1,310")
    cells.remove(of_paper)
    assert {cell.sampler for cell in cells} == {SAMPLER}
    of_ksd = [(cell.tuner, cell.detail) for cell in cells if cell.metric == "ksd"]
    both = product(("mamba-ksd", "mamba-fssd"), ("none", "explicit", "restarts"))
    assert of_ksd == [*both, *product(("grid", "heuristic"), ("none", "explicit"))]
    assert {cell.metric for cell in cells} >= {"relative_sd_error_x100", "log10_step_size", "batch_percent"}
