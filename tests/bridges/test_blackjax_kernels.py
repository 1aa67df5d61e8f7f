"""BlackJAX's stochastic-gradient kernels as samplers: relations to our own, step by step, and their hyperparameters."""

from functools import partial
from importlib import import_module
from itertools import product
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_models import gaussian_model

import sgtune
from sgtune import Budget, InputError, from_blackjax
from sgtune.samplers import SAMPLERS, sghmc_as_published, sgnht, sgnht_shang
from sgtune.samplers.target import Target
from sgtune.sampling.lockstep import Lockstep, data_terms

blackjax = pytest.importorskip("blackjax")
diffusions = pytest.importorskip("blackjax.sgmcmc.diffusions")

MEAN = np.array([1.0, -1.0], np.float32)
PRECISION = np.array([[2.0, 0.6], [0.6, 1.0]])
MODEL = gaussian_model(PRECISION, MEAN)
START = np.array([0.3, 0.8], np.float32)
ONE_STEP = {"step_size": 0.1, "batch_size": 8, "budget": Budget(steps=1), "position": START}
MOVE = 0.1 * PRECISION @ (MEAN - START)
"""That of ``ONE_STEP`` along the gradient of all data."""


@pytest.fixture(autouse=True)
def _own_samplers():
    with patch.dict(SAMPLERS):
        yield


def gradient(position):
    """Of a log density that is no Gaussian, so that a gradient from another position is another gradient."""
    return jnp.stack([-(position[0] ** 3) + 0.3 * position[1], jnp.sin(position[0]) - 2 * position[1]])


TARGET = Target(lambda position, i, state: (gradient(position), state))
NORMALS = jnp.array([0.7, -1.2])


def fixed_noise(monkeypatch):
    """The same normals at every place, in both packages."""
    for module in ("sghmc", "sgnht", "diffusions"):
        of_theirs = f"blackjax.sgmcmc.{module}.generate_gaussian_noise"
        monkeypatch.setattr(of_theirs, lambda key, position: NORMALS)
    for module in ("sghmc", "sgnht"):
        # The package's own attributes of these names are the samplers.
        of_ours = import_module(f"sgtune.samplers.{module}")
        monkeypatch.setattr(of_ours, "noise_like", lambda key, position: NORMALS)


@pytest.mark.parametrize("ending", ["", "-cv"])
def test_sgld_is_our_own_step_for_step(ending):
    from_blackjax(blackjax.sgld)
    arm = sgtune.Arm(0.05, 3)
    names = (f"sgld{ending}", f"blackjax-sgld{ending}")
    ours, theirs = (Lockstep(MODEL, name, [arm], position=START) for name in names)
    theirs.keys, theirs.minibatch_key = ours.keys, ours.minibatch_key
    np.testing.assert_allclose(theirs.advance(40), ours.advance(40), rtol=1e-5, atol=1e-6)


def test_temperature_widens_sgld():
    sampler = from_blackjax(blackjax.sgld)
    numbers = {"step_size": jnp.float32(0.01)}
    state = sampler.init(jax.random.key(1), jnp.asarray(START), (), TARGET, numbers)
    cold, one, four = (
        sampler.step(jax.random.key(2), state, TARGET, {**numbers, "temperature": t}).position
        for t in (0.0, 1.0, 4.0)
    )
    np.testing.assert_allclose(cold, START + 0.01 * gradient(START), rtol=1e-6)
    np.testing.assert_allclose(four - cold, 2 * (one - cold), rtol=1e-5)


@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_sghmc_is_the_explicit_order_in_units_of_its_time_step(beta, monkeypatch):
    fixed_noise(monkeypatch)
    e, alpha = 0.2, 0.4
    numbers = {"step_size": e, "n_leapfrog": 5, "alpha": alpha, "beta": beta, "temperature": 1.0}
    ours = {"step_size": e**2, "n_leapfrog": 5, "friction": alpha * e, "noise_estimate": beta * e**2 / 2}
    key, start = jax.random.key(0), jnp.asarray(START)
    one, other = (
        sampler.step(key, sampler.init(key, start, (), TARGET, own), TARGET, own).position
        for sampler, own in ((from_blackjax(blackjax.sghmc), numbers), (sghmc_as_published, ours))
    )
    np.testing.assert_allclose(one, other, rtol=1e-5)


