"""Errors against a reference: running moments against all draws at once; their cost; references."""

import json
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from reference_models import gaussian_model

from sgtune.metrics import reference as module
from sgtune.metrics.reference import Moments, Reference, frozen_errors, reference_errors
from sgtune.support.errors import InputError

NAMES = ("relative_sd_error", "xi_rel", "xi_white", "functional_error")


def slope_and_square(position):
    """A slope, the square of the other slope, and the intercept: (K,) = (3,)."""
    return jnp.stack([position["slopes"][0], position["slopes"][1] ** 2, position["intercept"]])


@pytest.fixture(scope="module")
def model():
    """A model with three parameters and three functionals."""
    return replace(gaussian_model()[0], functionals=slope_and_square)


REFERENCE = Reference(
    sd=np.array([1.0, 2.0, 0.5]),
    covariance=np.array([[1.0, 0.8, 0.1], [0.8, 4.0, -0.3], [0.1, -0.3, 0.25]]),
    functionals_mean=np.array([0.1, 1.0, -0.4]),
    functionals_sd=np.array([2.0, 3.0, 1.5]),
)


def naive_errors(draws, values):
    """The errors of all draws ``(n, D)`` and their functionals ``(n, K)``, in float64."""
    draws, values = np.asarray(draws, np.float64), np.asarray(values, np.float64)
    sd = draws.std(axis=0)
    eigenvalues, directions = np.linalg.eigh(REFERENCE.covariance)
    along = [(draws @ v).std() / np.sqrt(value) for v, value in zip(directions.T, eigenvalues, strict=True)]
    bias = (values.mean(axis=0) - REFERENCE.functionals_mean) / REFERENCE.functionals_sd
    spread = values.std(axis=0) / REFERENCE.functionals_sd - 1
    return {
        "relative_sd_error": np.sqrt(np.sum((sd - REFERENCE.sd) ** 2) / np.sum(REFERENCE.sd**2)),
        "xi_rel": np.sqrt(np.mean((sd / REFERENCE.sd - 1) ** 2)),
        "xi_white": np.sqrt(np.mean((np.array(along) - 1) ** 2)),
        "functional_error": np.sqrt(np.mean(bias**2) + np.mean(spread**2)),
    }


def values_of(draws):
    """The functionals of draws with columns intercept, slopes."""
    return np.stack([draws[:, 1], draws[:, 2] ** 2, draws[:, 0]], axis=1)


@pytest.mark.parametrize("offset", [0.0, 300.0])
@pytest.mark.parametrize(("block", "rows"), [(module.BLOCK, module.DRAWS), (20, 7)])
def test_running_errors_are_those_of_all_draws_at_once(model, monkeypatch, offset, block, rows):
    monkeypatch.setattr(module, "BLOCK", block)
    monkeypatch.setattr(module, "DRAWS", rows)
    rng = np.random.default_rng(0)
    sds = np.array([0.2, 1.0, 3.0])[:, None]
    draws = (offset + sds * rng.standard_normal((150, 3, 3))).astype(np.float32)
    moments = Moments(model, REFERENCE, draws[0, 0], n_chains=3)
    for start, stop in ((0, 1), (1, 40), (40, 150)):
        moments.add(draws[start:stop])
    for place in range(3):
        wanted = naive_errors(draws[:, place], values_of(draws[:, place]))
        # The float32 error of squares of 300 is 1e-7 of 90,000, a hundredth of the reference's sd.
        tolerance = {"rel": 1e-5, "abs": 1e-6} if offset == 0 else {"rel": 1e-3}
        assert moments.errors(place) == pytest.approx(wanted, **tolerance)
        assert tuple(moments.errors(place)) == NAMES
        alone = reference_errors(model, draws[:, place], REFERENCE)
        assert alone == pytest.approx(moments.errors(place), rel=1e-6)
    without = replace(REFERENCE, covariance=None)
    moments = Moments(model, without, draws[0, 0], n_chains=3)
    moments.add(draws)
    found, wanted = moments.errors(1), naive_errors(draws[:, 1], values_of(draws[:, 1]))
    assert found.pop("xi_white") is None
    assert found == pytest.approx({name: wanted[name] for name in found}, rel=1e-3)


