"""Races: what a rung adds, survivors, draws that are kept and judged, arms without a value, and random streams."""

from dataclasses import replace
from threading import Barrier, get_ident

import numpy as np
import pytest
from small_models import check_rungs, gaussian_model, small_logistic_model, tune

from sgtune import Arm, Budget, CostTable, sample
from sgtune.mode.curvature import laplace_scale
from sgtune.mode.find import map_position
from sgtune.model.posterior import scores
from sgtune.samplers import resolve_sampler
from sgtune.sampling.lockstep import Lockstep
from sgtune.sampling.thinning import Reservoir
from sgtune.stein import ksd
from sgtune.tuning import Grid, Halving, Judge, at_horizon, race
from sgtune.tuning.judges import ArmDraws, Judgement, stein_metric
from sgtune.tuning.race import Racer

SENSIBLE = 10**-5.7
ABSURD = (-1.0, -2.0, -2.5, -3.0, -8.0, -9.0, -10.0, -11.0)
ONE_SENSIBLE = Grid((*ABSURD[:4], -5.7, *ABSURD[4:]), batch_fractions=(1.0,))


@pytest.fixture(scope="module")
def narrow():
    """A Gaussian posterior with sds near 1e-2, as narrow as with large data: steps above 1e-4 diverge."""
    return gaussian_model(1e4 * np.array([[2.0, -1.2], [-1.2, 1.5]]), [0.5, -1.0])


@pytest.fixture(scope="module")
def model():
    return small_logistic_model()


@pytest.mark.parametrize("budget", [Budget(steps=900), Budget(seconds=0.09)])
def test_a_rung_adds_its_amount_to_those_before_it(narrow, budget):
    """Algorithm 1: 27, 9 and 3 arms share T / K in each of K = 3 rungs, with T = R M K / (1 + 3 + 9)."""
    grid = Grid(tuple(np.linspace(-4.2, -9.4, 27)), batch_fractions=(1.0,))
    cost = CostTable({("sgld", narrow.n_data, None): 1e-4})
    result = tune(narrow, "sgld", tuner=Halving(grid=grid), budget=budget, cost=cost)
    total = 900 * 27 * 3 / 13
    amounts = [total / (3 * n_arms) for n_arms in (27, 9, 3)]
    assert sorted(set(result.rungs["rung"])) == [1, 2, 3]
    for row in result.rungs.itertuples():
        assert row.steps == pytest.approx(sum(amounts[: row.rung]), abs=row.rung)


@pytest.mark.parametrize("clock", ["calibrated", "wall"])
def test_both_clocks_keep_the_same_winner(narrow, by_steps, clock):
    """A step takes 10 microseconds: 1,500 steps in the first rung."""
    by_steps(1e-5)
    tuner = Halving(at_horizon("ksd"), grid=ONE_SENSIBLE, clock=clock)
    cost = CostTable({("sgld", narrow.n_data, None): 1e-5})
    result = tune(narrow, "sgld", tuner=tuner, budget=Budget(seconds=0.06), cost=cost)
    assert result.best.step_size == pytest.approx(SENSIBLE)
    check_rungs(result)
    parts = ("sampling", "gradients", "discrepancy")
    assert sum(result.seconds[part] for part in parts) <= result.seconds["warm"]
    assert result.seconds["warm"] + result.seconds["compilation"] == pytest.approx(result.seconds["total"])
    if clock == "calibrated":
        assert result.seconds["overrun"] == 0
    assert result.seconds["nominal"] == pytest.approx(0.06 * 9 * 2 / 4)


def judged_by(valued, log10_step_sizes, batch_fractions=(0.1,), n_leapfrogs=(3,), **options):
    """Successive halving whose judge gives the values ``valued(number of the rung, arms)``; and what it saw of each."""
    seen = []

    def metric(model, arms):
        seen.append([arm._replace(points=np.array(arm.points)) for arm in arms])
        # As a judge gives them whose draws are float32.
        return Judgement([np.float32(value) for value in valued(len(seen), arms)], 0.0, 0.0, 0)

    grid = Grid(tuple(log10_step_sizes), batch_fractions=batch_fractions, n_leapfrogs=n_leapfrogs)
    return Halving(judge=Judge(lambda seed: metric), grid=grid, **options), seen


def by_ksd(model):
    return lambda rung, arms: stein_metric("ksd")(model, arms).values


