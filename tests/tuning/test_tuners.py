"""Every tuner with every published sampler; the paper's grids and heuristic; arms that diverge; held-out rows."""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
from predictive_models import small_pmf
from small_models import (
    check_rungs,
    gaussian_model,
    model_of_prior,
    on_grid,
    small_logistic_model,
    tune,
    without_doubts,
)

from sgtune import Arm, Budget, CostTable, InputError
from sgtune.mode.find import N_DRAWS, map_position
from sgtune.model import Found
from sgtune.model.derived import hold_out
from sgtune.tuning import (
    TUNERS,
    AllDivergedError,
    Grid,
    GridSearch,
    Halving,
    Judge,
    halving_schedule,
    make_arms,
    predictive,
    stein,
)
from sgtune.tuning.horizon import SCORE_ROWS
from sgtune.tuning.judges import Judgement
from sgtune.tuning.rounds import Ledger, Races

AHEAD = ("mamba", "mamba-psd", "mamba-ksd-scaled")
SENSIBLE = (-2.0, -3.0, -4.0)
PUBLISHED = ["sgld", "sgld-cv", "sghmc", "sghmc-cv", "sgnht", "sgnht-cv"]
SMALL = Grid(log10_step_sizes=(-3.0, -4.0, -5.0), batch_fractions=(0.1,), n_leapfrogs=(2,))


@pytest.fixture(scope="module")
def model():
    return small_logistic_model()


@pytest.fixture(scope="module")
def gaussian():
    return gaussian_model([[2.0, -1.2], [-1.2, 1.5]], [0.5, -1.0])


@pytest.mark.parametrize(
    ("tuner", "sampler"), [(tuner, PUBLISHED[i % len(PUBLISHED)]) for i, tuner in enumerate(TUNERS)]
)
def test_every_tuner_tunes_and_counts_its_work(model, tuner, sampler, monkeypatch):
    monkeypatch.setitem(TUNERS, tuner, on_grid(tuner, SMALL))
    result = tune(model, sampler, tuner=tuner, budget=Budget(steps=40))
    leapfrogs = sampler.startswith("sghmc")
    assert (result.model, result.sampler, result.tuner, result.n_data) == ("logistic", sampler, tuner, 2_000)
    assert result.best.batch_size == 200
    if tuner == "heuristic":
        assert result.best == Arm(1 / 2_000, 200, 10 if leapfrogs else None)
        assert (len(result.rungs), result.steps, result.gradient_evaluations) == (0, 0, 0)
        return
    assert result.best.step_size in (1e-3, 1e-4, 1e-5)
    assert result.best.n_leapfrog == (2 if leapfrogs else None)
    check_rungs(result)
    if tuner == "theory":
        assert list(result.rungs["steps"]) == [0] * 3
        # A gradient of each row, and a Hessian, of two gradients' cost for each parameter.
        # Scores at draws of the Laplace approximation say whether it is one.
        assert result.gradient_evaluations == 2_000 * (1 + 2 * model.dimension + N_DRAWS)
        check_seconds(result.seconds)
        return
    assert list(result.rungs["steps"]) == [40] * 3
    assert without_doubts(result) == []
    sampling = 3 * 40 * 200 * (2 if leapfrogs else 1) * (2 if sampler.endswith("-cv") else 1)
    # Judges at the horizon use 1,000 rows, at the draw and at the centre; the paper's use a tenth of the data.
    terms = 2 * SCORE_ROWS if tuner in AHEAD else round(stein().scores["score_fraction"] * 2_000)
    scoring = 0 if TUNERS[tuner].tasks else result.rungs["points"].sum() * terms
    assert result.gradient_evaluations == sampling + scoring
    check_seconds(result.seconds)


