"""Metrics of a model's draws: streaming averages of predictions against plain averages."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from predictive_models import random_draws, small_network, small_pmf
from small_models import gaussian_model, small_logistic_model

from sgtune import metrics
from sgtune.metrics import averages
from sgtune.model.positions import flatten
from sgtune.support.errors import InputError

MODELS = {"logistic": small_logistic_model, "pmf": small_pmf, "network": small_network}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param]()


@pytest.fixture(scope="module")
def network():
    return small_network()


def every_prediction(model, draws, inputs):
    """All predictions in float64, one draw at a time."""
    inputs = jax.tree.map(jnp.asarray, inputs)
    return np.array([model.predict(model.unravel(jnp.asarray(draw)), inputs) for draw in draws], np.float64)


@pytest.mark.parametrize("n", [1, averages.CHUNK, averages.CHUNK + 7])
def test_averages_are_those_of_the_single_predictions(model, n):
    draws = random_draws(model, n)
    predictions = every_prediction(model, draws, model.test_data["inputs"])
    mean = predictions.mean(axis=0)
    np.testing.assert_allclose(metrics.mean_prediction(model, draws), mean, rtol=1e-5, atol=1e-7)
    found = metrics.average_predictions(model, draws)
    np.testing.assert_allclose(found["mean"], mean, rtol=1e-5, atol=1e-7)
    if model.task == "regression":
        errors = np.mean((predictions - model.test_data["targets"]) ** 2)
        assert found["mean_squared_error"] == pytest.approx(errors, rel=1e-5)
    else:
        classes = np.stack([1 - predictions, predictions], axis=-1) if predictions.ndim == 2 else predictions
        logs = np.log(np.maximum(classes, np.finfo(np.float32).tiny))
        # 1 - p has the rounding error of float32, 6e-8.
        sure = classes.min(axis=0) > 1e-3
        np.testing.assert_allclose(found["mean_log"][sure], logs.mean(axis=0)[sure], atol=1e-3)


@pytest.mark.parametrize("average", [metrics.mean_prediction, metrics.average_predictions])
def test_a_model_that_does_not_predict_is_refused_by_name(average):
    model = gaussian_model(np.eye(2), np.zeros(2))
    with pytest.raises(InputError, match=f"^model: {model.name!r} makes no predictions; it needs predict"):
        average(model, np.zeros((3, model.dimension), np.float32))


def test_predictive_metrics_are_those_of_the_averages(model):
    draws = random_draws(model, 9)
    predictions = every_prediction(model, draws, model.test_data["inputs"])
    targets, mean = model.test_data["targets"], predictions.mean(axis=0)
    if model.task == "regression":
        wanted = {
            "rmse": np.sqrt(np.mean((mean - targets) ** 2)),
            "rmse_published": np.mean((predictions - targets) ** 2),
        }
    else:
        both = np.stack([1 - predictions, predictions], axis=-1) if mean.ndim == 1 else predictions
        mean_log = np.log(np.maximum(both, np.finfo(np.float32).tiny)).mean(axis=0)
        wanted = {
            name: getattr(metrics, name)(mean, targets)
            for name in ("accuracy", "log_loss", "brier", "ece", "mce")
        }
        wanted |= {
            name: getattr(metrics, name)(mean_log, targets) for name in ("ece_published", "mce_published")
        }
    found = metrics.predictive_metrics(model, draws)
    assert tuple(found) == metrics.predictive_names(model)
    assert found == pytest.approx(wanted, abs=2e-3)


def test_draws_that_are_not_finite_have_no_metrics(model):
    lost = random_draws(model, 5)
    lost[-1, 0] = np.nan
    for draws in (lost, lost[:0]):
        found = metrics.predictive_metrics(model, draws)
        assert tuple(found) == metrics.predictive_names(model)
        assert np.isnan(list(found.values())).all()


def test_metrics_at_a_position_are_those_of_one_draw(model):
    position = model.init(jax.random.key(1))
    assert metrics.at_position(model, position) == metrics.predictive_metrics(model, flatten(position)[None])


def test_out_of_distribution_entropies_are_of_the_averaged_predictions(network):
    draws, ood = random_draws(network, 70), network.test_data["ood"]
    at_test, elsewhere = (
        every_prediction(network, draws, inputs).mean(axis=0)
        for inputs in (network.test_data["inputs"], ood["inputs"])
    )
    found = metrics.ood_metrics(network, draws)
    assert (found["name"], found["missing"]) == ("noise", None)
    assert found["entropy_test"] == pytest.approx(metrics.predictive_entropy(at_test).mean(), rel=1e-4)
    assert found["entropy_ood"] == pytest.approx(metrics.predictive_entropy(elsewhere).mean(), rel=1e-4)
    wanted = metrics.compare_entropies(at_test, elsewhere)
    assert found["auroc"] == pytest.approx(wanted["auroc"], abs=1e-3)
    assert len(found["histogram_test"]) == len(found["edges"]) - 1
    assert metrics.ood_metrics(small_logistic_model(), np.zeros((3, 2), np.float32)) is None
