"""Estimates of a reference's Monte Carlo error against the true error; and whether a reference is trusted."""

import jax.numpy as jnp
import numpy as np
import pytest
from reference_models import gaussian_model
from sgtune.study.ground_truth.accuracy import monte_carlo_error, standard_errors
from sgtune.study.ground_truth.convergence import of_functionals
from sgtune.study.ground_truth.record import doubts, reference_record

from sgtune.metrics.spread import relative_sd_error
from sgtune.model import define_model
from sgtune.study.ground_truth import ESS_TRUSTED, R_HAT_TRUSTED, draws, is_trusted
from sgtune.support.files import read_json, write_json

DIMENSION, N_CHAINS, N_DRAWS = 10, 2, 2_000
# Parameters are correlated; three directions are judged.
DIRECTIONS = np.random.default_rng(8).normal(size=(DIMENSION, 3))


def model_of(dimension, functionals=None):
    return define_model(
        "wide",
        log_prior=lambda position: -0.5 * jnp.sum(position**2),
        log_likelihood=lambda position, rows: 0 * rows,
        data=np.zeros(2, np.float32),
        init=lambda key: jnp.zeros(dimension),
        functionals=functionals,
    )


def reference_of(model, matrices, keep_every=1):
    """The chains of draws ``matrices`` (chain, draw, D) as one reference."""
    chains = []
    for matrix in matrices:
        matrix = matrix.astype(np.float32)
        functionals = None
        if model.functionals is not None:
            values = np.asarray(model.functionals(matrix))
            functionals = values, draws.add_draws(None, values)
        n = len(matrix)
        statistics = {"n_steps": np.full(n, 7), "diverging": np.zeros(n, bool), "energy": np.arange(n) % 5.0}
        chain = draws.to_inference_data(
            model,
            matrix[keep_every - 1 :: keep_every],
            statistics,
            {"seconds": 1.0},
            moments=draws.add_draws(None, matrix),
            every=keep_every,
            functionals=functionals,
        )
        chains.append(chain)
    return draws.combine_chains(chains)


def autoregressive(rng, carried, shape):
    """Normal draws (chain, draw, k) of variance 1 and autocorrelation ``carried``."""
    noise = rng.normal(size=shape)
    for t in range(1, shape[1]):
        noise[:, t] = carried * noise[:, t - 1] + np.sqrt(1 - carried**2) * noise[:, t]
    return noise


def squared_errors(mean, sd, covariance, reference):
    """The errors of the exact posterior against this reference, from their definitions."""
    record = reference_record(reference)
    sizes, vectors = np.linalg.eigh(record["covariance"])
    along = np.sqrt(np.diag(vectors.T @ covariance @ vectors))
    of_mean, of_sd = record["functionals"]["mean"], record["functionals"]["sd"]
    true_mean, true_sd = mean @ DIRECTIONS, np.sqrt(np.diag(DIRECTIONS.T @ covariance @ DIRECTIONS))
    both = ((true_mean - of_mean) / of_sd) ** 2 + (true_sd / of_sd - 1) ** 2
    found = {
        "relative_sd_error": relative_sd_error(sd, record["sd"]) ** 2,
        "xi_rel": np.mean((sd / record["sd"] - 1) ** 2),
        "xi_white": np.mean((along / np.sqrt(sizes) - 1) ** 2),
        "functional_error": np.mean(both),
    }
    return found, {name: value**2 for name, value in record["monte_carlo_error"].items()}