def check_seconds(seconds):
    """Work and compilation are measured separately, and sum to no more than the total; a budget in steps has no
    seconds."""
    assert seconds["total"] == pytest.approx(seconds["warm"] + seconds["compilation"])
    working = sum(seconds[part] for part in ("sampling", "gradients", "discrepancy"))
    assert 0 < working <= seconds["warm"]
    assert min(seconds["compilation"], seconds["shared_compilation"]) >= 0
    assert (seconds["nominal"], seconds["overrun"]) == (None, None)


def test_the_papers_budgets_and_grids():
    """App. B.1: R = 1 s, grid search of 5,000 steps, grids of 14 step sizes, 4 batch sizes and 2 leapfrog numbers."""
    by_time = {name for name, tuner in TUNERS.items() if tuner.default == Budget(seconds=1.0)}
    assert by_time == {name for name in TUNERS if name.startswith("mamba")} | {"grid-ksd", "theory"}
    assert TUNERS["grid"].default == Budget(steps=5_000)
    arms = make_arms(800_000, "sghmc-cv")
    steps = [10.0**exponent for exponent in np.arange(-7.5, -0.9, 0.5)]
    grid = product(steps, (800, 8_000, 80_000, 800_000), (5, 10))
    np.testing.assert_allclose(sorted(tuple(arm.values()) for arm in arms), sorted(grid))
    assert len(make_arms(800_000, "sgnht")) == 56


def starts(model, tuner):
    """The offsets of the starts from the MAP, seen after ten steps of negligible length, and the result."""
    seen = []

    def metric(model, arms):
        seen.append(np.stack([arm.points[-1] for arm in arms]))
        return Judgement([1.0] * len(arms), 0.0, 0.0, 0)

    spy = replace(tuner, judge=Judge(lambda seed: metric))
    result = tune(model, "sgld", tuner=spy, budget=Budget(steps=10))
    return seen[0] - np.asarray(map_position(model)), result


def test_grid_search_starts_around_the_map_and_mamba_at_it(model):
    """Grid search starts at MAP + N(0, 0.2^2), independently for every arm, and uses 10% batches."""
    grid = Grid(log10_step_sizes=tuple(np.linspace(-20, -15, 100)), batch_fractions=(0.1,))
    around, result = starts(model, GridSearch(grid=grid))
    assert around.shape == (100, 2)
    assert around.std() == pytest.approx(0.2, rel=4.5 / np.sqrt(2 * around.size))
    assert abs(around.mean()) < 4.5 * 0.2 / np.sqrt(around.size)
    assert abs(np.corrcoef(around.T)[0, 1]) < 0.45
    assert set(result.rungs["batch_size"]) == {200}
    at, _ = starts(model, Halving(pruning_rate=101, grid=grid))
    assert np.abs(at).max() < 1e-5


@pytest.mark.parametrize("sampler", ["sgld", "sghmc", "sgnht"])
def test_diverged_arms_score_none_and_are_named(gaussian, sampler):
    exponents = (9.5, 9.0, 8.5, 8.0, 7.5, 7.0, *SENSIBLE)
    grid = Grid(log10_step_sizes=exponents, batch_fractions=(1.0,), n_leapfrogs=(3,))
    result = tune(gaussian, sampler, tuner=Halving(stein("ksd"), grid=grid), budget=Budget(steps=300))
    check_rungs(result)
    assert result.best.step_size <= 1e-2
    diverged = result.rungs[result.rungs["discrepancy"].isna()]
    assert set(diverged["step_size"]) == {10**exponent for exponent in exponents[:6]}
    assert set(diverged["reason"]) == {"diverged"}


