"""What `diagnose` finds: exact draws raise no warning, and a wrong parameter is named, alone and as what it is."""

from dataclasses import replace
from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest
from small_models import effects_model, gaussian_model, model_of_prior, small_logistic_model
from stein_forms import autoregressive

from sgtune import Budget, InputError, Preconditioner, define_model, diagnose, sample
from sgtune.model.positions import blocks_of
from sgtune.sampling.diagnosis import SHARE_OF_RUN, affordable, as_chains, check_run, parameter_names

pytestmark = pytest.mark.optimised

D, N = 5, 1_000
MEAN = np.array([1.0, 0.0, 50.0, -2_000.0, 3.0])
SDS = np.array([1e-3, 1.0, 10.0, 1e3, 0.1])
CORRELATED = (0.9 * np.ones((D, D)) + 0.1 * np.eye(D)) * np.outer(SDS, SDS)


@cache
def correlated_model():
    """N(MEAN, CORRELATED): all correlations are 0.9."""
    precision, mean = jnp.asarray(np.linalg.inv(CORRELATED), jnp.float32), jnp.asarray(MEAN, jnp.float32)
    return model_of_prior(
        lambda p: -0.5 * (p["w"] - mean) @ precision @ (p["w"] - mean), {"w": jnp.zeros(D)}, "correlated"
    )


def exact(n, seed):
    return MEAN + np.random.default_rng(seed).standard_normal((n, D)) @ np.linalg.cholesky(CORRELATED).T


@cache
def skewed_model():
    """Three logarithms of gamma variables of shape 2, and 300 independent N(0, 1)."""
    return model_of_prior(
        lambda p: jnp.sum(2 * p["log"] - jnp.exp(p["log"])) - 0.5 * jnp.sum(p["z"] ** 2),
        {"log": jnp.zeros(3), "z": jnp.zeros(300)},
        "skewed",
    )


def exact_skewed(n, seed, chains=2):
    rng = np.random.default_rng(seed)
    return {
        "log": np.log(rng.gamma(2.0, size=(chains, n, 3))),
        "z": rng.standard_normal((chains, n, 300)),
    }


@cache
def hierarchy():
    """`effects_model` of 1,000 groups of one datum, and the data."""
    rng = np.random.default_rng(0)
    y = 0.7 + rng.standard_normal(N) + 0.5 * rng.standard_normal(N)
    return effects_model(y), y


def exact_hierarchy(n, seed):
    """Independent draws: u given y, and then each z given u and y."""
    _, y = hierarchy()
    rng = np.random.default_rng(seed)
    precision = 0.01 + N / 1.25
    u = y.sum() / 1.25 / precision + rng.standard_normal(n) / precision**0.5
    z = (4 * y + u[:, None]) / 5 + rng.standard_normal((n, N)) / 5**0.5
    return {"u": u, "z": z}


def named(diagnosis):
    """The problems by parameter, of those that have any."""
    problems = diagnosis.table["problems"]
    return problems[problems != ""].to_dict()


def test_exact_draws_raise_no_warning():
    """Forty calls, of 200 to 1,000 draws: with false alarms of 1% for sds and for means, more than three have a
    probability of 0.01."""
    found = [diagnose(correlated_model(), exact(200, seed)).warnings for seed in range(25)]
    found += [diagnose(skewed_model(), exact_skewed(200, seed)).warnings for seed in range(13)]
    found += [diagnose(hierarchy()[0], exact_hierarchy(1_000, seed)).warnings for seed in range(2)]
    assert sum(map(bool, found)) <= 3, found


def test_a_matrix_of_few_draws_does_not_explain_its_own():
    """Six exact draws for each of ten skewed parameters: with C of the same draws sds would be 7% too large."""
    log_gamma = model_of_prior(lambda p: jnp.sum(p - jnp.exp(p)), jnp.zeros(10))
    draws = np.log(np.random.default_rng(0).gamma(1.0, size=(40, 2, 30, 10)))
    ratios = [diagnose(log_gamma, part).table["sd_ratio"].mean() for part in draws]
    assert np.mean(ratios) < 1 + 3 * np.std(ratios) / 40**0.5