def test_sgnht_is_our_own_but_for_the_drift(monkeypatch):
    fixed_noise(monkeypatch)
    e, alpha = 0.2, 0.4
    key, start = jax.random.key(0), jnp.asarray(START)
    kernel, diffusion = from_blackjax(blackjax.sgnht), from_blackjax(diffusions.sgnht)
    numbers = {"step_size": e, "alpha": alpha, "beta": 0.0, "xi": alpha, "temperature": 1.0}
    theirs = kernel.init(key, start, (), TARGET, numbers)
    ours = sgnht.init(key, start, (), TARGET, {"step_size": e**2, "friction": alpha * e})
    np.testing.assert_allclose(ours.momentum, e * theirs.kernel.momentum, rtol=1e-6)
    after = kernel.step(key, theirs, TARGET, numbers)
    for sampler, given in (
        (sgnht, {"step_size": e**2, "friction": alpha * e}),
        (sgnht_shang, {"step_size": e, "friction": alpha}),
    ):
        step = sampler.step(key, ours, TARGET, given)
        np.testing.assert_allclose(step.momentum, e * after.kernel.momentum, rtol=1e-5)
        np.testing.assert_allclose(step.thermostat, e * after.kernel.xi, rtol=1e-5)
        np.testing.assert_allclose(step.position, START + e * after.kernel.momentum, rtol=1e-5)
    np.testing.assert_allclose(after.position, START + e * theirs.kernel.momentum, rtol=1e-6)
    # The diffusion is the kernel without BlackJAX's momentum at the start.
    state = diffusion.init(key, start, (), TARGET, numbers)
    state = state._replace(kernel=state.kernel._replace(momentum=theirs.kernel.momentum))
    moved = diffusion.step(key, state, TARGET, numbers)
    np.testing.assert_allclose(moved.position, after.position, rtol=1e-6)
    np.testing.assert_allclose(moved.kernel.momentum, after.kernel.momentum, rtol=1e-6)


@pytest.mark.parametrize("name", ["sgld", "sghmc", "sgnht"])
def test_a_built_kernel_of_blackjax_is_its_algorithm(name):
    """That of SGNHT has a state of its module, whose thermostat starts at the friction that is in the kernel."""
    arm = {"step_size": 0.1, "batch_size": 8, "n_leapfrog": 2 if name == "sghmc" else None}
    algorithm = getattr(blackjax, name)
    thermostat = {"xi": 0.01} if name == "sgnht" else {}

    def draws_of(kernel, given):
        sampler = from_blackjax(kernel, given)
        return sgtune.sample(MODEL, sampler, **arm, budget=Budget(steps=5), position=START, seed=1).draws

    wanted = draws_of(algorithm, {})
    np.testing.assert_array_equal(draws_of(algorithm.build_kernel, {}), wanted)
    np.testing.assert_array_equal(draws_of(algorithm.build_kernel(), thermostat), wanted)


def test_any_kernel_in_its_form_is_a_sampler():
    def build_kernel(speed=1.0):
        def kernel(rng_key, position, grad_estimator, minibatch, step_size, extra=0.0):
            move = grad_estimator(position, minibatch)
            return jax.tree.map(lambda x, g: x + speed * step_size * g + extra, position, move)

        return kernel

    one, built = from_blackjax(build_kernel), from_blackjax(build_kernel(2.0), {"extra": 0.5}, name="mine")
    assert SAMPLERS["blackjax-build-kernel"] is one
    assert SAMPLERS["mine"] is built
    assert [(axis.name, axis.default) for axis in built.axes[2:]] == [("extra", 0.5)]
    with_cv = {"gradient": sgtune.gradients.control_variate}
    for sampler, options, extra in ((one, {"speed": 2.0}, 0), ("mine", {}, 0.5), (built, with_cv, 0.5)):
        found = sgtune.sample(MODEL, sampler, **options, **ONE_STEP).draws[0]
        np.testing.assert_allclose(found, START + 2 * MOVE + extra, rtol=1e-5)


def test_builders_without_defaults_integers_and_negative_numbers():
    def build_kernel(speed, n_times: int = 2):
        def kernel(rng_key, position, grad_estimator, minibatch, step_size, tilt=-1.0):
            move = grad_estimator(position, minibatch)
            for _ in range(n_times):
                position = position + speed * step_size * move + tilt
            return position

        return kernel

    for numbers, times in (({"speed": 2.0}, 2), ({"speed": 2.0, "n_times": 3}, 3)):
        sampler = from_blackjax(build_kernel, numbers, name="times")
        assert [axis.name for axis in sampler.axes[2:]] == ["speed", "tilt"]
        found = sgtune.sample(MODEL, sampler, tilt=-0.5, **ONE_STEP).draws[0]
        np.testing.assert_allclose(found, START + times * (2 * MOVE - 0.5), rtol=1e-5)
    with pytest.raises(InputError, match=r"^n_times: 2\.5 "):
        from_blackjax(build_kernel, {"speed": 1.0, "n_times": 2.5})
    with pytest.raises(InputError, match="ending is that of a gradient estimator"):
        from_blackjax(build_kernel, {"speed": 1.0}, name="mine-cv")


