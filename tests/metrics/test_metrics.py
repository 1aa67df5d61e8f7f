"""Metrics of predictions against naive loops and cases by hand; errors of sds."""

import jax
import numpy as np
import pytest
from predictive_models import small_pmf
from small_models import small_logistic_model

from sgtune import metrics
from sgtune.metrics.calibration import check_targets
from sgtune.model.positions import flatten
from sgtune.support.errors import InputError


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


def test_a_single_column_is_neither_p_of_one_nor_all_classes():
    probabilities, targets = random_predictions(0, m=20)
    for check in (check_targets, metrics.accuracy, metrics.log_loss, metrics.brier, metrics.ece):
        with pytest.raises(
            InputError, match=r"^predictions: shape \(20, 1\) is not allowed; it must be \(20,\)"
        ):
            check(probabilities[:, :1], targets)


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
    width = (high - low) / 10
    gaps = naive_gaps(
        confidence,
        is_right,
        lambda p, b: low + b * width <= p < low + (b + 1) * width and p < high,
        n_bins=10,
    )
    assert len(gaps) > 5
    assert sum(share for _, share in gaps) == pytest.approx(1 - 1 / len(targets))
    mean_log = np.mean(np.log(several), axis=0)
    assert metrics.ece_published(mean_log, targets) == pytest.approx(sum(gap * share for gap, share in gaps))
    assert metrics.mce_published(mean_log, targets) == pytest.approx(max(gap for gap, _ in gaps))


def certain(confidence):
    """Rows of two classes that give class 0 these probabilities."""
    confidence = np.asarray(confidence, float)
    return np.stack([confidence, 1 - confidence], axis=1)


def test_calibration_of_cases_done_by_hand():
    calibrated, targets = certain([0.7] * 10 + [0.9] * 10), np.array([0] * 7 + [1] * 3 + [0] * 9 + [1])
    assert metrics.ece(calibrated, targets) == pytest.approx(0, abs=1e-12)
    assert metrics.mce(calibrated, targets) == pytest.approx(0, abs=1e-12)
    wrong = certain([1.0] * 5)
    assert metrics.ece(wrong, np.ones(5, int)) == metrics.mce(wrong, np.ones(5, int)) == 1
    # 0.7 is always right: a gap of 0.3 with a quarter of the data. 0.9 is always wrong: a gap of 0.9.
    mixed, targets = certain([0.7, 0.9, 0.9, 0.9]), np.array([0, 1, 1, 1])
    assert metrics.ece(mixed, targets) == pytest.approx(0.3 / 4 + 0.9 * 3 / 4)
    assert metrics.mce(mixed, targets) == pytest.approx(0.9)


def test_a_bin_has_its_upper_edge():
    """0.6 = 9 / 15 is in the bin of 0.59, not in the bin of 0.61."""
    targets = np.array([0, 1])
    assert metrics.mce(certain([0.6, 0.59]), targets) == pytest.approx(0.095)
    assert metrics.mce(certain([0.6, 0.61]), targets) == pytest.approx(0.61)


def test_published_calibration_of_cases_done_by_hand():
    """Of 0.6 (right) and 0.9 (wrong) the larger is in no bin; if all are equal, none is in a bin."""
    targets = np.array([0, 1])
    assert metrics.ece_published(np.log(certain([0.6, 0.9])), targets) == pytest.approx(0.4 / 2)
    assert metrics.mce_published(np.log(certain([0.6, 0.9])), targets) == pytest.approx(0.4)
    assert np.isnan(metrics.ece_published(np.log(certain([0.6, 0.6])), targets))
    assert np.isnan(metrics.mce_published(np.log(certain([0.6, 0.6])), targets))


@pytest.mark.parametrize("name", ["accuracy", "log_loss", "brier", "ece", "mce", "predictive_entropy"])
def test_the_probability_of_class_1_is_enough_for_two_classes(name):
    probabilities, targets = random_predictions(3, classes=2)
    arguments = () if name == "predictive_entropy" else (targets,)
    measure = getattr(metrics, name)
    np.testing.assert_allclose(measure(probabilities[:, 1], *arguments), measure(probabilities, *arguments))