@pytest.mark.parametrize("clock", ["calibrated", "wall"])
def test_all_arms_diverged(gaussian, clock):
    """The error has the records of all arms; of arms without a value, the smallest step sizes survive."""
    grid = Grid(log10_step_sizes=(9.5, 7.0, 8.0), batch_fractions=(0.5, 1.0))
    budget = Budget(seconds=0.01) if clock == "wall" else Budget(steps=300)
    with pytest.raises(AllDivergedError, match=r"^step_size: all 6 arms .*1e\+07.*smaller[^\n]*$") as caught:
        tune(gaussian, "sgld", tuner=Halving(stein("ksd"), grid=grid, clock=clock), budget=budget)
    assert isinstance(caught.value, InputError)
    result = caught.value.result
    assert result.best is None
    rows = result.rungs.set_index(["step_size", "batch_size"])
    assert set(rows.index) == {(10**exponent, n) for exponent in (9.5, 7.0, 8.0) for n in (4, 8)}
    assert set(rows["reason"]) == {"diverged"}
    assert set(rows.index[~rows["pruned"]]) == {(1e7, 4), (1e7, 8)}
    assert any("6 of 6 arms have no value (6 diverged)" in line for line in result.warnings)
    assert result.steps == rows["steps"].sum() > 0
    assert result.seconds["total"] == pytest.approx(result.seconds["warm"] + result.seconds["compilation"])
    assert result.seconds["nominal"] == (pytest.approx(0.06) if clock == "wall" else None)
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["best"] is None


# R = 0.4 s, 10 arms and K = 2 give T = 2 s, with 0.1 s in the first rung and a third of a second in the second.
TEN_ARMS = Grid(log10_step_sizes=(-2.0, -2.5, -3.0, -3.5, -4.0), batch_fractions=(1.0, 0.5))


@pytest.mark.parametrize("slower", [0.01, 1, 100])
def test_every_arm_makes_ten_steps_at_any_cost(gaussian, slower):
    """Steps of 5 and 2.5 ms: 20 and 40 steps in the first rung, and ten if they cost a hundred times as much.

    Steps beyond the budget of a rung are deducted from later rungs.
    """
    seconds = {8: 5e-3 * slower, 4: 2.5e-3 * slower}
    cost = CostTable({("sgld", n, None): each for n, each in seconds.items()})
    result = tune(gaussian, "sgld", tuner=Halving(grid=TEN_ARMS), budget=Budget(seconds=0.4), cost=cost)
    check_rungs(result)
    assert result.seconds["nominal"] == pytest.approx(2.0)
    overrun = dict.fromkeys(result.rungs.set_index(["step_size", "batch_size"]).index, 0.0)
    for row in result.rungs.itertuples():
        spent = {1: 0.1, 2: 0.1 + 2 / 6}[row.rung]
        assert row.steps == max(10, int(spent / seconds[row.batch_size] + 1e-9))
        overrun[row.step_size, row.batch_size] = max(0.0, row.steps * seconds[row.batch_size] - spent)
    if slower < 100:
        assert result.seconds["overrun"] == 0
        assert without_doubts(result) == []
    else:
        # Ten steps take 5 s or 2.5 s, for 5 arms each. The budget is 0.1 s for 7 arms and 0.433 s for 3.
        assert sum(overrun.values()) == pytest.approx(5 * 5 + 5 * 2.5 - 7 * 0.1 - 3 * (0.1 + 2 / 6))
        assert result.seconds["overrun"] == pytest.approx(sum(overrun.values()))
        (line,) = without_doubts(result)
        assert line.startswith("10 of 10 arms made 10 steps")
        assert f"spent {result.seconds['overrun']:.3g} seconds more than its total budget of 2" in line


@pytest.mark.parametrize("eta", [2, 3, 4])
def test_every_schedule_is_algorithm_1(eta):
    longest = 0.3
    for n_arms in range(eta, 301):
        schedule = halving_schedule(n_arms, eta, longest)
        k = max(power for power in range(10) if eta**power <= n_arms)
        total = Fraction(longest) * n_arms * k / sum(eta**i for i in range(k))
        assert schedule.total == pytest.approx(float(total), rel=1e-12)
        assert len(schedule.rungs) == k
        assert schedule.remark == ""
        running, spent, winner = n_arms, Fraction(0), Fraction(0)
        for rung in schedule.rungs:
            assert rung.n_arms == running
            assert rung.amount == pytest.approx(float(total / (running * k)), rel=1e-12)
            assert rung.n_survivors == running // eta >= 1
            spent += running * Fraction(rung.amount)
            winner += Fraction(rung.amount)
            running = rung.n_survivors
        assert running == n_arms // eta**k < eta
        assert spent <= total * (1 + Fraction(1, 10**12)), "never above T"
        # The longest arm's total is R, or slightly more where rounding down leaves fewer arms in a rung.
        assert winner >= Fraction(longest) * (1 - Fraction(1, 10**12))
        if n_arms == eta**k:
            assert float(winner) == pytest.approx(longest, rel=1e-12)


