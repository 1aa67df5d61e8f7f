"""Targets in the plane: their moments under exact draws, the measured bias, and its table."""

import jax
import numpy as np
import pytest

from sgtune.errors import InputError
from sgtune.posterior import density_of, log_posterior
from sgtune.study.adam_mcmc.plane_bias import measure_plane_bias
from sgtune.study.adam_mcmc.plane_table import TARGETS, adam_plane_bias
from sgtune.study.adam_mcmc.planes import PLANES, plane_model

SIGMAS = 4.5


@pytest.mark.parametrize("name", PLANES)
def test_moments_are_1_under_exact_draws(name):
    draws = PLANES[name].draw(np.random.default_rng(0), 200_000)
    for moment in PLANES[name].moments.values():
        values = moment(draws).astype(float)
        error = values.std() / np.sqrt(len(values))
        assert abs(values.mean() - 1) < SIGMAS * error
        assert error < 0.01


@pytest.mark.parametrize("name", PLANES)
def test_draws_have_the_density(name):
    """By the score's identity E[score x'] = -I, which a wrong scale, direction or weight of the draws breaks."""
    model = plane_model(name)
    draws = PLANES[name].draw(np.random.default_rng(1), 100_000).astype(np.float32)
    density = density_of(model)
    scores = jax.vmap(jax.grad(lambda position: log_posterior(density, position, model.data)))(draws)
    products = np.asarray(scores, float)[:, :, None] * draws[:, None, :]
    error = products.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(products.mean(axis=0) + np.eye(2)) < SIGMAS * error).all()
    assert (np.abs(np.mean(scores, axis=0)) < SIGMAS * np.std(scores, axis=0) / np.sqrt(len(draws))).all()


def test_an_unknown_target_is_named():
    with pytest.raises(InputError, match="target: 'ring'"):
        plane_model("ring")


@pytest.fixture(scope="module")
def measured():
    settings = {"ratios": [0.02, 1.0], "steps": 3_000, "warmup": 300, "chains": 32}
    return measure_plane_bias(settings)


def test_the_papers_algorithm_is_biased_at_large_steps_and_the_exact_variant_is_not(measured):
    def deviations(variant, ratio):
        own = [c for c in measured["cells"] if (c["variant"], c["ratio"]) == (variant, ratio)]
        assert len(own) == sum(len(plane.moments) for plane in PLANES.values())
        squares = np.array([cell["squares"] for cell in own])
        return (squares.mean(axis=1) - 1) / (squares.std(axis=1, ddof=1) / np.sqrt(squares.shape[1]))

    assert np.abs(deviations("prolate", 1.0)).max() > 8
    assert np.abs(deviations("exact", 0.02)).max() < SIGMAS


def test_the_table_has_a_row_per_moment_and_says_how_often_a_bias_is_seen(measured):
    table = adam_plane_bias({"plane_bias": [measured]})
    assert [heading for _, heading in table.columns] == ["0.02", "1"]
    labels = [row.labels for row in table.rows]
    assert {target for target, _, _ in labels} == set(TARGETS.values())
    assert len(labels) == len(set(labels)) == 12
    assert table.caption.startswith("As in the paper: by 95% t intervals a moment differs")
    for row in table.rows:
        for cell in row.cells:
            assert cell.value == pytest.approx(1, abs=0.7) or cell.missing
