"""Metrics of predictions against naive loops and cases by hand; streaming averages of predictions."""

from collections import OrderedDict

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from predictive_models import random_draws, small_network, small_pmf
from small_models import gaussian_model, model_of_prior, small_logistic_model

from sgtune import InputError, metrics
from sgtune.metrics import averages
from sgtune.model.positions import flatten


def random_predictions(seed, m=500, classes=4):
    """Targets, and probabilities that favour the right class more often than not."""
    rng = np.random.default_rng(seed)
    targets = rng.integers(0, classes, m)
    logits = 1.5 * rng.standard_normal((m, classes)) + 1.2 * np.eye(classes)[targets]
    return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True), targets


def naive_gaps(confidence, is_right, belongs, n_bins):
    """[(gap, share)] of the nonempty bins, by a loop over the data."""
    gaps = []
    for number in range(n_bins):
        inside = [i for i, value in enumerate(confidence) if belongs(value, number)]
        if inside:
            accuracy = sum(bool(is_right[i]) for i in inside) / len(inside)
            mean = sum(confidence[i] for i in inside) / len(inside)
            gaps.append((abs(accuracy - mean), len(inside) / len(confidence)))
    return gaps


@pytest.mark.parametrize(
    "name", ["accuracy", "log_loss", "brier", "ece", "mce", "ece_published", "mce_published", "rmse"]
)
def test_metrics_refuse_targets_of_another_shape_than_the_predictions(name):
    """(m, 1) targets would be broadcast to (m, m)."""
    probabilities, targets = random_predictions(0, m=20)
    predictions = probabilities[:, 0] if name == "rmse" else probabilities
    measure = getattr(metrics, name)
    assert np.isfinite(measure(predictions, targets))
    for wrong in (targets[:, None], targets[:-1]):
        with pytest.raises(InputError, match=r"^targets: shape \(.*\) is not allowed; it must be \(20,\)"):
            measure(predictions, wrong)
    with pytest.raises(InputError, match=r"^targets: shape \(0,\) .* at least one"):
        measure(predictions[:0], targets[:0])
    if name == "rmse":
        with pytest.raises(InputError, match=r"^predictions: shape \(20, 3\) .* \(20,\)"):
            measure(probabilities[:, :3], targets)
        return
    # NumPy would take -1 for the last class, and cut 1.5.
    for value in (-1, probabilities.shape[1], 1.5):
        with pytest.raises(
            InputError, match=f"^targets: {value} is not allowed; it must be an integer from 0"
        ):
            measure(probabilities, np.where(np.arange(20) == 3, value, targets))


def test_scores_of_predictions_are_those_of_their_definitions():
    probabilities, targets = random_predictions(3, m=20, classes=4)
    truth = np.eye(4)[targets]
    logs = np.log(np.sum(probabilities * truth, axis=1))
    assert metrics.log_loss(probabilities, targets) == pytest.approx(-np.mean(logs))
    assert metrics.accuracy(probabilities, targets) == np.mean(probabilities.argmax(axis=1) == targets)
    squares = np.sum((probabilities - truth) ** 2, axis=1)
    assert metrics.brier(probabilities, targets) == pytest.approx(np.mean(squares))
    root = metrics.rmse(np.array([1.0, 2.0, 4.0]), np.array([1.0, 0.0, 1.0]))
    assert root == pytest.approx((13 / 3) ** 0.5)


@pytest.mark.parametrize("classes", [2, 4, 10])
def test_calibration_errors_are_those_of_a_naive_loop(classes):
    probabilities, targets = random_predictions(classes, classes=classes)
    is_right = probabilities.argmax(axis=1) == targets
    gaps = naive_gaps(probabilities.max(axis=1), is_right, lambda p, b: b / 15 < p <= (b + 1) / 15, n_bins=15)
    assert len(gaps) > 5
    assert metrics.ece(probabilities, targets) == pytest.approx(sum(gap * share for gap, share in gaps))
    assert metrics.mce(probabilities, targets) == pytest.approx(max(gap for gap, _ in gaps))


@pytest.mark.parametrize("classes", [2, 4, 10])
def test_published_calibration_errors_are_those_of_a_naive_loop(classes):
    """Geometric means, and ten bins over their range without upper edges, so that the largest is in no bin."""
    several = [random_predictions(seed, classes=classes)[0] for seed in range(5)]
    targets = random_predictions(0, classes=classes)[1]
    geometric = np.prod(several, axis=0) ** (1 / 5)
    confidence, is_right = geometric.max(axis=1), geometric.argmax(axis=1) == targets
    low, high = confidence.min(), confidence.max()
    edges = low + np.arange(11) * (high - low) / 10
    gaps = naive_gaps(confidence, is_right, lambda p, b: edges[b] <= p < min(edges[b + 1], high), n_bins=10)
    assert sum(share for _, share in gaps) == pytest.approx(1 - 1 / len(targets))
    mean_log = np.mean(np.log(several), axis=0)
    assert metrics.ece_published(mean_log, targets) == pytest.approx(sum(gap * share for gap, share in gaps))
    assert metrics.mce_published(mean_log, targets) == pytest.approx(max(gap for gap, _ in gaps))


def test_a_bin_has_its_upper_edge():
    """0.6 = 9 / 15 is in the bin of 0.59, not in the bin of 0.61."""
    for other, gap in ((0.59, 0.095), (0.61, 0.61)):
        of_class_1 = 1 - np.array([0.6, other])
        assert metrics.mce(of_class_1, np.array([0, 1])) == pytest.approx(gap)