@pytest.mark.parametrize(("n_arms", "eta"), [(1, 2), (1, 3), (2, 3), (3, 4), (299, 300)])
def test_fewer_arms_than_eta_share_the_total_once(n_arms, eta):
    """K = 0: every arm runs for R, one survives, and the remark says why."""
    schedule = halving_schedule(n_arms, eta, 2.5)
    assert schedule.total == pytest.approx(2.5 * n_arms)
    assert [tuple(rung) for rung in schedule.rungs] == [(n_arms, 2.5, 1)]
    assert schedule.remark


@pytest.mark.parametrize(
    ("horizon", "n_steps"),
    [(Budget(steps=7), 7), (Budget(gradients=179), 2), (Budget(gradients=180), 3), (Budget(seconds=1.1), 4)],
)
def test_the_planned_run_has_whole_steps(model, horizon, n_steps):
    """Of 3 leapfrogs with batches of 20, a quarter of a second each."""
    cost = CostTable({("sghmc", 20, 3): 0.25})
    shared = (model, "sghmc", TUNERS["theory"], horizon, horizon, cost, 0, 0, 1, print, Ledger(), False)
    assert Races(*shared).planned(Arm(step_size=1e-3, batch_size=20, n_leapfrog=3)) == n_steps


GRID = Grid((-2.0, -3.0, -4.0, -5.0), (1.0, 0.1), n_leapfrogs=(2,))
HELD = GridSearch(grid=GRID, validation_fraction=0.1)
SIZES = {2_000: 1_800, 200: 180, 450: 405, 45: 40, 500: 450, 50: 45}


def on_fewer(rows):
    """Records of a race with the batch sizes that its chains used on fewer rows."""
    return [{**row, "batch_size": SIZES[row["batch_size"]]} for row in rows]


@pytest.mark.parametrize(
    ("tuner", "sampler", "budget"),
    [
        ("mamba-log-loss", "sgld", Budget(steps=40)),
        ("mamba-log-loss", "sghmc-cv", Budget(gradients=20_000)),
        ("mamba-log-loss", "sghmc-cv", Budget(seconds=0.04)),
        ("mamba-accuracy", "mala", Budget(gradients=20_000)),
        ("grid", "sgld-cv", Budget(gradients=20_000)),
        ("grid", "sgld-cv", Budget(seconds=0.04)),
    ],
)
def test_the_race_equals_a_race_of_the_model_without_the_rows(model, tuner, sampler, budget):
    """Chains start at the mode without the held-out rows; costs and records have the batch sizes of all rows."""
    held = hold_out(model, 0.1)
    grid = replace(GRID, batch_fractions=(1.0,)) if sampler == "mala" else GRID
    plain = on_grid(tuner, grid, pruning_rate=2)
    leapfrogs = 2 if sampler.startswith("sghmc") else None
    seconds = {2_000: 1e-3, 200: 2e-4}
    cost = CostTable({(sampler, size, leapfrogs): each for size, each in seconds.items()})
    of_held = CostTable({(sampler, SIZES[size], leapfrogs): each for size, each in seconds.items()})
    tuner = replace(plain, validation_fraction=0.1)
    found = tune(model, sampler, cost=cost, tuner=tuner, budget=budget, seed=3)
    # A gradient budget pays for batches of all rows, which are a ninth larger.
    budget = Budget(gradients=18_000) if budget.gradients else budget
    wanted = tune(held, sampler, cost=of_held, tuner=plain, budget=budget, seed=3)
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
    budget = Budget(steps=20)
    first, *others = (
        tune(replace(model, test_data=test_data, found=Found()), "sgld", tuner=HELD, budget=budget)
        for test_data in (model.test_data, wrong, None)
    )
    assert [(other.rows, other.best) for other in others] == [(first.rows, first.best)] * 2
    seen = tune(model, "sgld", tuner=GridSearch(grid=GRID), budget=budget)
    assert [row["discrepancy"] for row in seen.rows] != [row["discrepancy"] for row in first.rows]
    # Unless a metric is named: log-loss for classes, RMSE for numbers.
    judge = predictive({"classification": "log-loss", "regression": "rmse"}[model.task])
    assert tune(model, "sgld", tuner=GridSearch(judge, grid=GRID), budget=budget).rows == seen.rows


