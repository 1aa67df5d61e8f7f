"""The settings that each result depends on: a change for one model reruns nothing of the others."""

import re

import pytest
from config_files import valid

from sgtune.study import catalogue
from sgtune.study.config.sections import (
    SECTIONS,
    fingerprint,
    ladder_settings,
    settings_of,
    studied,
    tuners_of,
    tuning_settings,
)
from sgtune.study.experiments.tune import tuning_arguments
from sgtune.support.errors import InputError

RESULTS = [
    *[(kind, None) for kind in set(SECTIONS) - {"tuning"}],
    *[("tuning", tuner) for tuner in ("mamba-ksd", "grid", "heuristic")],
]


def prints(config: dict, model: str) -> dict:
    """The fingerprint of every kind of result of ``model``."""
    return {(kind, tuner): fingerprint(settings_of(config, kind, model, tuner)) for kind, tuner in RESULTS}


def reruns(model: str, before: dict | None = None, **changes) -> set[str]:
    """The kinds of results of ``model`` that ``changes`` of the defaults rerun."""
    before, after = prints(valid(**(before or {})), model), prints(valid(**(before or {}), **changes), model)
    return {result[0] for result in RESULTS if before[result] != after[result]}


def test_fingerprint_sees_values_and_not_their_order():
    section = {"seconds": 1, "grid": [1, 0.1]}
    assert fingerprint(section) == fingerprint({"grid": [1.0, 0.1], "seconds": 1.0})
    assert fingerprint(section) != fingerprint({"seconds": 1, "grid": [0.1, 1]})
    assert fingerprint(section) != fingerprint({"seconds": 2, "grid": [1, 0.1]})
    assert re.fullmatch("[0-9a-f]{64}", fingerprint(section))
    with pytest.raises(InputError, match="finite JSON values"):
        fingerprint({"seconds": float("nan")})


ALL = {kind for kind, _ in RESULTS}


@pytest.mark.parametrize("model", catalogue.MODELS)
def test_what_concerns_other_models_reruns_nothing(model):
    for other in set(catalogue.MODELS) - {model}:
        changes = {
            f"grids__{other}__log10_step_sizes": [-3],
            f"per_model__{other}__mamba__seconds": 2,
            f"per_model__{other}__reference__block": 9,
            f"per_model__{other}__evaluation__seconds": 301,
        }
        changes |= {"data__logistic__seed": 1} if other == "logistic" else {f"data__{other}__simulated": 500}
        assert reruns(model, **changes) == set()
        assert reruns(other, **changes) == ALL


def test_a_result_depends_on_its_own_sections():
    assert reruns("pmf", per_model__pmf__regret__replicates=7) == {"regret"}
    assert reruns("pmf", per_model__pmf__regret__screen__seconds=7) == {"screen", "regret"}
    assert reruns("pmf", per_model__pmf__tuning__replicates=7) == {"tuning", "screen"}
    assert reruns("pmf", per_model__pmf__tuning__validation_fraction=0.5) == {"tuning", "horizons"}
    assert reruns("pmf", per_model__pmf__grid__n_steps=20) == {"tuning"}
    assert reruns("pmf", grid__n_steps=20) == set()
    assert reruns("pmf", calibration__seconds=2) == {"cost"}
    assert reruns("pmf", map__epochs=2) == ALL - {"data", "ood", "cost"}
    assert reruns("pmf", grids__pmf__n_leapfrogs=[3]) == {"cost", "tuning", "screen", "regret", "horizons"}
    judged = {"evaluation", "screen", "regret", "widths", "horizons"}
    assert reruns("pmf", reference__block=9) == {"reference"} | judged
    assert reruns("bnn", reference__block=9) == set()
    # The screen includes the heuristic's arm, and oracles have the budget of MAMBA.
    assert reruns("pmf", per_model__pmf__heuristic__n_leapfrog=7) == {"cost", "tuning", "screen"}
    assert reruns("pmf", per_model__pmf__mamba__seconds=7) == {"tuning", "screen", "horizons"}
    assert reruns("pmf", per_model__pmf__mamba__points=77) == {"tuning", "horizons"}
    assert reruns("pmf", seed=3) == ALL - {"data", "ood", "map", "cost"}
    assert reruns("logistic", per_model__logistic__mamba__seconds=2) == {"tuning", "screen", "horizons"}


def test_a_given_cost_table_reruns_all_that_converts_seconds_to_steps_and_no_measurement():
    found = {"models": ["pmf"], "heuristic__n_leapfrog": 10}
    found |= {"grids__pmf__batch_fractions": [0.1, 0.01], "grids__pmf__n_leapfrogs": [2, 5]}
    table = {"calibration__table": "config/cost/quick.json"}
    by_costs = {"tuning", "evaluation", "screen", "regret", "horizons", "estimates"}
    assert reruns("pmf", before=found, **table) == by_costs


def test_a_tuners_settings_are_its_own():
    """A job reuses the saved piece of a tuner although another tuner's settings have changed."""
    before, after = (
        tuning_settings(valid(**changes), "logistic", "sgld") for changes in ({}, {"grid_ksd__seconds": 2})
    )
    assert list(before) == valid()["tuners"]
    assert {tuner for tuner in before if before[tuner] != after[tuner]} == {"grid-ksd"}
    assert set(tuning_settings(valid(), "bnn", "sgnht")) >= {"mamba-ksd-smaller", "grid-smaller"}