def test_slow_but_exact_chains_are_named_only_slow():
    """An autoregression of N(0, 1) whose draws have an autocorrelation time of 99."""
    names = set()
    for seed in range(3):
        rng = np.random.default_rng(seed)
        log = np.log(rng.gamma(2.0, size=(1, 1_000, 3)))
        diagnosis = diagnose(skewed_model(), {"log": log, "z": autoregressive(rng, 1_000, 300, 0.98)[None]})
        assert diagnosis.warnings[-1].startswith("slow: z[")
        names |= set(named(diagnosis).values())
    assert names == {"slow"}


CHANGES = {
    "too wide": lambda x, mean, sd: mean + 2 * (x - mean),
    "too narrow": lambda x, mean, sd: mean + 0.5 * (x - mean),
    "off centre": lambda x, mean, sd: x + 0.5 * sd,
}


@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.parametrize("place", [0, 3])
def test_a_wrong_parameter_is_named_and_no_other_that_is_correlated_with_it(kind, place):
    draws = exact(1_000, 7)
    draws[:, place] = CHANGES[kind](draws[:, place], MEAN[place], SDS[place])
    diagnosis = diagnose(correlated_model(), draws)
    assert named(diagnosis) == {f"w[{place}]": kind}
    assert diagnosis.table.index[0] == f"w[{place}]"
    assert [line.partition(":")[0] for line in diagnosis.warnings] == [kind]
    assert named(diagnose(correlated_model(), draws, tolerance=2.0)) == {}
    worst = diagnosis.table.iloc[0]
    expected = {"too wide": (2.0, 0.0), "too narrow": (0.5, 0.0), "off centre": (1.0, 0.5)}[kind]
    assert worst["sd_ratio"] == pytest.approx(expected[0], rel=0.08)
    assert worst["mean_error"] == pytest.approx(expected[1], abs=0.15)
    assert worst["mean"] == pytest.approx(draws[:, place].mean(), abs=1e-4 * SDS[place], rel=1e-6)


def test_the_parameter_whose_sd_plain_sgld_doubles_is_named_first():
    """The step is right for 1,000 local parameters and too large for the global one."""
    model, y = hierarchy()
    arm = {"step_size": 1.5e-3, "batch_size": 100, "budget": Budget(steps=10_000), "kept_draws": 2_000}
    start = {"u": jnp.float32(y.mean()), "z": jnp.asarray(y, jnp.float32)}
    chain = sample(model, "sgld", **arm, position=start)
    assert chain.draws[:, 0].std() * (0.01 + N / 1.25) ** 0.5 > 1.6
    for diagnosis in (chain.check(), chain.check(most_terms=100_000)):
        assert diagnosis.table.index[0] == "u"
        assert diagnosis.table["problems"].iloc[0] == "too wide"
        assert diagnosis.warnings[0].startswith("too wide: u has ")
        assert set(named(diagnosis).values()) <= {"too wide", "slow", "too wide, slow"}


def test_fresh_rows_leave_the_statistics_as_they_are():
    """Scores of few rows, with control variates: the same virials and errors, up to their own noise."""
    model = small_logistic_model(n_data=4_000, dimension=3)
    chain = sample(
        model, "mala", step_size=2e-3, batch_size=4_000, budget=Budget(steps=4_000), kept_draws=1_000
    )
    exactly = diagnose(model, chain)
    assert (exactly.score_rows, exactly.n_scored) == (4_000, 1_000)
    # The score of each draw, and for 200 of them the log density.
    assert exactly.data_terms == 1_000 * 4_000 + 200 * 4_000
    rate = chain.statistics["acceptance_rate"]
    assert exactly.acceptance_rate == rate
    assert diagnose(model, chain.draws, acceptance_rate=0.25).acceptance_rate == 0.25
    for shown in (repr(exactly), chain.check(forecast=0.123)._repr_html_()):
        assert f"{rate:.0%} of proposals accepted" in shown
    assert "expected 0.12" in shown
    most = 200_000
    cheaply = diagnose(model, chain, most_terms=most)
    assert cheaply.score_rows < 1_000
    assert most / 2 < cheaply.data_terms <= most
    assert not exactly.warnings
    assert not cheaply.warnings
    table = exactly.table.join(cheaply.table, rsuffix="_cheap")
    for name in ("sd_ratio", "mean_error"):
        error = 4 * np.hypot(table[f"{name}_se"], table[f"{name}_se_cheap"])
        assert (np.abs(table[name] - table[f"{name}_cheap"]) < error).all()


