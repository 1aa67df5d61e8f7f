"""Pictures show what the tables say: survivors, the arm that was chosen, dead arms, and parameters that were named."""

from itertools import product

import jax.numpy as jnp
import matplotlib
import numpy as np
import pandas as pd
import pytest

import sgtune
from sgtune.bridges.plots import BAD, OK, plot_chains, plot_diagnosis, plot_race

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _closed():
    yield
    matplotlib.pyplot.close("all")


def rungs():
    columns = ["rung", "step_size", "batch_size", "n_leapfrog", "steps", "discrepancy", "pruned", "race"]
    rows = []
    for race in (1, 2):
        rows += [
            (1, 1e-3, 10, None, 10, 0.4, True, race),
            (1, 1e-3, 20, None, 10, 0.2, False, race),
            (1, 1e-2, 20, None, 10, 0.3 * race, False, race),
            (1, 1e-1, 20, None, 10, None, True, race),
            (2, 1e-3, 20, None, 10, 0.2, True, race),
            (2, 1e-2, 20, None, 10, 0.1, False, race),
        ]
    return pd.DataFrame(rows, columns=columns)


def points_of(axis, *, is_full):
    """The points of all collections that are filled, or those that are not, without crosses and rings."""
    found = []
    for each in axis.collections:
        if each.get_sizes()[0] == 28 and len(each.get_offsets()):
            assert len(each.get_edgecolor()) == 1
            if bool(len(each.get_facecolor())) == is_full:
                found += each.get_offsets().tolist()
    return sorted(found)


def test_a_race_has_a_panel_for_each_rung_of_its_last_race():
    axes = plot_race(rungs(), {"step_size": 1e-2, "batch_size": 20})
    assert len(axes) == 2
    assert points_of(axes[0], is_full=True) == [[1e-3, 0.2], [1e-2, 0.6]]
    assert points_of(axes[0], is_full=False) == [[1e-3, 0.4]]
    assert points_of(axes[1], is_full=True) == [[1e-2, 0.1]]
    crosses = [each for each in axes[0].collections if each.get_sizes()[0] == 24]
    assert [each.get_offsets()[:, 0].tolist() for each in crosses if len(each.get_offsets())] == [[0.1]]
    for axis, value in zip(axes, (0.6, 0.1), strict=True):
        (ring,) = [each for each in axis.collections if each.get_sizes()[0] == 140]
        assert ring.get_offsets().tolist() == [[1e-2, value]]
    # A dead arm beyond all others is in the picture.
    assert axes[0].get_xlim()[0] < 1e-3
    assert axes[0].get_xlim()[1] > 1e-1
    legend = axes[-1].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["10", "20"]


def test_a_race_of_one_size_without_a_winner():
    axes = plot_race(rungs().query("batch_size == 20 and race == 1").drop(columns="race"), None)
    assert points_of(axes[1], is_full=True) == [[1e-2, 0.1]]
    assert axes[-1].get_legend() is None
    assert not [each for each in axes[0].collections if each.get_sizes()[0] == 140]


def test_arms_that_differ_look_different():
    """With more of them than there are colours."""
    arms = list(product((10, 20, 30), (1, 2, 5, 10)))
    tables = [rungs().assign(batch_size=batch, n_leapfrog=steps) for batch, steps in arms]
    legend = plot_race(pd.concat(tables), None)[-1].get_legend()
    looks = {(handle.get_color(), handle.get_marker()) for handle in legend.legend_handles}
    assert len(looks) == len(legend.legend_handles) == 12
    assert [text.get_text() for text in legend.get_texts()] == [f"{batch}, {steps}" for batch, steps in arms]


def test_traces_are_against_the_step():
    chains = np.random.default_rng(0).standard_normal((2, 50, 3))
    chains[0, :, 2], chains[1, 3, 1] = 1.0, np.nan
    axes = plot_chains(chains, ["a", "b", "c"], stride=4)
    assert axes.shape == (3, 2)
    assert [row[0].get_ylabel() for row in axes] == ["a", "b", "c"]
    for place, row in enumerate(axes):
        for line, chain in zip(row[0].lines, chains, strict=True):
            np.testing.assert_array_equal(line.get_xdata(), np.arange(4, 201, 4))
            np.testing.assert_array_equal(line.get_ydata(), chain[:, place])


def test_a_chain_that_diverged_does_not_hide_the_others():
    chains = np.random.default_rng(0).standard_normal((2, 50, 1))
    chains[1, :20], chains[1, 20:] = 10.0 ** np.arange(20)[:, None], np.nan
    low, high = plot_chains(chains, ["a"])[0, 0].get_ylim()
    assert low < chains[0].min() < chains[0].max() < high
    assert high - low < 1.3 * np.ptp(chains[0])


def test_chains_are_named_and_parameters_that_the_model_calls_otherwise():
    """A trace of log sd under the name of sd would show an sd below zero."""
    zero = jnp.zeros(())
    model = sgtune.define_model(
        "normal",
        log_prior=lambda p: -0.5 * p["mean"] ** 2 - 0.5 * p["sd"] ** 2,
        log_likelihood=lambda p, rows: -0.5 * ((rows - p["mean"]) * jnp.exp(-p["sd"])) ** 2 - p["sd"],
        data=np.random.default_rng(0).normal(size=50),
        init=lambda key: {"mean": zero, "sd": zero},
        constrain=lambda p, rows: {"mean": p["mean"], "sd": jnp.exp(p["sd"])},
    )
    arm = {"step_size": 1e-3, "batch_size": 10, "budget": sgtune.Budget(steps=60)}
    run = sgtune.sample(model, "sgld", **arm, chains=2)
    axes = run.plot()
    assert {row[0].get_ylabel() for row in axes} == {"mean", "sd\n(unconstrained)"}
    (legend,) = axes[0, 0].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["chain 0", "chain 1"]
    assert not run[0].plot()[0, 0].figure.legends


def test_parameters_that_were_named_are_red_and_the_worst_is_at_the_top():
    columns = ["sd_ratio", "sd_ratio_se", "mean_error", "mean_error_se", "problems"]
    rows = [(2.0, 0.1, 0.0, 0.1, "too wide"), (1.0, 0.1, 0.1, 0.1, "")]
    axis = plot_diagnosis(pd.DataFrame(rows, columns=columns, index=["u", "v"]))[0]
    labels = [text.get_text() for text in axis.get_yticklabels()]
    assert dict(zip(axis.get_yticks(), labels, strict=True)) == {1: "u: too wide", 0: "v"}
    marks = [line for line in axis.lines if line.get_marker() == "o"]
    shown = [(line.get_xdata()[0], line.get_ydata()[0], line.get_color()) for line in marks]
    assert shown == [(2, 1, BAD), (1, 0, OK)]
