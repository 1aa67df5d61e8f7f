"""Coordinates, grids and pilots of `tune` on posteriors that users bring (`sgtune.study.user_posteriors`)."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from posteriors_of_users import case, moments_of, moments_of_groups
from small_models import effects_model, gaussian_model, small_logistic_model

import sgtune
from sgtune import Arm, Budget, Preconditioner, tune
from sgtune.mode import coordinates, find
from sgtune.mode.coordinates import laplace_preconditioner, precondition
from sgtune.mode.curvature import laplace_sd
from sgtune.mode.find import N_DRAWS, departure
from sgtune.sampling.lockstep import Lockstep
from sgtune.tuning import Grid, Halving, halving_schedule, make_arms, rounds
from sgtune.tuning.foresight import HOPELESS, promising
from sgtune.tuning.grid import fitted_step_sizes
from sgtune.tuning.rounds import Pilot, recentred, run_pilot, shrunk
from sgtune.tuning.tune import _doubts

R, HORIZON = Budget(gradients=20_000), Budget(gradients=200_000)


def eigenvalues_in(preconditioner: Preconditioner, covariance: np.ndarray) -> np.ndarray:
    """Of a covariance in the coordinates of a preconditioner."""
    half = np.linalg.solve(preconditioner.factor, covariance)
    return np.linalg.eigvalsh(np.linalg.solve(preconditioner.factor, half.T))


@pytest.fixture(scope="module")
def raw():
    return case("raw_columns")


@pytest.fixture(scope="module")
def seen(raw):
    """In coordinates of its mode."""
    return precondition(raw, laplace_preconditioner(raw))


@pytest.fixture(scope="module")
def tuned(raw):
    return tune(raw, "sgld-cv", budget=R, horizon=HORIZON)


def test_the_planned_run_has_the_posteriors_sds_on_raw_columns(raw, tuned):
    """The forecast is of the error of sds; means of 5,000 steps of 0.06 have an error of about 0.1 sds."""
    mean, covariance = moments_of("raw_columns")
    chain = tuned.sample(check=False)
    variances, directions = np.linalg.eigh(covariance)
    z = (chain.draws - mean) @ directions / np.sqrt(variances)
    error = np.sqrt(np.mean((z.std(axis=0) - 1) ** 2))
    assert error < 3 * tuned.forecast + 0.05
    assert np.abs(z.mean(axis=0)).max() < 0.5
    again = sgtune.sample(raw, "sgld-cv", **tuned.best, budget=HORIZON)
    np.testing.assert_array_equal(again.draws, chain.draws)


def test_one_pilot_is_enough_where_the_mode_is_right_and_all_that_it_spends_is_counted(raw, tuned):
    (pilot,) = tuned.pilots
    assert not pilot["moved"]
    assert 0.9 < pilot["least_curvature"] <= pilot["largest_curvature"] < 1.1
    assert set(tuned.rungs["race"]) == {1}
    alone = tune(raw, "sgld-cv", budget=R, horizon=HORIZON, rounds=1)
    assert alone.pilots == []
    best = {name: number for name, number in tuned.best.items() if name != "preconditioner"}
    assert best.items() <= alone.best.items()
    steps = int(R.amount / (2 * tuned.best.batch_size))
    assert tuned.steps - alone.steps == pilot["steps"] == steps
    assert tuned.gradient_evaluations - alone.gradient_evaluations > 2 * tuned.best.batch_size * steps


@pytest.mark.parametrize("name", ["raw_columns", "leverage"])
def test_a_pilot_mends_wrong_coordinates_of_a_gaussian_posterior_exactly(name):
    """Also from a subset of rows of which five have nearly all the curvature: a Hessian's change has no noise."""
    model, (mean, covariance) = case(name), moments_of(name)
    right = laplace_preconditioner(model)
    skewed = right.factor @ np.diag([5.0, 1.0, 0.5, 1.0])
    wrong = Preconditioner(right.centre + 5 * right.factor[:, 0], skewed)
    draws = np.random.default_rng(0).multivariate_normal(mean, covariance, 400)

    def mended(given):
        pilot = Pilot(given.coordinates(draws).astype(np.float32), 400, 1, True, 0)
        return recentred(precondition(model, given), pilot, 0, seed=1).preconditioner

    found = mended(wrong)
    np.testing.assert_allclose(eigenvalues_in(found, covariance), 1, atol=0.01)
    np.testing.assert_allclose(found.start, draws[-1], rtol=1e-3)
    # A centre that is far away misleads by itself.
    far = mended(Preconditioner(wrong.centre, right.factor))
    for each in (found, far):
        # The centre is the mean of 400 draws, with a standard error of 0.05 sds.
        assert np.abs(right.coordinates(each.centre[None])).max() < 0.25
    assert mended(right) is None


