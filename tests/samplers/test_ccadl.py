"""CCAdL, SGHMC of Eq. (14) and SGNHT step by step, the map between them, and their runs: programs that are shared,
statistics, and SGHMC that seldom renews its root."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from known_targets import check_moments, target_with_noise
from small_models import small_logistic_model

from sgtune import Arm, Budget, sample, samplers, tune
from sgtune.samplers.covariance import no_steps, updated
from sgtune.samplers.sghmc_shang import SHARE, clipped_root
from sgtune.sampling.lockstep import Lockstep
from sgtune.tuning import Heuristic

STEP_SIZE, FRICTION, THERMOSTAT = 0.03, 1.7, 0.6
HYPERPARAMETERS = {
    "step_size": jnp.float32(STEP_SIZE),
    "friction": jnp.float32(FRICTION),
    "kappa": jnp.float32(0.0),
}
POSITION = {"a": jnp.array([1.0, -2.0]), "b": jnp.array([[0.5]])}
MOMENTUM = {"a": jnp.array([0.8, -1.3]), "b": jnp.array([[0.4]])}
OF_CURVATURE = np.array([2.0, 0.5, 1.0])


def flat(tree, batch=()):
    leaves = [np.asarray(leaf, np.float64).reshape(*batch, -1) for leaf in (tree["a"], tree["b"])]
    return np.concatenate(leaves, axis=-1)


def score_of(vector, module=np):
    return -OF_CURVATURE * module.asarray(vector)


def covariance_of(vector, module=np):
    """A covariance that is not diagonal and depends on the position."""
    factor = module.stack([vector, module.cos(vector), module.ones(3)])
    return 60.0 * factor.T @ factor


def target_of_structure(noise=1.0):
    """The score and ``noise`` times the covariance above, for positions in the structure of `POSITION`."""

    def gradient(position):
        vector, unravel = ravel_pytree(position)
        return unravel(score_of(vector, jnp))

    def covariance(position):
        return noise * covariance_of(ravel_pytree(position)[0], jnp)

    return target_with_noise(gradient, covariance, fraction=0.25)


def noise_of_steps(sampler, n=60_000, before=None):
    """Flat momenta after one step from `MOMENTUM` and `THERMOSTAT`, with as many keys; and the states."""
    target = target_of_structure()
    state = sampler.init(jax.random.key(0), POSITION, (), target, HYPERPARAMETERS)
    state = state._replace(momentum=MOMENTUM)
    if "thermostat" in state._fields:
        state = state._replace(thermostat=jnp.float32(THERMOSTAT))
    if before is not None:
        state = state._replace(noise=before)
    step = jax.jit(jax.vmap(lambda key: sampler.step(key, state, target, HYPERPARAMETERS)))
    after = step(jax.random.split(jax.random.key(1), n))
    return flat(after.momentum, (n,)), after


MOVED = flat(POSITION) + STEP_SIZE * flat(MOMENTUM)


@pytest.mark.parametrize(
    ("sampler", "form", "factor", "kept"),
    [
        (samplers.ccadl, "full", 1.0, False),
        (samplers.ccadl, "full", 1.0, True),
        (samplers.ccadl_diagonal, "diagonal", 1.0, False),
        (samplers.make_ccadl(factor="as printed"), "full", 1 / (1 - 0.25), False),
    ],
)
def test_a_step_is_algorithm_1(sampler, form, factor, kept):
    """theta' = theta + h p; p' ~ N(p + h grad - h (h/2) Sigma p - h xi p, 2 A h I); xi' = xi + h (|p'|^2 / D - 1).

    Sigma is the running average, at the second step of two covariances.
    """
    before = updated(no_steps("full", POSITION), 300.0 * jnp.eye(3), 0.0) if kept else None
    momenta, after = noise_of_steps(sampler, before=before)
    covariance = factor * covariance_of(MOVED)
    covariance = covariance if form == "full" else np.diag(np.diag(covariance))
    covariance = (300.0 * np.eye(3) + covariance) / 2 if kept else covariance
    p = flat(MOMENTUM)
    mean = p + STEP_SIZE * (score_of(MOVED) - STEP_SIZE / 2 * covariance @ p - THERMOSTAT * p)
    check_moments(momenta, mean, 2 * FRICTION * STEP_SIZE * np.eye(3))
    np.testing.assert_allclose(flat(after.position, (len(momenta),)), np.tile(MOVED, (len(momenta), 1)), 1e-6)
    thermostat = THERMOSTAT + STEP_SIZE * (np.mean(momenta**2, axis=1) - 1)
    np.testing.assert_allclose(after.thermostat, thermostat, rtol=1e-5)
    # The test can fail: without the covariance the mean would differ.
    error = np.sqrt(2 * FRICTION * STEP_SIZE / len(momenta))
    assert np.abs(STEP_SIZE**2 / 2 * covariance @ p).max() > 50 * error


def test_a_step_of_sgnht_is_the_update_of_ding_et_al():
    """v' ~ N(v + h grad - alpha v, 2 a h I), theta' = theta + v', alpha' = alpha + |v'|^2 / D - h; from alpha = a."""
    sampler, target = samplers.SAMPLERS["sgnht"], target_of_structure()
    momenta, after = noise_of_steps(sampler)
    v, here, n = flat(MOMENTUM), flat(POSITION), len(momenta)
    mean = v + STEP_SIZE * score_of(here) - THERMOSTAT * v
    check_moments(momenta, mean, 2 * FRICTION * STEP_SIZE * np.eye(3))
    np.testing.assert_allclose(flat(after.position, (n,)), here + momenta, atol=1e-6)
    thermostat = THERMOSTAT + np.mean(momenta**2, axis=1) - STEP_SIZE
    np.testing.assert_allclose(after.thermostat, thermostat, rtol=1e-5)
    begin = jax.vmap(lambda key: sampler.init(key, POSITION, (), target, HYPERPARAMETERS))
    starts = begin(jax.random.split(jax.random.key(2), n))
    check_moments(flat(starts.momentum, (n,)), np.zeros(3), STEP_SIZE * np.eye(3))
    assert starts.thermostat[0] == pytest.approx(FRICTION)