def alone(model, sampler, row):
    """The chain of the arm in a row of the rungs' table, run alone and without a break."""
    n_leapfrog = int(row.n_leapfrog) if resolve_sampler(sampler)[0].has_leapfrog else None
    arm = {"step_size": row.step_size, "batch_size": row.batch_size, "n_leapfrog": n_leapfrog}
    # With the random streams of a race.
    return sample(model, sampler, **arm, budget=Budget(steps=row.steps), seed=5, replicate="race 0")


@pytest.mark.parametrize(("sampler", "fractions"), [("sghmc-cv", (0.05,)), ("sgnht", (0.05, 1.0))])
def test_survivors_continue_their_chains(model, sampler, fractions):
    """Momentum, thermostat, minibatches and draws equal the same arm run alone without a break."""
    exponents = np.arange(-2.5, -7, -0.5)
    tuner, judged = judged_by(by_ksd(model), exponents, fractions, thin=1, points=10**6)
    result = tune(model, sampler, tuner=tuner, budget=Budget(steps=60), seed=5)
    assert [len(arms) for arms in judged] == [9 * len(fractions), 3 * len(fractions)]
    for number, arms in enumerate(judged, 1):
        rows = result.rungs[result.rungs["rung"] == number].itertuples()
        for row, arm in zip(rows, arms, strict=True):
            assert row.samples == row.steps
            draws = arm.points
            # A chain that is not finite at its end has no points.
            assert len(draws) == row.points == (0 if row.reason == "diverged" else row.steps)
            if row.reason == "diverged":
                continue
            made = alone(model, sampler, row).draws
            # An exploding chain amplifies rounding, in which programs of different width differ.
            calm = np.cumsum(~(np.abs(made) < 1e3).all(1)) == 0
            assert calm.all() or row.step_size > 1e-3
            np.testing.assert_allclose(draws[calm], made[calm], rtol=1e-3, atol=1e-4)
    steps = [result.rungs[result.rungs["rung"] == number]["steps"].unique() for number in (1, 2)]
    assert [list(one) for one in steps] == [[15], [60]]


def test_kept_draws_are_bounded_in_every_rung(narrow, monkeypatch):
    """Also if a chain has more steps than draws that can be kept."""
    most = 200 * 4 * narrow.dimension * 9
    monkeypatch.setattr(race, "KEPT_BYTES", most)
    grid = Grid(tuple(np.linspace(-6, -6.4, 9)), batch_fractions=(1.0,))
    result = tune(narrow, "sgld", tuner=Halving(grid=grid, points=50), budget=Budget(steps=4_000))
    for _, rung in result.rungs.groupby("rung"):
        assert 4 * narrow.dimension * rung["samples"].sum() <= most
        assert (rung["steps"] > 2 * rung["samples"]).all()
        assert (rung["samples"] >= rung["points"]).all()


