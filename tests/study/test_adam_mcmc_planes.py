"""Targets in the plane: their moments under exact draws, the measured bias, and its table."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

import jax
import numpy as np
import pytest
from artifact_records import provenance_of

from sgtune.model.posterior import density_of, log_posterior
from sgtune.study.adam_mcmc.plane_bias import measure_plane_bias
from sgtune.study.adam_mcmc.plane_table import TARGETS, VARIANTS, adam_plane_bias
from sgtune.study.adam_mcmc.planes import PLANES, plane_model
from sgtune.study.adam_mcmc.verdicts import STUCK
from sgtune.study.report import make_table
from sgtune.support.errors import InputError
from sgtune.support.files import write_json

pytestmark = pytest.mark.optimised

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


def test_the_papers_algorithm_is_biased_at_a_step_at_which_the_exact_variant_is_not(measured):
    def deviations(variant):
        own = [c for c in measured["cells"] if (c["variant"], c["ratio"]) == (variant, 1.0)]
        assert len(own) == sum(len(plane.moments) for plane in PLANES.values())
        squares = np.array([cell["squares"] for cell in own])
        return (squares.mean(axis=1) - 1) / (squares.std(axis=1, ddof=1) / np.sqrt(squares.shape[1]))

    assert np.abs(deviations("prolate")).max() > 8
    assert np.abs(deviations("prolate-quick")).max() > 8
    assert np.abs(deviations("exact")).max() < SIGMAS


def test_the_table_has_a_row_per_moment_and_variant(measured, tmp_path):
    write_json(
        tmp_path / "plane_bias.json", measured | {"run": "tiny", "config": "0", **provenance_of("plane_bias")}
    )
    files = {kind: tmp_path / f"adam_plane_bias.{kind}" for kind in ("csv", "md", "html")}
    make_table("adam_plane_bias", [tmp_path / "plane_bias.json"], **files)
    table = adam_plane_bias({"plane_bias": [measured]})
    assert [heading for _, heading in table.columns] == ["0.02", "1"]
    labels = [row.labels for row in table.rows]
    assert {target for target, _, _ in labels} == set(TARGETS.values())
    assert len(labels) == len(set(labels)) == 3 * sum(len(plane.moments) for plane in PLANES.values())
    assert [variant for _, _, variant in labels[:3]] == list(VARIANTS.values())
    assert len({label[:2] for label in labels[:3]}) == 1
    for row in table.rows:
        assert f"| {' | '.join(row.labels)} |" in files["md"].read_text("utf-8")


def cell_of(variant, moment, squares, acceptance=0.5):
    cell = {"target": "banana", "variant": variant, "ratio": 0.1, "moment": moment, "squares": squares}
    return cell | {"halves": [squares, squares], "jump": [1.0] * 4, "acceptance": [acceptance] * 4}


def test_the_caption_counts_the_moments_that_differ_and_those_that_are_too_slow():
    """Four chains: the interval is 3.18 standard errors to each side."""
    cells = [
        cell_of("prolate", "near", [0.9, 1.0, 1.1, 1.02]),
        cell_of("prolate", "far", [0.5, 0.51, 0.52, 0.53]),
        cell_of("prolate", "stuck", [1.0, 1.0, 1.0, 1.0], acceptance=1e-4),
        cell_of("exact", "near", [1.0, 1.0, 1.0, 1.0]),
    ]
    found = {"noise": 0.5, "steps": 1_000, "warmup": 100, "chains": 4, "cells": cells}
    table = adam_plane_bias({"plane_bias": [found]})
    assert table.caption.split("\n")[0] == (
        "As in the paper: by 95% t intervals a moment differs from its exact value in 1 of 2 cases (1 more is too slow "
        "to tell); at γ / s = 0.1 the moment furthest from 1 is 0.5150 ± 0.0065 (Banana, far). Exact, b₁ = 0.5, "
        "b₂ = 0.9: by 95% t intervals a moment differs from its exact value in 0 of 1 case; at γ / s = 0.1 the moment "
        "furthest from 1 is 1 (Banana, near). Of an unbiased sampler one interval in 20 excludes 1."
    )
    shown = {row.labels[1:]: row.cells[0].shown for row in table.rows}
    assert shown["stuck", "as in the paper"] == STUCK
    assert shown["near", "exact, b₁ = 0.5, b₂ = 0.9"] == "1"