@pytest.mark.parametrize("carried", [0.0, 0.7])
@pytest.mark.parametrize("ratio", [1.0, 2.0])
def test_the_predicted_errors_are_those_that_references_have(ratio, carried):
    """40 references of 4,000 draws; with a ``ratio`` of variances of 1 the eigenvectors are arbitrary."""
    rng = np.random.default_rng(5)
    rotation, _ = np.linalg.qr(rng.normal(size=(DIMENSION, DIMENSION)))
    root = rotation * np.sqrt(ratio ** np.arange(DIMENSION))
    covariance, mean = root @ root.T, np.full(DIMENSION, 3.0)
    model = model_of(DIMENSION, lambda position: position @ DIRECTIONS)
    pairs = []
    for _ in range(40):
        matrices = mean + autoregressive(rng, carried, (N_CHAINS, N_DRAWS, DIMENSION)) @ root.T
        sd = np.sqrt(np.diag(covariance))
        pairs.append(squared_errors(mean, sd, covariance, reference_of(model, matrices)))
    for name in ("relative_sd_error", "xi_rel", "xi_white", "functional_error"):
        true, predicted = (np.array([found[name] for found in side]) for side in zip(*pairs, strict=True))
        se = np.sqrt((true.var() + predicted.var()) / len(pairs))
        assert se < 0.16 * true.mean(), name
        assert abs(predicted.mean() - true.mean()) < 4.5 * se, name
    if carried == 0:
        # Each parameter has sd / sqrt(2 n); directions with the largest errors have sqrt(11 / 2) times this.
        expected = 1 / np.sqrt(2 * N_CHAINS * N_DRAWS)
        roots = {name: np.sqrt(np.mean([found[name] for _, found in pairs])) for name in pairs[0][1]}
        assert roots["xi_rel"] == pytest.approx(expected, rel=0.03)
        assert roots["xi_white"] == pytest.approx(expected * (np.sqrt(5.5) if ratio == 1 else 1), rel=0.08)