def test_above_the_largest_factor_one_race_runs_and_pilots_give_a_diagonal(monkeypatch):
    for module in (rounds, coordinates, sys.modules["sgtune.tuning.tune"]):
        monkeypatch.setattr(module, "LARGEST_FACTOR", 2)
    sds, mean = np.array([1e-2, 1.0, 30.0]), np.array([1.0, -2.0, 3.0])
    model = gaussian_model(np.diag(sds**-2.0), mean, n_data=1_000)
    result = tune(model, "sgld-cv", budget=Budget(steps=300), seed=1)
    assert set(result.rungs["race"]) == {1}
    assert result.pilots == []
    wrong = Preconditioner(mean, sds * [5.0, 1.0, 0.2])
    draws = mean + sds * np.random.default_rng(0).standard_normal((400, 3))
    pilot = Pilot(wrong.coordinates(draws).astype(np.float32), 400, 1, True, 0)
    found = recentred(precondition(model, wrong), pilot, 10**9, seed=1)
    np.testing.assert_allclose(found.preconditioner.factor, sds, rtol=1e-2)


@pytest.mark.proof
@pytest.mark.parametrize("seed", [0, 1])
def test_rounds_leave_a_mode_that_misleads(seed):
    """The joint mode of a hierarchy is 16 sds from the mean of log_tau; steps of 0.03 in its coordinates diverge."""
    model, (mean, covariance) = case("groups"), moments_of_groups()
    budgets = {"budget": Budget(gradients=500_000), "horizon": Budget(gradients=5_000_000)}
    result = tune(model, "sgld-cv", **budgets, seed=seed)
    assert len(result.pilots) <= 3
    values = eigenvalues_in(result.best["preconditioner"], covariance)
    assert 0.2 < values.min() < values.max() < 5
    draws = result.sample(check=False, seed=seed).draws
    off = (draws.mean(axis=0) - mean) / np.sqrt(np.diag(covariance))
    assert np.sqrt(np.mean(off**2)) < 0.3
    np.testing.assert_allclose(draws.std(axis=0) / np.sqrt(np.diag(covariance)), 1, atol=0.35)


def test_a_pilot_that_leaves_runs_again_with_smaller_steps(seen):
    arms = make_arms(4_000, "sgld-cv", log10_step_sizes=[1.0], batch_fractions=[0.1])
    chain = Lockstep(seen, "sgld-cv", arms)
    pilot = run_pilot(chain, 400, seed=0)
    assert pilot.attempts == 2
    assert pilot.stays
    assert pilot.steps == 800
    assert chain.steps_done == 0, "the ensemble of the race is as it was"


def test_a_pilot_beside_copies_is_the_one_alone(seen):
    arms = make_arms(4_000, "sgld-cv", log10_step_sizes=[-1.0, -1.5, -2.0], batch_fractions=[0.1])
    race = Lockstep(seen, "sgld-cv", arms)
    race.advance(10)
    alone, copied = (run_pilot(race.narrow([1], width), 200, seed=0) for width in (1, 3))
    assert race.narrow([1], 3).width == 3
    np.testing.assert_allclose(copied.draws, alone.draws, atol=1e-3)