def test_the_check_of_a_run_is_cheap():
    model = small_logistic_model(n_data=2_000, dimension=2)
    chain = sample(model, "sgld", step_size=1e-4, batch_size=100, budget=Budget(steps=30_000), kept_draws=500)
    assert chain.data_terms == 100 * 30_000
    least = 2 * 200 * 1_000 + 2_000 + 200 * 256
    assert least / 2 < check_run([chain, chain])[0].data_terms <= least
    rich = replace(chain, data_terms=10**8)
    assert affordable([rich], SHARE_OF_RUN) == 5 * 10**6
    assert check_run(rich)[0].score_rows == 2_000
    short = sample(model, "sgld", step_size=1e-4, batch_size=100, budget=Budget(steps=10))
    expected = "check: draws: 10 of a chain's 10 draws are finite; at least 20 must be"
    assert check_run(short) == (None, [expected])


def test_a_check_asked_for_costs_no_more_than_the_run_or_than_is_said():
    model = small_logistic_model(n_data=20_000)
    for n_steps in (10_000, 100_000):
        chain = sample(
            model, "sgld", step_size=1e-5, batch_size=100, budget=Budget(steps=n_steps), kept_draws=1_000
        )
        assert chain.check().data_terms <= chain.data_terms
        assert chain.check(most_terms=None).score_rows == 20_000
    draws = np.random.default_rng(0).standard_normal((40, 100, model.dimension))
    for most in (2_000_000, 30_000_000):
        assert diagnose(model, draws, most_terms=most).data_terms <= most


def test_a_check_that_fails_leaves_the_run(monkeypatch):
    def fail(*args, **options):
        raise np.linalg.LinAlgError("SVD did not\nconverge")

    monkeypatch.setattr("sgtune.sampling.diagnosis.diagnose", fail)
    chain = sample(correlated_model(), "sgld", step_size=1e-9, batch_size=4, budget=Budget(steps=30))
    assert check_run(chain) == (None, ["check: SVD did not converge"])


def test_coordinates_of_a_preconditioner_tell_correlated_parameters_apart():
    """300 parameters with correlations of 0.5, too many for their draws: only L L' knows which one is too wide."""
    covariance = 0.5 * np.ones((300, 300)) + 0.5 * np.eye(300)
    model = gaussian_model(np.linalg.inv(covariance), np.zeros(300))
    coordinates = Preconditioner(np.zeros(300), np.linalg.cholesky(covariance))
    draws = np.random.default_rng(3).standard_normal((1_000, 300)) @ coordinates.factor.T
    assert not diagnose(model, draws, preconditioner=coordinates).warnings
    draws[:, 5] *= 2
    found = diagnose(model, draws, preconditioner=coordinates)
    assert named(found) == {"position[5]": "too wide"}
    assert found.table["sd_ratio"].iloc[0] == pytest.approx(2, rel=0.1)


def test_a_frozen_parameter_is_too_narrow():
    draws = exact_skewed(300, 1)
    draws["z"][:, :, 17] = 0.0
    diagnosis = diagnose(skewed_model(), draws)
    assert named(diagnosis) == {"z[17]": "too narrow"}
    worst = diagnosis.table.loc["z[17]"]
    assert (worst["virial"], worst["sd"], worst["ess"]) == (0, 0, 1)


