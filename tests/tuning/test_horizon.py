"""Races that forecast the horizon, on a Gaussian where theory gives the error of every arm."""

import numpy as np
import pytest
from scipy.signal import lfilter
from small_models import check_rungs, gaussian_model

from sgtune import Arm, Budget, tune
from sgtune.mode import curvature
from sgtune.mode.curvature import laplace_scale
from sgtune.mode.find import map_position
from sgtune.model.positions import flatten
from sgtune.model.posterior import scores
from sgtune.sampling.lockstep import compiled_programs
from sgtune.stein.mean_errors import mean_error
from sgtune.stein.quadratic import stretch_of
from sgtune.support.errors import InputError
from sgtune.theory.laplace import directions_of
from sgtune.theory.linear import expected_errors, stationary_variances
from sgtune.tuning import Grid, Halving
from sgtune.tuning.horizon import ESCAPED, FORESIGHT, at_horizon, horizon_metric, mean_virial
from sgtune.tuning.judges import ArmDraws

# The grid has frozen, slow, good, biased and escaping arms.
GRID = Grid(log10_step_sizes=(-1.0, -2.0, -2.5, -3.0, -3.5, -4.0, -5.0, -7.0), batch_fractions=(1.0, 0.3))
STEPS = 3_000
JUDGES = ("virial", "psd", "ksd")


# With 20 directions, one race is close to the mean over races.
SDS = np.geomspace(250, 20, 20) ** -0.5


@pytest.fixture(scope="module")
def model():
    return gaussian_model(np.diag(SDS**-2.0), np.linspace(-1, 1, 20), n_data=100)


def race(model, discrepancy="virial", *, steps=STEPS, **options):
    return tune(
        model,
        "sgld",
        tuner=Halving(at_horizon(discrepancy), grid=GRID),
        budget=Budget(steps=steps),
        **options,
    )


def errors_of(model, result, n_steps):
    """The theoretical errors of all arms, and of the chosen arm."""
    first = result.rungs[result.rungs["rung"] == 1]
    arms = [Arm(row.step_size, row.batch_size) for row in first.itertuples()]
    errors = expected_errors("sgld", arms, directions_of(model), [n_steps] * len(arms))
    return errors, errors[arms.index(result.best)]


