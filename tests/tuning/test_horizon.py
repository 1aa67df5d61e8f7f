"""Judging by errors that theory foresees: of races that look ahead to the horizon, and of arms that never run."""

import numpy as np
import pytest
from reference_models import gaussian_model as linear_regression
from small_models import check_rungs, gaussian_model, tune
from stein_forms import autoregressive

from sgtune import Arm, Budget, CostTable, InputError, Preconditioner
from sgtune.mode.coordinates import precondition
from sgtune.mode.curvature import laplace_scale
from sgtune.mode.find import map_position
from sgtune.model.positions import flatten
from sgtune.model.posterior import scores
from sgtune.stein.mean_errors import mean_error
from sgtune.stein.quadratic import stretch_of
from sgtune.theory.laplace import laplace_of
from sgtune.theory.linear import expected_errors
from sgtune.tuning import AllDivergedError, Grid, Halving, Theory, foresight, horizon
from sgtune.tuning.foresight import foresee
from sgtune.tuning.horizon import ESCAPED, FORESIGHT, at_horizon, horizon_metric, mean_virial
from sgtune.tuning.judges import ArmDraws

# The grid has frozen, slow, good, biased and escaping arms.
GRID = Grid(log10_step_sizes=(-1.0, -2.0, -2.5, -3.0, -3.5, -4.0, -5.0, -7.0), batch_fractions=(1.0, 0.3))
STEPS = 3_000
JUDGES = ("virial", "psd", "ksd")


@pytest.mark.parametrize("discrepancy", ["virial", "moments", "psd"])
def test_marginals_are_those_of_the_parameters_in_any_coordinates(discrepancy):
    """Draws that are twice as wide along one parameter, and right along the others given it."""
    precision = np.array([[2.0, -1.5, 0.3], [-1.5, 3.0, 0.0], [0.3, 0.0, 1.0]])
    model = gaussian_model(precision, np.zeros(3), n_data=50)
    factor = laplace_scale(model)
    seen = precondition(model, Preconditioner(flatten(map_position(model)), factor))
    draws = np.random.default_rng(3).multivariate_normal(np.zeros(3), np.linalg.inv(precision), 400)
    draws[:, 0] *= 2
    values = []
    for own, points in ((model, draws), (seen, seen.preconditioner.coordinates(draws))):
        arm = ArmDraws(points.astype(np.float32), np.arange(1, 401), 400, 400, 1.0)
        values += horizon_metric(discrepancy, seed=0, target="marginals")(own, [arm]).values
        values += horizon_metric(discrepancy, seed=0)(own, [arm]).values
    assert values[0] == pytest.approx(values[2], rel=1e-3)
    assert values[3] != pytest.approx(values[2], rel=1e-2)


# With 20 directions, one race is close to the mean over races.
SDS = np.geomspace(250, 20, 20) ** -0.5


@pytest.fixture(scope="module")
def model():
    return gaussian_model(np.diag(SDS**-2.0), np.linspace(-1, 1, 20), n_data=100)


def race(model, discrepancy="virial", steps=STEPS):
    return tune(model, "sgld", tuner=Halving(at_horizon(discrepancy), grid=GRID), budget=Budget(steps=steps))


def errors_of(model, result, n_steps):
    """The theoretical errors of all arms, and of the chosen arm."""
    first = result.rungs[result.rungs["rung"] == 1]
    arms = [Arm(row.step_size, row.batch_size) for row in first.itertuples()]
    errors = expected_errors("sgld", arms, laplace_of(model).directions, [n_steps] * len(arms))
    return errors, errors[arms.index(result.best)]


@pytest.mark.parametrize(("discrepancy", "most"), [("virial", 1.5), ("psd", 2), ("ksd", 2)])
def test_the_chosen_arm_is_as_good_as_theory_knows_any(model, discrepancy, most):
    """PSD and KSD also include the error of the mean, so they prefer longer steps than errors of sds do."""
    result = race(model, discrepancy)
    check_rungs(result)
    errors, chosen = errors_of(model, result, STEPS)
    assert chosen < most * errors.min()
    # The test can fail: at least half of the arms have more than twice the best error.
    assert np.mean(errors > 2 * errors.min()) >= 0.5
    assert errors.max() == np.inf
    assert errors[np.isfinite(errors)].max() > 0.9


@pytest.mark.parametrize(("dimension", "has_means"), [(200, False), (201, True)])
def test_the_default_judge_adds_the_error_of_means_above_200_dimensions(dimension, has_means):
    """A slow chain and a fast one, both from the posterior. Only the error of means falls with time."""
    model = gaussian_model(np.diag(np.linspace(1, 4, dimension)), np.zeros(dimension), n_data=100)
    rng, steps = np.random.default_rng(0), np.arange(1, 201)
    scale, stretch = laplace_scale(model), stretch_of(steps, 200)
    for memory in (0.0, 0.9):
        draws = autoregressive(rng, 200, dimension, memory) / np.sqrt(np.linspace(1, 4, dimension))
        draws = draws.astype(np.float32)
        gradients = scores(model, draws)
        of_means = mean_error(draws, stretch, scale, n_draws=400)
        for share, least in ((0.5, 0.5), (0.01, 0.1)):
            arm = ArmDraws(draws, steps, 200, 400, share)
            value, of_sds = (
                FORESIGHT[name](model, "all directions", arm, gradients, stretch)
                for name in ("by dimension", "virial")
            )
            assert value == pytest.approx(of_sds + has_means * least * of_means, rel=1e-6)
            assert of_means > 0.01 * of_sds


