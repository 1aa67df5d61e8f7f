"""The study of the discrepancies of draws of known width."""

import numpy as np
import pytest
from job_pieces import Log
from small_models import gaussian_model

from sgtune.mode.curvature import laplace_scale
from sgtune.model.posterior import scores
from sgtune.sampling.budget import CostTable
from sgtune.stein import fssd, ksd
from sgtune.study.experiments.discrepancies import estimate_discrepancies, measure_widths

PRECISION, MEAN = np.array([[2.0, -1.2], [-1.2, 1.5]]), np.array([0.5, -1.0])


@pytest.fixture(scope="module")
def model():
    return gaussian_model(PRECISION, MEAN, n_data=40)


def test_widths_are_in_posterior_sds(model):
    rng = np.random.default_rng(0)
    draws = rng.multivariate_normal(MEAN, np.linalg.inv(PRECISION), 60).astype(np.float32)
    widths = [0, 0.5, 1, 2]
    rows = measure_widths(model, draws, {"widths": widths, "points": 60})
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
    rows = estimate_discrepancies(log.task, section)
    # Sixty steps, of which every other one is a point. Four arms: 0.01 with batches of 4 is in both figures.
    assert len(log) == 4
    assert len(rows) == 4 * (3 + 2)
    assert {(row["points"], row["n_points"]) for row in rows} == {("all", 30), ("thinned", 6)}
    found = {
        (row["figure"], row["step_size"], row["batch_size"], row["gradients"], row["points"]): row
        for row in rows
    }
    for gradients in ("full-batch", "stochastic"):
        for points in ("all", "thinned"):
            once, again = (
                found[figure, 0.01, 4, gradients, points] for figure in ("step_size", "batch_size")
            )
            assert once == again | {"figure": "step_size"}
            # A chain that diverged.
            assert found["step_size", 1000.0, 4, gradients, points]["ksd"] == np.inf
    for points in ("all", "thinned"):
        exact, estimated = (
            found["batch_size", 0.01, 40, kind, points] for kind in ("full-batch", "stochastic")
        )
        for name in ("ksd", "fssd", "ksd_scaled", "fssd_scaled"):
            assert estimated[name] == pytest.approx(exact[name], rel=1e-4)
            assert found["step_size", 0.01, 4, "stochastic", points][name] != exact[name]
