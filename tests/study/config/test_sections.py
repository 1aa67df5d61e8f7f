"""The settings that each result depends on: neither a key too few, or it is stale, nor one too many."""

import re

import pytest
from config_files import valid

from sgtune.study.catalogue import MODELS
from sgtune.study.config.sections import SECTIONS, fingerprint, settings_of
from sgtune.study.experiments.tune import tuning_arguments
from sgtune.study.pipeline.plan import ladder_settings, studied, tuners_of, tuning_settings

RESULTS = [
    *[(kind, None) for kind in SECTIONS if kind != "tuning"],
    *[("tuning", tuner) for tuner in ("mamba-ksd", "grid", "grid-ksd", "heuristic")],
]
ALL = set(SECTIONS)
JUDGED = {"evaluation", "screen", "regret", "horizons"}
RUN = {"tuning", "estimates", *JUDGED}


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
    with pytest.raises(ValueError, match="not JSON compliant"):
        fingerprint({"seconds": float("nan")})


OWN = "per_model__pmf__"
DEPENDENCE = [
    ("data__pmf__simulated", 500, ALL),
    (OWN + "map__epochs", 2, ALL - {"data", "ood", "cost"}),
    ("seed", 3, {"reference", "widths", *RUN}),
    (OWN + "reference__block", 9, {"reference", "widths", *JUDGED}),
    ("grids__pmf__log10_step_sizes", [-3], {"tuning", "screen", "regret", "horizons"}),
    ("grids__pmf__n_leapfrogs", [3], {"cost", "tuning", "screen", "regret", "horizons"}),
    ("grids__pmf__friction", [0.1], {"tuning", "screen", "regret", "horizons"}),
    ("samplers", ["sghmc"], {"cost", "horizons"}),
    ("calibration__seconds", 2, {"cost"}),
    (OWN + "tuning__replicates", 7, {"tuning", "screen"}),
    (OWN + "tuning__validation_fraction", 0.5, {"tuning", "horizons"}),
    # Oracles have the budget of MAMBA.
    (OWN + "mamba__seconds", 7, {"tuning", "screen", "horizons"}),
    (OWN + "mamba__pruning_rate", 7, {"tuning", "screen", "horizons"}),
    (OWN + "mamba__points", 77, {"tuning", "horizons"}),
    (OWN + "grid__n_steps", 20, {"tuning"}),
    (OWN + "grid__batch_fraction", 0.5, {"cost", "tuning"}),
    ("grid__n_steps", 20, set()),
    ("heuristic__n_leapfrog", 7, {"cost", "tuning"}),
    (OWN + "evaluation__burn_in", 0.5, {"evaluation"}),
    (OWN + "regret__screen__oracle_losses", 2, {"screen", "regret"}),
    (OWN + "regret__prediction_draws", 7, {"screen", "regret"}),
    (OWN + "regret__finalists", 7, {"regret"}),
    (OWN + "horizons__replicates", 7, {"horizons"}),
    (OWN + "horizons__samplers", ["sgnht"], {"horizons"}),
    (OWN + "estimates__batch_fraction", 0.5, {"cost", "estimates"}),
    (OWN + "estimates__batch_fractions", [0.5], {"cost", "estimates"}),
    (OWN + "estimates__thin", 7, {"estimates"}),
    (OWN + "widths__points", 77, {"widths"}),
    ("tuners", ["grid"], set()),
    ("ccadl__normal__steps", 500, set()),
    ("published_as", "elsewhere", set()),
    # Another source of the same data, and images that only the network's evaluation uses.
    ("data__mirror", "config", set()),
    ("data__ood", "notmnist", set()),
]
OF_NETWORK = [
    ("data__ood", "notmnist", {"ood", "evaluation"}),
    # It has no reference, and only tuners of their own use the smaller grid.
    ("reference__block", 9, set()),
    ("grids__bnn__smaller__log10_step_sizes", [-6], set()),
]
KEYS = [("pmf", *one) for one in DEPENDENCE] + [("bnn", *one) for one in OF_NETWORK]


@pytest.mark.parametrize(
    ("model", "path", "value", "kinds"), KEYS, ids=[f"{one[0]}-{one[1]}" for one in KEYS]
)
def test_a_key_reruns_what_depends_on_it_and_nothing_else(model, path, value, kinds):
    assert reruns(model, **{path: value}) == kinds


def test_a_given_cost_table_reruns_all_that_converts_seconds_to_steps_and_no_measurement():
    found = {"models": ["pmf"], "heuristic__n_leapfrog": 10}
    found |= {"grids__pmf__batch_fractions": [0.1, 0.01], "grids__pmf__n_leapfrogs": [2, 5]}
    assert reruns("pmf", before=found, calibration__table="config/cost/quick.json") == RUN


OF_PAPER = [model for model, entry in MODELS.items() if entry.in_paper]


