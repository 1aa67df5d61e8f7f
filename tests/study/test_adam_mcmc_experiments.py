"""The experiments of AdamMCMC's study on known densities: models, times, acceptance, bias and distances."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from config_files import valid

from sgtune.model.posterior import density_of, log_posterior, score
from sgtune.samplers.adam_mcmc import drift
from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import independent_chains
from sgtune.study.adam_mcmc.acceptance import acceptance_on_gaussian, acceptance_on_posterior, arms_of
from sgtune.study.adam_mcmc.autocorrelation import pooled_time
from sgtune.study.adam_mcmc.bias import measure_bias
from sgtune.study.adam_mcmc.cell_chains import chains_of_cell
from sgtune.study.adam_mcmc.distances import measure_distances
from sgtune.study.adam_mcmc.gaussians import logistic_density_model, standard_normal
from sgtune.study.adam_mcmc.names import SLOW_CURVE
from sgtune.study.adam_mcmc.settings import experiment_settings, posterior_settings
from sgtune.study.adam_mcmc.stationarity import is_too_slow
from sgtune.study.adam_mcmc.verdicts import is_biased, is_stuck
from sgtune.study.pipeline.parts import Parts

pytestmark = pytest.mark.optimised

ACCEPTANCE = {
    **{"drifts": [0.1, 1.0], "directional_noises": [0.0, 1.0], "scales": [0.7]},
    **{
        "steps": 2_000,
        "steps_per_dimension": 0,
        "most_steps": 10_000,
        "long_up_to": 0,
        "few_dimensions": {"up_to": 0, "replicates": 9, "steps_per_dimension": 1000},
        "warmup": 200,
        "replicates": 4,
    },
}


def log_density(model, position):
    return log_posterior(density_of(model), position, model.data)


@pytest.mark.parametrize("n_data", [1, 20])
def test_posterior_is_standard_normal(n_data):
    model = standard_normal(3, n_data)
    position = jnp.array([0.3, -1.0, 2.0])
    assert np.allclose(score(density_of(model), position, model.data), -position, atol=1e-5)
    difference = log_density(model, position) - log_density(model, jnp.zeros(3))
    assert difference == pytest.approx(-0.5 * np.sum(np.square(position)), rel=1e-5)


def test_noise_of_a_minibatch_is_as_documented():
    rows = 50 * np.asarray(standard_normal(2, 50).data["y"])
    assert np.allclose(rows.mean(axis=0), 0, atol=1e-5)
    assert np.allclose(rows.var(axis=0), 50, rtol=1e-5)


def test_density_on_the_line_has_bounded_gradients():
    model = logistic_density_model()
    gradients = jax.vmap(lambda x: score(density_of(model), x, model.data))(
        jnp.linspace(-40, 40, 81)[:, None]
    )
    assert np.abs(gradients).max() <= 1.0
    x = np.array([-3.0, 0.0, 2.0])
    density = np.exp([float(log_density(model, jnp.array([value]))) for value in x])
    exact = np.exp(-x) / (1 + np.exp(-x)) ** 2
    assert np.allclose(density / density[1], exact / exact[1], rtol=1e-5)


def test_the_workflow_gives_these_settings():
    assert experiment_settings(valid(), "gaussians")["adam_mcmc"]["acceptance"].keys() == ACCEPTANCE.keys()


def test_every_combination_is_an_arm():
    cells = arms_of({**ACCEPTANCE, "scales": [0.5, 2.0]}, 10.0, 1, long=3_000, long_at=2.0)
    assert len(cells) == 8
    assert {(cell["scale"], cell["long"]) for cell in cells} == {(0.5, 2_000), (2.0, 3_000)}
    for cell in cells:
        arm = cell["arm"]
        assert arm["noise_sd"] == pytest.approx(cell["scale"] / 10)
        assert arm["step_size"] == pytest.approx(cell["drift_ratio"] * arm["noise_sd"])
        assert arm["directional_noise"] == cell["directional_noise"]


@pytest.fixture(scope="module")
def accepted(tmp_path_factory):
    parts = Parts(tmp_path_factory.mktemp("parts") / "own")
    return acceptance_on_gaussian(100, ACCEPTANCE, parts=parts)


def test_directional_noise_raises_acceptance_where_the_update_is_longer_than_the_noise(accepted):
    """At D = 100 and gamma = s the update is about ten times s: without the noise almost nothing is accepted."""
    rates = {(c["drift_ratio"], c["directional_noise"]): np.array(c["acceptance"]) for c in accepted["cells"]}
    without, along = rates[1.0, 0.0], rates[1.0, 1.0]
    error = np.hypot(without.std(ddof=1), along.std(ddof=1)) / 2
    assert along.mean() - without.mean() > 5 * error
    assert without.mean() < 0.02


def test_acceptance_leaves_out_the_warm_up_and_lies_between_0_and_1(accepted):
    for cell in accepted["cells"]:
        assert all(-1e-6 <= rate <= 1 + 1e-6 for rate in cell["acceptance"])
        assert (
            len(cell["time_without"]) == len(cell["square"]) == len(cell["jump"]) == ACCEPTANCE["replicates"]
        )


def test_jumps_are_zero_only_of_chains_that_never_move_and_at_most_four_times_the_square(accepted):
    """(a - b)^2 <= 2 a^2 + 2 b^2."""
    for cell in accepted["cells"]:
        jump, square = np.array(cell["jump"]), np.array(cell["square"])
        assert np.all(jump <= 4.01 * square)
        if cell["drift_ratio"] == 0.1:
            assert np.all(jump > 0)
    walks = {(c["drift_ratio"], c["directional_noise"]): np.mean(c["jump"]) for c in accepted["cells"]}
    assert walks[1.0, 0.0] < 0.1 * walks[0.1, 0.0]


def test_halves_have_the_mean_square_of_the_run(accepted):
    for cell in accepted["cells"]:
        assert np.mean(cell["halves"], axis=0) == pytest.approx(cell["square"])


def test_updates_are_recorded_in_units_of_the_noise(tmp_path):
    """u = gamma sign(g) in the first step. In the second one m^2 / v, whose weights on the two gradients hardly differ,
    is at most 1.003, and it is near 1 but for the 3% of coordinates within s / 2 = 0.035 of 0."""
    settings = {**ACCEPTANCE, "drifts": [0.1], "steps": 2, "warmup": 0}
    found = acceptance_on_gaussian(100, settings, parts=Parts(tmp_path / "own"))
    for cell in found["cells"]:
        ratios = np.array(cell["update"]) / (0.1 * np.sqrt(100))
        assert np.all((ratios > 0.95) & (ratios < 1.002))


def test_chains_at_the_fastest_scale_are_longer_in_more_dimensions(tmp_path):
    settings = {**ACCEPTANCE, "scales": [0.35, 0.7, 1.4], "drifts": [0.1], "replicates": 2}
    settings |= {"steps": 20, "warmup": 0, "steps_per_dimension": 90}

    def steps_on(dimension, name):
        found = acceptance_on_gaussian(dimension, settings, parts=Parts(tmp_path / name))
        return {cell["scale"]: cell["steps"] for cell in found["cells"]}

    # 1.4 is nearest to 2.38. Chains that have settled end before the longest.
    short = steps_on(10, "short")
    assert short[0.35] == short[0.7] == 20
    assert 20 < short[1.4] <= 900
    settings["long_up_to"] = 10
    assert steps_on(10, "long")[0.7] > 20
    assert max(steps_on(11, "other").values()) <= 990


def test_above_long_up_to_there_are_half_as_many_chains_and_at_least_four(tmp_path):
    settings = {**ACCEPTANCE, "drifts": [0.1], "steps": 20, "warmup": 0, "long_up_to": 2}

    def n_chains(dimension, replicates):
        parts = Parts(tmp_path / f"{dimension} {replicates}")
        found = acceptance_on_gaussian(dimension, {**settings, "replicates": replicates}, parts=parts)
        return {len(cell["acceptance"]) for cell in found["cells"]}

    assert n_chains(2, 10) == {10}
    assert n_chains(3, 10) == {5}
    assert n_chains(3, 5) == {4}
    assert n_chains(3, 2) == {2}


def test_in_few_dimensions_chains_have_a_number_and_length_of_their_own(tmp_path):
    settings = {**ACCEPTANCE, "drifts": [0.1], "directional_noises": [0.0], "steps": 20, "warmup": 0}
    settings |= {
        "long_up_to": 2,
        "few_dimensions": {"up_to": 2, "replicates": 5, "steps_per_dimension": 40},
    }

    def cell_on(dimension):
        found = acceptance_on_gaussian(dimension, settings, parts=Parts(tmp_path / str(dimension)))
        return found["cells"][0]

    assert len(cell_on(2)["acceptance"]) == 5
    assert 20 < cell_on(2)["steps"] <= 80
    assert len(cell_on(3)["acceptance"]) == 4
    assert cell_on(3)["steps"] == 20


def test_posterior_needs_only_its_own_settings(tmp_path):
    """The job has no other key, so that no other one makes it run again. N(0, I) as a posterior of 50 data."""
    settings = posterior_settings(valid())["adam_mcmc"]["acceptance"]
    settings |= {
        "posterior_steps": 200,
        "posterior_long": 400,
        "posterior_warmup": 20,
        "posterior_drifts": [0.1],
    }
    settings |= {"posterior_scales": [0.7, 2.8], "posterior_replicates": 3, "batch_fraction": 0.1}
    found = acceptance_on_posterior(standard_normal(2, 50), settings, parts=Parts(tmp_path / "own"))
    assert found["n_data"] == 50
    assert [cell["scale"] for cell in found["cells"]] == [0.7, 2.8] * 2
    assert [cell["steps"] for cell in found["cells"]] == [200, 400] * 2
    assert all(len(cell["acceptance"]) == 3 for cell in found["cells"])


def test_chains_that_are_stuck_or_whose_bias_is_settled_end_early(accepted, tmp_path):
    """At D = 100, gamma = s: stuck without noise along the update, E x^2 = 0.04 with it."""
    settings = {**ACCEPTANCE, "steps_per_dimension": 80, "drifts": [1.0]}
    found = acceptance_on_gaussian(100, settings, parts=Parts(tmp_path / "own"))
    without, along = found["cells"]
    assert is_stuck(without)
    assert without["steps"] == 2_000
    assert is_biased(along)
    assert not is_too_slow(along, 2_000)
    assert along["steps"] == 2_000
    # The same chains as of the shorter setting: nothing depends on how long they might have been.
    assert along == next(cell for cell in accepted["cells"] if cell["arm"] == along["arm"])


def test_numbers_of_a_cell_are_those_of_its_draws():
    """Judged after 2,500, 5,000 and 6,000 steps; D = 450 has a stride of 2, and jumps and times of 200
    parameters."""
    dimension, arm = 450, Arm(0.0001, 1, noise_sd=0.1, directional_noise=1.0)
    model = standard_normal(dimension)
    starts = np.random.default_rng(0).standard_normal((3, dimension))
    judged = []

    def never(record):
        judged.append(record["steps"])
        return False

    options = {"warmup": 30, "steps": 2_500, "long": 6_000, "is_decided": never, "seed": 1, "name": "own"}
    sds, centre = np.full(dimension, 0.5), np.full(dimension, 0.01)
    found = chains_of_cell(model, arm, starts, sds, centre, **options)
    assert judged[:2] == [2_500, 5_000]
    assert found["steps"] == 6_000
    chains = independent_chains(model, "adam-mcmc", arm, starts, seed=1, replicate="adam_mcmc own")
    places = np.unique(np.linspace(0, dimension - 1, 200).astype(int))
    every = (chains.advance(6_030)[29:].astype(float) - 0.01) / 0.5
    draws, every = every[:, :, places], every[1:]
    own = draws[1:]
    squares = [(half[::2] ** 2).mean(axis=(0, 2)) for half in (every[:3_000], every[3_000:])]
    assert np.allclose(found["square"], np.mean(squares, axis=0))
    assert np.allclose(found["halves"], squares)
    assert np.allclose(found["jump"], (np.diff(draws, axis=0) ** 2).mean(axis=(0, 2)))
    # From all draws: one of two is enough.
    assert found["time"] == pytest.approx(pooled_time(own.reshape(6_000, -1)), rel=1e-3)
    without = [pooled_time(np.delete(own, i, axis=1).reshape(6_000, -1)) for i in range(3)]
    assert found["time_without"] == pytest.approx(without, rel=1e-3)


def test_first_update_has_the_length_of_all_signs():
    """m = (1 - b1) g and v = (1 - b2) g^2, so u = gamma sign(g) up to eps."""
    starts = np.full((2, 9), [[1.0], [-0.3]])
    arm = Arm(0.02, 1, noise_sd=0.1, directional_noise=1.0)
    chains = independent_chains(standard_normal(9), "adam-mcmc", arm, starts)
    chains.advance(1)
    numbers = {name: jnp.broadcast_to(number, 2) for name, number in chains.hyperparameters.items()}
    states = chains.states
    updates = jax.vmap(drift)(states.m, states.v, states.k, numbers)
    assert np.allclose(np.linalg.norm(updates, axis=1), 0.02 * 3, rtol=1e-4)


def test_bias_is_of_the_approximation_and_not_of_the_exact_variant(tmp_path):
    settings = {
        **{"dimensions": [2], "ratios": [0.5], "scale": 0.7, "exact_up_to": 2},
        **{"steps": 6_000, "warmup": 300, "chains": 32},
    }
    found = {cell["variant"]: cell for cell in measure_bias(settings, parts=Parts(tmp_path / "own"))["cells"]}

    def deviation(variant):
        squares = np.array(found[variant]["squares"])
        return (squares.mean() - 1) / (squares.std(ddof=1) / np.sqrt(len(squares)))

    assert len(found["minibatch-test"]["squares"]) == 32
    # The exact variant's bias is 0, which only many chains show.
    assert (found["prolate"]["chains"], found["exact"]["chains"]) == (32, 256)
    assert (len(found["prolate"]["squares"]), len(found["exact"]["squares"])) == (32, 256)
    for cell in found.values():
        assert np.mean(cell["halves"], axis=0) == pytest.approx(cell["squares"])
        assert len(cell["jump"]) == len(cell["acceptance"]) == len(cell["squares"])
        assert not is_too_slow(cell, settings["steps"])
    assert abs(deviation("exact")) < 4.5
    assert deviation("prolate") < -5
    assert deviation("minibatch-test") > 5


def test_chains_of_mala_converge_as_fast_as_its_matrix_says():
    found = measure_distances(
        {"steps": 30, "chains": 20_000, "slow_chains": 2_000, "slow_steps": 100, "bins": 20}
    )
    lines = {line["name"]: np.array(line["distances"]) for line in found["lines"]}
    # Far from the target, bins and grid points give the same distance, up to the width of the bins.
    assert np.allclose(lines["mala"][5:15], lines["mala-grid"][5:15], atol=0.06)
    assert lines["mala"][-1] < 3 * found["floor"]
    assert all(line[0] == pytest.approx(0.95) for name, line in lines.items() if name != "mala-grid")
    slow = next(line for line in found["lines"] if line["name"] == SLOW_CURVE)
    # Windows of ten steps, and the start.
    assert slow["steps"] == [0, *(10 * window + 5.5 for window in range(10))]
    assert slow["distances"][0] == pytest.approx(0.95)
    assert slow["chains"] == 2_000
    assert slow["floor"] == pytest.approx(found["floor"] * 10**0.5)
