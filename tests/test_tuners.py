"""Every tuner on every published sampler; what grids and the heuristic are; arms that diverge or make no sample."""

from dataclasses import replace

import numpy as np
import pytest
from small_models import check_rungs, gaussian_model, small_logistic_model

from sgtune import Budget, CostTable, tune
from sgtune.errors import InputError
from sgtune.reference.map import map_position
from sgtune.tuning import TUNERS, AllDivergedError, Settings, make_arms
from sgtune.tuning.metrics import Judgement

PUBLISHED = ["sgld", "sgld-cv", "sghmc", "sghmc-cv", "sgnht", "sgnht-cv"]
SMALL = Settings(
    log10_step_sizes=(-3.0, -4.0, -5.0), batch_fractions=(0.1,), n_leapfrogs=(2,), batch_fraction=0.1
)


@pytest.fixture(scope="module")
def model():
    return small_logistic_model()


@pytest.fixture(scope="module")
def gaussian():
    return gaussian_model([[2.0, -1.2], [-1.2, 1.5]], [0.5, -1.0])


@pytest.mark.parametrize("sampler", PUBLISHED)
@pytest.mark.parametrize("tuner", TUNERS)
def test_every_tuner_tunes_every_sampler(model, sampler, tuner):
    result = tune(model, sampler, tuner=tuner, budget=Budget(steps=40), settings=SMALL)
    leapfrogs = sampler.startswith("sghmc")
    assert (result.model, result.sampler, result.tuner, result.n_data) == ("logistic", sampler, tuner, 2_000)
    assert result.best.batch_size == 200
    if tuner == "heuristic":
        assert result.best == (1 / 2_000, 200, 10 if leapfrogs else None)
        assert (len(result.rungs), result.steps, result.gradient_evaluations) == (0, 0, 0)
        return
    assert result.best.step_size in (1e-3, 1e-4, 1e-5)
    assert result.best.n_leapfrog == (2 if leapfrogs else None)
    check_rungs(result)
    assert list(result.rungs["steps"]) == [40] * 3
    assert result.warnings == []
    sampling = 3 * 40 * 200 * (2 if leapfrogs else 1) * (2 if sampler.endswith("-cv") else 1)
    scoring = 0 if TUNERS[tuner].tasks else result.rungs["points"].sum() * round(SMALL.score_fraction * 2_000)
    assert result.gradient_evaluations == sampling + scoring
    parts = ("sampling", "gradients", "discrepancy", "compilation")
    assert 0 < sum(result.seconds[part] for part in parts) <= result.seconds["total"]


def test_the_papers_budgets_and_grids():
    """App. B.1: R = 1 s, grids of 14 step sizes, 4 batch sizes and 2 leapfrog numbers; grid search of 5,000 steps."""
    by_time = {name for name, tuner in TUNERS.items() if tuner.default == Budget(seconds=1.0)}
    assert by_time == {name for name in TUNERS if name.startswith("mamba-")} | {"grid-ksd"}
    assert TUNERS["grid"].default == Budget(steps=5_000)
    arms = make_arms(800_000, "sghmc-cv")
    assert len(arms) == len(set(arms)) == 112
    assert sorted({arm.batch_size for arm in arms}) == [800, 8_000, 80_000, 800_000]
    assert {arm.n_leapfrog for arm in arms} == {5, 10}
    exponents = np.log10(sorted({arm.step_size for arm in arms}))
    np.testing.assert_allclose(exponents, np.arange(-7.5, -0.9, 0.5))
    assert len(make_arms(800_000, "sgnht")) == 56
    settings = Settings()
    assert (settings.pruning_rate, settings.batch_fraction, settings.start_noise) == (3, 0.1, 0.2)
    assert (settings.n_leapfrog, settings.clock) == (10, "calibrated")


