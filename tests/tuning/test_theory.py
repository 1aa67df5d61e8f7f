"""The tuner theory: it chooses the arm with the smallest expected error, which is also the best in simulated chains."""

import numpy as np
import pytest
from reference_models import gaussian_model
from small_models import check_rungs

from sgtune import Arm, Budget, CostTable, tune
from sgtune.support.errors import InputError
from sgtune.theory.laplace import directions_of
from sgtune.theory.linear import expected_errors
from sgtune.tuning import AllDivergedError, Grid, Settings, Theory, foresight

GRID = Grid(
    log10_step_sizes=(-1.0, -2.0, -3.0, -4.0, -5.0, -6.0), batch_fractions=(1.0, 0.1), n_leapfrogs=(3,)
)


@pytest.fixture(scope="module")
def model():
    return gaussian_model()[0]


def test_it_chooses_the_arm_with_the_smallest_expected_error(model):
    lines = []
    result = tune(model, "sgld", tuner=Theory(GRID), budget=Budget(steps=1_000), report=lines.append)
    check_rungs(result)
    table = result.rungs
    assert (len(table), result.steps, result.tuner) == (12, 0, "theory")
    arms = [Arm(row.step_size, row.batch_size) for row in table.itertuples()]
    foreseen = expected_errors("sgld", arms, directions_of(model), [1_000] * 12)
    np.testing.assert_allclose(table["discrepancy"].astype(float).fillna(np.inf), foreseen)
    assert result.best == arms[np.argmin(foreseen)]
    assert set(table["reason"]) == {"", "unstable", "higher value than the survivors"}
    assert (table["reason"] == "").sum() == 1
    assert lines[-1].startswith("errors of 12 arms predicted, 8 of them stable")


def test_the_horizon_is_what_the_budget_buys(model):
    """For each kind of budget, with cheap minibatches; a short horizon needs longer steps."""
    cost = CostTable({("sgld-cv", 100, None): 1e-2, ("sgld-cv", 10, None): 1e-3})
    options = {"tuner": Theory(GRID), "cost": cost}
    long = tune(model, "sgld-cv", budget=Budget(seconds=100.0), **options)
    short = tune(model, "sgld-cv", budget=Budget(seconds=0.1), **options)
    assert short.best.batch_size == 10
    assert short.best.step_size > long.best.step_size
    by_steps = {100: 10, 10: 100}
    arms = [Arm(row.step_size, row.batch_size) for row in short.rungs.itertuples()]
    foreseen = expected_errors(
        "sgld-cv", arms, directions_of(model), [by_steps[arm.batch_size] for arm in arms]
    )
    np.testing.assert_allclose(short.rungs["discrepancy"].astype(float).fillna(np.inf), foreseen)
    # With control variates a step costs two minibatch gradients of 10 data, or one full-batch gradient of 100.
    in_gradients = tune(model, "sgld-cv", tuner=Theory(GRID), budget=Budget(gradients=2_000))
    assert in_gradients.best.batch_size == 10


def test_it_says_where_the_theory_does_not_hold(model):
    wide = tune(
        model,
        "sgld",
        tuner="theory",
        budget=Budget(steps=100),
        settings=Settings(log10_step_sizes=(-2.2,), batch_fractions=(0.1,)),
    )
    assert any("times the Laplace sd in the worst of 3 directions" in line for line in wide.warnings)
    calm = tune(model, "sgld", tuner=Theory(GRID), budget=Budget(steps=1_000))
    assert not any(line.startswith("theory") for line in calm.warnings)


def test_no_stable_arm_is_an_error_with_a_table(model):
    settings = Settings(log10_step_sizes=(0.0, -1.0), batch_fractions=(1.0,))
    with pytest.raises(AllDivergedError, match="all 2 arms of sgnht are unstable by the theory") as raised:
        tune(model, "sgnht", tuner="theory", budget=Budget(steps=10), settings=settings)
    assert raised.value.result.best is None
    assert list(raised.value.result.rungs["reason"]) == ["unstable"] * 2


def test_bad_input_gets_one_line(model):
    with pytest.raises(InputError, match=r"^sampler: 'mala' is not known to the theory"):
        tune(model, "mala", tuner="theory")
    with pytest.raises(InputError, match=r"^clock: 'wall' is not allowed; 'theory' runs no arms"):
        tune(model, "sgld", tuner="theory", budget=Budget(seconds=1.0), settings=Settings(clock="wall"))
    with pytest.raises(InputError, match=r"^cost: the table has no entry"):
        tune(model, "sgld", tuner="theory", budget=Budget(seconds=1.0), cost=CostTable())


@pytest.mark.parametrize(("ratio", "warns"), [(0.3, True), (0.7, False), (1.5, False), (3.0, True)])
def test_a_spread_that_is_far_too_narrow_or_too_wide_is_named(model, monkeypatch, ratio, warns):
    monkeypatch.setattr(foresight, "spread_ratios", lambda *arguments: np.array([1.0, ratio, 1.0]))
    result = tune(model, "sgld", tuner=Theory(GRID), budget=Budget(steps=1_000))
    assert any(f"{ratio:g} times the Laplace sd" in line for line in result.warnings) == warns