def test_a_second_attempt_has_smaller_steps_in_all_that_is_a_size_of_a_step(seen, monkeypatch):
    """Of AdamMCMC both its drift and the sd of its noise, which the proposals have nearly all their size from."""
    (arm,) = make_arms(4_000, "adam-mcmc", log10_step_sizes=[-3.0], batch_fractions=[0.1], noise_sd=[0.01])
    virials = iter([100.0, 1.0])
    monkeypatch.setattr(rounds, "mean_virial", lambda *_: next(virials))
    pilot = run_pilot(Lockstep(seen, "adam-mcmc", [arm]), 400, seed=0)
    assert pilot.attempts == 2
    steps = np.diff(pilot.draws, axis=0)
    assert steps[steps != 0].std() == pytest.approx(0.001, rel=0.2)


@pytest.mark.parametrize(
    ("knows_the_centre", "most_terms"), [(True, 0), (False, 0), (False, 200_000), (False, 10**7)]
)
def test_hessians_cost_what_is_counted_and_keep_to_their_budget(
    raw, monkeypatch, knows_the_centre, most_terms
):
    right = laplace_preconditioner(raw)
    seen = precondition(raw, right if knows_the_centre else Preconditioner(right.centre, 1.01 * right.factor))
    spent, products = [], rounds.hessian_products

    def counted(model, at, directions, rows):
        spent.append(2 * len(directions) * len(rows["y"]))
        return products(model, at, directions, rows)

    monkeypatch.setattr(rounds, "hessian_products", counted)
    pilot = Pilot(np.random.default_rng(0).normal(size=(100, 4)).astype(np.float32), 100, 1, True, 0)
    found = recentred(seen, pilot, most_terms, seed=1)
    assert found.evaluations == sum(spent)
    # 16 draws, two products each; and all rows at the centre, where they are not known.
    least = 2 * 4 * (2 * 16 * rounds.FEWEST_ROWS + (0 if knows_the_centre else 4_000))
    assert found.evaluations <= max(most_terms, least)


def test_hessians_that_are_not_finite_are_said_and_end_no_tuning(raw, monkeypatch):
    monkeypatch.setattr(rounds, "mean_hessian", lambda *_: (np.full((4, 4), np.nan), 7))
    result = tune(raw, "sgld-cv", budget=R, horizon=HORIZON)
    (pilot,) = result.pilots
    assert (pilot["least_curvature"], pilot["hessian_terms"], pilot["moved"]) == (None, 7, False)
    assert any("the Hessian is not finite" in line for line in result.warnings)


def test_where_the_next_round_dies_what_the_pilot_saw_still_counts(raw, monkeypatch):
    """The pilot stays at a tenth of the winner's step size only, and its coordinates kill all arms."""
    module = sys.modules["sgtune.tuning.tune"]
    own, wild = module.run_pilot, Preconditioner(np.zeros(4), np.full(4, 1e8))
    monkeypatch.setattr(module, "run_pilot", lambda *of: own(*of)._replace(attempts=2))
    monkeypatch.setattr(module, "recentred", lambda *_: rounds.Recentred(wild, 9.0, 1.0, 1.0, 0))
    tuner = Halving(grid=Grid((-1.0, -1.5), batch_fractions=(0.1,)))
    result = tune(raw, "sgld-cv", tuner=tuner, budget=R, horizon=HORIZON)
    assert any(line.startswith("round 2: all arms left") for line in result.warnings)
    assert any(line.startswith("pilot 1:") and "0.1 of its step size" in line for line in result.warnings)
    assert result.best.step_size in (pytest.approx(0.1 * 10**-1.0), pytest.approx(0.1 * 10**-1.5))
    assert result.forecast is None