@pytest.mark.parametrize("discrepancy", list(FORESIGHT))
def test_fewer_than_ten_draws_are_not_judged_ahead(discrepancy):
    """Their bias cannot be separated from their variance, so that the length of the planned run must not count."""
    model = gaussian_model(np.diag(np.linspace(1, 4, 201)), np.zeros(201), n_data=100)
    draws = np.random.default_rng(0).standard_normal((10, 201)).astype(np.float32)
    gradients = scores(model, draws)

    def value(n, share):
        steps = np.arange(1, n + 1)
        arm = ArmDraws(draws[:n], steps, n, n, share)
        return FORESIGHT[discrepancy](model, "all directions", arm, gradients[:n], stretch_of(steps, n))

    assert value(9, 0.1) == value(9, 1.0) > 0
    # Ten draws are enough for a forecast.
    assert value(10, 0.1) != value(10, 1.0)


@pytest.mark.parametrize("discrepancy", JUDGES)
def test_an_escaped_arm_is_called_so_and_never_chosen(model, discrepancy):
    """The draws of the arm are finite, but their distance grows by half in every step."""
    result = race(model, discrepancy, steps=300)
    table = result.rungs
    escaped = table[table["reason"].str.startswith("escaped: virial ")]
    assert 0.01 in set(escaped["step_size"].round(6))
    assert escaped["discrepancy"].isna().all()
    assert escaped["pruned"].all()
    assert any("escaped" in line for line in result.warnings)
    assert result.best.step_size < 0.01
    assert np.isfinite(errors_of(model, result, 300)[1])


def test_the_guard_is_of_the_last_stretch_alone(model):
    """A chain that has returned is judged, one that has just left is not; the mean virial of exact draws is 1."""
    mode = flatten(map_position(model)).astype(np.float64)
    draws = SDS * np.random.default_rng(0).standard_normal((500, 20))
    steps = np.arange(1, 501)

    def judged(widths):
        points = (mode + widths[:, None] * draws).astype(np.float32)
        arm = ArmDraws(points, steps, 500, 500, 1.0)
        return horizon_metric("virial", 0)(model, [arm])

    exact = judged(np.ones(500))
    points = (mode + draws).astype(np.float32)
    # The mean of 10,000 squares of normals.
    assert mean_virial(points, scores(model, points), mode) == pytest.approx(1, abs=4 * np.sqrt(2 / 10_000))
    left, back = judged(np.where(steps > 400, 5.0, 1.0)), judged(np.where(steps <= 100, 5.0, 1.0))
    assert exact.remarks == back.remarks == [""]
    assert exact.values[0] < back.values[0] < np.inf
    assert left.values == [np.inf]
    assert left.remarks[0].startswith("escaped: virial ")
    assert float(left.remarks[0].split()[2].rstrip(",")) == pytest.approx(25, rel=0.3)
    # Just below the limit, an arm has a value.
    assert np.isfinite(judged(np.where(steps > 400, 0.8 * np.sqrt(ESCAPED), 1.0)).values[0])


@pytest.fixture(scope="module")
def good(model):
    """50 draws near the mode."""
    points = flatten(map_position(model)) + np.random.default_rng(0).normal(0, 0.1, (50, 20))
    return ArmDraws(points.astype(np.float32), np.arange(1, 51), 50, 50, 1.0)


def test_unusable_draws_have_no_value(model, good):
    """An arm without points and an arm that is not finite have no value, and do not affect a third arm."""
    lost = good._replace(points=np.full_like(good.points, np.nan))
    empty = good._replace(points=good.points[:0], steps=good.steps[:0])
    for discrepancy in JUDGES:
        metric = horizon_metric(discrepancy, 0)
        together = metric(model, [empty, good, lost])
        assert together.values == [np.inf, metric(model, [good]).values[0], np.inf]
        assert np.isfinite(together.values[1])
        # All 100 rows for each of 50 draws.
        assert together.gradient_evaluations == 50 * 100
    assert horizon_metric("virial", 0)(model, [empty]).values == [np.inf]


def test_minibatch_scores_count_twice(model, good):
    few, all_rows = horizon_metric("virial", 0, score_rows=10), horizon_metric("virial", 0)
    judgement = few(model, [good])
    assert judgement.gradient_evaluations == 50 * 10 * 2
    assert few(model, [good]).values == judgement.values
    # Scores of 10 of 100 rows with control variates change the value, but not by much.
    assert judgement.values[0] == pytest.approx(all_rows(model, [good]).values[0], rel=0.5)


