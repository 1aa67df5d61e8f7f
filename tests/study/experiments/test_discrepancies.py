"""The studies of discrepancies: estimates, draws of known width, and the errors that each judge sees in exact draws."""

from functools import partial

import numpy as np
import pytest
from job_pieces import Log
from small_models import gaussian_model

from sgtune.mode.curvature import laplace_scale
from sgtune.model.posterior import scores
from sgtune.sampling.budget import CostTable
from sgtune.stein import fssd, fssd_at, ksd, optimise_locations, psd, virial
from sgtune.study.experiments import discrepancies

pytestmark = pytest.mark.optimised

PRECISION, MEAN = np.array([[2.0, -1.2], [-1.2, 1.5]]), np.array([0.5, -1.0])
SIGMAS = 4.5


@pytest.fixture(scope="module")
def model():
    return gaussian_model(PRECISION, MEAN, n_data=40)


def test_widths_are_in_posterior_sds(model):
    rng = np.random.default_rng(0)
    draws = rng.multivariate_normal(MEAN, np.linalg.inv(PRECISION), 60).astype(np.float32)
    widths = [0, 0.5, 1, 2]
    rows = discrepancies.measure_widths(model, draws, {"widths": widths, "points": 60})
    assert [row["width"] for row in rows[::4]] == widths
    for row in rows:
        centre = draws.mean(axis=0, dtype=np.float64)
        points = (centre + row["width"] * (draws - centre)).astype(np.float32)
        if row["width"] == 0:
            # A chain that stays at the mode.
            points = np.repeat(MEAN[None].astype(np.float32), 60, 0)
        scale = laplace_scale(model) if row["scale"] == "laplace" else "identity"
        measure = {"ksd": ksd, "fssd": fssd}[row["discrepancy"]]
        options = {} if row["discrepancy"] == "ksd" else {"seed": 0}
        expected = measure(points, scores(model, points), scale=scale, **options)
        assert row["value"] == pytest.approx(expected, rel=1e-3, abs=1e-3)
        assert row["n_points"] == 60


def test_estimates_in_four_ways_and_an_arm_of_both_figures_once(model):
    log = Log(None, model, cost=CostTable({("sgld", n, None): 0.01 for n in (4, 40)}))
    section = {"log10_step_sizes": [-1, -2, 3], "batch_fractions": [1, 0.1], "batch_fraction": 0.1}
    section |= {"log10_step_size": -2, "seconds": 0.6, "thin": 5, "max_points": 30}
    rows = discrepancies.estimate_discrepancies(log.task, section)
    # Sixty steps, of which every other one is a point. Four arms: 0.01 with batches of 4 is in both figures.
    assert len(log) == 4
    assert len(rows) == 4 * (3 + 2)
    assert {(row["points"], row["n_points"]) for row in rows} == {("all", 30), ("thinned", 6)}
    names = ("figure", "step_size", "batch_size", "points", "gradients")
    found = {tuple(row[name] for name in names): row for row in rows}
    for points in ("all", "thinned"):
        for gradients in ("full-batch", "stochastic"):
            once, again = (
                found[figure, 0.01, 4, points, gradients] for figure in ("step_size", "batch_size")
            )
            assert once == again | {"figure": "step_size"}
            # A chain that diverged.
            assert found["step_size", 1000.0, 4, points, gradients]["ksd"] == np.inf
        exact, estimated = (
            found["batch_size", 0.01, 40, points, kind] for kind in ("full-batch", "stochastic")
        )
        assert estimated["ksd"] == pytest.approx(exact["ksd"], rel=1e-4)
        assert found["step_size", 0.01, 4, points, "stochastic"]["ksd"] != exact["ksd"]


@pytest.mark.parametrize("name", ["width", "direction"])
@pytest.mark.parametrize("dimension", [3, 201])
def test_scores_are_those_of_the_gaussian_that_exact_draws_are_from(name, dimension):
    disturbed = discrepancies.PERTURBATIONS[name]
    correlation = discrepancies.CORRELATION if name == "direction" and dimension == 201 else 0.0
    covariance = (1 - correlation) * np.eye(dimension) + correlation
    for size in (disturbed.exact, disturbed.sizes[1]):
        positions, scores = disturbed.draw(discrepancies.draw_normals(50, dimension, 0), size)
        assert np.allclose(scores, -np.linalg.solve(covariance, positions.T.astype(float)).T, atol=1e-4)
    exact, _ = disturbed.draw(discrepancies.draw_normals(4_000, dimension, 0), disturbed.exact)
    # The variance equals the target's in any direction: one coordinate, and the sum of all.
    for direction in (np.eye(dimension)[0], np.ones(dimension)):
        variance = direction @ covariance @ direction
        along = exact @ direction
        assert abs(along.mean()) < SIGMAS * np.sqrt(variance / 4_000)
        assert abs(along.var() / variance - 1) < SIGMAS * np.sqrt(2 / 4_000)