@pytest.mark.proof
def test_heavy_tails_get_an_arm_that_is_stable():
    model = case("heavy_tails")
    result = tune(model, "sgld-cv", budget=Budget(gradients=30_000), horizon=Budget(gradients=300_000))
    draws = result.best["preconditioner"].coordinates(result.sample(check=False).draws)
    assert np.isfinite(draws).all()
    np.testing.assert_allclose(draws.std(axis=0), 1, atol=0.35)


def test_a_default_grid_begins_at_the_largest_stable_step_size():
    """Just below it the chain of a standard normal stays, just above it leaves."""
    x = np.random.default_rng(1).normal(size=200).astype(np.float32)
    unit = sgtune.define_model(
        "unit",
        log_prior=lambda p: 0.0 * jnp.sum(p),
        log_likelihood=lambda p, batch: -0.5 * (p[0] - batch) ** 2 / 200,
        data=x,
        init=lambda key: jnp.zeros(1),
    )
    for sampler, own in (("sgld", {}), ("sghmc", {"n_leapfrog": 5, "friction": 1e-4})):
        largest, options = 10 ** fitted_step_sizes(sampler, 1.0)[0], {"batch_size": 200, **own}
        inside, beyond = (
            sgtune.sample(unit, sampler, step_size=share * largest, budget=Budget(steps=2_000), **options)
            for share in (0.97, 1.03)
        )
        assert np.abs(inside.draws[-1]) < 1e3
        assert not np.abs(beyond.draws[-1]) < 1e6
    with_noise, without = fitted_step_sizes("sgld", 0.01), fitted_step_sizes("sgld-cv", 0.01)
    assert without[0] - without[-1] == pytest.approx(2)
    assert with_noise[0] - with_noise[-1] == pytest.approx(4)
    assert fitted_step_sizes("ccadl-cv", 1.0, 10_000.0)[0] == pytest.approx(np.log10(2 / 100))
    # In the unit of a position: a sd, and a hundredth of it.
    adam = fitted_step_sizes("adam-mcmc", 1.0, 1e6)
    assert (adam[0], adam[-1], len(adam)) == pytest.approx((-3, -5, 9))
    # Where the curvature allows larger ones, a thermostat does not.
    for sampler, largest in (("sgnht", 0.03), ("sgnht-shang", 0.03**0.5), ("ccadl-cv", 0.03**0.5)):
        assert fitted_step_sizes(sampler, 1.0, 1.0)[0] == pytest.approx(np.log10(largest))


@pytest.mark.parametrize("tuner", ["theory", "mamba"])
def test_thermostats_are_tuned_in_unit_coordinates(tuner):
    """All curvatures are one there, so that the thermostat, and not the posterior, limits the step size: before it was
    known, theory chose an arm whose chains were all lost, and two thirds of a race's arms diverged."""
    model = small_logistic_model(400, 6)
    result = sgtune.tune(
        model, "sgnht-cv", tuner=tuner, budget=Budget(steps=1_000), horizon=Budget(steps=8_000), seed=2
    )
    assert not any("no value" in line or "is the largest" in line for line in result.warnings)
    assert result.best.step_size < 0.031
    chain = result.sample(seed=3)
    sd = chain.draws.std(axis=0)
    # A long run of SGHMC-CV has 1.03 in all directions; the error to expect of 8,000 draws is 0.08.
    np.testing.assert_allclose(sd / laplace_sd(model), 1.03, atol=0.2)


def test_arms_that_cannot_make_ten_steps_do_not_start_and_are_named(raw):
    result = tune(raw, "sgld-cv", budget=Budget(gradients=40_000), preconditioner="none")
    (line,) = (line for line in result.warnings if line.startswith("budget:"))
    assert {row["batch_size"] for row in result.rows} == {40, 400}
    assert "the first rung" in line
    assert "batch_size=4000" in line
    # Theory leaves few arms, whose first rung is as long as R.
    short = tune(raw, "sgld-cv", budget=Budget(gradients=39_000), rounds=1)
    (line,) = (line for line in short.warnings if line.startswith("budget:"))
    assert "R, 3.9e+04 gradients" in line
    assert "batch_size=4000" in line
    assert 4_000 not in {row["batch_size"] for row in short.rows}
    # An explicit grid makes ten steps of every arm.
    tuner = Halving(grid=Grid((-1.0, -2.0, -3.0), batch_fractions=(1.0, 0.1)))
    given = tune(raw, "sgld-cv", tuner=tuner, budget=R, rounds=1)
    assert {row["batch_size"] for row in given.rows} == {4_000, 400}