def test_a_diverged_chain_has_infinite_errors_and_does_not_affect_others(model):
    draws = np.random.default_rng(1).standard_normal((50, 3, 3)).astype(np.float32)
    draws[-1, 1, 0], draws[-1, 2] = np.nan, 1e30
    moments = Moments(model, REFERENCE, np.zeros(3), n_chains=3)
    assert moments.errors(0) == dict.fromkeys(NAMES, np.inf)
    moments.add(draws)
    assert moments.errors(1) == dict.fromkeys(NAMES, np.inf)
    assert moments.errors(0) == pytest.approx(naive_errors(draws[:, 0], values_of(draws[:, 0])), rel=1e-5)
    # The square overflows in float32, but the sd is finite in float64.
    huge = moments.errors(2)
    assert huge["functional_error"] == np.inf
    assert 1e28 < huge["xi_rel"] < huge["xi_white"] < 1e31
    for none in (draws[:0, 0], draws[:, 1]):
        assert reference_errors(model, none, REFERENCE) == dict.fromkeys(NAMES, np.inf)


def test_an_error_without_a_reference_value_is_none(model):
    draws = np.random.default_rng(2).standard_normal((20, 3)).astype(np.float32)
    only_sds, unknown = Reference(REFERENCE.sd), {"xi_white": None, "functional_error": None}
    assert reference_errors(model, draws, only_sds) == pytest.approx(
        naive_errors(draws, values_of(draws)) | unknown
    )
    # Without functionals, the position is compared with the reference's functionals.
    plain = replace(model, functionals=None)
    own = naive_errors(draws, draws)["functional_error"]
    assert reference_errors(plain, draws, REFERENCE)["functional_error"] == pytest.approx(own)
    assert reference_errors(plain, draws[:0], only_sds) == dict.fromkeys(NAMES, np.inf) | unknown


def test_a_frozen_chain_has_no_spread_and_the_bias_of_its_position(model):
    position = {"intercept": jnp.float32(0.3), "slopes": jnp.array([1.0, -2.0])}
    errors = frozen_errors(model, position, REFERENCE)
    bias = (np.array([1.0, 4.0, 0.3]) - REFERENCE.functionals_mean) / REFERENCE.functionals_sd
    wanted = {**dict.fromkeys(NAMES, 1.0), "functional_error": np.sqrt(1 + np.mean(bias**2))}
    assert errors == pytest.approx(wanted, rel=1e-6)


def test_a_reference_is_read_from_its_record():
    record = {"model": "m", "mean": [0.0, 0.0], "sd": [1, 2], "covariance": [[1, 0.5], [0.5, 4]]}
    record["functionals"] = {"n": 3, "mean": [1.0, 2.0, 3.0], "sd": [1.0, 1.0, 2.0], "r_hat_max": 1.0}
    found = Reference.from_record(json.loads(json.dumps(record)))
    for array, expected in (
        (found.sd, [1, 2]),
        (found.covariance, record["covariance"]),
        (found.functionals_mean, [1, 2, 3]),
        (found.functionals_sd, [1, 1, 2]),
    ):
        np.testing.assert_array_equal(array, expected)
    # A model without functionals has convergence diagnostics of its position; an older record has none.
    for functionals in ({"n": 2, "r_hat_max": 1.0}, None):
        plain = Reference.from_record({"sd": [1.0, 2.0], "functionals": functionals})
        assert (plain.covariance, plain.functionals_mean, plain.functionals_sd) == (None, None, None)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"sd": [1.0, 0.0]}, r"^sd: 0 is not allowed; every sd must be > 0$"),
        ({"sd": [1.0, np.nan]}, r"^sd: holds numbers that are not finite"),
        ({"covariance": np.eye(3)}, r"^covariance: shape \(3, 3\) is not allowed; it must be \(2, 2\)$"),
        ({"covariance": [[1.0, 2.0], [2.0, 1.0]]}, r"^covariance: not positive definite"),
        ({"functionals_mean": [1.0, 1.0]}, r"^functionals_sd: must be of the shape of functionals_mean"),
        (
            {"functionals_mean": [1.0], "functionals_sd": [-1.0]},
            r"^functionals_sd: -1 is not allowed; every sd",
        ),
    ],
)
def test_bad_references_get_one_line(changes, line):
    with pytest.raises(InputError, match=line):
        Reference(**{"sd": np.ones(2), **{name: np.array(array) for name, array in changes.items()}})


def test_a_reference_of_another_model_is_refused(model):
    for reference, line in (
        (Reference(np.ones(2)), "^reference: of 2 parameters; model 'gaussian' needs 3$"),
        (Reference(np.ones(3), None, np.ones(2), np.ones(2)), "^reference: has 2 functionals; .* has 3$"),
    ):
        with pytest.raises(InputError, match=line):
            reference_errors(model, np.zeros((4, 3), np.float32), reference)
    with pytest.raises(InputError, match=r"^draws: shape \(5, 1, 3\) .* \(n, 2, 3\)$"):
        Moments(model, REFERENCE, np.zeros(3), 2).add(np.zeros((5, 1, 3), np.float32))
