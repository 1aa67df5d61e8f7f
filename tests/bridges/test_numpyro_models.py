"""Models of NumPyro: prior and rows against its own potential energy, and one line for what a minibatch cannot do."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sgtune
from sgtune.bridges.arviz_trees import constrained, unconstrained
from sgtune.bridges.numpyro_models import from_numpyro
from sgtune.mode.find import map_position
from sgtune.model.positions import from_matrix
from sgtune.model.posterior import density_of, log_posterior

numpyro = pytest.importorskip("numpyro")
dist = pytest.importorskip("numpyro.distributions")

from numpyro.contrib.control_flow import scan  # noqa: E402
from numpyro.infer.util import constrain_fn, potential_energy  # noqa: E402

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3)).astype(np.float32)
Y = X @ np.array([1.0, -1.0, 0.5], np.float32) + RNG.normal(size=N).astype(np.float32)
BINARY = (Y > 0).astype(np.int32)
GROUP = RNG.integers(0, 5, N)
COUNTS = RNG.integers(0, 3, (N, 4)).astype(np.int32)


def logistic(x, y):
    w = numpyro.sample("w", dist.Normal(0, 2).expand([3]).to_event(1))
    numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=y)


def hierarchy(x, y, group, size=None, subsample_size=None):
    """Indexed by the plate; the groups have a plate of their own."""
    tau = numpyro.sample("tau", dist.HalfNormal(1.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    with numpyro.plate("groups", 5):
        effect = numpyro.sample("effect", dist.Normal(0, tau))
    numpyro.deterministic("spread", effect.max() - effect.min())
    with numpyro.plate("rows", size or len(x), subsample_size=subsample_size) as i:
        mean = numpyro.deterministic("mean", effect[group[i]] + x[i, 0])
        numpyro.sample("obs", dist.Normal(mean, sigma), obs=y[i])


def subsampled(x, y):
    """By `numpyro.subsample`, in random order of the rows."""
    w = numpyro.sample("w", dist.Normal(0, 2).expand([3]).to_event(1))
    with numpyro.plate("rows", N, subsample_size=10):
        some, of_some = numpyro.subsample(x, event_dim=1), numpyro.subsample(y, event_dim=0)
        numpyro.sample("y", dist.StudentT(4.0, some @ w, 1.0), obs=of_some)


def correlated(x):
    """An LKJ prior; rows are vectors, whose axis is summed over."""
    sd = numpyro.sample("sd", dist.HalfCauchy(1.0).expand([3]).to_event(1))
    corr = numpyro.sample("corr", dist.LKJCholesky(3, concentration=2.0))
    numpyro.factor("weak", -0.1 * jnp.sum(sd**2))
    factor = sd[:, None] * corr
    numpyro.sample("x", dist.MultivariateNormal(jnp.zeros(3), scale_tril=factor), obs=x)


def mixture(counts):
    """A Dirichlet prior, and a second site for each row; the data's axis is not the first of the plates."""
    share = numpyro.sample("share", dist.Dirichlet(jnp.ones(4)))
    low = numpyro.sample("low", dist.Uniform(0.0, 1.0))
    scale = numpyro.sample("scale", dist.Uniform(low, 2.0))  # a support that depends on a latent site
    with numpyro.plate("rows", len(counts), dim=-1):
        with numpyro.plate("kinds", 4, dim=-2):
            numpyro.sample("count", dist.Poisson(4 * scale * share[:, None]), obs=counts.T)
        numpyro.factor("first", -0.5 * (counts[:, 0] - scale) ** 2)


def scaled_and_masked(x, y, seen):
    w = numpyro.sample("w", dist.Normal(0, 2).expand([3]).to_event(1))
    with numpyro.plate("rows", len(x)), numpyro.handlers.scale(scale=0.3), numpyro.handlers.mask(mask=seen):
        numpyro.sample("y", dist.Normal(x @ w, 1.0), obs=y)


def unconditioned(x):
    w = numpyro.sample("w", dist.Normal(0, 2).expand([3]).to_event(1))
    numpyro.sample("y", dist.Normal(x @ w, 1.0))