@pytest.mark.parametrize(
    ("sampler", "currency", "r"), [("sghmc-cv", "gradients", 500_000), ("sgld-cv", "steps", 2_000)]
)
def test_arms_that_a_few_rows_would_throw_out_do_not_start(sampler, currency, r):
    """Five of 50,000 rows have nearly all of the noise: batches of 50 rarely have one, and the best are so large that a
    race of all arms could not pay for ten steps of them in its first rung. Of steps it can, whatever batches cost."""
    model, budgets = (
        case("leverage"),
        {"budget": Budget(**{currency: r}), "horizon": Budget(**{currency: 10 * r})},
    )
    predicted = tune(model, sampler, tuner="theory", **budgets)
    result = tune(model, sampler, **budgets, rounds=1)

    def key(row):
        return row["step_size"], row["batch_size"], row["n_leapfrog"]

    errors = {key(row): row["discrepancy"] or np.inf for row in predicted.rows}
    possible = [arm for arm in errors if currency == "steps" or 10 * 2 * arm[1] * arm[2] <= r]
    most = HOPELESS * min(errors[arm] for arm in possible)
    started = {arm for arm in possible if errors[arm] <= most}
    assert {key(row) for row in result.rows} == started
    (line,) = (line for line in result.warnings if line.startswith("theory:"))
    assert f"{len(possible) - len(started)} of {len(possible)} arms did not start" in line
    assert any(line.startswith("budget:") for line in result.warnings) == (currency == "gradients")
    assert result.best.batch_size >= 5_000
    assert result.gradient_evaluations > predicted.gradient_evaluations > 13 * model.n_data


def test_theory_throws_no_arm_out_where_scores_are_not_a_gaussians():
    """The largest step sizes leave the hierarchy, and theory would race no others."""
    seen = precondition(case("groups"), laplace_preconditioner(case("groups")))
    arms = make_arms(3_000, "sgld-cv", log10_step_sizes=(0.0, -1.0, -2.0), batch_fractions=(0.1,))
    assert departure(seen) > 1
    kept, terms = promising(seen, "sgld-cv", arms, [1_000] * 3)
    assert (kept, terms) == (arms, N_DRAWS * 3_000)
    gaussian = case("leverage")
    assert departure(precondition(gaussian, laplace_preconditioner(gaussian))) == pytest.approx(0, abs=1e-4)
    # A posterior whose scores are twice those of its coordinates differs by |z|^2.
    narrow = laplace_preconditioner(gaussian)
    wide = Preconditioner(narrow.centre, narrow.factor * np.sqrt(2), narrow.start)
    assert departure(precondition(gaussian, wide)) == pytest.approx(1, rel=1e-3)


def test_theory_throws_no_arm_out_where_scores_are_not_finite():
    """N(0, I), cut off where draws of the Laplace approximation are; at the mode nothing shows it."""
    cut = sgtune.define_model(
        "cut",
        log_prior=lambda position: 0.0 * jnp.sqrt(1 - position[0]),
        log_likelihood=lambda position, rows: 0 * rows - position @ position / 2_000,
        data=np.zeros(1_000, np.float32),
        init=lambda key: jnp.zeros(2),
    )
    arms = make_arms(1_000, "sgld", log10_step_sizes=(0.0, -1.0, -4.0), batch_fractions=(0.1,))
    assert np.isnan(departure(cut))
    assert promising(cut, "sgld", arms, [1_000] * 3) == (arms, N_DRAWS * 1_000)


