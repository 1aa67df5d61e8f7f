"""The cost table that a run is given: which runs have one, and each mistake in it gets one clear line."""

import csv
import json

import pytest
from config_files import ROOT, config_with, raw_config

from sgtune.study.config.sections import tunes_alone
from sgtune.study.config.validate import validate_config
from sgtune.support.errors import InputError


def test_quick_uses_its_own_cost_table_and_the_others_measure_costs():
    assert raw_config("quick")["calibration"]["table"] == "config/cost/quick.json"
    for run in ("medium", "paper", "tiny"):
        assert raw_config(run)["calibration"]["table"] is None


def test_the_table_of_medium_has_the_costs_of_the_published_run():
    """docs/reproducing.md says so: with other costs, races of the same seed have other steps and choose other arms."""
    with (ROOT / "results/published/tuning/tables/cost.csv").open(encoding="utf-8") as file:
        published = {
            (row["model"], row["sampler"], row["detail"]): float(row["value"])
            for row in csv.DictReader(file)
            if row["metric"] == "step_ms"
        }
    held = {}
    for model, costs in json.loads((ROOT / "config/cost/medium.json").read_text())["models"].items():
        for row in costs["rows"]:
            shape = f"n = {row['batch_size']:,}" + (f", L = {row['n_leapfrog']}" if row["n_leapfrog"] else "")
            held[model, row["sampler"], shape] = 1_000 * row["seconds_per_step"]
    assert held == pytest.approx(published, rel=1e-12)


def test_tuning_takes_the_machine_unless_a_table_decides():
    """With the wall clock of one tuner it takes the machine although there is a table."""
    quick = config_with()
    assert not any(tunes_alone(quick, model) for model in quick["models"])
    assert tunes_alone(config_with(calibration__table=None), "pmf")
    by_the_clock = config_with(per_model__pmf__mamba__clock="wall")
    assert tunes_alone(by_the_clock, "pmf")
    assert not tunes_alone(by_the_clock, "bnn")


def other_table(tmp_path, change) -> str:
    """The file of the run quick's costs with ``change`` made to it."""
    table = json.loads((ROOT / "config/cost/quick.json").read_text())
    change(table["models"])
    path = tmp_path / "costs.json"
    path.write_text(json.dumps(table))
    return str(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda models: models.pop("pmf"), "has no costs for pmf; it has costs for logistic, bnn"),
        (lambda models: models["bnn"].update(n_data=5), "are for n_data=5; this run has n_data=60000"),
        (
            lambda models: models["pmf"].update(dimension=5),
            "are for dimension=5; this run has dimension=52580",
        ),
        (lambda models: models["logistic"]["rows"].pop(), "no entry for sampler="),
        (lambda models: models["pmf"].update(rows=[{}]), "rows of pmf are not rows of a cost table"),
    ],
)
def test_a_table_of_another_model_or_of_other_shapes_is_one_line(tmp_path, change, said):
    path = other_table(tmp_path, change)
    with pytest.raises(InputError) as failure:
        validate_config(config_with(calibration__table=path))
    (line,) = str(failure.value).splitlines()
    assert line.startswith(f"calibration.table: {path!r} is not allowed: ")
    assert said in line


def test_a_table_that_the_run_itself_writes_is_refused():
    with pytest.raises(
        InputError, match=r"^calibration.table: 'results/quick/cost/table.json' is not allowed: .*copy"
    ):
        validate_config(config_with(calibration__table="results/quick/cost/table.json"))


def test_a_missing_table_is_one_line():
    with pytest.raises(InputError, match=r"^calibration.table: 'none.json' is not allowed: .*missing"):
        validate_config(config_with(calibration__table="none.json"))