def softmax(n_classes, x, y):
    w = numpyro.sample("w", dist.Normal(0, 2).expand([3, n_classes]).to_event(2))
    numpyro.sample("y", dist.Categorical(logits=x @ w), obs=y)


def improper(x, y):
    w = numpyro.sample("w", dist.ImproperUniform(dist.constraints.real, (), (3,)))
    numpyro.sample("y", dist.Normal(x @ w, 1.0), obs=y)


XY = {"x": X, "y": Y}
GROUPED = {"x": X, "y": Y, "group": GROUP}
WHOLE = numpyro.handlers.substitute(subsampled, data={"rows": jnp.arange(N)})
CASES = {
    "logistic": (logistic, {"x": X, "y": BINARY}, {}, logistic),
    "hierarchy": (hierarchy, GROUPED, {}, hierarchy),
    "size given": (hierarchy, GROUPED, {"kwargs": {"size": N}}, hierarchy),
    "subsamples": (hierarchy, GROUPED, {"kwargs": {"size": N, "subsample_size": 7}}, hierarchy),
    "subsample": (subsampled, XY, {"plate": "rows"}, WHOLE),
    "LKJ": (correlated, {"x": X}, {}, correlated),
    "Dirichlet": (mixture, {"counts": COUNTS}, {}, mixture),
    "improper": (improper, XY, {}, improper),
    "scale, mask": (scaled_and_masked, {**XY, "seen": Y > -0.5}, {}, scaled_and_masked),
    "args": (softmax, {"x": X, "y": BINARY}, {"args": (2,)}, partial(softmax, 2)),
    "obs": (unconditioned, XY, {"obs": ["y"]}, numpyro.handlers.condition(unconditioned, {"y": Y})),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore:subsample_size does not match")
def test_prior_and_rows_are_minus_the_potential_energy(case):
    """At random positions and in any split of the rows, whose order is another one than the data's."""
    function, data, options, whole = CASES[case]
    model = from_numpyro(function, data, **options)
    given = {name: value for name, value in data.items() if name not in options.get("obs", ())}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        position = {
            name: rng.standard_normal(shape.shape, np.float32) for name, shape in model.position_shape.items()
        }
        exact = -potential_energy(whole, (), given, position)
        found = log_posterior(density_of(model), position, model.data)
        np.testing.assert_allclose(found, exact, rtol=2e-6, atol=2e-4)
        every = model.log_likelihood(position, model.data)
        assert every.shape == (N,)
        some = jax.tree.map(lambda leaf: leaf[7:20], model.data)
        np.testing.assert_allclose(model.log_likelihood(position, some), every[7:20], rtol=1e-5, atol=1e-5)


def test_draws_come_back_constrained_with_deterministic_sites():
    """Those with a value for each row are left out; one that is computed from all data is of all data."""

    def function(x, y):
        numpyro.deterministic("largest", y.max())
        hierarchy(x, y, group=jnp.zeros(len(x), int))

    model = from_numpyro(function, XY)
    at = dict.fromkeys(("position", "centre"), model.init(jax.random.key(1)))
    chain = sgtune.sample(model, "sgld", step_size=1e-4, batch_size=N, budget=sgtune.Budget(steps=20), **at)
    values = chain.constrained()
    assert values.keys() == {"tau", "sigma", "effect", "spread", "largest"}
    assert values["effect"].shape == (20, 5)
    np.testing.assert_allclose(values["spread"], np.ptp(values["effect"], axis=1), rtol=1e-5)
    np.testing.assert_allclose(values["largest"], Y.max())
    last = jax.tree.map(lambda leaf: leaf[-1], chain.positions)
    exact = constrain_fn(function, (), XY, last)
    for name in ("tau", "sigma", "effect"):
        np.testing.assert_allclose(values[name][-1], exact[name], rtol=1e-5)
    assert (values["sigma"] > 0).all()


def test_programs_may_be_traced_in_several_threads():
    """NumPyro has one stack of handlers for all threads, and races compile their programs side by side."""
    model = from_numpyro(hierarchy, GROUPED)
    position = model.init(jax.random.key(0))

    def value(n):
        rows = jax.tree.map(lambda leaf: leaf[:n], model.data)
        return float(jnp.sum(jax.jit(model.log_likelihood)(position, rows)))

    every = np.cumsum(np.asarray(model.log_likelihood(position, model.data), np.float64))
    sizes = list(range(20, 32))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(value, sizes))
    np.testing.assert_allclose(found, every[[n - 1 for n in sizes]], rtol=1e-4)