def test_theory_says_where_scores_are_not_a_gaussians():
    budgets = {"budget": Budget(gradients=500_000), "horizon": Budget(gradients=5_000_000)}
    for name, preconditioner, is_doubted in (("groups", "none", True), ("leverage", "laplace", False)):
        result = tune(case(name), "sgld-cv", tuner="theory", preconditioner=preconditioner, **budgets)
        doubts = [line for line in result.warnings if line.startswith("theory: scores at draws")]
        assert len(doubts) == is_doubted


def test_a_grid_of_dead_arms_moves_down_two_decades(raw):
    too_long = 300 * laplace_preconditioner(raw).factor
    result = tune(raw, "sgld-cv", budget=R, horizon=HORIZON, preconditioner=too_long, rounds=1)
    assert sum("run again with 0.01 times their step sizes" in line for line in result.warnings) == 2
    assert list(result.rungs["race"].unique()) == [1, 2, 3]
    assert result.best.step_size < 2e-4
    assert np.isfinite(result.sample(check=False).draws).all()
    dead = [line for line in result.warnings if "have no value" in line]
    assert 2 <= len(dead) <= 5, "one line a rung"


def test_a_winner_at_the_edge_of_a_grid_that_moved_down_is_named(raw):
    tuner, too_long = Halving(grid=Grid(batch_fractions=(0.01,))), 30 * laplace_preconditioner(raw).factor
    result = tune(raw, "sgld-cv", tuner=tuner, budget=R, horizon=HORIZON, preconditioner=too_long, rounds=1)
    last = result.rungs.query("race == 2")
    assert result.best.step_size == last["step_size"].min()
    assert any("is the smallest of its grid" in line for line in result.warnings)