@pytest.mark.parametrize(("n_data", "expected"), [(2_000, 200), (1_999, 199), (10, 1)])
@pytest.mark.parametrize("sampler", ["sgld-cv", "sghmc", "sgnht"])
def test_heuristic_is_one_over_n_at_a_tenth(n_data, expected, sampler):
    model = small_logistic_model(n_data=n_data)
    result = tune(model, sampler, tuner="heuristic")
    assert result.best == (1 / n_data, expected, 10 if sampler == "sghmc" else None)


def starts(model, monkeypatch, tuner, settings):
    """Where each arm stood after one step of no length, and the arms' batch sizes."""
    seen = []

    def metric(model, points, n_draws):
        seen.append(np.concatenate(points))
        return Judgement([1.0] * len(points), 0.0, 0.0, 0)

    monkeypatch.setitem(TUNERS, "spy", replace(TUNERS[tuner], metric=lambda seed, settings: metric))
    result = tune(model, "sgld", tuner="spy", budget=Budget(steps=1), settings=settings)
    return seen[0] - np.asarray(map_position(model)), result


def test_grid_search_starts_around_the_map_and_mamba_at_it(model, monkeypatch):
    """MAP + N(0, 0.2^2), another draw for every arm, at 10% batches."""
    settings = Settings(
        log10_step_sizes=tuple(np.linspace(-20, -15, 100)), batch_fractions=(0.1,), pruning_rate=101
    )
    around, result = starts(model, monkeypatch, "grid", settings)
    assert around.shape == (100, 2)
    assert around.std() == pytest.approx(0.2, rel=4.5 / np.sqrt(2 * around.size))
    assert abs(around.mean()) < 4.5 * 0.2 / np.sqrt(around.size)
    assert abs(np.corrcoef(around.T)[0, 1]) < 0.45
    assert set(result.rungs["batch_size"]) == {200}
    at, _ = starts(model, monkeypatch, "mamba-ksd", settings)
    assert np.abs(at).max() < 1e-5


def test_few_arms_share_the_budget_once_and_the_output_says_so(model):
    settings = replace(SMALL, log10_step_sizes=(-3.0, -5.0))
    result = tune(model, "sgld", budget=Budget(steps=30), settings=settings)
    assert list(result.rungs["steps"]) == [30, 30]
    (remark,) = result.warnings
    assert "2 arms" in remark
    assert "3" in remark
    assert sum(~result.rungs["pruned"]) == 1


@pytest.mark.parametrize("sampler", PUBLISHED)
@pytest.mark.parametrize(
    ("n_steps", "tuner"), [(300, "mamba-ksd"), (12, "mamba-ksd-scaled"), (12, "mamba-fssd")]
)
def test_diverged_arms_score_none_and_are_named(gaussian, sampler, n_steps, tuner):
    """After 300 steps they are not finite; after 3 (in the first rung) they may be, but beyond any use."""
    exponents = (9.5, 9.0, 8.5, 8.0, 7.5, 7.0, -2.0, -3.0, -4.0)
    settings = Settings(log10_step_sizes=exponents, batch_fractions=(0.5,), n_leapfrogs=(3,))
    result = tune(gaussian, sampler, tuner=tuner, budget=Budget(steps=n_steps), settings=settings)
    check_rungs(result)
    assert result.best.step_size <= 1e-2
    if n_steps == 300:
        diverged = result.rungs[result.rungs["discrepancy"].isna()]
        assert set(diverged["step_size"]) == {10**exponent for exponent in exponents[:6]}
        assert set(diverged["reason"]) == {"diverged"}
        assert len(result.warnings) == 6