@pytest.mark.parametrize("name", ["accuracy", "log_loss", "brier", "ece", "mce", "predictive_entropy"])
def test_the_probability_of_class_1_is_enough_for_two_classes(name):
    probabilities, targets = random_predictions(3, classes=2)
    arguments = () if name == "predictive_entropy" else (targets,)
    measure = getattr(metrics, name)
    np.testing.assert_allclose(measure(probabilities[:, 1], *arguments), measure(probabilities, *arguments))


def test_auroc_counts_pairs():
    rng = np.random.default_rng(0)
    negatives, positives = rng.integers(0, 9, 70) / 3, rng.integers(2, 12, 50) / 3
    pairs = [(n < p) + 0.5 * (n == p) for n in negatives for p in positives]
    assert np.mean([n == p for n in negatives for p in positives]) > 0
    assert metrics.auroc(negatives, positives) == pytest.approx(np.mean(pairs))
    assert metrics.auroc(negatives, negatives) == pytest.approx(0.5)
    assert metrics.auroc(np.array([1.0, 2.0]), np.array([3.0])) == 1


def test_entropies_and_their_densities():
    sure, even = np.eye(10)[:4], np.full((6, 10), 0.1, np.float32)
    np.testing.assert_allclose(metrics.predictive_entropy(sure), 0)
    np.testing.assert_allclose(metrics.predictive_entropy(even), np.log(10), rtol=1e-6)
    facts = metrics.compare_entropies(np.concatenate([sure, even[:1]]), even)
    assert facts["auroc"] == pytest.approx((4 + 0.5) / 5)
    assert facts["entropy_test"] == pytest.approx(np.log(10) / 5)
    assert facts["entropy_ood"] == pytest.approx(np.log(10))
    width = np.diff(facts["edges"])
    assert (facts["edges"][0], facts["edges"][-1]) == (0, pytest.approx(np.log(10)))
    np.testing.assert_allclose(np.dot(facts["histogram_ood"], width), 1)
    np.testing.assert_allclose(
        facts["histogram_test"] * width, [0.8, *[0] * (len(width) - 2), 0.2], atol=1e-9
    )


def test_sd_errors_by_block_see_their_own_parameters_only():
    model = small_pmf()
    sizes, shapes = metrics.position_blocks(model), model.position_shape
    assert sizes.keys() == shapes.keys()
    reference = np.linspace(1, 2, model.dimension)
    for block in sizes:
        # The columns are in the order of a flat position, from which the blocks must select theirs.
        factor = flatten(
            {name: np.full(shapes[name].shape, 1.0 + (name == block), np.float32) for name in sizes}
        )
        errors = metrics.relative_sd_error_by_block(model, factor * reference, reference)
        assert errors == pytest.approx({name: float(name == block) for name in sizes})
    with pytest.raises(
        InputError, match=rf"^sd: shape \(5,\) is not allowed; it must be \({model.dimension},\)"
    ):
        metrics.relative_sd_error_by_block(model, reference[:5], reference[:5])
    assert metrics.position_blocks(small_logistic_model()) == {}
    # JAX sorts the keys of a dict, and leaves those of an ordered one as they are.
    nested = OrderedDict(b=np.zeros(2), a={"d": np.zeros(1), "c": np.zeros(2)})
    ordered = model_of_prior(lambda position: 0.0, nested)
    assert metrics.position_blocks(ordered) == {"b": slice(0, 2), "a": slice(2, 5)}


MODELS = {"logistic": small_logistic_model, "pmf": small_pmf, "network": small_network}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param]()


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
    with pytest.raises(InputError, match=r"^draws: shape \(0, \d+\) is not allowed; it must be \(n >= 1"):
        average(small_logistic_model(), np.zeros((0, small_logistic_model().dimension), np.float32))


def test_predictive_metrics_are_those_of_the_averages(model):
    draws, targets = random_draws(model, 9), model.test_data["targets"]
    averages = metrics.average_predictions(model, draws)
    if model.task == "regression":
        wanted = {"rmse": metrics.rmse(averages["mean"], targets)}
        wanted["rmse_published"] = averages["mean_squared_error"]
    else:
        names = dict.fromkeys(("accuracy", "log_loss", "brier", "ece", "mce"), "mean")
        names |= dict.fromkeys(("ece_published", "mce_published"), "mean_log")
        wanted = {name: getattr(metrics, name)(averages[of], targets) for name, of in names.items()}
    found = metrics.predictive_metrics(model, draws)
    assert tuple(found) == metrics.predictive_names(model)
    assert found == pytest.approx(wanted, rel=1e-6)
    position = model.unravel(jnp.asarray(draws[0]))
    assert metrics.at_position(model, position) == metrics.predictive_metrics(model, draws[:1])


def test_draws_that_are_not_finite_have_no_metrics(model):
    lost = random_draws(model, 5)
    lost[-1, 0] = np.nan
    for draws in (lost, lost[:0]):
        found = metrics.predictive_metrics(model, draws)
        assert tuple(found) == metrics.predictive_names(model)
        assert np.isnan(list(found.values())).all()


def test_out_of_distribution_entropies_are_of_the_averaged_predictions():
    network = small_network()
    draws, ood = random_draws(network, 70), network.test_data["ood"]
    at_test, elsewhere = (
        every_prediction(network, draws, data["inputs"]).mean(axis=0) for data in (network.test_data, ood)
    )
    found, wanted = metrics.ood_metrics(network, draws), metrics.compare_entropies(at_test, elsewhere)
    assert (found["name"], found["missing"]) == ("noise", None)
    for name in ("entropy_test", "entropy_ood"):
        assert found[name] == pytest.approx(wanted[name], rel=1e-4)
    assert found["auroc"] == pytest.approx(wanted["auroc"], abs=1e-3)
    assert len(found["histogram_test"]) == len(found["edges"]) - 1
    assert metrics.ood_metrics(small_logistic_model(), np.zeros((3, 2), np.float32)) is None
