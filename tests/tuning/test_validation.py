"""Tuners that judge by held-out training rows: chains run without these rows, and the test set is not used."""

from dataclasses import replace

import pytest
from predictive_models import small_pmf
from small_models import check_rungs, small_logistic_model, tune

from sgtune import Budget, CostTable
from sgtune.model import Found
from sgtune.model.derived import hold_out
from sgtune.support.errors import InputError
from sgtune.tuning import Settings

GRID = {"log10_step_sizes": (-2.0, -3.0, -4.0, -5.0), "batch_fractions": (1.0, 0.1), "n_leapfrogs": (2,)}
PLAIN = Settings(**GRID, pruning_rate=2)
HELD = replace(PLAIN, validation_fraction=0.1)
SIZES = {2_000: 1_800, 200: 180, 450: 405, 45: 40, 500: 450, 50: 45}


@pytest.fixture(scope="module")
def model():
    return small_logistic_model()


def on_fewer(rows):
    """Records of a race with the batch sizes that its chains used on fewer rows."""
    return [{**row, "batch_size": SIZES[row["batch_size"]]} for row in rows]


@pytest.mark.parametrize(
    ("tuner", "sampler"),
    [
        ("mamba-log-loss", "sgld"),
        ("mamba-log-loss", "sghmc-cv"),
        ("mamba-accuracy", "mala"),
        ("grid", "sgld-cv"),
    ],
)
@pytest.mark.parametrize("budget", [Budget(steps=40), Budget(gradients=20_000), Budget(seconds=0.04)])
def test_the_race_equals_a_race_of_the_model_without_the_rows(model, tuner, sampler, budget):
    """Chains start at the mode without the held-out rows; costs and records have the batch sizes of all rows."""
    held = hold_out(model, 0.1)
    settings = replace(PLAIN, batch_fractions=(1.0,)) if sampler == "mala" else PLAIN
    leapfrogs = 2 if sampler.startswith("sghmc") else None
    seconds = {2_000: 1e-3, 200: 2e-4}
    cost = CostTable({(sampler, size, leapfrogs): each for size, each in seconds.items()})
    of_held = CostTable({(sampler, SIZES[size], leapfrogs): each for size, each in seconds.items()})
    options = {"tuner": tuner, "budget": budget, "seed": 3}
    found = tune(model, sampler, cost=cost, settings=replace(settings, validation_fraction=0.1), **options)
    wanted = tune(held, sampler, cost=of_held, settings=settings, **options)
    assert on_fewer(found.rows) == wanted.rows
    assert on_fewer([found.best.to_record()]) == [wanted.best.to_record()]
    assert (found.steps, found.gradient_evaluations) == (wanted.steps, wanted.gradient_evaluations)
    assert (found.model, found.n_data, wanted.n_data) == ("logistic", 2_000, 1_800)
    check_rungs(found)


@pytest.mark.parametrize("make", [small_logistic_model, small_pmf])
def test_the_test_set_is_not_used(make):
    """The race is the same with a wrong test set or none, but differs from a race that is judged by the test set."""
    model = make()
    wrong = {**model.test_data, "targets": 1 - model.test_data["targets"]}
    options = {"tuner": "grid", "budget": Budget(steps=20)}
    first, *others = (
        tune(replace(model, test_data=test_data, found=Found()), "sgld", settings=HELD, **options)
        for test_data in (model.test_data, wrong, None)
    )
    for other in others:
        assert other.rows == first.rows
        assert other.best == first.best
    seen = tune(model, "sgld", settings=PLAIN, **options)
    assert [row["discrepancy"] for row in seen.rows] != [row["discrepancy"] for row in first.rows]


def test_the_default_grid_is_made_for_all_rows():
    """A thousandth of 10,500 rows is ten; chains on the remaining rows use nine, and the record has ten."""
    model = small_logistic_model(n_data=10_500)
    settings = Settings(log10_step_sizes=(-4.0, -5.0), validation_fraction=0.1)
    result = tune(model, "sgld", tuner="mamba-log-loss", budget=Budget(steps=10), settings=settings)
    sizes = [10_500, 1_050, 105, 10]
    assert list(result.rungs.query("rung == 1")["batch_size"]) == [size for size in sizes for _ in range(2)]
    assert result.gradient_evaluations == 2 * 10 * (9_450 + 945 + 94 + 9)


def test_a_model_whose_rows_cannot_judge_says_so(model):
    line = r"^validation_fraction: 0\.1 needs a model with predict and as_test; 'logistic' lacks at least one of them$"
    for part in ("as_test", "predict"):
        with pytest.raises(InputError, match=line):
            tune(replace(model, **{part: None}), "sgld", tuner="grid", settings=HELD)
    with pytest.raises(InputError, match=r"^validation_fraction: 0\.0001 of N=2000 rows is none"):
        tune(model, "sgld", tuner="grid", settings=replace(PLAIN, validation_fraction=1e-4))
    with pytest.raises(InputError, match=r"^tuner: 'mamba-log-loss' judges models with task=classification"):
        tune(small_pmf(), "sgld", tuner="mamba-log-loss", settings=HELD)