@pytest.mark.parametrize("thin", [1, 10])
@pytest.mark.parametrize("kept", [10**9, 100])
def test_points_stand_for_all_draws_thinned_kept_or_not(model, monkeypatch, kept, thin):
    """The KSD estimates steps // thin points, for any cap on points and any memory limit on kept draws."""
    monkeypatch.setattr(race, "KEPT_BYTES", kept * 4 * model.dimension * 3)
    tuner, judged = judged_by(by_ksd(model), (-4.0, -4.2, -4.4), points=20, thin=thin)
    result = tune(model, "sgld", tuner=tuner, budget=Budget(steps=2_000))
    last = result.rungs[result.rungs["rung"] == result.rungs["rung"].max()]
    for arm, row in zip(judged[-1], last.itertuples(), strict=True):
        assert (arm.n_draws, arm.n_steps) == (row.steps // thin, row.steps)
        assert len(arm.points) == len(arm.steps) == row.points < arm.n_draws
        assert (arm.steps % thin == 0).all()


def test_arms_of_one_value_or_without_any_rank_by_step_size_and_cost():
    """The smallest step size ranks first, and among equal step sizes the cheapest arm: not the order of the grid, which
    begins with the largest step size."""
    values = [np.inf, 2.0, np.inf, np.nan, 1.0, 2.0, 0.0, 0.0]
    hope = [(1e-3, 800), (1e-5, 1), (1e-2, 8), (1e-3, 80), (1e-9, 1), (1e-6, 9), (1e-1, 1), (1e-2, 1)]
    assert race.rank_arms(values, hope) == [7, 6, 4, 5, 1, 3, 0, 2]


def test_infinite_arms_survive_only_for_want_of_finite_ones():
    """The first arms have no finite value. Three survive: the two finite ones, and the smallest step size of the
    others."""
    exponents = np.linspace(-2, -3, 9)
    values = [[np.inf, np.nan, 2.0, np.inf, np.nan, 1.0, np.inf, np.inf, np.inf], [1.0, np.nan, 2.0]]
    tuner, _ = judged_by(lambda rung, arms: values[rung - 1], exponents, (1.0,))
    result = tune(gaussian_model(np.eye(2), np.zeros(2)), "sgld", tuner=tuner, budget=Budget(steps=40))
    last = result.rungs[result.rungs["rung"] == 2]
    assert list(np.log10(last["step_size"])) == pytest.approx([exponents[5], exponents[2], exponents[8]])
    assert result.best.step_size == pytest.approx(10 ** exponents[5])
    check_rungs(result)


def test_if_all_survivors_diverge_the_best_arm_pruned_last_wins(model):
    """A tuner still finds an arm if all arms that were stable in one rung diverge in the next."""
    values = [range(1, 10), [np.inf] * 3]
    tuner, seen = judged_by(lambda rung, arms: values[rung - 1], np.arange(-3.0, -7.5, -0.5))
    result = tune(model, "sgld", tuner=tuner, budget=Budget(steps=60))
    assert [len(arms) for arms in seen] == [9, 3]
    # The first three of nine survived; the fourth is the best of the others.
    assert result.best.step_size == pytest.approx(10**-4.5)
    assert any("none of the 1 arms of the last rung has a finite value" in line for line in result.warnings)


def test_ksd_judges_rank_by_the_ksd_of_all_draws(model):
    """Estimated from a subset of 50 of 1,000 draws, whose own KSD is several times larger."""
    points = np.random.default_rng(0).normal(0, 0.05, (50, 2)).astype(np.float32)
    points += np.asarray(map_position(model))
    arm, gradients = ArmDraws(points, np.arange(1, 51), 1_000, 1_000, 1.0), scores(model, points)
    for name, scale in (("identity", "identity"), ("laplace", laplace_scale(model))):
        [found] = stein_metric("ksd", name)(model, [arm]).values
        assert found == pytest.approx(ksd(points, gradients, scale, n_draws=1_000), rel=1e-6)
        assert found < 0.8 * ksd(points, gradients, scale)


def test_a_share_of_the_horizon_is_of_the_steps_really_made(narrow):
    """Ten steps of 1 ms cost more than the first rung's budget, and the judge looks ahead from these ten."""
    tuner, seen = judged_by(lambda rung, arms: [1.0] * len(arms), (-6.0, -6.1, -6.2), (1.0,))
    cost = CostTable({("sgld", 8, None): 1e-3})
    tune(narrow, "sgld", tuner=tuner, budget=Budget(seconds=0.002), horizon=Budget(seconds=0.1), cost=cost)
    assert [arm.share for arm in seen[0]] == pytest.approx([0.1] * 3)


STEPS, EXPONENTS = 40, (-3.0, -4.0, -5.0)


def draws_seen(model, *, prefer, **options) -> tuple[dict, list[np.ndarray]]:
    """The choice of a race whose judge prefers the arm with index ``prefer``, and all draws that the judge saw."""
    values = [place != prefer for place in range(len(EXPONENTS))]
    tuner, seen = judged_by(lambda rung, arms: values, EXPONENTS, thin=1, points=1_000)
    result = tune(model, "sgld", tuner=tuner, budget=Budget(steps=STEPS), **options)
    return dict(result.best), [arm.points for arm in seen[0]]


def test_tuners_see_the_same_chains_and_other_seeds_replicates_and_final_chains_have_their_own(model):
    """The winning draws are selected among many: a final chain that repeats them would be too good by selection."""
    (best, one), (other_best, other) = (draws_seen(model, prefer=prefer, seed=2) for prefer in (0, 2))
    assert best != other_best
    np.testing.assert_array_equal(one, other)
    for options in ({"seed": 3}, {"seed": 2, "replicate": 1}):
        others = draws_seen(model, prefer=0, **options)[1]
        assert (np.array(one) != np.array(others)).any(axis=2).all()
    chain = sample(model, "sgld", **best, budget=Budget(steps=STEPS), seed=2)
    assert len(one[0]) == len(chain.draws)
    assert (one[0] != chain.draws).any(axis=1).all()


@pytest.mark.parametrize(
    ("cores", "most", "n_threads"), [(1, 8, 1), (None, 8, 1), (2, 8, 2), (3, 2, 2), (64, 8, 3)]
)
def test_ensembles_advance_on_several_cores_and_their_draws_do_not_depend_on_it(
    model, monkeypatch, cores, most, n_threads
):
    """Each of three arms is an ensemble of its own. The threads wait for each other, so that all must take part."""
    alone = replace(model, max_lockstep=1)
    monkeypatch.setattr(race, "MOST_THREADS", 1)
    _, one_by_one = draws_seen(alone, prefer=0, seed=2)
    monkeypatch.setattr(race, "MOST_THREADS", most)
    together, seen, advance = Barrier(n_threads), set(), Lockstep.advance_to

    def meeting(ensemble, *arguments):
        if get_ident() not in seen:
            seen.add(get_ident())
            together.wait(timeout=3_600)
        return advance(ensemble, *arguments)

    monkeypatch.setattr(race, "cores", lambda: cores)
    monkeypatch.setattr(Lockstep, "advance_to", meeting)
    np.testing.assert_array_equal(draws_seen(alone, prefer=0, seed=2)[1], one_by_one)
    assert len(seen) == n_threads


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("place", [0, -1])
def test_an_error_in_one_ensemble_stops_the_others(model, monkeypatch, error, place):
    """One arm fails when all have started. The others wait for this, and then do not advance."""
    advance, started, advanced = Lockstep.advance_to, Barrier(3), []

    def failing(ensemble, n_steps, kept, stop, done):
        started.wait(timeout=3_600)
        if np.isclose(ensemble.arms[0].step_size, 10.0 ** EXPONENTS[place]):
            raise error("no room for draws")
        assert stop.wait(timeout=3_600)
        advanced.append(advance(ensemble, n_steps, kept, stop, done))

    monkeypatch.setattr(race, "cores", lambda: 3)
    monkeypatch.setattr(Lockstep, "advance_to", failing)
    with pytest.raises(error, match="no room"):
        draws_seen(replace(model, max_lockstep=1), prefer=0, seed=2)
    assert not advanced


def test_late_draws_of_a_short_chain_are_at_most_as_many_as_they_stand_for():
    for seed in range(40):
        reservoir = Reservoir(seed, "race", 0, thin=10)
        _, new = reservoir.extend(40, 1_000)
        racer = Racer(0, Arm(1e-3, 10), draws=np.zeros((len(new), 2), np.float32), steps=40)
        late = racer.judged("sgld", reservoir, 500, 1.0, since=10)
        assert 0 < len(late.points) <= late.n_draws


def test_with_restarts_a_rung_has_fresh_momenta_and_is_judged_by_its_own_draws_alone(model):
    """Of SGNHT, which keeps its momentum from step to step; positions stay where they are."""

    def seen_with(restarts):
        options = {"pruning_rate": 2, "thin": 1, "points": 1_000, "restarts": restarts}
        tuner, seen = judged_by(lambda rung, arms: [0.0] * len(arms), (-4, -4.5, -5, -5.5), **options)
        begun, original = [], Lockstep.begin

        def begin(ensemble, keys, positions, **options):
            begun.append((np.asarray(positions), getattr(ensemble, "states", None)))
            original(ensemble, keys, positions, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Lockstep, "begin", begin)
            tune(model, "sgnht", tuner=tuner, budget=Budget(steps=60))
        return seen, begun

    (first, second), begun = seen_with(True)
    (same, kept), (_,) = seen_with(False)
    n_first = first[0].n_steps
    assert all(np.array_equal(one.points, other.points) for one, other in zip(first, same, strict=True))
    (_, (start, before)) = begun
    assert np.array_equal(start, np.asarray(before.position))
    for own, other in zip(second, kept, strict=True):
        assert np.array_equal(own.steps, np.arange(n_first + 1, own.n_steps + 1))
        assert own.n_draws == len(own.points) == own.n_steps - n_first
        assert np.array_equal(other.steps, np.arange(1, own.n_steps + 1))
        assert not np.allclose(own.points[0], other.points[n_first], rtol=1e-6)