def test_races_share_the_budget_of_three_though_the_first_is_dead_after_a_rung(raw):
    """Two races die in the first of their two rungs, so that two whole ones are paid after them."""
    too_long = 300 * laplace_preconditioner(raw).factor
    result = tune(raw, "sgld-cv", budget=R, horizon=HORIZON, preconditioner=too_long)
    ran = result.rungs.groupby(["race", "step_size"])["steps"].max() * 2 * 40
    assert [ran[race].max() for race in (1, 2)] == [5_000 // 80 * 80] * 2
    assert len(result.rungs["race"].unique()) == 4
    assert ran.sum() <= 3 * halving_schedule(9, 3, 20_000).total


def test_what_a_pilot_shows_does_not_depend_on_earlier_ones():
    own = small_logistic_model(n_data=40_000, dimension=3, seed=5)
    model = precondition(own, Preconditioner(np.zeros(3), np.ones(3)))
    draws = 0.01 * np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
    (first, terms), (again, same) = (rounds.mean_hessian(model, draws, 400_000, 1) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert terms == same


def test_an_arm_that_shrank_beside_its_own_numbers_has_no_neighbours_in_its_grid():
    arms = [Arm(10.0**-i, 10, noise_sd=0.1) for i in (1, 2, 3)]
    assert _doubts("adam-mcmc", arms, arms[0], None) != []
    assert _doubts("adam-mcmc", arms, shrunk(arms[0], 0.1), None) == []


def test_doubts_are_lines_that_say_what_to_change():
    model = small_logistic_model(n_data=1_000, dimension=3, seed=5)

    def warnings_of(log10_step_sizes, **options):
        tuner = Halving(grid=Grid(log10_step_sizes, batch_fractions=(0.1,)))
        return tune(model, "sgld-cv", tuner=tuner, budget=Budget(steps=500), rounds=1, **options).warnings

    assert "is the largest of its grid" in str(warnings_of((-4.0, -5.0, -6.0)))
    assert "no better than that of a chain that never moves" in str(warnings_of((-7.0, -8.0, -9.0)))
    arms = make_arms(1_000, "sgld", log10_step_sizes=(-3.0, -4.0, -5.0), batch_fractions=(0.1,))
    assert _doubts("sgld", arms, arms[1], 0.2) == []
    (line,) = _doubts("sgld", arms, arms[1], 0.5)
    assert line.startswith("horizon: the error expected at its end is 0.5 posterior sds, more than 0.3")
    calm = warnings_of((0.0, -1.0, -2.0), horizon=Budget(steps=20_000))
    assert not any("log10_step_sizes" in line or "horizon" in line for line in calm)


def centred_hierarchy() -> sgtune.Model:
    """The joint density of theta_j ~ N(mu, tau) and tau has no mode: it grows without bound as tau goes to 0."""
    rng = np.random.default_rng(7)
    group = np.repeat(np.arange(8), 40)
    y = rng.normal(size=8)[group] + rng.normal(size=320)
    return sgtune.define_model(
        "centred",
        log_prior=lambda p: (
            -8 * p["log_tau"]
            - 0.5 * jnp.sum((p["theta"] - p["mu"]) ** 2) * jnp.exp(-2 * p["log_tau"])
            - 0.5 * p["mu"] ** 2 / 25
            - 0.5 * p["log_tau"] ** 2
        ),
        log_likelihood=lambda p, batch: -0.5 * (batch["y"] - p["theta"][batch["g"]]) ** 2,
        data={"y": y.astype("f"), "g": group.astype(np.int32)},
        init=lambda key: {"theta": jnp.zeros(8), "mu": jnp.zeros(()), "log_tau": jnp.zeros(())},
    )


def test_a_density_without_a_mode_is_tuned_from_a_position(monkeypatch):
    model = centred_hierarchy()

    def no_search(*_, **__):
        raise AssertionError("no MAP is needed")

    monkeypatch.setattr(find, "find_map", no_search)
    position = jax.tree.map(np.asarray, model.init(None))
    result = tune(model, "sgld-cv", budget=Budget(gradients=100_000), position=position)
    draws = result.sample(Budget(gradients=1_000_000), check=False).draws
    assert np.isfinite(draws).all()
    # Of the flat position (log_tau, mu, theta): group means are known to 1/sqrt(40), whatever tau is.
    y, g = np.asarray(model.data["y"]), np.asarray(model.data["g"])
    means = np.array([y[g == j].mean() for j in range(8)])
    np.testing.assert_allclose(draws[:, 2:].mean(axis=0), means, atol=0.15)
    np.testing.assert_allclose(draws[:, 2:].std(axis=0), 40**-0.5, rtol=0.25)
    several = result.sample(Budget(gradients=100_000), chains=3)
    assert several.diverged == (False,) * 3
    np.testing.assert_allclose(several.draws[:, :, 2:].mean(axis=1), np.tile(means, (3, 1)), atol=0.25)


def test_the_full_factor_after_a_diagonal_has_the_grid_of_a_full_factor(raw):
    result = tune(raw, "sgld-cv", budget=R, horizon=HORIZON, preconditioner=np.full(4, 1e3), rounds=2)
    largest = result.rungs.groupby("race")["step_size"].max()
    assert largest[1] < 1e-11
    assert largest[2] == pytest.approx(2)


def test_a_block_that_the_mean_over_parameters_hides_is_named():
    """With steps of 1.5 over its curvature the sd of u is twice the posterior's; the other 300 sds are right."""
    model = effects_model(np.sqrt(1.25) * np.random.default_rng(11).normal(size=300))
    for share, is_named in ((1.5, True), (0.15, False)):
        grid = Halving(grid=Grid(log10_step_sizes=(np.log10(share / 300),), batch_fractions=(1.0,)))
        result = tune(model, "sgld", tuner=grid, budget=Budget(steps=8_000), preconditioner="none")
        lines = [line for line in result.warnings if line.startswith("position: the error of 'u' expected")]
        assert len(lines) == is_named