@pytest.mark.parametrize("carried", [-0.4, 0.0, 0.6])
def test_standard_errors_are_those_of_autoregressive_draws(carried):
    """Squares of normal draws have ESS n (1 - a^2) / (1 + a^2), which many parameters estimate to a few percent."""
    n, size = 4_000, 200
    matrices = 5 * autoregressive(np.random.default_rng(2), carried, (4, n // 4, size))
    found = standard_errors([matrices[..., :77], matrices[..., 77:]])
    assert np.median(found.mean) == pytest.approx(5 * np.sqrt((1 + carried) / (1 - carried) / n), rel=0.03)
    of_sd = 5 * np.sqrt((1 + carried**2) / (1 - carried**2) / (2 * n))
    assert np.median(found.sd) == pytest.approx(of_sd, rel=0.03)


def test_standard_errors_of_an_sd_know_heavy_tails():
    """The fourth central moment of the exponential is 9: the sd of its squared deviations is sqrt(8)."""
    matrices = np.random.default_rng(2).exponential(size=(2, 2_000, 400))
    # 4.5 standard errors of a mean square over 400 parameters, from their spread.
    squares = standard_errors([matrices]).sd ** 2
    assert np.mean(squares) == pytest.approx(
        8 / (4 * 4_000), abs=4.5 * np.std(squares) / np.sqrt(400) + 0.02 / 4_000
    )


def test_frozen_parameters_and_few_draws_have_no_accuracy():
    matrices = np.random.default_rng(0).normal(size=(2, 50, 3))
    matrices[..., 1] = 4
    found = standard_errors([matrices])
    np.testing.assert_array_equal(np.isinf(found), [[False, True, False]] * 2)
    assert np.isnan(standard_errors([matrices[:, :3, :1]])).all()
    assert np.isnan(list(monte_carlo_error(reference_of(model_of(3), matrices[:, :3])).values())).any()


def test_which_errors_are_defined():
    rng = np.random.default_rng(0)
    small, large = rng.normal(size=(2, 40, 3)), rng.normal(size=(2, 40, 201))
    always = {"relative_sd_error", "xi_rel"}
    assert set(monte_carlo_error(reference_of(model_of(3), small))) == always | {"xi_white"}
    assert set(monte_carlo_error(reference_of(model_of(201), large))) == always
    stated = model_of(201, lambda position: position[..., :5] ** 2)
    reference = reference_of(stated, large)
    assert set(monte_carlo_error(reference)) == always | {"functional_error"}
    assert "covariance" not in reference_record(reference)


def test_a_thinned_reference_is_no_worse_than_is_said():
    """Half of the draws of an independent chain have the errors of half as many draws."""
    rng = np.random.default_rng(0)
    matrices = rng.normal(size=(2, 2_000, 300))
    all_of_them = monte_carlo_error(reference_of(model_of(300), matrices))
    half = monte_carlo_error(reference_of(model_of(300), matrices, keep_every=2))
    for name, value in half.items():
        assert value == pytest.approx(np.sqrt(2) * all_of_them[name], rel=0.03)


# --- judged quantities, and trust ---


def test_tuners_are_judged_by_the_functionals_not_by_the_position():
    """With chains in two mirrored modes no parameter converges, but the product of two does."""
    rng = np.random.default_rng(0)
    matrices = 3 + rng.normal(size=(2, 500, 2))
    matrices[1] *= -1
    stated = reference_of(model_of(2, lambda position: position[..., :1] * position[..., 1:]), matrices)
    record, plain = reference_record(stated), reference_record(reference_of(model_of(2), matrices))
    assert record["diagnostics"]["r_hat"] == plain["diagnostics"]["r_hat"] > 1.5
    assert (record["trusted"], plain["trusted"]) == (True, False)
    exact = matrices.astype(np.float32).prod(axis=-1).ravel()
    functionals = record["functionals"]
    assert functionals["n"] == 1
    np.testing.assert_allclose(functionals["mean"], [exact.mean()], rtol=1e-6)
    np.testing.assert_allclose(functionals["sd"], [exact.std(ddof=1)], rtol=1e-6)
    assert functionals["r_hat_max"] == functionals["r_hat_p99"] < 1.02
    # Without functionals the position is judged, and its moments are not written twice.
    functionals = plain["functionals"]
    assert functionals["n"] == 2
    assert not {"mean", "sd"} & set(functionals)
    assert functionals["r_hat_max"] == plain["diagnostics"]["r_hat"]
    block = plain["blocks"]["wide"]
    assert {name: block[name] for name in functionals} == functionals


def test_one_parameter_in_a_hundred_may_be_stuck():
    matrices = np.random.default_rng(0).normal(size=(2, 300, 200))
    matrices[0, :, :2] = 1.5
    found = of_functionals(reference_of(model_of(200), matrices))
    assert found["r_hat_max"] == np.inf
    assert found["r_hat_p99"] < R_HAT_TRUSTED
    assert is_trusted(found)
    matrices[0, :, 2] = 1.5
    found = of_functionals(reference_of(model_of(200), matrices))
    assert found["r_hat_p99"] == np.inf
    assert not is_trusted(found)


@pytest.mark.parametrize(
    ("r_hat", "ess", "trusted"),
    [
        (R_HAT_TRUSTED, ESS_TRUSTED, True),
        (R_HAT_TRUSTED + 1e-6, 4_000, False),
        (1.0, ESS_TRUSTED - 1e-3, False),
        (np.nan, np.nan, False),
    ],
)
def test_trust_is_99_percent_of_r_hat_and_the_median_ess(r_hat, ess, trusted):
    assert (R_HAT_TRUSTED, ESS_TRUSTED) == (1.05, 200)
    functionals = {"r_hat_p99": r_hat, "ess_median": ess}
    assert is_trusted(functionals) is trusted
    said = doubts({"functionals": functionals, "trusted": trusted})
    assert (said is None) == trusted


def test_what_is_doubted_names_the_numbers():
    matrices = np.random.default_rng(0).normal(size=(2, 30, 3)) + np.array([0, 5])[:, None, None]
    record = reference_record(reference_of(model_of(3), matrices))
    functionals = record["functionals"]
    said = doubts(record)
    assert f"R-hat is {functionals['r_hat_p99']:.3g} (trusted up to 1.05)" in said
    assert f"size {functionals['ess_median']:,.0f} (trusted from 200)" in said


def test_the_record_is_json_and_its_covariance_that_of_all_draws(tmp_path):
    model, _, _ = gaussian_model()
    matrices = np.random.default_rng(0).normal(size=(2, 101, 3)) @ np.array(
        [[1, 2, 0], [0, 1, 3], [0, 0, 1.0]]
    )
    matrices[1] += 1
    record = reference_record(reference_of(model, matrices, keep_every=3))
    write_json(tmp_path / "nuts.json", record)
    again = read_json(tmp_path / "nuts.json")
    pooled = matrices.astype(np.float32).astype(np.float64).reshape(-1, 3)
    np.testing.assert_allclose(again["covariance"], np.cov(pooled.T), rtol=1e-9)
    np.testing.assert_allclose(np.sqrt(np.diag(again["covariance"])), again["sd"], rtol=1e-9)
    np.testing.assert_allclose(again["mean"], pooled.mean(axis=0), rtol=1e-9)
    assert set(again["blocks"]) == {"intercept", "slopes"}
    errors = again["blocks"]["slopes"]["sd_error"], again["blocks"]["intercept"]["sd_error"]
    sizes = np.square(again["sd"])
    together = (errors[0] ** 2 * sizes[1:].sum() + errors[1] ** 2 * sizes[0]) / sizes.sum()
    assert again["monte_carlo_error"]["relative_sd_error"] == pytest.approx(np.sqrt(together))