def test_draws_of_density_zero_and_draws_that_are_not_finite_are_counted():
    model = model_of_prior(lambda p: jnp.where(p < 2.0, -0.5 * p**2, -jnp.inf), jnp.zeros(()), "bounded")
    draws = np.random.default_rng(0).standard_normal(500)
    draws[:50], draws[50:150] = 3.0, np.nan
    diagnosis = diagnose(model, draws[:, None])
    assert diagnosis.not_finite == pytest.approx(0.2)
    assert diagnosis.impossible == pytest.approx(0.125, abs=0.03)
    assert [line.partition(":")[0] for line in diagnosis.warnings][:2] == ["diverged", "impossible"]
    assert diagnosis.n_draws == 400
    # Neither density nor score is a number.
    roots = model_of_prior(lambda p: -0.5 * jnp.sqrt(p) ** 2, jnp.ones(()), "roots")
    draws = np.random.default_rng(0).exponential(2.0, 500)
    draws[::2] *= -1
    assert diagnose(roots, draws[:, None]).impossible == pytest.approx(0.5, abs=0.1)


def test_a_bound_that_any_row_sets_is_seen_unless_fewer_rows_are_asked_for():
    """y ~ U(0, p): draws below the largest y are impossible, and it is none of the first rows."""
    y = np.linspace(0, 1, 1_000, endpoint=False, dtype=np.float32)
    model = define_model(
        "uniform",
        log_prior=lambda p: -0.5 * p**2,
        log_likelihood=lambda p, rows: jnp.where(rows < p, -jnp.log(p), -jnp.inf),
        data=y,
        init=lambda key: 2.0 + jnp.zeros(()),
        shuffle_seed=None,
    )
    draws = np.concatenate([np.full(100, 0.9), np.random.default_rng(0).uniform(1, 1.01, 300)])[:, None]
    assert diagnose(model, draws).impossible == pytest.approx(0.25, abs=0.02)
    assert diagnose(model, draws, most_terms=500_000).impossible == 0


def test_the_error_of_sds_has_that_of_few_draws():
    """Of n independent draws sds are wrong by 1 / sqrt(2 n), whether all have scores or 1,000 of them."""
    model = model_of_prior(lambda p: -0.5 * jnp.sum(p**2), jnp.zeros(300))
    for n in (200, 4_000):
        draws = [np.random.default_rng(seed).standard_normal((n, 300)) for seed in range(6)]
        squares = [diagnose(model, each).sd_error ** 2 for each in draws]
        error = np.std(squares) / len(squares) ** 0.5
        assert np.mean(squares) == pytest.approx(1 / (2 * n), abs=4 * error)
        assert error < 0.2 / (2 * n)


def test_a_chain_that_died_is_left_out_and_chains_that_disagree_are_slow():
    draws = np.stack([exact(300, 1), exact(300, 2), np.full((300, D), np.nan)])
    diagnosis = diagnose(correlated_model(), draws)
    assert (diagnosis.n_draws, diagnosis.not_finite) == (600, pytest.approx(1 / 3))
    assert [line.partition(":")[0] for line in diagnosis.warnings] == ["diverged"]
    # One that died on its way leaves the others whole; more than half of a run is worth all chains' as many.
    draws[2, :40] = exact(40, 3)
    assert diagnose(correlated_model(), draws).n_draws == 600
    draws[2, :200] = exact(200, 3)
    assert diagnose(correlated_model(), draws).n_draws == 600
    draws[1, :, 1] += 3 * SDS[1]
    diagnosis = diagnose(correlated_model(), draws[:2])
    assert "slow" in named(diagnosis)["w[1]"]
    assert diagnosis.table.loc["w[1]", "rhat"] > 1.5