@pytest.mark.parametrize("model", OF_PAPER)
def test_what_concerns_other_models_reruns_nothing(model):
    for other in set(OF_PAPER) - {model}:
        changes = {
            f"grids__{other}__log10_step_sizes": [-3],
            f"per_model__{other}__mamba__seconds": 2,
            f"per_model__{other}__reference__block": 9,
            f"per_model__{other}__evaluation__seconds": 301,
        }
        changes |= {"data__logistic__seed": 1} if other == "logistic" else {f"data__{other}__simulated": 500}
        assert reruns(model, **changes) == set()
        assert reruns(other, **changes) == ALL


@pytest.mark.parametrize(
    ("path", "value", "tuners"),
    [
        ("mamba__points", 77, {"mamba-ksd", "mamba-fssd", "mamba", "theory"}),
        ("grid__n_steps", 77, {"grid"}),
        ("grid_ksd__seconds", 2, {"grid-ksd"}),
        ("heuristic__n_leapfrog", 7, {"heuristic"}),
    ],
)
def test_a_tuners_settings_are_its_own(path, value, tuners):
    """A job reuses the saved piece of a tuner although another tuner's settings have changed."""
    before, after = (tuning_settings(valid(**own), "logistic", "sgld") for own in ({}, {path: value}))
    assert list(before) == valid()["tuners"]
    assert {tuner for tuner in before if before[tuner] != after[tuner]} == tuners


def test_gaussians_of_a_dimension_depend_on_no_other_and_on_no_model():
    before = valid()
    for changes in ({"ladder__dimensions": [10, 30]}, {"mamba__seconds": 3}, {"per_model__pmf__widths": {}}):
        assert ladder_settings(valid(**changes), 10) == ladder_settings(before, 10)
    for changes in ({"ladder__seconds": 1}, {"ladder__kinds": ["axis"]}, {"seed": 3}):
        assert ladder_settings(valid(**changes), 10) != ladder_settings(before, 10)
    assert ladder_settings(before, 10) != ladder_settings(before, 100)


def test_smaller_grid_is_for_its_samplers_and_its_tuners():
    config = valid()
    own = ["mamba-ksd", "mamba", "grid", "heuristic"]
    assert tuners_of(config, "bnn", "sgnht") == [*own, "mamba-ksd-smaller", "grid-smaller"]
    smaller = {triple for triple in studied(config) if triple[2].endswith("-smaller")}
    assert smaller == {("bnn", "sgnht", "mamba-ksd-smaller"), ("bnn", "sgnht", "grid-smaller")}
    assert tuners_of(valid(per_model__bnn__tuners=["grid"]), "bnn", "sgnht") == ["grid", "grid-smaller"]
    assert tuners_of(valid(grids__bnn__smaller__samplers=[]), "bnn", "sgnht") == own
    two = {"samplers": ["sgld", "sgld-cv"], "log10_step_sizes": [-6]}
    assert "grid-smaller" in tuners_of(valid(grids__pmf__smaller=two), "pmf", "sgld-cv")


def test_smaller_grid_reaches_its_tuners_alone():
    config, other = valid(), valid(grids__bnn__smaller__log10_step_sizes=[-6])
    for tuner, step_sizes in {"mamba-ksd": 12, "mamba-ksd-smaller": 6, "grid-smaller": 6}.items():
        one, another = (settings_of(c, "tuning", "bnn", tuner) for c in (config, other))
        assert len(one["grids"]["log10_step_sizes"]) == step_sizes
        assert (fingerprint(one) == fingerprint(another)) == (tuner == "mamba-ksd")


def test_tuners_that_look_ahead_get_the_horizon_and_theory_no_clock():
    changes = {"mamba__horizon": 20, "mamba__clock": "wall", "mamba__score_rows": 500}
    found = {
        tuner: tuning_arguments(settings_of(valid(**changes), "tuning", "logistic", tuner), tuner)
        for tuner in ("mamba", "theory")
    }
    assert [one["horizon"].seconds for one in found.values()] == [20, 20]
    assert [one["budget"].seconds for one in found.values()] == [1, 1]
    # Theory runs no arm, and would refuse a wall-clock budget.
    assert [one["tuner"].clock for one in found.values()] == ["wall", "calibrated"]
    assert (found["mamba"]["tuner"].judge.scores, found["mamba"]["tuner"].thin) == ({"score_rows": 500}, None)


def test_studied_is_every_tuner_of_a_model_with_every_sampler():
    config = valid(samplers=["sgld", "sgnht"], models=["pmf", "logistic"])
    of_models = {"pmf": config["per_model"]["pmf"]["tuners"], "logistic": config["tuners"]}
    assert studied(config) == [(m, s, t) for m in of_models for s in ("sgld", "sgnht") for t in of_models[m]]
