"""The tables of a model of one's own."""

from artifact_records import evaluation_row, generator
from small_models import gaussian_model

from sgtune.sampling.budget import CostTable
from sgtune.study.experiments.check import check_tuned
from sgtune.study.mamba.accuracy import MOST_CHECKED, own_check, own_errors
from sgtune.study.mamba.artifacts import STUDY
from sgtune.study.pipeline.parts import Task
from sgtune.study.report.table import DASH, NO_ARM, frame_of, lay_out


def checked(**changes):
    return {"model": "own", "sampler": "sgld", "tuner": "mamba", "arm": {}, "parameters": [], **changes}


def test_the_check_has_the_worst_parameters_and_nuts_where_it_has_run():
    row = {"sd_ratio": 1.5, "sd_ratio_se": 0.1, "virial": 2.25, "mean_error": 0.0, "mean_error_se": 0.02}
    row |= {"ess": 900.0, "rhat": 1.01, "mean": 3.0, "sd": 2.0, "problems": "too wide"}
    rows = [row | {"parameter": f"x[{i}]"} for i in range(MOST_CHECKED + 5)]
    cells = {(cell.detail, cell.metric): cell for cell in own_check({"checks": [checked(parameters=rows)]})}
    assert list(dict.fromkeys(detail for detail, _ in cells)) == [f"x[{i}]" for i in range(MOST_CHECKED)]
    assert cells["x[0]", "check_sd_ratio"].shown == "1.50 ± 0.10"
    assert cells["x[0]", "check_problems"].shown == "too wide"
    assert ("x[0]", "check_nuts_mean") not in cells
    # Samplers are in the order of print, and each has its own parameters first.
    both = [checked(sampler="sghmc", parameters=rows[2::-1]), checked(parameters=rows[:3])]
    laid = lay_out(frame_of(own_check({"checks": both})), STUDY.tables["own_check"])
    assert [*laid.index.get_level_values("Parameter")] == ["x[0]", "x[1]", "x[2]", "x[2]", "x[1]", "x[0]"]
    with_nuts = checked(parameters=[rows[0] | {"nuts_mean": 2.5, "nuts_sd": 1.0}])
    assert {cell.metric: cell.value for cell in own_check({"checks": [with_nuts]})}["check_nuts_mean"] == 2.5


def test_a_sampler_without_an_arm_or_draws_says_so():
    lost = [checked(arm=None), checked(sampler="sghmc")]
    assert [(cell.sampler, cell.shown) for cell in own_check({"checks": lost})] == [
        ("sgld", NO_ARM),
        ("sghmc", DASH),
    ]
    model = gaussian_model([[2.0, -1.2], [-1.2, 1.5]], [0.5, -1.0], n_data=2_000)
    record = check_tuned(Task(model, "sgld"), [{"tuner": "grid", "best": None}], {"seconds": 1})
    assert (record["arm"], record["parameters"]) == (None, [])


def test_the_arm_of_the_default_tuner_is_checked_in_the_parameters_of_the_model():
    model = gaussian_model([[2.0, -1.2], [-1.2, 1.5]], [0.5, -1.0], n_data=2_000)
    arm = {"step_size": 1e-4, "batch_size": 2_000, "n_leapfrog": None}
    tuned = [
        {"tuner": "grid", "best": arm | {"step_size": 1.0}},
        {"tuner": "mamba", "best": arm, "forecast": None},
    ]
    task = Task(model, "sgld", cost=CostTable({("sgld", 2_000, None): 1e-3}))
    record = check_tuned(task, tuned, {"seconds": 0.2, "kept_draws": 500})
    assert record["n_samples"] == 200
    assert (record["tuner"], record["arm"]["step_size"]) == ("mamba", 1e-4)
    assert {row["parameter"] for row in record["parameters"]} == {"position[0]", "position[1]"}
    few = check_tuned(task, tuned, {"seconds": 0.01, "kept_draws": 500})
    assert few["parameters"] == []
    assert "draws are finite; at least 20 must be" in few["warnings"][-1]


def test_metrics_that_no_run_has_are_left_out():
    row = evaluation_row(generator("own"), "logistic") | {"replicate": 0}
    row = {name: value for name, value in row.items() if not name.startswith(("xi", "ksd_scaled"))}
    row |= {"brier": None}
    record = {"model": "own", "sampler": "sgld", "tuner": "mamba", "arms": [{}], "best": {}, "table": [row]}
    found = {cell.metric for cell in own_errors({"evaluation": [record]})}
    assert {"relative_sd_error_x100", "accuracy_percent", "log_loss", "n_samples"} <= found
    assert not {"xi_white_x100", "ksd_scaled", "brier", "rmse"} & found
