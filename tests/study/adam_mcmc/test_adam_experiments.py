"""The experiments of AdamMCMC's study on known targets: the chains' numbers, acceptance, and bias."""

from contextlib import contextmanager
from itertools import combinations

import jax
import numpy as np
import pytest
from small_models import gaussian_model

from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import independent_chains
from sgtune.study.adam_mcmc import known_targets
from sgtune.study.adam_mcmc.verdicts import is_biased, is_stuck, is_too_slow
from sgtune.study.pipeline.parts import Parts

pytestmark = pytest.mark.optimised

ACCEPTANCE = {
    **{"drifts": [0.1, 1.0], "directional_noises": [0.0, 1.0], "scales": [0.7]},
    **{"steps": 2_000, "warmup": 200, "replicates": 4},
    **{"steps_per_dimension": 0, "most_steps": 10_000, "long_up_to": 0},
    "few_dimensions": {"up_to": 0, "replicates": 9, "steps_per_dimension": 1000},
}
POSTERIOR = {
    **{"directional_noises": [0.0, 1.0], "posterior_drifts": [0.1], "posterior_scales": [0.7, 2.8]},
    **{"posterior_steps": 200, "posterior_long": 400, "posterior_warmup": 20, "posterior_replicates": 3},
    "batch_fraction": 0.1,
}
BIAS = {
    **{"dimensions": [2], "ratios": [0.5], "scale": 0.7, "exact_up_to": 2},
    # With as many chains in both tests they share compiled programs, which take longer than the runs.
    **{"steps": 6_000, "warmup": 300, "chains": 8},
}


def test_numbers_of_chains_are_those_of_their_draws():
    """Judged after 2,500, 5,000 and 6,000 steps; D = 450 has a stride of 2, and jumps of 200 parameters."""
    dimension, arm = 450, Arm(0.0001, 1, noise_sd=0.1, directional_noise=1.0)
    model = known_targets.standard_normal(dimension)
    starts = np.random.default_rng(0).standard_normal((3, dimension))
    judged = []

    def never(record):
        judged.append(record["steps"])
        return False

    options = {"warmup": 30, "steps": 2_500, "long": 6_000, "seed": 1, "replicate": "own"}
    options |= {"sds": np.full(dimension, 0.5), "centre": np.full(dimension, 0.01), "is_decided": never}
    found = known_targets.moments_of_chains(model, "adam-mcmc", arm, starts, **options)
    assert judged[:2] == [2_500, 5_000]
    assert found["steps"] == 6_000
    chains = independent_chains(model, "adam-mcmc", arm, starts, seed=1, replicate="own")
    every = (chains.advance(6_030)[29:].astype(float) - 0.01) / 0.5
    places = np.unique(np.linspace(0, dimension - 1, 200).astype(int))
    squares = [(half[::2] ** 2).mean(axis=(0, 2)) for half in (every[1:3_001], every[3_001:])]
    assert np.allclose(found["square"], np.mean(squares, axis=0))
    assert np.allclose(found["halves"], squares)
    assert np.allclose(found["jump"], (np.diff(every[:, :, places], axis=0) ** 2).mean(axis=(0, 2)))


def test_noise_along_an_update_longer_than_s_raises_acceptance_and_what_is_settled_ends_early():
    """At D = 100 and gamma = s the update is about ten times s: chains without noise along it are stuck; with it
    E x^2 = 0.04."""
    settings = ACCEPTANCE | {"steps_per_dimension": 80}
    cells = {
        (cell["drift_ratio"], cell["directional_noise"]): cell
        for cell in known_targets.acceptance_on_gaussian(100, settings, Parts())["cells"]
    }
    assert list(cells) == [(0.1, 0), (0.1, 1), (1, 0), (1, 1)]
    arm = cells[0.1, 1]["arm"]
    assert (arm["noise_sd"], arm["step_size"]) == pytest.approx((0.07, 0.007))
    stuck, along = cells[1.0, 0.0], cells[1.0, 1.0]
    rates = np.array([stuck["acceptance"], along["acceptance"]])
    assert 0.02 + 5 * np.hypot(*rates.std(axis=1, ddof=1)) / 2 < rates[1].mean()
    assert np.mean(stuck["jump"]) < 0.1 * np.mean(cells[0.1, 0.0]["jump"])
    assert is_stuck(stuck)
    assert is_biased(along)
    assert not is_too_slow(along, 2_000)
    assert stuck["steps"] == along["steps"] == 2_000


