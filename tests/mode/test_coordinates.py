"""The posterior in the coordinates of a preconditioner: the same posterior, for scores, chains and saved files."""

import jax.numpy as jnp
import numpy as np
import pytest
from posteriors_of_users import case, moments_of
from small_models import model_of_prior, small_logistic_model

import sgtune
from sgtune import Budget, InputError, Preconditioner, sample
from sgtune.mode.coordinates import laplace_preconditioner, local_factor, precondition
from sgtune.mode.curvature import laplace_scale, largest_curvature
from sgtune.mode.find import map_result
from sgtune.model.positions import unflatten
from sgtune.model.posterior import density_of, log_posterior, negative_hessian, scores
from sgtune.sampling.lockstep import compiled_programs
from sgtune.support.errors import DataError
from sgtune.theory.laplace import laplace_of
from sgtune.tuning import AllDivergedError

D = 3
RNG = np.random.default_rng(0)
FACTOR = np.tril(RNG.normal(size=(D, D)), -1) + np.diag([0.2, 1.0, 3.0])


@pytest.fixture(scope="module")
def logistic():
    return small_logistic_model(n_data=500, dimension=D, seed=2)


@pytest.mark.parametrize("factor", [FACTOR, np.diagonal(FACTOR)])
def test_density_scores_and_hessian_are_those_of_theta_by_the_chain_rule(logistic, factor):
    centre = RNG.normal(size=D)
    seen = precondition(logistic, Preconditioner(centre, factor))
    z = RNG.normal(size=(5, D)).astype(np.float32)
    theta = seen.preconditioner.positions(z)
    matrix = factor if factor.ndim == 2 else np.diag(factor)
    np.testing.assert_allclose(theta, centre + z @ matrix.T, rtol=1e-6)
    np.testing.assert_allclose(seen.preconditioner.coordinates(theta), z, atol=1e-5)
    np.testing.assert_allclose(scores(seen, z), scores(logistic, theta) @ matrix, rtol=2e-4, atol=2e-3)
    for each, own in zip(z, theta, strict=True):
        there = float(log_posterior(density_of(seen), jnp.asarray(each), seen.data))
        expected = log_posterior(density_of(logistic), unflatten(logistic, own), logistic.data)
        assert there == pytest.approx(float(expected), rel=1e-5)
    hessian = negative_hessian(seen, jnp.asarray(z[0]))
    expected = matrix.T @ negative_hessian(logistic, unflatten(logistic, theta[0])) @ matrix
    np.testing.assert_allclose(hessian, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["raw_columns", "leverage"])
def test_in_laplace_coordinates_a_gaussian_posterior_is_a_standard_normal(name):
    """Also where sds span decades, which float32's Hessian alone does not resolve."""
    model, (mean, covariance) = case(name), moments_of(name)
    found = laplace_preconditioner(model)
    whitened = np.linalg.solve(found.factor, np.linalg.solve(found.factor, covariance).T)
    np.testing.assert_allclose(np.linalg.eigvalsh(whitened), 1, atol=1e-3)
    np.testing.assert_allclose(found.coordinates(mean[None]), 0, atol=1e-3)


SAMPLERS = {
    "sgld-cv": (20_000, {"step_size": 0.03}),
    "sgld": (20_000, {"step_size": 0.01}),
    "sghmc-cv": (6_000, {"step_size": 0.02, "n_leapfrog": 3}),
    "sgnht-cv": (20_000, {"step_size": 0.01}),
    "ccadl-cv": (20_000, {"step_size": 0.1}),
    "mala": (2_000, {"step_size": 0.3}),
    "hmc": (600, {"step_size": 0.1, "n_leapfrog": 5}),
}
"""The steps and the arm of each: steps are at least 100 integrated autocorrelation times, at most 200 steps each
(SGLD, SGNHT), about 20 (SGHMC), 7 (MALA) and 1 (HMC, whose trajectory is nearly a quarter of a period)."""


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_kind_of_sampler_has_the_posterior_as_its_density(sampler):
    """On raw columns, whose sds span four decades. Biases of step and minibatches at these settings are below 5%."""
    model, (mean, covariance) = case("raw_columns"), moments_of("raw_columns")
    batch_size = model.n_data if sampler in ("mala", "hmc") else 800
    n_steps, arm = SAMPLERS[sampler]
    options = arm | {"batch_size": batch_size, "preconditioner": "laplace"}
    chain = sample(model, sampler, **options, budget=Budget(steps=n_steps))
    variances, directions = np.linalg.eigh(covariance)
    z = (chain.draws - mean) @ directions / np.sqrt(variances)
    # Three standard errors of 100 independent draws: 0.1 and 0.07.
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=0.3)
    np.testing.assert_allclose(z.std(axis=0), 1, atol=0.05 + 0.21)
    assert chain.model is model


