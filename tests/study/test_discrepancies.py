"""The study of the discrepancies of draws of known width."""

import numpy as np
import pytest
from small_models import gaussian_model

from sgtune.mode.curvature import laplace_scale
from sgtune.posterior import scores
from sgtune.stein import fssd, ksd
from sgtune.study.discrepancies import measure_widths

PRECISION, MEAN = np.array([[2.0, -1.2], [-1.2, 1.5]]), np.array([0.5, -1.0])


@pytest.fixture(scope="module")
def model():
    return gaussian_model(PRECISION, MEAN, n_data=40)


def test_widths_are_in_posterior_sds(model):
    rng = np.random.default_rng(0)
    draws = rng.multivariate_normal(MEAN, np.linalg.inv(PRECISION), 60).astype(np.float32)
    widths = [0, 0.5, 1, 2]
    rows = measure_widths(model, draws, widths=widths, points=60)
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