def test_tuners_take_it_with_its_hyperparameters_and_count_its_gradients():
    sampler = from_blackjax(blackjax.sghmc, {"alpha": 2.0})
    assert (sampler.step_size_power, sampler.least_leapfrog, sampler.largest_step) == (2, 2, 0.5)
    assert sampler.largest_of_thermostat == np.inf
    assert from_blackjax(blackjax.sgnht).largest_of_thermostat == sgnht_shang.largest_of_thermostat
    arm = sgtune.Arm(0.1, 4, 3)
    assert [data_terms(MODEL, f"blackjax-sghmc{ending}", arm) for ending in ("", "-cv")] == [12, 24]
    grid = sgtune.tuning.Grid((-0.5, -1.0), (0.5,), n_leapfrogs=(2, 3), hyperparameters={"alpha": (1.0, 2.0)})
    options = {"gradient": sgtune.gradients.control_variate, "tuner": sgtune.tuning.Halving(grid=grid)}
    result = sgtune.tune(MODEL, sampler, **options, budget=Budget(steps=200), rounds=1)
    assert result.sampler == "blackjax-sghmc-cv"
    assert {(row["n_leapfrog"], row["alpha"]) for row in result.rows} == set(product((2, 3), (1.0, 2.0)))
    chain = result.sample(Budget(steps=400))
    np.testing.assert_allclose(chain.draws.mean(axis=0), MEAN, atol=0.4)


@pytest.mark.parametrize("kernel", ["sgld", "sghmc", "sgnht"])
def test_chains_run_in_float32_under_x64(kernel):
    """BlackJAX's noise has 64 bits there."""
    sampler = from_blackjax(getattr(blackjax, kernel))
    arm = {"step_size": 0.1, "batch_size": 8, "n_leapfrog": 2 if kernel == "sghmc" else None}
    with jax.enable_x64(True):
        chain = sgtune.sample(MODEL, sampler, **arm, budget=Budget(steps=20), position=START, centre=START)
    assert chain.draws.dtype == np.float32
    assert np.isfinite(chain.draws).all()


def test_thermostats_start_at_alpha():
    def xi_of(**given):
        axes = from_blackjax(blackjax.sgnht, given).axes
        return next(axis.default for axis in axes if axis.name == "xi")

    assert xi_of(alpha=0.2)({"alpha": 0.7}) == 0.7
    assert xi_of(xi=3.0) == 3.0


def no_gradient(rng_key, position):
    return position


def kernel_without_noise(rng_key, position, gradient_fn, minibatch, step_size):
    return position


FORM = "it must be or build (rng_key, position, gradient_fn, minibatch, step_size, ...) -> position, with no more"
OF_DENSITY = "with no more of a density than gradients"
CASES = [
    ({"kernel": 3}, "kernel: 3 is not allowed"),
    ({"kernel": lambda: partial(kernel_without_noise)}, "name: None is not allowed for functools.partial"),
    ({"kernel": lambda: blackjax.sgld(gradient)}, "kernel: it has a gradient already"),
    (
        {"kernel": lambda: blackjax.csgld},
        f"kernel: blackjax.sgmcmc.csgld.build_kernel is not allowed; {FORM}",
    ),
    ({"kernel": lambda: partial(no_gradient)}, OF_DENSITY),
    ({"hyperparameters": {"num_integration_steps": 5.0}}, "temperature; give n_leapfrog to the sampler"),
    ({"kernel": lambda: blackjax.nuts}, OF_DENSITY),
    ({"kernel": lambda: no_gradient}, OF_DENSITY),
    ({"hyperparameters": {"friction": 1.0}}, "'friction' is not allowed; blackjax-sghmc has: alpha, beta"),
    ({"hyperparameters": {"alpha": float("nan")}}, "alpha: nan is not allowed; it must be a number"),
    ({"kernel": lambda: diffusions.sgnht(0.1)}, "'xi' of blackjax-sgnht-diffusion has no default"),
    ({"name": "sgld-cv"}, "name: 'sgld-cv' is not allowed; it is that of another sampler"),
    ({"name": "sghmc"}, "name: 'sghmc' is not allowed; it is that of another sampler"),
]


@pytest.mark.parametrize(("arguments", "line"), CASES)
def test_what_is_not_allowed_is_refused_in_one_line(arguments, line):
    kernel = arguments.get("kernel", lambda: blackjax.sghmc)
    with pytest.raises(InputError) as refused:
        from_blackjax(**{**arguments, "kernel": kernel() if callable(kernel) else kernel})
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)
