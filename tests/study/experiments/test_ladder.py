"""The Gaussians of the ladder against dense float64 algebra, expected errors against chains, and the choices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from job_pieces import Calls

from sgtune import Arm, metrics
from sgtune.mode.find import map_position
from sgtune.model.posterior import negative_hessian, scores
from sgtune.sampling.lockstep import Lockstep
from sgtune.study.experiments import ladder
from sgtune.study.pipeline.parts import Parts
from sgtune.study.pipeline.plan import ladder_settings
from sgtune.tuning import TUNERS, Heuristic, make_arms

DIMENSION = 10
SIZES = [(kind, dimension) for kind in ladder.KINDS for dimension in (2, 13)]
SECTION = {"seconds": 0.01, "points": 20, "replicates": 2}


def dense(kind, dimension):
    """The known quantities, Q, and the model."""
    known = ladder.gaussian(kind, dimension, seed=3)
    return known, known.across(np.eye(dimension)).T, ladder.ladder_model(known, seed=3)


@pytest.mark.parametrize(("kind", "dimension"), SIZES)
def test_the_posterior_has_the_mode_the_precision_and_the_noise_that_are_known(kind, dimension, monkeypatch):
    monkeypatch.setattr(ladder, "CHUNK", 5)
    known, q, model = dense(kind, dimension)
    np.testing.assert_allclose(q.T @ q, np.eye(dimension), atol=1e-12)
    rows = np.random.default_rng(0).standard_normal((4, dimension))
    np.testing.assert_allclose(known.along(rows), rows @ q, atol=1e-12)
    precision = q * known.precision @ q.T
    hessian = negative_hessian(model, map_position(model))
    np.testing.assert_allclose(hessian, precision, rtol=0, atol=1e-6 * precision.max())
    # Scores are in units of the root of the precision, so float32 errors of the sum of rows are far below one.
    score = scores(model, np.zeros((1, dimension), np.float32))[0]
    assert np.abs(known.along(score) * known.sd).max() < 1e-3
    position = np.random.default_rng(1).standard_normal(dimension).astype(np.float32)
    gradients = jax.jacrev(lambda at: model.log_likelihood(at, model.data))(jnp.asarray(position))
    expected = np.asarray(model.data, np.float64) - q * known.eigenvalues @ q.T @ position
    np.testing.assert_allclose(gradients, expected, rtol=1e-4, atol=1e-5 * known.eigenvalues.max())
    variances = known.along(np.asarray(gradients)).var(axis=0, ddof=1)
    np.testing.assert_allclose(variances, known.eigenvalues, rtol=1e-4)
    variances = np.random.default_rng(2).uniform(0.5, 2, (dimension, 3))
    expected = np.stack([np.diag(q * column @ q.T) for column in variances.T], axis=1)
    np.testing.assert_allclose(known.marginal_variances(variances), expected, rtol=1e-10)


def test_curvatures_are_what_the_kinds_say():
    axis = ladder.gaussian("axis", 100)
    assert axis.eigenvalues.max() / axis.eigenvalues.min() == pytest.approx(1000)
    np.testing.assert_array_equal(axis.eigenvalues, ladder.gaussian("rotated", 100).eigenvalues)
    np.testing.assert_allclose(ladder.gaussian("axis-narrow", 100).precision, 1_000 * axis.precision)
    known, q, _ = dense("equicorrelated", 13)
    covariance = np.linalg.inv(q * known.eigenvalues @ q.T)
    sd = np.sqrt(np.diag(covariance))
    correlations = np.where(np.eye(13), 1, ladder.CORRELATION)
    np.testing.assert_allclose(covariance / np.outer(sd, sd), correlations, atol=1e-10)
    assert known.precision.min() == pytest.approx(1.001 * ladder.N_DATA * known.eigenvalues.min())
    # A rotation mixes all parameters, at any D: no entry of Q is above sqrt(2 / D).
    some = ladder.gaussian("rotated", 1_000).along(np.eye(1_000)[:20])
    assert np.abs(some).max() <= np.sqrt(2 / 1_000) * (1 + 1e-9)


@pytest.mark.parametrize("kind", ["axis", "rotated"])
def test_the_oracles_error_is_xi_white(kind):
    known, q, _ = dense(kind, 13)
    draws = known.across(1.3 * known.sd * np.random.default_rng(5).standard_normal((700, 13))) + 0.01
    expected = metrics.xi_white(np.cov(draws.T, bias=True), q / known.precision @ q.T)
    assert ladder.xi_along(known, draws) == pytest.approx(expected, rel=1e-6)
    assert ladder.xi_along(known, np.zeros((9, 13))) == 1
    for none in (np.empty((0, 13)), np.full((3, 13), np.nan)):
        assert ladder.xi_along(known, none) == np.inf


def test_expected_errors_are_those_of_chains():
    """Mean squared errors and mean marginal variances of 24 chains of one arm, which share minibatches."""
    known, arm = ladder.gaussian("rotated", DIMENSION), Arm(1e-4, 100, 5)
    expected = ladder.expected_of(known, "sghmc-cv", [arm], seconds=0.02)[arm]
    copies = [Arm(**{**arm, "step_size": arm.step_size * (1 + 1e-9 * i)}) for i in range(24)]
    chains = Lockstep(ladder.ladder_model(known), "sghmc-cv", copies, replicate="chains")
    draws = chains.advance(expected.steps)
    squares = np.array([ladder.xi_along(known, draws[:, place]) ** 2 for place in range(24)])
    assert abs(squares.mean() - expected.error**2) < 4 * squares.std(ddof=1) / np.sqrt(24)
    ratios = draws.var(axis=0) / known.marginal_variances(1 / known.precision[:, None])[:, 0]
    roots = np.sqrt(ratios.mean(axis=0))
    noise = ratios.std(axis=0, ddof=1) / (2 * roots * np.sqrt(24))
    measured = metrics.xi_rel(roots, np.ones(DIMENSION))
    assert abs(measured - expected.marginal) < 4 * noise.max()


def test_steps_are_what_the_clock_buys_and_the_extremes_are_named():
    known = ladder.gaussian("axis", DIMENSION)
    arms = [Arm(0.1, 100), Arm(1e-12, 100), Arm(3e-4, 100), Arm(3e-4, 10)]
    found = list(ladder.expected_of(known, "sgld", arms, 0.1).values())
    unstable, still, good, small = found
    # 5 us and 0.1 us a row: 15 us and 6 us.
    assert (good.steps, small.steps) == (6_666, 16_666)
    assert ladder.expected_of(known, "sgld-cv", arms[2:3], 0.1)[arms[2]].steps == 4_000
    assert np.isinf([unstable.error, unstable.marginal]).all()
    assert still.error == pytest.approx(1, abs=1e-3)
    # An arm with too large sds is not frozen.
    assert small.error > good.error
    assert [one.escaped for one in found] == [True, False, False, False]
    assert [one.frozen for one in found] == [False, True, False, False]


class Takes(Heuristic):
    """A tuner that takes one arm."""

    def arms(self, n_data, sampler, curvature=1.0):
        return [{"first": Arm(0.01, 100), "last": Arm(1e-9, 100)}[self.name]]


def test_a_record_has_every_arm_what_each_tuner_chose_and_counts_the_edges(monkeypatch):
    """One tuner takes the largest step size of the grid, one a smaller one than the grid has."""
    for name in ("first", "last"):
        monkeypatch.setitem(TUNERS, name, type(name, (Takes,), {"name": name})())
    tuners = ["mamba-ksd-scaled", "heuristic", "first", "last"]
    section = {"tuners": tuners, **SECTION}
    record = ladder.ladder_runs("axis", DIMENSION, "sgld", section, seed=0, report=print)
    arms = make_arms(ladder.N_DATA, "sgld", **ladder.grid_of())
    held = [Arm(**{name: one[name] for name in ("step_size", "batch_size")}) for one in record["arms"]]
    assert held[: len(arms)] == arms
    assert [one["step_size"] for one in record["arms"] if one["is_extra"]] == [1e-9]
    assert record["smallest"] == min(one["error"] for one in record["arms"] if not one["is_extra"])
    pairs = [(tuner, i) for tuner in ("oracle", *tuners) for i in range(2)]
    assert [(run["tuner"], run["replicate"]) for run in record["runs"]] == pairs
    for run in record["runs"]:
        assert run["error"] == min(record["arms"][run["arm"]]["error"], ladder.ESCAPED)
        oracle = record["arms"][record["runs"][run["replicate"]]["arm"]]
        assert (run["oracle_error"], run["oracle_marginal"]) == (oracle["error"], oracle["marginal"])
    found = {run["tuner"]: run for run in record["runs"]}
    # The heuristic's step size of 1 / N is one of the grid.
    assert held[found["heuristic"]["arm"]].step_size == 1 / ladder.N_DATA
    assert (found["first"]["error"], found["first"]["marginal"]) == (ladder.ESCAPED, ladder.ESCAPED)
    edges = {name: (run["escaped"], run["frozen"]) for name, run in found.items()}
    assert (edges["first"], edges["last"], edges["oracle"]) == ((True, False), (False, True), (False, False))


def test_a_killed_job_goes_on_where_it_was(tmp_path, monkeypatch):
    section = {**SECTION, "dimensions": [3, DIMENSION], "kinds": ["axis"], "samplers": ["sgld", "sghmc"]}
    settings = ladder_settings({"ladder": {**section, "tuners": ["heuristic"]}, "seed": 4}, DIMENSION)
    monkeypatch.setattr(ladder, "ladder_runs", lambda *own, seed, **_: [*own[:3], seed])
    made = Calls(monkeypatch, ladder, "ladder_runs", lambda kind, dimension, sampler, *_, **__: sampler)
    made.killed_at = "sghmc"
    with pytest.raises(KeyboardInterrupt):
        ladder.gaussian_ladder(DIMENSION, settings, seed=4, parts=Parts(tmp_path))
    found = ladder.gaussian_ladder(DIMENSION, settings, seed=4, parts=Parts(tmp_path))
    assert made == ["sgld", "sghmc"]
    assert found["gaussians"] == [["axis", DIMENSION, sampler, 4] for sampler in made]
    assert (found["dimension"], found["n_data"]) == (DIMENSION, ladder.N_DATA)