def test_identity_coordinates_about_the_map_are_those_without(logistic):
    options = {"step_size": 1e-3, "batch_size": 50, "budget": Budget(steps=300), "seed": 4}
    plain = sample(logistic, "sgld-cv", **options)
    same = sample(logistic, "sgld-cv", **options, preconditioner=np.ones(D))
    np.testing.assert_allclose(same.draws, plain.draws, atol=1e-4)


def test_start_and_centre_are_positions_of_the_model(logistic):
    there = np.array([0.5, -0.5, 1.0], np.float32)
    options = {"step_size": 1e-12, "batch_size": 50, "budget": Budget(steps=1)}
    position = unflatten(logistic, there)
    for given in (
        {"preconditioner": "laplace", "position": position},
        {"preconditioner": Preconditioner(there, FACTOR)},
    ):
        np.testing.assert_allclose(sample(logistic, "sgld-cv", **options, **given).draws[0], there, atol=1e-4)


def test_coordinates_that_are_not_finite_have_positions_without_a_warning():
    lost = np.full((1, D), np.inf)
    for factor in (np.ones(D), FACTOR):
        assert not np.isfinite(Preconditioner(np.zeros(D), factor).positions(lost)).any()


def test_programs_serve_all_coordinates(logistic):
    options = {"step_size": 1e-3, "batch_size": 50, "budget": Budget(steps=5)}
    sample(logistic, "sgld-cv", **options, preconditioner=FACTOR)
    there = compiled_programs()
    sample(logistic, "sgld-cv", **options, preconditioner=2 * FACTOR)
    assert compiled_programs() == there


def test_a_preconditioner_is_its_numbers_and_is_saved_as_arrays(tmp_path):
    one, same = (Preconditioner(np.zeros(D), FACTOR) for _ in range(2))
    other = Preconditioner(np.zeros(D), FACTOR, np.ones(D))
    assert one == same != other
    assert hash(one) == hash(same)
    assert len({one, same, other}) == 2
    assert len(repr(other)) < 60
    other.save(tmp_path / "p.npz")
    assert Preconditioner.load(tmp_path / "p.npz") == other
    np.savez(tmp_path / "q.npz", centre=np.zeros(D))
    with pytest.raises(InputError, match=r"q\.npz.* must have centre, factor and start"):
        Preconditioner.load(tmp_path / "q.npz")
    for name, faulty in (("p", other.save), ("one.npy", Preconditioner.load)):
        np.save(tmp_path / "one.npy", np.zeros(D))
        with pytest.raises(DataError, match=rf"{name}.*npz"):
            faulty(tmp_path / name)
    assert {path.name for path in tmp_path.iterdir()} == {"p.npz", "q.npz", "one.npy"}
    with pytest.raises(ValueError, match="read-only"):
        one.factor[0, 0] = 2.0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("laplase", "preconditioner: 'laplase' is not known .did you mean 'laplace'"),
        (3, "preconditioner: 3 is not allowed"),
        (np.ones(4), r"preconditioner: shape \(4,\) is not allowed; it must be \(3,\)"),
        (np.ones((3, 3)), "preconditioner: 1 above the diagonal"),
        (np.array([1.0, 0.0, 1.0]), "preconditioner: 0 is not allowed; sds"),
        (np.array([1.0, np.nan, 1.0]), "preconditioner: nan is not allowed"),
        (np.array([1.0, 1e39, 1.0]), r"preconditioner: 1e\+39 is not allowed; .* must be finite in float32"),
        (np.array([1.0, 1e-46, 1.0]), "preconditioner: 1e-46 is not allowed; sds"),
        (["one", "two", "three"], "preconditioner: .* must be an array of numbers"),
        (np.full(3, 1j), "preconditioner: .* must be an array of numbers"),
        (np.diag([1.0, -1.0, 1.0]), "preconditioner: -1 is not allowed"),
        (Preconditioner(np.zeros(2), np.ones(2)), "preconditioner: shape"),
    ],
)
def test_what_is_no_preconditioner_is_refused_in_one_line(logistic, given, message):
    with pytest.raises(InputError, match=message) as error:
        sample(logistic, "sgld", step_size=0.1, batch_size=5, budget=Budget(steps=1), preconditioner=given)
    assert "\n" not in str(error.value)