def test_every_rung_has_scores_of_its_own_rows(model, good, monkeypatch):
    """Two rungs with the same points: of another number of arms, and of another number of steps."""
    metric, plain, seeds = horizon_metric("virial", 0, score_rows=10), horizon.stochastic_scores, []
    assert metric(model, [good, good]).values[0] != metric(model, [good]).values[0]

    def noted(*given, **options):
        seeds.append(given[3])
        return plain(*given, **options)

    monkeypatch.setattr(horizon, "stochastic_scores", noted)
    for n_steps in (50, 51, 50):
        metric(model, [good._replace(n_steps=n_steps)])
    assert seeds[0] == seeds[2] != seeds[1]


WIDE = Grid((-1.0, -2.0, -3.0, -4.0, -5.0, -6.0), batch_fractions=(1.0, 0.1), n_leapfrogs=(3,))


@pytest.fixture(scope="module")
def regression():
    return linear_regression()[0]


def test_it_chooses_the_arm_with_the_smallest_expected_error(regression):
    result = tune(regression, "sgld", tuner=Theory(WIDE), budget=Budget(steps=1_000))
    check_rungs(result)
    table = result.rungs
    assert (len(table), result.steps, result.tuner) == (12, 0, "theory")
    arms = [Arm(row.step_size, row.batch_size) for row in table.itertuples()]
    predicted = expected_errors("sgld", arms, laplace_of(regression).directions, [1_000] * 12)
    np.testing.assert_allclose(table["discrepancy"].astype(float).fillna(np.inf), predicted)
    assert result.best == arms[np.argmin(predicted)]
    assert set(table["reason"]) == {"", "unstable", "higher value than the survivors"}
    assert (table["reason"] == "").sum() == 1
    # Without steps all errors are those of the start: the smallest step size wins.
    assert arms[foresee(regression, "sgld", arms, [0] * 12).best].step_size == 1e-6


def test_the_horizon_is_what_the_budget_buys(regression):
    """For each kind of budget, with cheap minibatches; a short horizon needs longer steps."""
    cost = CostTable({("sgld-cv", 100, None): 1e-2, ("sgld-cv", 10, None): 1e-3})
    long, short, in_gradients = (
        tune(regression, "sgld-cv", tuner=Theory(WIDE), budget=budget, cost=cost)
        for budget in (Budget(seconds=100.0), Budget(seconds=0.1), Budget(gradients=2_000))
    )
    # With control variates a step costs two minibatch gradients of 10 data, or one full-batch gradient of 100.
    assert short.best.batch_size == in_gradients.best.batch_size == 10
    assert short.best.step_size > long.best.step_size
    arms = [Arm(row.step_size, row.batch_size) for row in short.rungs.itertuples()]
    steps = [{100: 10, 10: 100}[arm.batch_size] for arm in arms]
    predicted = expected_errors("sgld-cv", arms, laplace_of(regression).directions, steps)
    np.testing.assert_allclose(short.rungs["discrepancy"].astype(float).fillna(np.inf), predicted)


def test_no_stable_arm_is_an_error_with_a_table_and_bad_input_is_one_line(regression):
    def refused(error, match, sampler="sgld", **options):
        with pytest.raises(error, match=match) as raised:
            tune(regression, sampler, **{"tuner": "theory", **options})
        return raised.value

    tuner = Theory(grid=Grid(log10_step_sizes=(0.0, -1.0), batch_fractions=(1.0,)))
    line = "all 2 arms of sgnht are unstable by the theory"
    result = refused(AllDivergedError, line, "sgnht", budget=Budget(steps=10), tuner=tuner).result
    assert result.best is None
    assert list(result.rungs["reason"]) == ["unstable"] * 2
    seconds = {"budget": Budget(seconds=1.0)}
    refused(InputError, r"^sampler: 'mala' is not known to the theory", "mala")
    refused(InputError, r"^clock: 'wall' is not allowed", tuner=Theory(clock="wall"), **seconds)
    refused(InputError, r"^cost: the table has no entry", cost=CostTable(), **seconds)


@pytest.mark.parametrize(("ratio", "warns"), [(0.3, True), (0.7, False), (1.5, False), (3.0, True)])
def test_a_spread_that_is_far_too_narrow_or_too_wide_is_named(regression, monkeypatch, ratio, warns):
    monkeypatch.setattr(foresight, "spread_ratios", lambda *arguments: np.array([1.0, ratio, 1.0]))
    result = tune(regression, "sgld", tuner=Theory(WIDE), budget=Budget(steps=1_000))
    said = [line for line in result.warnings if line.startswith("theory")]
    assert len(said) == warns
    assert all(f"{ratio:g} times the Laplace sd in the worst of 3 directions" in line for line in said)