def latent_rows(x, y):
    with numpyro.plate("rows", len(x)):
        z = numpyro.sample("z", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(z, 1), obs=y)


def discrete(x, y):
    k = numpyro.sample("k", dist.Bernoulli(0.5))
    numpyro.sample("y", dist.Normal(k + x[:, 0], 1), obs=y)


def nested(x, y):
    a = numpyro.sample("a", dist.Normal(0, 1))
    with numpyro.plate("columns", 3, subsample_size=2, dim=-2) as j, numpyro.plate("rows", len(x), dim=-1):
        numpyro.sample("x", dist.Normal(a, 1), obs=x.T[j])


def data_support(x, y):
    top = numpyro.sample("top", dist.Uniform(0, 1 + jnp.abs(y).max()))
    numpyro.sample("y", dist.Normal(x[:, 0], top), obs=y)


def summed_but_for_zero(x, y):
    """Vanishes at the start, where all is zero."""
    a = numpyro.sample("a", dist.Normal(0, 1))
    numpyro.factor("sum", a * jnp.sum(y))
    numpyro.sample("y", dist.Normal(a, 1), obs=y)


def plated_latents(x, y):
    with numpyro.plate("persons", N):
        z = numpyro.sample("z", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(z, 1), obs=y)


def by_attribute(x, y):
    a = numpyro.sample("a", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(a * x.values[:, 0], 1), obs=y)


def broadcasting(x, y):
    a = numpyro.sample("a", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(a * x[:, 0], 1), obs=y[:, None])


def jointly(x):
    a = numpyro.sample("a", dist.HalfNormal(1))
    numpyro.sample("y", dist.Normal(0, a).expand([len(x)]).to_event(1))


def scanned(x, y):
    a = numpyro.sample("a", dist.Normal(0, 1))

    def step(before, now):
        return now, numpyro.sample("y", dist.Normal(a * before, 1), obs=now)

    scan(step, 0.0, y)


def own_scale(x, y):
    a = numpyro.sample("a", dist.Normal(0, 1))
    with numpyro.handlers.scale(scale=N / len(x)):
        numpyro.sample("y", dist.Normal(a * x[:, 0], 1), obs=y)


def own_array(x, y):
    a = numpyro.sample("a", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(a * X[:, 0], 1), obs=y)


def own_array_by_index(x, y):
    """Its shapes fit any minibatch, but row i of a minibatch is not row i of the data."""
    a = numpyro.sample("a", dist.Normal(0, 1))
    with numpyro.plate("rows", N) as i:
        numpyro.sample("y", dist.Normal(a * jnp.asarray(X)[i, 0], 1), obs=y[i])


def lagged(x, y):
    a = numpyro.sample("a", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(a * jnp.concatenate([jnp.zeros(1), y[:-1]]), 1), obs=y)


def counted(x, y):
    """Works with NUTS, whose data are no arguments of its program."""
    with numpyro.plate("groups", int(y.max()) + 3):
        a = numpyro.sample("a", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(a[0], 1), obs=y)


def no_rows(x, y):
    numpyro.sample("a", dist.Normal(0, 1))


def two_plates(x, y):
    a = numpyro.sample("a", dist.Normal(0, 1))
    with numpyro.plate("one", N, dim=-1), numpyro.plate("two", N, dim=-2):
        numpyro.sample("y", dist.Normal(a, 1), obs=y[:, None])


