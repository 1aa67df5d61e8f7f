"""R-hat, ESS and standard errors against ArviZ and known values; the Monte Carlo error; trust; draws, chains and their
files."""

import os
from types import SimpleNamespace

import numpy as np
import pytest
from reference_models import gaussian_model, one_chain, wide_model
from stein_forms import autoregressive

from sgtune.metrics.spread import relative_sd_error
from sgtune.study.ground_truth import draws, is_trusted
from sgtune.study.ground_truth.diagnostics import doubts, per_parameter, reference_record
from sgtune.support.errors import DataError, InputError
from sgtune.support.files import read_json, write_json

# ArviZ divides by zero for constant draws; this package gives no warnings.
pytestmark = [
    pytest.mark.filterwarnings("ignore:(divide by zero|invalid value) encountered:RuntimeWarning:arviz"),
    pytest.mark.filterwarnings("error::RuntimeWarning:sgtune"),
]

KINDS = ("persistent", "alternating", "rejections", "rounded", "signs", "skewed", "heavy", "apart")


def some_draws(kind, n_chains, n_draws, size, seed):
    """Draws (chain, draw, k) with what makes the numbers hard."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n_chains, n_draws, size))
    carried = {"persistent": 0.9, "alternating": -0.8}.get(kind, 0)
    stays = rng.random(values.shape) < (0.6 if kind == "rejections" else 0)
    for t in range(1, n_draws):
        values[:, t] = np.where(stays[:, t], values[:, t - 1], values[:, t] + carried * values[:, t - 1])
    made = {
        "rounded": np.round,
        # The folded draws of two values are constant, and an indicator may be constant.
        "signs": np.sign,
        "skewed": lambda values: np.exp(3 * values),
        "heavy": lambda values: values / rng.normal(size=values.shape),
        "apart": lambda values: values + np.arange(n_chains)[:, None, None] * np.arange(size),
    }
    return made.get(kind, np.array)(values)


def by_arviz(values):
    """R-hat (of a single chain, of its halves), bulk and mean ESS, each (k,)."""
    arviz, half = draws.arviz_module(), values.shape[1] // 2
    data = arviz.convert_to_dataset({"x": values})
    halves = values if len(values) > 1 else np.concatenate([values[:, :half], values[:, -half:]])
    found = [arviz.rhat(arviz.convert_to_dataset({"x": halves}))["x"].values]
    return np.array(found + [arviz.ess(data, method=name)["x"].values for name in ("bulk", "mean")])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_chains", [1, 2, 4])
def test_of_each_parameter_they_are_arvizs(kind, n_chains):
    for seed, n_draws in enumerate([4, 7, 9, 50, 201]):
        values = some_draws(kind, n_chains, n_draws, 10, seed)
        found, expected = per_parameter([values]), by_arviz(values)
        with np.errstate(divide="ignore", invalid="ignore"):
            sizes = np.square(values.std(axis=(0, 1)) / found.mean_error)
        ours = np.array([found.r_hat, found.ess_bulk, sizes])
        # Chains that are constant at different values: the variance within is 0, or rounding error.
        ours, expected = (np.where(array > 1e6, np.inf, array) for array in (ours, expected))
        equal = np.isclose(ours, expected, rtol=1e-6, atol=0, equal_nan=True)[:, ~found.stuck]
        assert equal[0].all()
        # Where two autocorrelations cancel, as those of repeated draws may, rounding decides where their sum ends.
        assert equal.mean() > 0.97


def test_a_parameter_has_the_same_numbers_alone_and_among_others_and_in_single_precision():
    values = np.concatenate([some_draws(kind, 3, 41, 2, 0) for kind in KINDS], axis=-1).astype(np.float32)
    alone = per_parameter([values[..., i : i + 1] for i in range(values.shape[-1])])
    np.testing.assert_allclose(per_parameter([values.astype(float)]), alone, rtol=1e-12)


def test_what_is_not_defined_is_nan_and_a_chain_that_never_moves_is_stuck():
    few = per_parameter([some_draws("independent", 2, 3, 4, 0)])
    assert np.isnan([*few[:2], *few[3:]]).all()
    single = per_parameter([some_draws("independent", 1, 7, 4, 0)])
    assert np.isnan(single.r_hat).all()
    assert np.isfinite(single.ess_bulk).all()
    values = some_draws("independent", 2, 30, 3, 0)
    values[1, 3, 2] = np.nan
    values[0, :, 0] = 4
    found = per_parameter([values])
    np.testing.assert_array_equal(np.isnan(found), [[False, False, row != 2] for row in range(5)])
    assert (found.r_hat[0], found.ess_bulk[0]) == (np.inf, 0)
    assert found.stuck.tolist() == [True, False, False]
    values[:, :, 0] = 4
    found = per_parameter([values])
    assert np.isinf([found.mean_error[0], found.sd_error[0]]).all()


DIMENSION, N_CHAINS, N_DRAWS = 10, 2, 2_000
# Parameters are correlated; three directions are judged.
DIRECTIONS = np.random.default_rng(8).normal(size=(DIMENSION, 3))


def reference_of(model, matrices, keep_every=1):
    """The chains of draws ``matrices`` (chain, draw, D) as one reference."""
    return draws.combine_chains([one_chain(model, matrix, keep_every=keep_every) for matrix in matrices])


def squared_errors(mean, sd, covariance, reference):
    """The errors of the exact posterior against this reference, from their definitions."""
    record = reference_record(reference)
    sizes, vectors = np.linalg.eigh(record["covariance"])
    along = np.sqrt(np.diag(vectors.T @ covariance @ vectors))
    of_mean, of_sd = record["functionals"]["mean"], record["functionals"]["sd"]
    true_mean, true_sd = mean @ DIRECTIONS, np.sqrt(np.diag(DIRECTIONS.T @ covariance @ DIRECTIONS))
    both = ((true_mean - of_mean) / of_sd) ** 2 + (true_sd / of_sd - 1) ** 2
    found = {
        "relative_sd_error": relative_sd_error(sd, record["sd"]) ** 2,
        "xi_rel": np.mean((sd / record["sd"] - 1) ** 2),
        "xi_white": np.mean((along / np.sqrt(sizes) - 1) ** 2),
        "functional_error": np.mean(both),
    }
    return found, {name: value**2 for name, value in record["monte_carlo_error"].items()}


@pytest.mark.parametrize(
    ("ratio", "carried"),
    [(2.0, 0.7), *(pytest.param(ratio, 0.0, marks=pytest.mark.proof) for ratio in (1.0, 2.0))],
)
def test_the_predicted_errors_are_those_that_references_have(ratio, carried):
    """40 references of 4,000 draws; with a ``ratio`` of variances of 1 the eigenvectors are arbitrary."""
    rng = np.random.default_rng(5)
    rotation, _ = np.linalg.qr(rng.normal(size=(DIMENSION, DIMENSION)))
    root = rotation * np.sqrt(ratio ** np.arange(DIMENSION))
    covariance, mean = root @ root.T, np.full(DIMENSION, 3.0)
    model = wide_model(DIMENSION, functionals=lambda position: position @ DIRECTIONS)
    pairs = []
    for _ in range(40):
        chains = [autoregressive(rng, N_DRAWS, DIMENSION, carried) for _ in range(N_CHAINS)]
        matrices = mean + np.stack(chains) @ root.T
        sd = np.sqrt(np.diag(covariance))
        pairs.append(squared_errors(mean, sd, covariance, reference_of(model, matrices)))
    for name in ("relative_sd_error", "xi_rel", "xi_white", "functional_error"):
        true, predicted = (np.array([found[name] for found in side]) for side in zip(*pairs, strict=True))
        se = np.sqrt((true.var() + predicted.var()) / len(pairs))
        assert se < 0.16 * true.mean(), name
        assert abs(predicted.mean() - true.mean()) < 4.5 * se, name
    if carried == 0:
        # Each parameter has sd / sqrt(2 n); directions with the largest errors have sqrt(11 / 2) times this.
        expected = 1 / np.sqrt(2 * N_CHAINS * N_DRAWS)
        roots = {name: np.sqrt(np.mean([found[name] for _, found in pairs])) for name in pairs[0][1]}
        assert roots["xi_rel"] == pytest.approx(expected, rel=0.03)
        assert roots["xi_white"] == pytest.approx(expected * (np.sqrt(5.5) if ratio == 1 else 1), rel=0.08)


def test_which_errors_are_defined_and_a_thinned_reference_is_no_worse_than_is_said():
    matrices = np.random.default_rng(0).normal(size=(2, 2_000, 300))
    stated = wide_model(201, functionals=lambda position: position[..., :5] ** 2)
    references = [reference_of(one, matrices[:, :40, : one.dimension]) for one in (wide_model(3), stated)]
    references += [reference_of(wide_model(300), matrices, keep_every) for keep_every in (1, 2)]
    small, large, whole, half = (reference_record(reference) for reference in references)
    always = {"relative_sd_error", "xi_rel"}
    assert small["monte_carlo_error"].keys() == always | {"xi_white"}
    assert large["monte_carlo_error"].keys() == always | {"functional_error"}
    assert "covariance" not in large
    # Half of the draws of an independent chain have the errors of half as many draws.
    for name, value in half["monte_carlo_error"].items():
        assert value == pytest.approx(np.sqrt(2) * whole["monte_carlo_error"][name], rel=0.03)


def test_tuners_are_judged_by_the_functionals_not_by_the_position():
    """With chains in two mirrored modes no parameter converges, but the product of two does."""
    matrices = 3 + np.random.default_rng(0).normal(size=(2, 500, 2))
    matrices[1] *= -1
    models = wide_model(2, functionals=lambda position: position[..., :1] * position[..., 1:]), wide_model(2)
    record, plain = (reference_record(reference_of(model, matrices)) for model in models)
    assert record["diagnostics"]["r_hat"] == plain["diagnostics"]["r_hat"] > 1.5
    assert (record["trusted"], plain["trusted"]) == (True, False)
    assert doubts(record) is None
    assert f"R-hat is {plain['functionals']['r_hat_p99']:.3g}" in doubts(plain)
    exact, found = matrices.astype(np.float32).prod(axis=-1).ravel(), record["functionals"]
    np.testing.assert_allclose([*found["mean"], *found["sd"]], [exact.mean(), exact.std(ddof=1)], rtol=1e-6)
    assert found["r_hat_max"] == found["r_hat_p99"] < 1.02
    # Without functionals the position is judged, and its moments are not written twice.
    found, block = plain["functionals"], plain["blocks"]["wide"]
    assert found["n"] == 2
    assert {name: block[name] for name in found} == found
    assert not {"mean", "sd"} & set(found)


def test_one_parameter_in_a_hundred_may_be_stuck():
    matrices = np.random.default_rng(0).normal(size=(2, 300, 200))
    for n_stuck, trusted in ((2, True), (3, False)):
        matrices[0, :, :n_stuck] = 1.5
        record = reference_record(reference_of(wide_model(200), matrices))
        assert record["functionals"]["r_hat_max"] == np.inf
        assert np.isinf(record["functionals"]["r_hat_p99"]) == (not trusted)
        assert record["trusted"] == trusted
        assert record["diagnostics"]["n_parameters_stuck"] == n_stuck


def test_trust_is_99_percent_of_r_hat_and_the_median_ess():
    untrusted = (1.05 + 1e-6, 4_000), (1.0, 200 - 1e-3), (np.nan, np.nan), (None, None)
    for r_hat, ess in ((1.05, 200), *untrusted):
        assert is_trusted({"r_hat_p99": r_hat, "ess_median": ess}) is ((r_hat, ess) == (1.05, 200))


def test_the_record_is_json_and_its_moments_those_of_all_draws(tmp_path):
    model, _, _ = gaussian_model()
    mixing = np.array([[1, 2, 0], [0, 1, 3], [0, 0, 1.0]])
    matrices = np.random.default_rng(0).normal(size=(2, 101, 3)) @ mixing
    matrices[1] += 1
    reference = reference_of(model, matrices, keep_every=3)
    write_json(tmp_path / "nuts.json", reference_record(reference))
    again = read_json(tmp_path / "nuts.json")
    pooled = matrices.astype(np.float32).astype(np.float64).reshape(-1, 3)
    np.testing.assert_allclose(again["covariance"], np.cov(pooled.T), rtol=1e-9)
    np.testing.assert_allclose(again["mean"], pooled.mean(axis=0), rtol=1e-9)
    # R-hat and ESS are the worst over the parameters; blocks have their own.
    found, blocks = per_parameter(draws.variables_of(reference).values()), again["blocks"]
    assert again["diagnostics"]["r_hat"] == pytest.approx(found.r_hat.max())
    assert again["diagnostics"]["ess_bulk"] == pytest.approx(found.ess_bulk.min())
    assert {name: block["n"] for name, block in blocks.items()} == {"intercept": 1, "slopes": 2}
    assert blocks["slopes"]["ess_min"] == pytest.approx(found.ess_bulk[1:].min())
    assert blocks["slopes"]["sd"] == pytest.approx(np.sqrt(np.mean(np.square(again["sd"][1:]))))
    errors, sizes = (blocks["slopes"]["sd_error"], blocks["intercept"]["sd_error"]), np.square(again["sd"])
    together = (errors[0] ** 2 * sizes[1:].sum() + errors[1] ** 2 * sizes[0]) / sizes.sum()
    assert again["monte_carlo_error"]["relative_sd_error"] == pytest.approx(np.sqrt(together))


def test_cut_trajectories_and_energies_are_counted_by_iteration():
    """E-BFMI is 2 for independent energies, and small if steps of the energy are far below its range."""
    n, rng, model = 4_000, np.random.default_rng(0), wide_model(2)
    energy, steps = rng.normal(size=n), np.arange(n)
    own = {"n_steps": np.where(steps % 4 == 0, 1_023, 511), "diverging": steps < 3}
    draws_of = [
        one_chain(model, rng.normal(size=(n, 2)), **own, energy=e) for e in (energy, np.cumsum(energy))
    ]
    found = reference_record(draws.combine_chains(draws_of))["diagnostics"]
    assert (found["max_tree_depth_share"], found["divergences"]) == (0.25, 6)
    # The sd of the mean of n squared differences of successive independent normals is 2 sqrt(3 / n).
    assert found["e_bfmi"][0] == pytest.approx(2, abs=4.5 * 2 * np.sqrt(3 / n))
    assert found["e_bfmi"][1] < 0.05


@pytest.fixture(scope="module")
def matrices():
    """Two chains of autoregressive draws of three parameters, so that R-hat and ESS differ among them."""
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(2, 400, 3))
    for t in range(1, 400):
        noise[:, t] += np.array([0.0, 0.5, 0.9]) * noise[:, t - 1]
    return (noise * [1, 2, 3] + [0, 50, -5]).astype(np.float32)


def test_moments_by_block_are_those_of_all_draws_at_once():
    """Draws are narrow and far from zero, where float32 sums of squares would lose the variance."""
    matrix = (1_000 + 0.01 * np.random.default_rng(0).normal(size=(301, 7))).astype(np.float32)
    moments = None
    for block in np.split(matrix, [1, 2, 120, 300]):
        moments = draws.add_draws(moments, block)
    exact = matrix.astype(np.float64)
    assert moments.n == 301
    np.testing.assert_allclose(moments.mean, exact.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(moments.squares, exact.var(axis=0) * 301, rtol=1e-8)
    products = np.cov(exact.T) * 300
    np.testing.assert_allclose(moments.products, products, rtol=1e-8, atol=1e-8 * products.max())


def test_chains_are_joined_with_their_variables_and_totals(matrices):
    model, _, _ = gaussian_model()
    attributes = {"seconds": 1.5, "warmup_leapfrogs": 10, "seed": 4}
    both = draws.combine_chains([one_chain(model, matrix, attributes=attributes) for matrix in matrices])
    flat = draws.flat_draws(both)
    np.testing.assert_array_equal(flat, matrices)
    np.testing.assert_array_equal(flat[..., 0], both.posterior["intercept"].values)
    np.testing.assert_array_equal(flat[..., 1:], both.posterior["slopes"].values)
    assert [both.posterior.attrs[name] for name in ("seconds", "warmup_leapfrogs", "seed")] == [3.0, 20, 4]
    np.testing.assert_array_equal(both.posterior["chain"], [0, 1])
    assert both.sample_stats["energy"].shape == (2, 400)


def test_chains_of_different_runs_are_not_joined(matrices):
    model, _, _ = gaussian_model()
    chain = one_chain(model, matrices[0])
    cut = chain.copy()
    cut.posterior = cut.posterior.isel(draw=slice(-10))
    others = [
        chain.isel(draw=slice(10)),
        one_chain(wide_model(3), matrices[0]),
        # The same number of draws is kept, but of other iterations.
        one_chain(model, np.repeat(matrices[0], 2, axis=0), keep_every=2),
        # The numbers agree, but other draws are kept.
        one_chain(model, matrices[0], keep_every=2),
        cut,
    ]
    for other in others:
        with pytest.raises(InputError, match="chains: they differ"):
            draws.combine_chains([chain, other])


def test_draws_survive_netcdf(matrices, tmp_path):
    model, _, _ = gaussian_model()
    both = draws.combine_chains([one_chain(model, matrix, keep_every=3) for matrix in matrices])
    draws.write_draws(tmp_path / "nuts.nc", both)
    again = draws.read_draws(tmp_path / "nuts.nc")
    assert again.posterior.equals(both.posterior)
    assert again.sample_stats.equals(both.sample_stats)
    np.testing.assert_array_equal(draws.summary(again), draws.summary(both))
    assert os.listdir(tmp_path) == ["nuts.nc"]


def test_a_disk_without_room_for_the_draws_is_one_line(matrices, tmp_path, monkeypatch):
    """Asked before HDF5, which may crash on it."""
    model, _, _ = gaussian_model()
    chain = one_chain(model, matrices[0])
    monkeypatch.setattr(draws.shutil, "disk_usage", lambda _: SimpleNamespace(free=2**17))
    with pytest.raises(DataError, match=r"nuts.nc: the disk is full"):
        draws.write_draws(tmp_path / "nuts.nc", chain)
    assert not os.listdir(tmp_path)


def test_files_that_are_no_draws_are_named(tmp_path):
    (tmp_path / "nuts.nc").write_bytes(b"broken")
    for name, words in (("nuts", "not a readable NetCDF"), ("none", ".*No such file")):
        with pytest.raises(DataError, match=f"{name}.nc: {words}"):
            draws.read_draws(tmp_path / f"{name}.nc")
