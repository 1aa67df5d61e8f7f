"""The Gibbs posterior of an inverse temperature: `sgtune.temper`, and the argument of `sgtune.sample`."""

import jax.numpy as jnp
import numpy as np
import pytest
from small_models import small_logistic_model

import sgtune
from sgtune import Budget, sample, temper
from sgtune.mode.find import map_position
from sgtune.model.posterior import log_posterior, scores
from sgtune.samplers.gradients import control_variate


@pytest.fixture(scope="module")
def logistic():
    return small_logistic_model(n_data=200, seed=4)


@pytest.mark.parametrize("inverse_temperature", [0.5, 50, 1_000.0])
def test_the_density_is_that_of_gibbs(logistic, inverse_temperature):
    """The density is exp(-lambda R) p with the mean loss R, and scores are its gradients."""
    model = temper(logistic, inverse_temperature)
    rows = np.asarray(logistic.data["signed_inputs"], np.float64)

    def exact(position):
        loss = np.logaddexp(0, -rows @ position).mean()
        return -inverse_temperature * loss - position @ position / 20

    def exact_score(position):
        slope = (rows / (1 + np.exp(rows @ position))[:, None]).mean(axis=0)
        return inverse_temperature * slope - position / 10

    positions = np.array([[0.2, -0.4], [1.5, 1.0]])
    found = [float(log_posterior(model, jnp.asarray(one, jnp.float32), model.data)) for one in positions]
    assert found[1] - found[0] == pytest.approx(exact(positions[1]) - exact(positions[0]), rel=1e-4)
    expected = [exact_score(one) for one in positions]
    np.testing.assert_allclose(scores(model, positions.astype(np.float32)), expected, rtol=1e-3, atol=1e-3)


def test_n_is_the_ordinary_posterior_and_each_model_is_made_once(logistic):
    assert temper(logistic, 200) is logistic
    cold, again = temper(logistic, 400.0), temper(logistic, 400)
    assert cold is again
    assert cold.name != logistic.name
    assert cold.checksum != logistic.checksum
    assert temper(logistic, 300.0).checksum != cold.checksum
    # The same functions and temperature share the compiled programs.
    other = temper(small_logistic_model(n_data=200, seed=5), 400)
    assert other.log_likelihood == cold.log_likelihood
    assert hash(other.log_likelihood) == hash(cold.log_likelihood)


def test_the_mode_and_control_variates_are_those_of_the_tempered_posterior(logistic):
    hot = temper(logistic, 5.0)
    mode = map_position(hot)
    assert np.abs(scores(hot, np.asarray(mode)[None])).max() < 0.01
    assert np.linalg.norm(mode) < np.linalg.norm(map_position(logistic))
    chain = sample(
        logistic,
        "sgld",
        gradient=control_variate,
        step_size=0.01,
        batch_size=20,
        budget=Budget(steps=5),
        inverse_temperature=5,
    )
    assert chain.model is hot


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf")])
def test_bad_inverse_temperatures_get_one_line(logistic, value):
    options = {"step_size": 0.1, "batch_size": 20, "budget": Budget(steps=1)}
    with pytest.raises(sgtune.InputError, match=r"^inverse_temperature: .* it must be a number > 0$"):
        sample(logistic, "adam-mcmc", inverse_temperature=value, **options)
    with pytest.raises(sgtune.InputError, match=r"^inverse_temperature: "):
        temper(logistic, value)