@pytest.mark.parametrize(
    ("function", "options", "line"),
    [
        (latent_rows, {}, r"model: the latent site 'z' has a value for each of the N=60 rows"),
        (discrete, {}, r"model: the latent site 'k' is discrete"),
        (nested, {}, r"plate: 'columns' takes 2 of 3"),
        (data_support, {}, r"model: the support of 'top' depends on the data"),
        (
            summed_but_for_zero,
            {"init": lambda key: {"a": jnp.zeros(())}},
            r"model: the log prior of 'summed_but_for_zero' is .* with 2 rows",
        ),
        (plated_latents, {}, r"model: the latent site 'z' has a value for each of the N=60 rows"),
        (by_attribute, {}, r"model: 'by_attribute' fails on its data: .*values"),
        (broadcasting, {}, r"model: 'y' has log probabilities of shape \(2, 2\) for 2 rows"),
        (scanned, {}, r"model: 'scanned' has a scan over the rows"),
        (own_scale, {}, r"model: the log probability of row \d+ of 'own_scale'"),
        (own_array, {}, r"model: 'own_array' fails on 2 of its N=60 rows: .*must be in data"),
        (own_array_by_index, {}, r"model: the log probability of row \d+ of .* with N rows must be in data"),
        (lagged, {}, r"model: the log probability of row \d+ of 'lagged'"),
        (counted, {}, r"model: 'counted' cannot be compiled .*must be in kwargs"),
        (no_rows, {}, r"model: 'no_rows' has no observed site"),
        (two_plates, {}, r"plate: 'y' is in .*name the plate of the data"),
        (logistic, {"plate": "columns"}, r"plate: 'columns' is not allowed; .* there are: none"),
        (logistic, {"obs": ["z"]}, r"obs: 'z' is not allowed; it must be an entry of data: x, y"),
        (unconditioned, {}, r"data: 'y' is no argument of the model, \(x\); .* add it to obs"),
        (lambda x: no_rows(x, None), {"obs": "y"}, r"obs: 'y' is neither an argument nor a site"),
        (jointly, {"obs": "y"}, r"model: 'y' has one log probability for all rows"),
        (hierarchy, {}, r"data: with args and kwargs they do not fit .* 'group'"),
    ],
)
def test_what_a_minibatch_cannot_do_is_refused_in_one_line(function, options, line):
    with pytest.raises(sgtune.InputError, match=rf"^{line}[^\n]*$"):
        from_numpyro(function, XY, **options)


@pytest.mark.parametrize(
    ("start", "line"),
    [
        ({"b": jnp.zeros(3)}, r"init: b \(3,\) not allowed; .* needs the unconstrained a \(\), b \(3,\)"),
        ({"a": jnp.zeros(()), "b": jnp.zeros(())}, r"init: a \(\), b \(\) not allowed"),
        ({"a": 0.0, "b": jnp.zeros(3), "c": 0.0}, r"init: .*, c \(\) not allowed"),
        (jnp.zeros(4), r"init: .* not allowed"),
    ],
)
def test_a_start_has_all_latent_sites(start, line):
    """One that is missing would be a draw of its prior, the same for ever."""

    def regression(x, y):
        a = numpyro.sample("a", dist.HalfNormal(1))
        b = numpyro.sample("b", dist.Normal(0, 1).expand([3]).to_event(1))
        numpyro.sample("y", dist.Normal(x @ b, a), obs=y)

    with pytest.raises(sgtune.InputError, match=f"^{line}"):
        from_numpyro(regression, XY, init=lambda key: start)
    from_numpyro(regression, XY, init=lambda key: {"a": 0.0, "b": jnp.zeros(3)})


def test_vague_priors_have_a_start():
    """Draws of a Gamma of shape 0.001 are 0 in float32."""

    def vague(x, y):
        precision = numpyro.sample("precision", dist.Gamma(1e-3, 1e-3))
        b = numpyro.sample("b", dist.Normal(0, 1).expand([3]).to_event(1))
        numpyro.sample("y", dist.Normal(x @ b, precision**-0.5), obs=y)

    model = from_numpyro(vague, XY)
    assert np.isfinite(model.init(jax.random.key(0))["precision"])
    residual = Y - X @ np.linalg.lstsq(X, Y)[0]
    mode = map_position(model)
    assert np.exp(mode["precision"]) == pytest.approx(1 / np.mean(residual**2), rel=0.05)


def test_a_prior_of_the_data_is_seen_among_thousands_of_parameters():
    def wide(x, y):
        a = numpyro.sample("a", dist.Normal(jnp.mean(y), 1))
        numpyro.sample("weights", dist.Normal(0, 1).expand([5_000]).to_event(1))
        numpyro.sample("y", dist.Normal(a, 1), obs=y)

    with pytest.raises(sgtune.InputError, match=r"^model: the log prior of 'wide' is .* with 2 rows"):
        from_numpyro(wide, XY)