def test_the_default_grid_is_made_for_all_rows():
    """A thousandth of 10,500 rows is ten; chains on the remaining rows use nine, and the record has ten."""
    model = small_logistic_model(n_data=10_500)
    tuner = Halving(predictive("log-loss"), grid=Grid((-4.0, -5.0)), validation_fraction=0.1)
    result = tune(model, "sgld", tuner=tuner, budget=Budget(steps=10))
    sizes = [10_500, 1_050, 105, 10]
    assert list(result.rungs.query("rung == 1")["batch_size"]) == [size for size in sizes for _ in range(2)]
    assert result.gradient_evaluations == 2 * 10 * (9_450 + 945 + 94 + 9)


def test_a_model_whose_rows_cannot_judge_says_so(model):
    line = r"^validation_fraction: 0\.1 needs a model with predict and as_test; 'logistic' lacks"
    for part in ("as_test", "predict"):
        with pytest.raises(InputError, match=line):
            tune(replace(model, **{part: None}), "sgld", tuner=HELD)
    with pytest.raises(InputError, match=r"^validation_fraction: 0\.0001 of N=2000 rows is none"):
        tune(model, "sgld", tuner=replace(HELD, validation_fraction=1e-4))
    with pytest.raises(InputError, match=r"^tuner: 'mamba-log-loss' judges models with task=classification"):
        tune(small_pmf(), "sgld", tuner="mamba-log-loss")
    # Before anything is searched for.
    fresh = replace(model, as_test=None, found=Found())
    with pytest.raises(InputError, match=line):
        tune(fresh, "sgld", tuner=replace(HELD, judge=predictive("log-loss")))
    assert fresh.found.mode is None


def test_starts_of_the_search_are_also_those_of_the_mode_without_the_held_out_rows():
    model = small_logistic_model()
    tuner = Halving(predictive("log-loss"), grid=Grid((-4.0,), (0.1,)), validation_fraction=0.1)
    tune(model, "sgld", tuner=tuner, budget=Budget(steps=10), n_starts=3)
    assert len(hold_out(model, 0.1).found.searches) == len(model.found.searches) == 3


def test_an_arm_that_starts_beyond_the_support_is_the_only_one_that_is_lost():
    """Sds of 1 about a mode at 1 leave (0, inf) in one of six starts."""
    model = model_of_prior(lambda x: jnp.sum(jnp.log(x) - x), jnp.ones(1), "gamma")
    sizes = tuple(np.linspace(-2, -1, 12))
    tuner = GridSearch(stein("ksd"), grid=Grid(sizes, (1.0,)), start_noise=1.0, batch_fraction=None)
    result = tune(model, "mala", tuner=tuner, budget=Budget(steps=200))
    lost = result.rungs["discrepancy"].isna()
    assert 0 < lost.sum() < len(sizes) / 2
    assert not lost[~result.rungs["pruned"]].any()