@pytest.mark.parametrize("kappa", [0.0, 0.25, 1.0])
def test_the_running_average_is_eq_18(kappa):
    """kappa_t = max(1 / t, kappa) for any initial value."""
    rng = np.random.default_rng(0)
    given = rng.standard_normal((12, 3))
    running = no_steps("diagonal", POSITION)._replace(covariance=jnp.full(3, 1e6, jnp.float32))
    expected = np.full(3, 1e6)
    for t, covariance in enumerate(given, start=1):
        weight = max(1 / t, kappa)
        expected = (1 - weight) * expected + weight * covariance
        running = updated(running, jnp.asarray(covariance, jnp.float32), kappa)
        np.testing.assert_allclose(running.covariance, expected, rtol=1e-4, atol=1e-5)
    assert running.n_steps == 12


@pytest.mark.parametrize("form", ["full", "diagonal"])
@pytest.mark.parametrize("friction", [FRICTION, 30.0])
def test_a_step_of_sghmc_is_eq_14(form, friction, monkeypatch):
    """p' ~ N(p + h grad - h A p, 2 h (A I - h Sigma / 2)+): clipped and reported at A = 1.7, and not at 30."""
    monkeypatch.setitem(HYPERPARAMETERS, "friction", jnp.float32(friction))
    momenta, after = noise_of_steps(samplers.make_sghmc_shang(covariance=form))
    covariance = covariance_of(MOVED)
    covariance = covariance if form == "full" else np.diag(np.diag(covariance))
    values, vectors = np.linalg.eigh(friction * np.eye(3) - STEP_SIZE / 2 * covariance)
    is_clipped = values.min() < 0
    assert is_clipped == (friction == FRICTION)
    left = 2 * STEP_SIZE * (vectors * np.maximum(values, 0)) @ vectors.T
    p = flat(MOMENTUM)
    mean = p + STEP_SIZE * (score_of(MOVED) - friction * p)
    check_moments(momenta, mean, left)
    assert (after.n_clipped == int(is_clipped)).all()
    np.testing.assert_allclose(after.friction_needed, max(friction, friction - values.min()), rtol=1e-4)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("shape", [(3, 3), (3,)])
def test_a_matrix_that_is_not_finite_has_no_finite_root(shape, bad):
    """Its chain has diverged and must count as such. Among chains of an ensemble it changes no other's root."""
    good = np.eye(3, dtype=np.float32) if shape == (3, 3) else np.ones(3, np.float32)
    broken = good.copy()
    broken[(0,) * len(shape)] = bad
    roots, least = jax.jit(jax.vmap(clipped_root))(np.stack([broken, good]))
    assert not np.isfinite(roots[0]).all()
    np.testing.assert_allclose(roots[1], good)
    assert least[1] == 0


def test_without_noise_ccadl_is_sgnht_under_the_map():
    """step_size = h^2, v = h p, alpha = h xi, a = A h: the same keys give the same chain, one draw later."""
    h, friction, n_steps = 0.1, 2.0, 40
    numbers = {"step_size": jnp.float32(h), "friction": jnp.float32(friction), "kappa": jnp.float32(0)}
    mapped = samplers.in_units_of_steps({"step_size": h, "friction": friction, "batch_size": 8})
    assert mapped == pytest.approx({"step_size": h**2, "friction": friction * h, "batch_size": 8})
    assert samplers.in_units_of_steps({"step_size": h}) == pytest.approx({"step_size": h**2, "friction": h})
    start = {"a": jnp.array([0.2, 0.3]), "b": jnp.array([[1.0]])}
    target = target_of_structure(noise=0.0)

    def run(name, numbers, position):
        states = [samplers.SAMPLERS[name].init(jax.random.key(1), position, (), target, numbers)]
        for t in range(n_steps):
            states.append(samplers.SAMPLERS[name].step(jax.random.key(2 + t), states[-1], target, numbers))
        return states

    of_sgnht = run("sgnht", {name: jnp.float32(mapped[name]) for name in ("step_size", "friction")}, start)
    by_name = run("sgnht-shang", numbers, start)
    # CCAdL drifts before it kicks. After one drift backwards its kicks are at the positions of SGNHT.
    back = jax.tree.map(lambda x, v: x - v, start, of_sgnht[0].momentum)
    of_ccadl = run("ccadl", numbers, back)
    for t in range(n_steps):
        for found, expected in (
            (flat(by_name[t].position), flat(of_sgnht[t].position)),
            (flat(of_ccadl[t + 1].position), flat(of_sgnht[t].position)),
            (h * flat(of_ccadl[t].momentum), flat(of_sgnht[t].momentum)),
            (h * of_ccadl[t].thermostat, of_sgnht[t].thermostat),
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5)
    assert np.abs(flat(of_sgnht[-1].position) - flat(start)).max() > 0.5


