"""Arms as mappings, and grids with further axes: their names, and their runs."""

import copy
import pickle

import jax
import numpy as np
import pytest
from small_models import check_rungs, on_grid, small_logistic_model, tune, without_doubts

from sgtune import Arm, Budget, InputError
from sgtune.sampling.arm import shape_of
from sgtune.sampling.lockstep import Lockstep, compiled_programs
from sgtune.support.randomness import named_key
from sgtune.tuning import Grid, make_arms

N_DATA, FEW = 500, 100
FRICTIONS = (0.01, 0.05, 0.2)


@pytest.fixture(scope="module")
def model():
    return small_logistic_model(n_data=N_DATA)


def test_an_arm_is_an_immutable_mapping_in_one_order():
    arm = Arm(noise_estimate=0.1, n_leapfrog=5, friction=0.2, batch_size=50, step_size=1e-3)
    assert list(arm.items()) == [
        *(("step_size", 1e-3), ("batch_size", 50), ("n_leapfrog", 5)),
        *(("friction", 0.2), ("noise_estimate", 0.1)),
    ]
    assert arm == Arm(1e-3, 50, 5, noise_estimate=0.1, friction=0.2) == dict(arm)
    assert hash(arm) == hash(Arm(**arm))
    assert arm != Arm(1e-3, 50, 5)
    assert (arm.friction, arm["friction"], len(arm)) == (0.2, 0.2, 5)
    with pytest.raises(AttributeError):
        arm.friction = 0.1
    with pytest.raises(AttributeError, match="'fricton'"):
        _ = arm.fricton
    for same in (copy.deepcopy(arm), pickle.loads(pickle.dumps(arm))):
        assert same == arm
        assert hash(same) == hash(arm)


def test_keys_are_those_of_three_numbers_and_further_axes_append():
    assert Arm(1e-3, 50).key == (1e-3, 50, None)
    assert Arm(1e-3, 50, 5).key == (1e-3, 50, 5)
    key = Arm(1e-3, 50, 5, noise_estimate=0.1, friction=0.2).key
    assert key == (1e-3, 50, 5, ("friction", 0.2), ("noise_estimate", 0.1))
    assert shape_of("sghmc", Arm(1e-3, 50, 5, friction=0.2)) == ("sghmc", 50, 5)
    assert shape_of("sgld", Arm(1e-3, 50)) == ("sgld", 50, None)


@pytest.mark.parametrize(("sampler", "n_leapfrog"), [("sgld", None), ("sgnht-cv", None), ("sghmc", 3)])
def test_random_streams_are_named_as_before_there_were_further_axes(model, sampler, n_leapfrog):
    """The names are spelled out here, so that refactored code cannot change the random numbers."""

    def keys_of(**further):
        arm = Arm(1e-3, 50, n_leapfrog, **further)
        chains = Lockstep(model, sampler, [arm], seed=4, replicate="table 1")
        return [jax.random.key_data(key).tolist() for key in (chains.keys[0], chains.minibatch_key)]

    noise = named_key(4, "noise", sampler, 1e-3, 50, n_leapfrog, "table 1")
    minibatch = named_key(4, "minibatch", sampler, 50, n_leapfrog, "table 1")
    named = [jax.random.key_data(key).tolist() for key in (noise, minibatch)]
    assert keys_of() == named
    if sampler != "sgld":
        # Arms of one shape share minibatches, so traced hyperparameters are compared on the same rows.
        noise_of_another, same = keys_of(friction=0.2)
        assert noise_of_another != named[0]
        assert same == named[1]


def test_a_grid_is_the_product_of_its_axes_in_the_order_of_nesting():
    grid = {"log10_step_sizes": (-3, -4), "batch_fractions": (0.1,), "n_leapfrogs": (2, 3)}
    further = {"friction": (0.1, 0.2), "noise_estimate": (0.0, 0.05)}
    arms = make_arms(N_DATA, "sghmc", **grid, **further)
    assert [tuple(arm.values()) for arm in arms] == [
        (10.0**x, 50, n, a, b) for n in (2, 3) for b in (0.0, 0.05) for a in (0.1, 0.2) for x in (-3, -4)
    ]
    # Axes that a sampler does not have are ignored, like the number of leapfrogs.
    for sampler, own in (("sgld", {}), ("sgnht", {"friction": (0.1, 0.2)})):
        assert make_arms(N_DATA, sampler, **grid, **further) == make_arms(N_DATA, sampler, **grid, **own)