def test_infinite_arms_survive_only_for_want_of_finite_ones(gaussian, monkeypatch):
    """Values of no use in the first places: three go on, of which two are finite, and one wins."""
    exponents = np.linspace(-2, -3, 9)
    values = [[np.inf, np.nan, 2.0, np.inf, np.nan, 1.0, np.inf, np.inf, np.inf], [1.0, np.nan, 2.0]]

    def metric(model, points, n_draws):
        return Judgement(values[len(points) == 3], 0.0, 0.0, 0)

    monkeypatch.setitem(TUNERS, "spy", replace(TUNERS["mamba-ksd"], metric=lambda seed, settings: metric))
    settings = Settings(log10_step_sizes=tuple(exponents), batch_fractions=(0.5,))
    result = tune(gaussian, "sgld", tuner="spy", budget=Budget(steps=8), settings=settings)
    last = result.rungs[result.rungs["rung"] == 2]
    assert list(np.log10(last["step_size"])) == pytest.approx([exponents[5], exponents[2], exponents[0]])
    assert result.best.step_size == pytest.approx(10 ** exponents[5])
    check_rungs(result)


@pytest.mark.parametrize("clock", ["calibrated", "wall"])
def test_all_arms_diverged(gaussian, clock):
    settings = Settings(log10_step_sizes=(9.5, 7.0, 8.0), batch_fractions=(0.5, 1.0), clock=clock)
    budget = Budget(seconds=0.01) if clock == "wall" else Budget(steps=300)
    with pytest.raises(AllDivergedError, match=r"^step_size: all 6 arms .*1e\+07.*smaller[^\n]*$") as caught:
        tune(gaussian, "sgld", tuner="mamba-ksd", budget=budget, settings=settings)
    assert isinstance(caught.value, InputError)


def test_arms_without_time_for_a_sample_are_named_and_do_not_survive(model):
    settings = Settings(log10_step_sizes=(-3.0, -4.0, -5.0, -6.0, -7.0), batch_fractions=(0.1, 0.01))
    cost = CostTable({("sgld", 200, None): 10.0, ("sgld", 20, None): 1e-4})
    result = tune(model, "sgld", budget=Budget(seconds=0.02), cost=cost, settings=settings)
    check_rungs(result)
    slow = result.rungs[(result.rungs["batch_size"] == 200)]
    assert (slow["steps"] == 0).all()
    assert slow["pruned"].all()
    assert set(slow["reason"]) == {"no sample in its time"}
    assert sum("no sample" in line for line in result.warnings) == 5


COST = CostTable({("sgld-cv", n, None): cost for n, cost in ((2_000, 1e-4), (20, 2e-5))})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "budget"),
    [("sgld", Budget(steps=1_000)), ("sgld-cv", Budget(seconds=0.05))],
)
def test_the_cap_on_points_prunes_as_all_points_do(model, sampler, budget):
    """The same winner, and arms pruned otherwise are ties: within 20% of the cut when judged on every point."""

    def run(points):
        settings = Settings(batch_fractions=(1.0, 0.01), points=points, thin=1, score_fraction=1.0)
        return tune(model, sampler, tuner="mamba-ksd-scaled", budget=budget, cost=COST, settings=settings)

    capped, full = run(50), run(10**6)
    assert capped.rungs["points"].max() == 450
    assert (full.rungs["points"] == full.rungs["steps"]).all()
    assert capped.best == full.best
    for number in full.rungs["rung"].unique():
        few, every = (
            result.rungs[result.rungs["rung"] == number].set_index(["step_size", "batch_size"])
            for result in (capped, full)
        )
        cut = every["discrepancy"][~every["pruned"]].max()
        others = set(few.index[~few["pruned"]]) - set(every.index[~every["pruned"]])
        # With as many steps for every arm not even ties are decided otherwise.
        assert not others or budget.seconds
        assert all(every["discrepancy"].get(arm, np.inf) < 1.2 * cut for arm in others)


def test_a_tuner_that_needs_test_data_says_so(gaussian):
    with pytest.raises(InputError, match=r"test_data[^\n]*$"):
        tune(
            gaussian,
            "sgld",
            tuner="grid",
            budget=Budget(steps=5),
            settings=replace(SMALL, batch_fraction=0.5),
        )