def test_gaussians_of_a_dimension_depend_on_no_other_and_on_no_model():
    before = valid()
    for changes in ({"ladder__dimensions": [10, 30]}, {"mamba__seconds": 3}, {"per_model__pmf__widths": {}}):
        assert ladder_settings(valid(**changes), 10) == ladder_settings(before, 10)
    for changes in ({"ladder__seconds": 1}, {"ladder__kinds": ["axis"]}, {"seed": 3}):
        assert ladder_settings(valid(**changes), 10) != ladder_settings(before, 10)
    assert ladder_settings(before, 10) != ladder_settings(before, 100)


def test_another_source_of_data_reruns_nothing_but_other_ood_images_do(tmp_path):
    assert reruns("bnn", data__mirror=str(tmp_path)) == set()
    assert reruns("bnn", data__ood="notmnist") == {"ood", "evaluation"}
    for model in set(catalogue.MODELS) - {"bnn"}:
        assert reruns(model, data__ood="notmnist") == set()


def test_smaller_grid_is_for_its_samplers_and_its_tuners():
    config = valid()
    assert tuners_of(config, "bnn", "sgnht") == [
        *("mamba-ksd", "mamba", "grid", "heuristic", "mamba-ksd-smaller", "grid-smaller"),
    ]
    smaller = {triple for triple in studied(config) if triple[2].endswith("-smaller")}
    assert smaller == {("bnn", "sgnht", "mamba-ksd-smaller"), ("bnn", "sgnht", "grid-smaller")}
    assert tuners_of(valid(per_model__bnn__tuners=["grid"]), "bnn", "sgnht") == ["grid", "grid-smaller"]
    assert (
        tuners_of(valid(grids__bnn__smaller__samplers=[]), "bnn", "sgnht")
        == config["per_model"]["bnn"]["tuners"]
    )
    two = {"samplers": ["sgld", "sgld-cv"], "log10_step_sizes": [-6]}
    assert "grid-smaller" in tuners_of(valid(grids__pmf__smaller=two), "pmf", "sgld-cv")
    with pytest.raises(InputError, match=r"^grids\.pmf\.smaller\.log10_step_sizes: missing"):
        valid(grids__pmf__smaller__samplers=["sgld"])


def test_smaller_grid_reaches_its_tuners_alone():
    config = valid()
    step_sizes = {}
    for tuner in ("mamba-ksd", "mamba-ksd-smaller", "grid-smaller"):
        arguments = tuning_arguments(settings_of(config, "tuning", "bnn", tuner), tuner)
        step_sizes[tuner] = arguments["settings"].log10_step_sizes
    assert step_sizes["mamba-ksd"] == tuple(-2 - 0.5 * i for i in range(12))
    assert (
        step_sizes["mamba-ksd-smaller"] == step_sizes["grid-smaller"] == tuple(-5 - 0.5 * i for i in range(6))
    )
    assert reruns("bnn", grids__bnn__smaller__log10_step_sizes=[-6]) == set()
    other = valid(grids__bnn__smaller__log10_step_sizes=[-6])
    one, another = (settings_of(c, "tuning", "bnn", "grid-smaller") for c in (config, other))
    assert fingerprint(one) != fingerprint(another)
    for kind in set(SECTIONS) - {"tuning"}:
        assert fingerprint(settings_of(config, kind, "bnn")) == fingerprint(settings_of(other, kind, "bnn"))


def test_tuning_arguments_are_the_models_own():
    settings = settings_of(valid(), "tuning", "pmf", "mamba-ksd")
    arguments = tuning_arguments(settings, "mamba-ksd")
    assert arguments["budget"].seconds == 10
    assert (arguments["settings"].points, arguments["settings"].batch_fractions) == (50, (1, 0.1, 0.01))
    arguments = tuning_arguments(settings_of(valid(), "tuning", "bnn", "grid"), "grid")
    assert (arguments["budget"].steps, arguments["settings"].start_noise) == (1000, 1)
    assert arguments["horizon"] is None


def test_tuners_that_look_ahead_get_the_horizon_and_theory_no_clock():
    changes = {"mamba__horizon": 20, "mamba__clock": "wall", "mamba__score_rows": 500}
    found = {
        tuner: tuning_arguments(settings_of(valid(**changes), "tuning", "logistic", tuner), tuner)
        for tuner in ("mamba", "theory")
    }
    assert [one["horizon"].seconds for one in found.values()] == [20, 20]
    assert [one["budget"].seconds for one in found.values()] == [1, 1]
    # Theory runs no arm, and would refuse a wall-clock budget.
    assert [one["settings"].clock for one in found.values()] == ["wall", "calibrated"]
    assert (found["mamba"]["settings"].score_rows, found["mamba"]["settings"].thin) == (500, None)
    assert reruns("logistic", mamba__horizon=20) == {"tuning", "horizons"}


def test_studied_is_every_tuner_of_a_model_with_every_sampler():
    config = valid(samplers=["sgld", "sgnht"], models=["pmf", "logistic"])
    expected = [
        ("pmf", sampler, tuner)
        for sampler in ("sgld", "sgnht")
        for tuner in config["per_model"]["pmf"]["tuners"]
    ]
    expected += [("logistic", sampler, tuner) for sampler in ("sgld", "sgnht") for tuner in config["tuners"]]
    assert studied(config) == expected