@pytest.mark.parametrize("name", ["accuracy", "log_loss", "brier", "ece", "mce"])
@pytest.mark.parametrize("classes", [2, 4])
def test_predictions_that_are_not_finite_have_no_value(name, classes):
    probabilities, targets = random_predictions(3, classes=classes)
    probabilities[7] = np.nan
    assert np.isnan(getattr(metrics, name)(probabilities, targets))
    if classes == 2:
        assert np.isnan(getattr(metrics, name)(probabilities[:, 1], targets))


def test_squared_errors_by_hand():
    assert metrics.rmse(np.array([1.0, 2.0, 5.0]), np.array([1, 4, 4])) == pytest.approx(np.sqrt(5 / 3))


@pytest.mark.parametrize("classes", [2, 4])
def test_brier_scores_are_squared_distances_to_the_true_class(classes):
    probabilities, targets = random_predictions(5, classes=classes)
    each = [
        sum((p - (c == target)) ** 2 for c, p in enumerate(row))
        for row, target in zip(probabilities, targets, strict=True)
    ]
    assert metrics.brier(probabilities, targets) == pytest.approx(np.mean(each))
    sure = np.eye(classes)
    assert metrics.brier(sure, np.arange(classes)) == 0
    assert metrics.brier(sure, (np.arange(classes) + 1) % classes) == 2
    assert metrics.brier(np.full((1, classes), 1 / classes), np.array([0])) == pytest.approx(1 - 1 / classes)


def test_losses_for_tuners_are_lower_for_better_predictions():
    probabilities, targets = random_predictions(0, m=4000)
    overconfident = np.exp(3 * np.log(probabilities))
    overconfident /= overconfident.sum(axis=1, keepdims=True)
    worse = {"accuracy": probabilities[:, ::-1], "rmse": probabilities[:, 0] + 1}
    for name, metric in metrics.PREDICTIVE.items():
        good = probabilities[:, 0] if metric.task == "regression" else probabilities
        wanted = probabilities[:, 0] if metric.task == "regression" else targets
        assert metric.loss(good, wanted) < metric.loss(worse.get(name, overconfident), wanted)
    for name in ("ece", "mce"):
        loss = metrics.PREDICTIVE[name].loss(overconfident, targets)
        assert loss == getattr(metrics, name)(overconfident, targets)
    assert metrics.mce(overconfident, targets) > 1.2 * metrics.ece(overconfident, targets)
    tasks = {name: metric.task for name, metric in metrics.PREDICTIVE.items()}
    assert tasks == dict.fromkeys(("log-loss", "accuracy", "brier", "ece", "mce"), "classification") | {
        "rmse": "regression"
    }


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
    sizes = metrics.position_blocks(model)
    assert sizes.keys() == model.position_shape.keys()
    reference = np.linspace(1, 2, model.dimension)
    for block in sizes:
        factors = {name: 1.0 + (name == block) for name in sizes}
        # The columns are in the order of a flat position, from which the blocks must select theirs.
        factor = flatten(
            jax.tree.map(
                lambda shape, value: np.full(shape.shape, value, np.float32), model.position_shape, factors
            )
        )
        errors = metrics.relative_sd_error_by_block(model, factor * reference, reference)
        assert errors == pytest.approx({name: float(name == block) for name in sizes})
    assert metrics.position_blocks(small_logistic_model()) == {}


def test_sds_of_many_columns_far_from_zero():
    draws = (1e3 + np.random.default_rng(0).standard_normal((6, 9_000))).astype(np.float32)
    np.testing.assert_allclose(metrics.sd_of_draws(draws), draws.astype(np.float64).std(axis=0), rtol=1e-12)


def test_sd_errors_of_bad_references():
    with pytest.raises(InputError, match="reference_sd: every entry"):
        metrics.relative_sd_error(np.ones(2), np.array([1.0, 0.0]))
    assert metrics.relative_sd_error(np.array([np.inf, 1.0]), np.ones(2)) == np.inf
