"""Chains for ArviZ, on either side of its version 1."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from small_models import model_of_prior

import sgtune
from sgtune.bridges import arviz_trees
from sgtune.bridges.arviz_trees import to_arviz
from sgtune.sampling.chain import Chain

arviz = pytest.importorskip("arviz")

N = 30
RNG = np.random.default_rng(0)
Y = (1.0 + 0.5 * RNG.normal(size=N)).astype(np.float32)


def log_prior(position):
    return -0.5 * position["mean"] ** 2 - 0.5 * jnp.exp(2 * position["log_sd"]) + position["log_sd"]


def log_likelihood(position, rows):
    return -0.5 * ((rows - position["mean"]) * jnp.exp(-position["log_sd"])) ** 2 - position["log_sd"]


def model_of(**options):
    own = {"log_prior": log_prior, "log_likelihood": log_likelihood, "data": Y}
    return sgtune.define_model("normal", **own, init=lambda key: {"mean": 0.0, "log_sd": 0.0}, **options)


MODEL = model_of(constrain=lambda p, rows: {"mean": p["mean"], "sd": jnp.exp(p["log_sd"])})


def chain_of(model=MODEL, n=50, **others):
    # log_sd, mean
    draws = (np.array([-0.7, 1.0]) + 0.1 * RNG.normal(size=(n, 2))).astype(np.float32)
    own = {"stride": 2, "n_samples": 2 * n, "seconds": 0.5, "diverged": False, "sampler": "sgld"}
    return Chain(model, sgtune.Arm(step_size=1e-3, batch_size=5), draws, **own, **others)


def test_draws_are_constrained_and_the_last_of_unequal_chains():
    long, short = chain_of(n=60), chain_of(n=50)
    short.draws[-1, 0] = np.nan
    tree = to_arviz([long, short])
    posterior = tree["posterior"]
    assert set(posterior.data_vars) == {"mean", "sd"}
    assert dict(posterior.sizes) == {"chain": 2, "draw": 50}
    np.testing.assert_allclose(posterior["sd"].values[0], np.exp(long.draws[10:, 0]), rtol=1e-6)
    np.testing.assert_array_equal(posterior["mean"].values[1], short.draws[:, 1])
    # A draw that is not finite is marked.
    assert tree["sample_stats"]["diverging"].values.tolist() == [[False] * 50, [False] * 49 + [True]]
    assert "acceptance_rate" not in tree["sample_stats"]
    assert [posterior.attrs[name] for name in ("sampler", "n_samples", "batch_size")] == ["sgld", 220, 5]


def test_without_constrain_leaves_are_named_by_their_paths():
    posterior = chain_of(model_of()).to_arviz()["posterior"]
    assert set(posterior.data_vars) == {"mean", "log_sd"}
    scoped = model_of(constrain=lambda position, rows: {"net/bias": position["mean"]})
    assert set(chain_of(scoped).to_arviz()["posterior"].data_vars) == {"net.bias"}
    flat = model_of_prior(lambda position: -0.5 * position @ position, jnp.zeros(2))
    assert chain_of(flat).to_arviz()["posterior"]["position"].shape == (1, 50, 2)


def test_log_likelihoods_are_of_the_rows_as_they_were_given():
    """`define_model` shuffles the rows; ArviZ compares them with others by their numbers."""
    chain = chain_of(statistics={"acceptance_rate": 0.8})
    tree = chain.to_arviz(log_likelihood=True)
    log_sd, mean = chain.draws.astype(np.float64).T
    exact = -0.5 * ((Y - mean[:, None]) / np.exp(log_sd)[:, None]) ** 2 - log_sd[:, None]
    found = tree["log_likelihood"]["rows"]
    assert found.dims == ("chain", "draw", "row")
    np.testing.assert_array_equal(found["row"], np.arange(N))
    np.testing.assert_allclose(found.values[0], exact, rtol=1e-4, atol=1e-5)
    prior = -0.5 * mean**2 - 0.5 * np.exp(2 * log_sd) + log_sd
    np.testing.assert_allclose(tree["sample_stats"]["lp"].values[0], prior + exact.sum(axis=1), rtol=1e-4)
    np.testing.assert_array_equal(tree["sample_stats"]["acceptance_rate"], np.full((1, 50), 0.8))


def test_a_parameter_may_be_called_rows():
    model = model_of(constrain=lambda position, rows: {"rows": jnp.stack([position["mean"]] * 3)})
    tree = chain_of(model).to_arviz(log_likelihood=True)
    assert tree["posterior"]["rows"].shape == (1, 50, 3)
    assert tree["log_likelihood"]["log_likelihood"].dims == ("chain", "draw", "row")


def test_log_likelihoods_of_a_tempered_model_are_those_of_the_data():
    """Otherwise a comparison of models would be by another number of data."""
    tempered = sgtune.temper(sgtune.temper(MODEL, 0.5 * N), 3.0 * N)
    own, other = (chain_of(model) for model in (MODEL, tempered))
    other.draws[:] = own.draws
    rows = [chain.to_arviz(log_likelihood=True)["log_likelihood"]["rows"].values for chain in (own, other)]
    np.testing.assert_allclose(rows[1], rows[0], rtol=1e-5)


def test_few_draws_are_evenly_spaced_and_end_with_the_last():
    chain = chain_of(n=60)
    means = chain.to_arviz(kept_draws=4)["posterior"]["mean"].values[0]
    np.testing.assert_array_equal(means, chain.draws[[14, 29, 44, 59], 1])
    assert chain.to_arviz(kept_draws=100)["posterior"].sizes["draw"] == 60


def test_arviz_reads_a_tuned_run(tmp_path):
    """Summary, traces and the cross-validation of a run, whose file keeps how it was tuned."""
    pytest.importorskip("matplotlib").use("agg")
    xarray = pytest.importorskip("xarray")
    result = sgtune.tune(MODEL, "sgld", tuner="theory", budget=sgtune.Budget(steps=400))
    chains = [result.sample(check=False, seed=seed) for seed in (0, 1)]
    tree = to_arviz(chains, log_likelihood=True, tuning=result)
    table = arviz.summary(tree)
    assert list(table.index) == ["mean", "sd"]
    assert float(table["mean"]["sd"]) == pytest.approx(Y.std(), rel=0.5)
    arviz.plot_trace(tree)
    loo = arviz.loo(tree)
    total = float(getattr(loo, "elpd_loo", None) or loo.elpd)
    # Twice the number of parameters is what leaving rows out costs, about.
    at_mode = float(jnp.sum(log_likelihood({"mean": Y.mean(), "log_sd": np.log(Y.std())}, Y)))
    assert at_mode - 8 < total < at_mode
    tree.to_netcdf(tmp_path / "run.nc")
    kept = xarray.open_dataset(tmp_path / "run.nc", group="posterior").attrs
    assert json.loads(kept["tuning"])["best"]["step_size"] == result.best.step_size


def test_bad_input_is_one_line(monkeypatch):
    monkeypatch.setattr(arviz_trees, "MOST_BYTES", 1_000)
    for line, chains, options in (
        (r"^chains: 0 given", [], {}),
        (r"^chains: 2 given; .* one model", [chain_of(), chain_of(model_of())], {}),
        (r"^kept_draws: 0 is not allowed", [chain_of()], {"kept_draws": 0}),
        (r"^log_likelihood: 50 draws of N=30 rows .*kept_draws", [chain_of()], {"log_likelihood": True}),
    ):
        with pytest.raises(sgtune.InputError, match=line):
            to_arviz(chains, **options)