@pytest.mark.parametrize("sampler", ["sghmc", "sgnht"])
def test_frictions_of_a_grid_share_one_program_and_the_winners_is_used(model, sampler, monkeypatch):
    """Every traced axis, not only the step size, differs between chains: draws equal those of each arm alone."""
    monkeypatch.setattr("sgtune.sampling.lockstep._compiled", {})  # another test may have compiled it
    before, grid = compiled_programs(), {"batch_fractions": (FEW / N_DATA,), "n_leapfrogs": (2,)}
    tuner = on_grid("grid-ksd", Grid((-2.0, -3.0), **grid, hyperparameters={"friction": FRICTIONS}))
    result = tune(model, sampler, tuner=tuner, budget=Budget(steps=40), seed=3)
    assert len(compiled_programs() - before) == 1
    columns = ["rung", "step_size", "batch_size", "n_leapfrog", "friction", "steps"]
    assert list(result.rungs)[:6] == columns
    assert sorted(result.rungs["friction"]) == sorted(2 * FRICTIONS)
    check_rungs(result)
    assert result.to_dict()["best"]["friction"] == result.best.friction
    arms = make_arms(N_DATA, sampler, log10_step_sizes=(-2.0,), **grid, friction=FRICTIONS)
    together = Lockstep(model, sampler, arms).advance(5)
    for place, arm in enumerate(arms):
        alone = Lockstep(model, sampler, [arm]).advance(5)[:, 0]
        np.testing.assert_allclose(together[:, place], alone, rtol=1e-4, atol=1e-5)
    # The same noise and minibatches with the friction of another arm: another chain.
    ensemble = Lockstep(model, sampler, arms)
    ensemble.hyperparameters["friction"] = ensemble.hyperparameters["friction"][::-1]
    swapped = ensemble.advance(5)
    assert np.abs(swapped[-1, 0] - together[-1, 0]).max() > 1e-4
    np.testing.assert_allclose(swapped[:, 1], together[:, 1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("n_data", "fractions"),
    [(10_000, (1, 0.1, 0.01, 0.001)), (9_999, (1, 0.1, 0.01)), (500, (1, 0.1)), (100, (1, 0.1)), (8, (1,))],
)
def test_the_default_grid_fits_the_data(n_data, fractions):
    arms = make_arms(n_data, "sgld")
    assert list(dict.fromkeys(arm.batch_size for arm in arms)) == [int(f * n_data) for f in fractions]


def test_the_default_grid_warns_of_dropped_batch_sizes_and_a_users_grid_is_kept(model):
    def tuned(tuner, sampler="sgld", **grid):
        own = on_grid(tuner, Grid((-3.0, -4.0, -5.0), **grid))
        return tune(model, sampler, tuner=own, budget=Budget(steps=10))

    result, omitted = tuned("mamba-ksd"), "batch_fractions: the default grid omits 0.01, 0.001"
    assert set(result.rungs["batch_size"]) == {50, 500}
    assert without_doubts(result) == [f"{omitted}: a batch would have fewer than 10 of the 500 rows"]
    result = tuned("mamba-ksd", batch_fractions=(0.1, 0.01))
    assert set(result.rungs["batch_size"]) == {5, 50}
    # The grid of a sampler that needs all data has one batch size, and drops nothing.
    assert not any("omits" in line for line in tuned("mamba-ksd", "mala").warnings)
    # Grid search at one batch size drops nothing.
    assert without_doubts(result) == without_doubts(tuned("grid")) == []
    with pytest.raises(InputError, match=r"^batch_fraction: 0\.001 of N=500 rows leaves none"):
        make_arms(N_DATA, "sgld", batch_fractions=(1.0, 0.001))