def test_a_disturbance_is_of_what_it_says_and_leaves_the_rest_as_it_is():
    same = discrepancies.draw_normals(2_000, 250, 0)

    def drawn(name, size):
        return discrepancies.PERTURBATIONS[name].draw(same, size)[0].astype(float)

    assert np.allclose(drawn("width", 1.5), 1.5 * same.noise, rtol=1e-6)
    exact, half, frozen = (drawn("direction", size) for size in (1.0, 0.5, 0.0))
    assert np.allclose(half.mean(axis=1), 0.5 * exact.mean(axis=1), atol=1e-5)
    assert np.allclose(frozen - exact, -exact.mean(axis=1)[:, None], atol=1e-5)
    few = discrepancies.draw_normals(20, 5, 0)
    drawn_few = discrepancies.PERTURBATIONS["direction"].draw(few, 0.5)[0]
    assert np.allclose(drawn_few, few.noise * [0.5, 1, 1, 1, 1])


@pytest.mark.parametrize(("dimension", "n"), [(4, 14), (203, 9)])
def test_values_are_those_of_the_library_and_their_squares_are_jackknifed(dimension, n):
    """Which leaves each draw with itself out, where a square is a mean over pairs: it has no bias."""
    positions, scores = discrepancies.PERTURBATIONS["width"].draw(
        discrepancies.draw_normals(n, dimension, 0), 2.0
    )
    found = discrepancies.judged(positions, scores, seed=3)
    x, s = positions.astype(float), scores.astype(float)
    wide = np.full(dimension, np.sqrt(dimension))
    locations = optimise_locations(positions[::2], scores[::2], seed=3)
    measures = {
        "ksd": (ksd, x, s),
        "ksd_wide": (partial(ksd, scale=wide), x, s),
        "fssd": (partial(fssd_at, locations=locations), x[1::2], s[1::2]),
        "psd": (psd, x, s),
        "virial": (virial, x, s),
    }
    assert set(found) == set(measures) == set(discrepancies.JUDGES)
    for judge, (measure, x_read, s_read) in measures.items():
        value, m = measure(x_read, s_read), len(x_read)
        own = np.mean([measure(x_read[[i]], s_read[[i]]) ** 2 for i in range(m)])
        rest = [(np.delete(x_read, i, 0), np.delete(s_read, i, 0)) for i in range(m)]
        jackknife = m * value**2 - (m - 1) * np.mean([measure(*one) ** 2 for one in rest])
        assert found[judge].value == pytest.approx(value, rel=1e-5)
        assert found[judge].square == pytest.approx(jackknife, rel=1e-4, abs=m * 1e-5 * own)
        if judge != "virial":
            pairs = (m * value**2 - own) / (m - 1)
            assert found[judge].square == pytest.approx(pairs, rel=1e-5, abs=1e-5 * own)
    assert found["fssd"].value == pytest.approx(fssd(positions, scores, seed=3), rel=1e-5)


@pytest.mark.parametrize("n", [4, 6, 20])
@pytest.mark.parametrize("signal", [0.0, 5.0])
def test_a_signal_is_an_unbiased_difference_of_means_in_sds_with_its_standard_error(n, signal):
    rng = np.random.default_rng(0)
    own, exact = (
        7 + 2 * rng.standard_normal((10_000, n)),
        7 - 2 * signal + 2 * rng.standard_normal((10_000, n)),
    )
    found = [discrepancies.signal_over_noise(*pair) for pair in zip(own, exact, strict=True)]
    signals, errors = np.array(found).T
    assert abs(signals.mean() - signal) < SIGMAS * signals.std() / 100
    # The squares of the errors are those of the estimates, whose mean is larger than that of the true signal.
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(signals.std(), rel=0.1)
    unequal = 7 + rng.standard_normal((10_000, n))
    signals, errors = np.array(
        [discrepancies.signal_over_noise(*pair) for pair in zip(unequal, exact, strict=True)]
    ).T
    assert errors.mean() == pytest.approx(signals.std(), rel=0.2)


def test_rows_are_of_every_judge_and_size_repeat_and_depend_on_the_seed(monkeypatch):
    """One size of each alone: the FSSD chooses its locations anew for each, which takes most of the time."""
    some = {name: one._replace(sizes=one.sizes[:1]) for name, one in discrepancies.PERTURBATIONS.items()}
    monkeypatch.setattr(discrepancies, "PERTURBATIONS", some)
    first, again, other = (
        discrepancies.measure_sensitivity(dimensions=[3], points=[10], replicates=3, seed=seed)
        for seed in (0, 0, 1)
    )
    assert first == again
    assert first != other
    assert len(first) == len(discrepancies.JUDGES) * 2 * len(some)
    exact = {name: one.exact for name, one in some.items()}
    assert {row["value_signal"] for row in first if row["size"] == exact[row["perturbation"]]} == {0}
    assert discrepancies.numbers_of_points(10, [500, 15]) == [15, 500]
    assert discrepancies.numbers_of_points(50_000, [15, 100, 500]) == [15, 100]