def bias_of(model, arm):
    """xi_white of the arm's stationary distribution."""
    directions = directions_of(model)
    ratios = np.sqrt(stationary_variances("sgld", arm, directions) * directions.curvature)
    return np.sqrt(np.mean((ratios - 1) ** 2))


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("discrepancy", "most"), [("virial", 1.5), ("psd", 2), ("ksd", 2)])
def test_the_chosen_arm_is_as_good_as_theory_knows_any(model, discrepancy, most, seed):
    """PSD and KSD also include the error of the mean, so they prefer longer steps than errors of sds do."""
    result = race(model, discrepancy, seed=seed)
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
        draws = lfilter([1], [1, -memory], rng.standard_normal((200, dimension)), axis=0)
        draws = (draws * np.sqrt(1 - memory**2) / np.sqrt(np.linspace(1, 4, dimension))).astype(np.float32)
        gradients = scores(model, draws)
        of_means = mean_error(draws, stretch, scale, n_draws=400)
        for share, least in ((0.5, 0.5), (0.01, 0.1)):
            arm = ArmDraws(draws, steps, 200, 400, share)
            value, of_sds = (
                FORESIGHT[name](model, "all directions")(arm, gradients, stretch)
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
        return FORESIGHT[discrepancy](model, "all directions")(arm, gradients[:n], stretch_of(steps, n))

    assert value(9, 0.1) == value(9, 1.0) > 0
    # Ten draws are enough for a forecast.
    assert value(10, 0.1) != value(10, 1.0)


@pytest.mark.parametrize("discrepancy", ["virial", "moments", "psd"])
def test_marginals_have_the_covariance_also_above_200_dimensions(discrepancy, monkeypatch):
    """Independent draws with the right marginal sds, of a posterior with correlations of 0.9: each parameter given all
    others is about ten times narrower."""
    covariance = np.full((210, 210), 0.9) + 0.1 * np.eye(210)
    draws = np.random.default_rng(0).standard_normal((1_000, 210)).astype(np.float32)
    stretch = stretch_of(np.arange(1, 1_001), 1_000)

    def value(target):
        model = gaussian_model(np.linalg.inv(covariance), np.zeros(210), n_data=100)
        arm = ArmDraws(draws, np.arange(1, 1_001), 1_000, 1_000, 1.0)
        return np.sqrt(FORESIGHT[discrepancy](model, target)(arm, scores(model, draws), stretch))

    assert value("marginals") < 0.2
    assert value("all directions") > 1
    # Where the factor would be too large, the two are the same again.
    monkeypatch.setattr(curvature, "LARGEST_FACTOR", 205)
    assert value("marginals") == pytest.approx(value("all directions"), rel=0.02)


@pytest.mark.parametrize("discrepancy", JUDGES)
def test_an_escaped_arm_is_called_so_and_never_chosen(model, discrepancy):
    """The draws of the arm are finite, but their distance grows by half in every step."""
    result = race(model, discrepancy, steps=300)
    table = result.rungs
    escaped = table[table["reason"].str.startswith("escaped: virial ")]
    assert 0.01 in set(escaped["step_size"].round(6))
    assert escaped["discrepancy"].isna().all()
    assert escaped["pruned"].all()
    assert any("escaped: virial" in line for line in result.warnings)
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


def test_a_longer_horizon_prefers_arms_with_smaller_errors_at_its_end(model):
    """Theory prefers long steps for a short run, and small steps for a run a hundred times as long.

    So does the race, from the same draws of the short run: on average, its choice for the long run has the smaller
    error at the end of the long run.
    """
    powers = (-2.5, -3.0, -3.5)
    arms = [Arm(10.0**power, 100) for power in powers]
    short, long = (expected_errors("sgld", arms, directions_of(model), [n] * 3) for n in (300, 30_000))
    assert (np.argmin(short), np.argmin(long)) == (0, 2)
    tuner = Halving(at_horizon(), grid=Grid(log10_step_sizes=powers, batch_fractions=(1.0,)))

    def chosen(seed, **horizon):
        result = tune(model, "sgld", tuner=tuner, seed=seed, budget=Budget(steps=300), **horizon)
        return long[[arm.step_size for arm in arms].index(result.best.step_size)]

    gains = np.array([chosen(seed) - chosen(seed, horizon=Budget(steps=30_000)) for seed in range(16)])
    assert gains.mean() > 2 * gains.std(ddof=1) / 4


def test_a_second_race_compiles_nothing():
    """The dimension is of no other test, so that all programs are from here."""
    model = gaussian_model(np.diag(np.geomspace(20, 250, 17)), np.zeros(17), n_data=100)
    result = race(model, steps=300)
    there = compiled_programs()
    again = race(model, steps=300)
    assert compiled_programs() == there
    assert again.seconds["compilation"] < 0.1 * again.seconds["total"]
    assert again.seconds["shared_compilation"] > 0
    assert len(again.rungs) == len(result.rungs)
    # Other survivors may need narrower ensembles, of 1, 2, 4 or 8 arms of each batch size.
    for seed in range(1, 5):
        race(model, steps=300, seed=seed, horizon=Budget(steps=3_000))
    assert len(compiled_programs() - there) <= 2 * 3


def test_unusable_draws_have_no_value(model):
    """An arm without points and an arm that is not finite have no value, and do not affect a third arm."""
    mode = flatten(map_position(model))
    points = (mode + np.random.default_rng(0).normal(0, 0.1, (50, 20))).astype(np.float32)
    good = ArmDraws(points, np.arange(1, 51), 50, 50, 1.0)
    lost = good._replace(points=np.full_like(points, np.nan))
    empty = good._replace(points=points[:0], steps=good.steps[:0])
    for discrepancy in JUDGES:
        metric = horizon_metric(discrepancy, 0)
        together = metric(model, [empty, good, lost])
        assert together.values == [np.inf, metric(model, [good]).values[0], np.inf]
        assert np.isfinite(together.values[1])
        # All 100 rows for each of 50 draws.
        assert together.gradient_evaluations == 50 * 100
    assert horizon_metric("virial", 0)(model, [empty]).values == [np.inf]


def test_minibatch_scores_have_fresh_rows_in_every_rung_and_count_twice(model):
    mode = flatten(map_position(model))
    points = (mode + np.random.default_rng(0).normal(0, 0.1, (50, 20))).astype(np.float32)
    arm = ArmDraws(points, np.arange(1, 51), 50, 50, 1.0)
    few, all_rows = horizon_metric("virial", 0, score_rows=10), horizon_metric("virial", 0)
    judgement = few(model, [arm])
    assert judgement.gradient_evaluations == 50 * 10 * 2
    assert few(model, [arm]).values == judgement.values
    later = few(model, [arm._replace(n_steps=51)])
    assert later.values != judgement.values
    # Scores of 10 of 100 rows with control variates change the value, but not by much.
    assert judgement.values[0] == pytest.approx(all_rows(model, [arm]).values[0], rel=0.5)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            {"horizon": Budget(gradients=9)},
            r"^horizon: \{'gradients': 9\} is not allowed; it must be in steps",
        ),
        (
            {"horizon": Budget(seconds=1.0)},
            r"^horizon: \{'seconds': 1.0\} is not allowed; it must be in steps",
        ),
    ],
)
def test_a_bad_horizon_gets_one_line(model, arguments, line):
    with pytest.raises(InputError, match=line) as raised:
        race(model, **arguments)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"discrepancy": "fssd"}, r"^discrepancy: 'fssd' is not known; allowed: "),
        ({"target": "some"}, r"^target: 'some' is not known"),
        ({"score_rows": 0}, r"^score_rows: 0 is not allowed"),
    ],
)
def test_a_bad_judge_gets_one_line(arguments, line):
    with pytest.raises(InputError, match=line):
        at_horizon(**arguments)