def test_a_chain_without_scores_leaves_the_others_theirs():
    """Frozen where the density is zero, as after a wide start beyond a bound."""
    model = model_of_prior(
        lambda p: -0.5 * jnp.sum(p**2) + 0 * jnp.sum(jnp.sqrt(p + 5.0)), jnp.zeros(2), "bound"
    )
    draws = np.random.default_rng(0).standard_normal((3, 300, 2))
    draws[1] = -6.0
    diagnosis = diagnose(model, draws)
    assert diagnosis.impossible == pytest.approx(1 / 3, abs=0.02)
    assert (diagnosis.n_draws, diagnosis.n_scored) == (900, 600)
    with pytest.raises(InputError, match="0 of a chain's 300 scored draws have a finite score"):
        diagnose(model, draws[1:2])


def test_draws_of_every_form_are_the_same():
    model = skewed_model()
    tree = exact_skewed(60, 4, chains=3)
    flat = np.concatenate([tree["log"], tree["z"]], axis=2).astype(np.float32)
    np.testing.assert_array_equal(as_chains(model, tree), flat)
    np.testing.assert_array_equal(as_chains(model, flat), flat)
    np.testing.assert_array_equal(as_chains(model, flat[0]), flat[:1])
    one = {name: leaf[0] for name, leaf in tree.items()}
    np.testing.assert_array_equal(as_chains(model, one), flat[:1])
    scalar = model_of_prior(lambda p: -0.5 * p**2, jnp.zeros(()))
    row = np.arange(4, dtype=np.float32)
    assert as_chains(scalar, row).shape == as_chains(scalar, row[:, None]).shape == (1, 4, 1)
    assert as_chains(scalar, np.zeros((3, 4))).shape == (3, 4, 1)
    matrix = model_of_prior(lambda p: -0.5 * jnp.sum(p**2), jnp.zeros((2, 3)))
    flat = np.arange(24, dtype=np.float32).reshape(4, 6)
    np.testing.assert_array_equal(as_chains(matrix, flat.reshape(4, 2, 3)), flat[None])
    np.testing.assert_array_equal(as_chains(matrix, flat), flat[None])


def test_of_chains_of_different_lengths_the_last_draws_count():
    model, arm = model_of_prior(lambda p: -0.5 * p @ p, jnp.zeros(2)), {"step_size": 0.1, "batch_size": 4}
    long, short = (sample(model, "sgld", **arm, budget=Budget(steps=steps)) for steps in (30, 20))
    np.testing.assert_array_equal(as_chains(model, [long, short]), [long.draws[10:], short.draws])


def test_names_are_in_the_order_of_flat_positions():
    position = {"b": [jnp.zeros(()), jnp.zeros(2)], "a": jnp.zeros((1, 2))}
    model = model_of_prior(lambda p: 0.0 * jnp.sum(p["a"]), position)
    assert parameter_names(model) == ["a[0,0]", "a[0,1]", "b.0", "b.1[0]", "b.1[1]"]
    assert list(blocks_of(model)) == ["a", "b.0", "b.1"]
    assert parameter_names(model_of_prior(lambda p: -(p**2), jnp.zeros(()))) == ["position"]


@pytest.mark.parametrize(
    ("draws", "options", "words"),
    [
        (np.zeros((30, 4)), {}, ("draws", "(30, 4)", "(n, 5)")),
        (np.zeros(5), {}, ("draws", "(5,)")),
        ({"v": np.zeros((30, 5))}, {}, ("draws", "(30, 5)")),
        ("draws", {}, ("draws", "not allowed")),
        ([], {}, ("draws", "not allowed")),
        (exact(19, 0), {}, ("draws", "19", "at least 20")),
        (np.full((50, 5), np.nan), {}, ("draws", "0 of", "at least 20")),
        (exact(30, 0), {"tolerance": -1}, ("tolerance", "-1")),
        (exact(30, 0), {"most_terms": 0}, ("most_terms", "0")),
        (exact(30, 0), {"constrained": True}, ("constrained", "True", "unconstrain")),
    ],
)
def test_bad_arguments_are_one_line(draws, options, words):
    with pytest.raises(InputError) as caught:
        diagnose(correlated_model(), draws, **options)
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)