@pytest.mark.parametrize(
    ("dimension", "replicates", "up_to", "n_chains"),
    [(2, 10, 0, 10), (3, 10, 0, 5), (3, 5, 0, 4), (2, 10, 2, 5)],
)
def test_chains_are_as_many_and_as_long_as_their_dimension_allows(dimension, replicates, up_to, n_chains):
    """Above long_up_to half as many, but at least four, and longer only at 1.4, which is nearest to 2.38; in few
    dimensions a number of their own."""
    few = {"up_to": up_to, "replicates": 5, "steps_per_dimension": 90}
    settings = {"drifts": [0.1], "directional_noises": [0.0], "scales": [0.7, 1.4], "steps": 20, "warmup": 0}
    settings |= {"steps_per_dimension": 80, "long_up_to": 2, "replicates": replicates, "few_dimensions": few}
    short, long = known_targets.acceptance_on_gaussian(dimension, ACCEPTANCE | settings, Parts())["cells"]
    assert len(short["acceptance"]) == len(long["acceptance"]) == n_chains
    assert 20 < long["steps"] <= dimension * (90 if up_to else 80)
    assert (short["steps"] > 20) == (dimension <= 2)


def test_on_a_posterior_starts_and_units_are_those_of_its_covariance():
    """The sds are 1 and 10, correlated: chains that hardly move have E x^2 = 1, with an sd of sqrt(2 / 2) for 400."""
    covariance = np.array([[1.0, 9.0], [9.0, 100.0]])
    model = gaussian_model(np.linalg.inv(covariance), np.array([3.0, -2.0]), n_data=20)
    settings = POSTERIOR | {"posterior_replicates": 400, "posterior_steps": 20, "posterior_long": 0}
    found = known_targets.acceptance_on_posterior(model, settings | {"posterior_scales": [1e-3]}, Parts())
    for cell in found["cells"]:
        assert np.mean(cell["square"]) == pytest.approx(1, abs=4.5 * np.sqrt(1.9 / 400))
        trace = np.trace(np.linalg.inv(covariance))
        assert cell["arm"]["noise_sd"] == pytest.approx(1e-3 / np.sqrt(trace), rel=1e-3)
        assert cell["arm"]["batch_size"] == 2


@contextmanager
def minibatch_keys():
    """The keys of the minibatches of all chains that are made meanwhile, one a chain; one a cell of chains with all
    data, which draw nothing with it."""
    found = []

    def watched(*args, **options):
        chains = independent_chains(*args, **options)
        found.extend(map(tuple, jax.random.key_data(chains.minibatch_key).reshape(-1, 2).tolist()))
        return chains

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known_targets, "independent_chains", watched)
        yield found


def test_chains_on_a_posterior_have_steps_of_their_own_and_share_no_minibatches():
    with minibatch_keys() as keys:
        found = known_targets.acceptance_on_posterior(
            known_targets.standard_normal(2, 50), POSTERIOR, Parts()
        )
    assert len(keys) == len(set(keys)) == 4 * 3
    assert [cell["scale"] for cell in found["cells"]] == [0.7, 2.8] * 2
    assert [cell["steps"] for cell in found["cells"]] == [200, 400] * 2


def test_no_two_chains_of_the_bias_have_starts_noise_or_minibatches_in_common():
    """With so small an s chains keep their starts' squares, and their jumps are their noise."""
    with minibatch_keys() as keys:
        settings = BIAS | {"scale": 1e-3, "ratios": [0.1, 0.2], "steps": 20, "warmup": 1}
        cells = known_targets.measure_bias(settings, Parts())["cells"]
    assert len(keys) == len(set(keys)) == 2 * (3 + 8 + 8)
    assert [len(cell["squares"]) for cell in cells] == [8] * 8 + [64] * 2
    for key in ("squares", "jump"):
        for first, second in combinations((np.array(cell[key][:8]) for cell in cells), 2):
            # Chains from the same starts, or of the same noise, would differ by a hundredth.
            assert np.abs(second / first - 1).max() > 0.1


def test_bias_is_of_the_approximation_and_not_of_the_exact_variant():
    rows = 50 * np.asarray(known_targets.standard_normal(2, 50).data["y"])
    # The noise of a minibatch is as documented.
    assert np.allclose(rows.mean(axis=0), 0, atol=1e-5)
    assert np.allclose(rows.var(axis=0), 50, rtol=1e-5)
    found = {cell["variant"]: cell for cell in known_targets.measure_bias(BIAS, Parts())["cells"]}
    # The exact variant's bias is 0, which only many chains show.
    few = dict.fromkeys(("isotropic", "prolate", "prolate-batch", "minibatch-test"), 8)
    assert {name: cell["chains"] for name, cell in found.items()} == {**few, "exact": 64}
    assert not any(is_too_slow(cell, BIAS["steps"]) for cell in found.values())
    squares = {name: np.array(cell["squares"]) for name, cell in found.items()}
    deviations = {
        name: (own.mean() - 1) / own.std(ddof=1) * np.sqrt(len(own)) for name, own in squares.items()
    }
    assert abs(deviations["exact"]) < 4.5
    assert deviations["prolate"] < -5
    assert deviations["minibatch-test"] > 5