def test_an_array_about_a_given_centre_needs_no_mode():
    model = small_logistic_model(n_data=500, dimension=D, seed=2)
    at, start, arm = np.full(D, 0.1), np.full(D, 0.2), {"step_size": 1e-4, "batch_size": 50}
    options = {**arm, "budget": Budget(steps=20)}
    chain = sample(model, "sgld-cv", preconditioner=FACTOR, centre=at, position=start, **options)
    same = sample(model, "sgld-cv", preconditioner=Preconditioner(at, FACTOR, start), **options)
    np.testing.assert_allclose(chain.draws, same.draws, rtol=1e-4, atol=1e-5)
    assert model.found.mode is None


def without_curvature(prior_sd: float = 10) -> sgtune.Model:
    """A location with Laplace errors: the Hessian of its log-likelihood is 0."""
    return sgtune.define_model(
        "kinks",
        log_prior=lambda p: -0.5 * p @ p / prior_sd**2,
        log_likelihood=lambda p, y: -jnp.abs(y - p[0]),
        data=np.random.default_rng(9).laplace(size=2_000).astype(np.float32),
        init=lambda key: jnp.zeros(1),
    )


def test_a_tuner_whose_arms_all_die_says_that_it_had_no_coordinates_and_why():
    words = r"smallest step size.*have second derivatives.* without a preconditioner: give one"
    with pytest.raises(AllDivergedError, match=words) as caught:
        sgtune.tune(without_curvature(1e6), "sgld", budget=Budget(gradients=50_000))
    assert "\n" not in str(caught.value)
    assert caught.value.result.rows


@pytest.mark.parametrize(("name", "given"), [("start", [0.0, 1e39]), ("centre", [0.0, np.nan])])
def test_a_centre_and_a_start_are_numbers_of_float32(name, given):
    with pytest.raises(InputError, match=f"^{name}: .*is not allowed"):
        Preconditioner(**({"centre": np.zeros(2), "factor": np.ones(2)} | {name: np.array(given)}))


def test_where_there_is_no_proper_mode_there_is_no_laplace_preconditioner():
    """The scale would be the prior's, 10, and the posterior's is a hundredth of it."""
    for refuse in (laplace_preconditioner, laplace_of):
        with pytest.raises(InputError, match=r"^log_likelihood: .*'kinks'.* must have second derivatives"):
            refuse(without_curvature())
    saddle = model_of_prior(lambda p: 0.5 * p[0] ** 2 - 0.5 * p[1] ** 2, jnp.zeros(2))
    for refuse, words in (
        (laplace_preconditioner, "preconditioner"),
        (laplace_of, "needs a proper mode"),
        (laplace_scale, "not concave"),
    ):
        with pytest.raises(InputError, match=words):
            refuse(saddle)
    # But there is a scale: by the size of the curvature.
    factor = local_factor(saddle, np.zeros(2))
    np.testing.assert_allclose(factor @ factor.T, np.eye(2), atol=1e-6)


@pytest.mark.parametrize("dimension", [4, 210])
def test_the_largest_curvature_is_the_largest_eigenvalue(dimension):
    model = small_logistic_model(n_data=300, dimension=dimension, seed=3)
    values = np.linalg.eigvalsh(negative_hessian(model, map_result(model).position))
    assert largest_curvature(model) == pytest.approx(values[-1], rel=0.02)