@pytest.fixture(scope="module")
def model():
    return small_logistic_model(n_data=200, dimension=3)


@pytest.mark.parametrize("name", ["ccadl", "ccadl-diagonal-cv", "mccadl"])
def test_the_target_gives_the_minibatchs_own_covariance(model, name):
    """A chain's S after one step is the estimator's covariance for the rows of that step, at the chain's position."""
    sampler, _ = samplers.resolve_sampler(name)
    chains = Lockstep(model, name, [Arm(2e-3, 20)])
    chains.advance(1)
    target = chains.program.target(chains.constants, chains.minibatch_key, 0)
    position = chains.states.position[0]
    gradient, covariance, _ = target.gradient_with_covariance(position, 0, (), sampler.covariance)
    np.testing.assert_allclose(gradient, target.gradient(position, 0, ())[0], rtol=1e-5, atol=1e-4)
    assert covariance.shape == ((3, 3) if sampler.covariance == "full" else (3,))
    assert target.fraction == 0.1
    if name != "mccadl":
        np.testing.assert_allclose(chains.states.noise.covariance[0], covariance, rtol=1e-4)


def test_statistics_name_the_friction_that_sghmc_would_need(model):
    options = {"step_size": 4e-3, "batch_size": 5, "budget": Budget(steps=300)}
    clipped = sample(model, "sghmc-shang", friction=0.5, **options).statistics
    assert clipped["clipped_share"] > 0
    enough = sample(model, "sghmc-shang", friction=3 * clipped["friction_needed"], **options).statistics
    assert enough["clipped_share"] == 0
    assert enough["friction_needed"] == pytest.approx(3 * clipped["friction_needed"])


def test_the_heuristic_is_in_units_of_sgld(model):
    """h = 1 / N for SGLD is h^2 = 1 / N where the momentum has unit scale."""
    budget = Budget(steps=1)
    assert tune(model, "sgnht", tuner=Heuristic(), budget=budget).best.step_size == 1 / 200
    for name in ("ccadl", "sgnht-shang"):
        assert tune(model, name, tuner=Heuristic(), budget=budget).best.step_size == pytest.approx(200**-0.5)


def chains_of(frictions, kappa=0.0):
    model = small_logistic_model(dimension=3)
    arms = [Arm(step_size=0.002, batch_size=20, friction=friction, kappa=kappa) for friction in frictions]
    return Lockstep(model, "sghmc-shang-lazy", arms, position=jnp.zeros(3), seed=4)


def test_while_the_memory_is_short_every_step_is_a_step_of_sghmc():
    """Up to 100 steps of it, 1% of the memory is a step at most; steps are compared from one state."""
    ensemble = chains_of([1.0, 50.0])
    ensemble.advance(60)
    assert (np.asarray(ensemble.states.kept.made_at) == 60).all()
    target = ensemble.program.target(ensemble.constants, ensemble.minibatch_key, 60)
    key, own = jax.random.key(1), ensemble.hyperparameters
    for chain in (0, 1):
        state = jax.tree.map(lambda leaf, chain=chain: leaf[chain], ensemble.states)
        numbers = {name: value[chain] if jnp.ndim(value) else value for name, value in own.items()}
        new = samplers.sghmc_shang_lazy.step(key, state, target, numbers)
        plain = samplers.sghmc_shang.step(key, state._replace(kept=()), target, numbers)
        for one, other in zip(*map(jax.tree.leaves, (new._replace(kept=()), plain)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
        assert new.n_clipped > 0 or chain == 1


@pytest.mark.parametrize(("kappa", "memory"), [(0.0, 1_000), (0.002, 500)])
def test_the_age_of_a_root_is_at_most_a_hundredth_of_the_memory(kappa, memory):
    ensemble = chains_of([1.0, 50.0], kappa)
    seen = set()
    ensemble.advance(1_000, 1_000)
    for _ in range(25):
        ensemble.advance(1)
        age = np.asarray(ensemble.states.noise.n_steps - ensemble.states.kept.made_at)
        assert (age == age[0]).all()
        seen.add(int(age[0]))
    # The root is recomputed at this age, so ages after a step are smaller, and all of them occur.
    assert max(seen) in {int(np.ceil(SHARE * m)) - 1 for m in (memory, memory + 25)}
    assert 0 in seen