def network_of(kind):
    """NumPyro's module with a network of another package, if it is installed."""
    from numpyro.contrib import module

    normal = dist.Normal(0, 1)
    if kind == "equinox":
        net = pytest.importorskip("equinox").nn.MLP(3, "scalar", 4, 1, key=jax.random.key(0))
        return lambda: module.random_eqx_module("net", net, normal)
    if kind == "nnx":
        nnx = pytest.importorskip("flax.nnx")
        return lambda: module.random_nnx_module("net", nnx.Linear(3, 1, rngs=nnx.Rngs(0)), normal)
    linen = pytest.importorskip("flax.linen")

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            return linen.Dense(1)(jnp.tanh(linen.Dense(4)(x)))[..., 0]

    return lambda: module.random_flax_module("net", Net(), normal, input_shape=(3,))


@pytest.mark.parametrize("kind", ["equinox", "flax", "nnx"])
def test_priors_over_the_weights_of_a_network(kind):
    make = network_of(kind)

    def function(x, y):
        net = make()
        out = jax.vmap(net)(x) if kind == "equinox" else net(x).reshape(len(x), -1)[:, 0]
        numpyro.sample("y", dist.Normal(out, 1.0), obs=y)

    model = from_numpyro(function, XY)
    position = model.init(jax.random.key(1))
    exact = -potential_energy(numpyro.handlers.seed(function, 0), (), XY, position)
    np.testing.assert_allclose(log_posterior(density_of(model), position, model.data), exact, rtol=1e-5)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(jax.grad(model.log_prior)(position)))


@pytest.mark.parametrize("group_by_chain", [False, True])
def test_draws_of_numpyros_own_samplers_are_judged_by_their_sites(group_by_chain):
    """HalfNormal(1) is moved by its logarithm: NUTS hands back the sd itself."""
    model = from_numpyro(hierarchy, GROUPED)
    options = {"num_chains": 2, "chain_method": "vectorized", "progress_bar": False}
    mcmc = numpyro.infer.MCMC(numpyro.infer.NUTS(hierarchy), num_warmup=400, num_samples=1_000, **options)
    mcmc.run(jax.random.key(0), *map(jnp.asarray, (X, Y, GROUP)))
    draws = mcmc.get_samples(group_by_chain=group_by_chain)
    kinds = {line.partition(":")[0] for line in sgtune.diagnose(model, draws, constrained=True).warnings}
    assert kinds <= {"slow"}
    # Sds that are taken for their logarithms are far off.
    latent = {name: draws[name] for name in ("effect", "sigma", "tau")}
    assert "off centre" in str(sgtune.diagnose(model, latent, constrained=False).warnings)
    with pytest.raises(sgtune.InputError, match=r"^constrained: None is not allowed"):
        sgtune.diagnose(model, draws)
    with pytest.raises(sgtune.InputError, match="tau"):
        sgtune.diagnose(model, {name: draws[name] for name in ("effect", "sigma")}, constrained=True)


@pytest.mark.parametrize("case", ["LKJ", "Dirichlet"])
def test_values_of_sites_are_positions_again(case):
    """Also where they have more numbers than the positions: a simplex, and a Cholesky factor of correlations."""
    model = from_numpyro(*CASES[case][:2])
    some = np.random.default_rng(0).normal(scale=0.5, size=(6, model.dimension)).astype(np.float32)
    positions = from_matrix(model, some)
    values = constrained(model, some)
    again = unconstrained(model, {name: each.reshape(2, 3, *each.shape[1:]) for name, each in values.items()})
    for name, leaf in positions.items():
        np.testing.assert_allclose(again[name].reshape(leaf.shape), leaf, atol=2e-4)
    with pytest.raises(sgtune.InputError, match=r"^draws: shapes"):
        unconstrained(model, {name: each[0] for name, each in values.items()})
    # One value that does not fit among others that do.
    wrong = max(values, key=lambda name: values[name].ndim)
    with pytest.raises(sgtune.InputError, match=r"^draws: shapes"):
        unconstrained(model, {**values, wrong: np.repeat(values[wrong], 2, axis=-1)})
