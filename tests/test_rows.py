"""Rows that stay in a file give the numbers of the same rows in memory, bit for bit, and bad ones one clear line."""

import mmap
from threading import current_thread

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import sgtune
from sgtune.mode.curvature import laplace_scale
from sgtune.mode.find import map_result
from sgtune.model import define_model, log_sigmoid
from sgtune.model import rows as module_of_rows
from sgtune.model.derived import hold_out
from sgtune.model.posterior import scores
from sgtune.model.rows import STATM, RowSource, named_faults
from sgtune.samplers import gradients, minibatch
from sgtune.samplers.minibatch import draw_minibatch, minibatch_places, round_keys, subset_indices
from sgtune.sampling import ahead
from sgtune.support.errors import InputError
from sgtune.theory.laplace import laplace_of

N, D = 20_000, 3
"""More rows than a tile of `sum_over_tiles` has, and no whole number of them."""

STEPS = sgtune.Budget(steps=600)


def log_prior(position):
    return -0.5 * position @ position


def log_likelihood(position, rows):
    return log_sigmoid((2 * rows["y"] - 1) * (rows["x"] @ position))


def model_of(data, **options):
    return define_model(
        "logistic",
        log_prior=log_prior,
        log_likelihood=log_likelihood,
        data=data,
        init=lambda key: jnp.zeros(D),
        **options,
    )


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((N, D))
    return {"x": x, "y": (rng.random(N) < 1 / (1 + np.exp(-x[:, 0]))).astype(np.int64)}


@pytest.fixture(scope="module")
def files(arrays, tmp_path_factory):
    """The same arrays as memory maps, of 64 bits."""
    folder = tmp_path_factory.mktemp("rows")
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in arrays}


@pytest.fixture(scope="module")
def in_memory(arrays):
    return model_of(arrays)


@pytest.fixture(scope="module")
def in_files(files):
    return model_of(RowSource(files, block=1))


class Table:
    """Rows by their number, as a source of grain gives them; ``bad`` ones are what the user got wrong."""

    def __init__(self, arrays, n=N, bad=()):
        self.arrays, self.n, self.bad = arrays, n, dict(bad)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        row = {name: array[i] for name, array in self.arrays.items()}
        return self.bad[i](row) if i in self.bad else row


@pytest.mark.parametrize("kind", ["maps", "rows by number", "hdf5", "of the other byte order"])
def test_the_data_are_those_of_memory(in_memory, files, arrays, tmp_path, kind):
    if kind == "of the other byte order":
        source = {"x": arrays["x"].astype(">f4"), "y": arrays["y"].astype(">i8")}
        in_memory = model_of(source)
    elif kind == "hdf5":
        source = pytest.importorskip("h5py").File(tmp_path / "rows.h5", "w")
        source.update(arrays)
        source = dict(source)
    else:
        source = files if kind == "maps" else Table(arrays)
    model = model_of(RowSource(source, block=1))
    assert model.checksum == in_memory.checksum
    assert model.n_data == N
    places = np.array([5, 3, 3, N - 1])
    for name, leaf in model.data.take(places).items():
        expected = np.asarray(in_memory.data[name])[places]
        assert leaf.dtype == expected.dtype
        np.testing.assert_array_equal(leaf, expected)


@pytest.mark.parametrize(("n", "n_data"), [(1, 2), (7, 7), (40, 101), (5_000, 20_000), (4_096, 8_192)])
def test_numpy_finds_the_places_of_the_programs_minibatches(n, n_data):
    keys = jax.random.split(jax.random.key(3), 4)
    numbers = np.asarray(jax.vmap(round_keys)(keys))
    rows = np.arange(n_data, dtype=np.int32)
    if n == n_data:
        expected = [subset_indices(key, n, n_data) for key in keys]
    else:
        expected = [draw_minibatch(key, jnp.asarray(rows), n) for key in keys]
    np.testing.assert_array_equal(minibatch_places(numbers, n, n_data), np.stack(expected))
    part = minibatch_places(numbers, n, n_data, n // 3, n - n // 3)
    np.testing.assert_array_equal(part, np.stack(expected)[:, n // 3 :])


def test_passes_over_all_rows_are_equal(in_memory, in_files):
    one, other = map_result(in_memory), map_result(in_files)
    np.testing.assert_array_equal(other.position, one.position)
    assert other.negative_log_posterior == one.negative_log_posterior
    np.testing.assert_array_equal(laplace_scale(in_files), laplace_scale(in_memory))
    points = np.random.default_rng(1).standard_normal((40, D)).astype(np.float32)
    np.testing.assert_array_equal(scores(in_files, points), scores(in_memory, points))
    for few in (
        lambda model: gradients.subset_scores(model, points, 0.1, map_result(model).position),
        lambda model: gradients.stochastic_scores(model, points, 50),
        lambda model: np.hstack([np.ravel(part) for part in laplace_of(model).directions if np.ndim(part)]),
    ):
        np.testing.assert_array_equal(few(in_files), few(in_memory))


@pytest.mark.parametrize(
    ("sampler", "numbers"),
    [
        ("sgld", {"batch_size": 100}),
        ("sgld-cv", {"batch_size": 5_000}),  # of blocks of consecutive rows
        ("sghmc-cv", {"batch_size": 100, "n_leapfrog": 3}),
        ("sgnht", {"batch_size": 30}),
        ("ccadl", {"batch_size": 30}),
        ("adam-mcmc-minibatch", {"batch_size": 30}),
        ("mala", {"batch_size": N}),
        ("sgld-cv", {"batch_size": 50, "chains": 2}),  # with minibatches of their own
    ],
)
def test_draws_are_equal(in_memory, in_files, sampler, numbers):
    budget = sgtune.Budget(steps=20) if numbers["batch_size"] == N else STEPS
    options = {"step_size": 1e-5, "budget": budget, "kept_draws": 50, **numbers}
    one, other = (
        np.asarray(sgtune.sample(model, sampler, **options).draws) for model in (in_memory, in_files)
    )
    assert np.isfinite(one).all()
    assert len(np.unique(one[..., 0])) > 1
    assert "chains" not in numbers or (one[0] != one[1]).any()
    np.testing.assert_array_equal(other, one)


@pytest.fixture
def taken(monkeypatch):
    """How many rows were taken of sources, and by which thread, in each call."""
    calls, take = [], RowSource.take

    def noted(self, places):
        calls.append((len(places), current_thread().name))
        return take(self, places)

    monkeypatch.setattr(RowSource, "take", noted)
    return calls


@pytest.mark.parametrize("chains", [None, 2])
def test_chains_do_not_wait_for_rows_at_each_step(in_files, taken, chains):
    options = {"step_size": 1e-5, "batch_size": 50, "budget": STEPS, "position": jnp.zeros(D)}
    sgtune.sample(in_files, "sghmc", n_leapfrog=2, chains=chains, **options)
    assert 0 < len(taken) <= 2 * STEPS.steps // 64
    assert all(thread.startswith("rows") for _, thread in taken)


def test_minibatches_that_do_not_fit_are_read_tile_by_tile(in_memory, in_files, taken, monkeypatch):
    arguments = {"step_size": 1e-5, "batch_size": 17_000, "budget": sgtune.Budget(steps=5)}
    expected = sgtune.sample(in_memory, "sgld-cv", **arguments).draws
    for module in (minibatch, ahead):
        monkeypatch.setattr(module, "MOST_BYTES", 10_000)
    np.testing.assert_array_equal(sgtune.sample(in_files, "sgld-cv", **arguments).draws, expected)
    asked = [n for n, _ in taken]
    assert max(asked) < 17_000
    assert sum(asked) >= 2 * 5 * 17_000  # at the position and at the centre


def test_tuning_is_equal(in_memory, in_files):
    budget = sgtune.Budget(gradients=300_000)
    one, other = (sgtune.tune(model, "sgld-cv", budget=budget) for model in (in_memory, in_files))
    assert one.best == other.best
    assert one.forecast == other.forecast
    draws = one.sample(budget=STEPS, check=False).draws
    np.testing.assert_array_equal(other.sample(budget=STEPS, check=False).draws, draws)


def test_blocks_are_shuffled_and_stay_together(files, arrays):
    source = RowSource(files, block=300).shuffled(4)
    numbers = source.numbers_of(np.arange(N))
    np.testing.assert_array_equal(np.sort(numbers), np.arange(N))
    blocks = numbers[: N // 300 * 300].reshape(-1, 300)
    assert (np.diff(blocks, axis=1) == 1).all()
    assert (blocks[:, 0] % 300 == 0).all()
    assert (np.diff(blocks[:, 0]) != 300).any()
    moved = model_of({name: array[numbers] for name, array in arrays.items()}, shuffle_seed=None)
    stored = model_of(RowSource(files, block=300), shuffle_seed=4)
    arm = {"step_size": 1e-5, "batch_size": 100, "budget": STEPS}
    one, other = (sgtune.sample(model, "sgld", **arm) for model in (moved, stored))
    np.testing.assert_array_equal(other.draws, one.draws)
    assert moved.checksum != stored.checksum  # of the rows as they were given


def test_held_out_rows_are_the_last(files):
    predicting = {
        "predict": lambda position, x: jax.nn.sigmoid(x @ position),
        "as_test": lambda rows: {"inputs": rows["x"], "targets": rows["y"]},
    }
    model = model_of(RowSource(files), **predicting)
    held = hold_out(model, 0.1)
    assert held.n_data == N - 2_000
    np.testing.assert_array_equal(held.test_data["targets"], model.data.take(np.arange(N - 2_000, N))["y"])
    np.testing.assert_array_equal(scores(held, np.zeros((1, D))).shape, (1, D))
    # Other rows are held out after another shuffle.
    assert hold_out(model_of(RowSource(files), shuffle_seed=7, **predicting), 0.1).checksum != held.checksum


def test_no_call_asks_for_many_rows(arrays, monkeypatch):
    """Memory does not grow with N: no more rows are asked for at a time than a tile or the minibatches ahead have."""
    asked = []

    class Counted:
        def __init__(self, array):
            self.array, self.shape, self.dtype = array, array.shape, array.dtype

        def __getitem__(self, key):
            found = self.array[key]
            asked.append(len(found))
            return found

    tiles = 10
    many = {name: np.tile(array, (tiles, 1) if array.ndim == 2 else tiles) for name, array in arrays.items()}
    model = model_of(RowSource({name: Counted(array) for name, array in many.items()}))
    assert sum(asked) >= 2 * tiles * N
    assert max(asked) <= 2**16
    asked.clear()
    sgtune.sample(model, "sgld-cv", step_size=1e-6, batch_size=100, budget=STEPS)
    assert sum(asked) > tiles * N
    assert max(asked) <= 16_384


@pytest.mark.skipif(not STATM.exists(), reason="the resident memory is known on Linux only")
@pytest.mark.parametrize("is_scattered", [False, True])
def test_pages_of_memory_maps_are_handed_back(tmp_path, is_scattered):
    def resident():
        return int(STATM.read_bytes().split()[2]) * mmap.PAGESIZE

    n, width, room = 2**14, 1_024, 2**23
    np.save(tmp_path / "wide.npy", np.arange(n * width, dtype=np.float32).reshape(n, width))
    places = np.random.default_rng(0).permutation(n) if is_scattered else np.arange(n)
    grown = []
    for most in (0, room, 2**40):
        before = resident()
        source = RowSource(np.load(tmp_path / "wide.npy", mmap_mode="r"), mapped_bytes=before + most)
        for part in np.split(places, 8):
            (rows,) = source.take(part)
            np.testing.assert_array_equal(rows[:, 0], np.float32(part * width))
        grown.append(resident() - before)
    size = 4 * n * width
    assert grown[0] < size / 16
    assert grown[1] <= room + size / 16
    assert grown[2] > 0.9 * size  # without handing back


def test_memory_is_looked_at_more_often_where_rows_map_much(tmp_path, monkeypatch):
    """A system that maps 2 MB for a scattered row would map gigabytes for a thousand."""
    looks = []

    class Statm:
        pages = 0

        def exists(self):
            return True

        def read_bytes(self):
            looks.append(self.pages)
            return f"0 0 {self.pages}".encode()

    monkeypatch.setattr(module_of_rows, "STATM", Statm())
    n = 2**15
    np.save(tmp_path / "one.npy", np.arange(n, dtype=np.float32))
    source = RowSource(np.load(tmp_path / "one.npy", mmap_mode="r"))
    for Statm.pages in (0, 2**30):
        for part in np.split(np.random.default_rng(0).permutation(n), 8):
            source.take(part)
    assert n / 1_024 <= looks.count(0) <= n / 1_024 + 8
    assert looks.count(2**30) > 2.5 * looks.count(0)


@pytest.mark.parametrize(
    ("bad", "line"),
    [
        (
            lambda row: {**row, "x": np.full(D, np.nan)},
            r"data: 'x' has missing values \(NaN\) in row 17; drop such rows or fill them",
        ),
        (lambda row: {**row, "x": np.zeros(D + 1)}, "of 'x' are .*; all must be float64"),
        (lambda row: {**row, "y": 0.5}, "of 'y' are .*; all must be int64"),
        (lambda row: {"x": row["x"]}, "have another structure than row 0"),
        (lambda row: [][0], "cannot be read .IndexError: list index out of range"),
    ],
)
def test_bad_rows_are_named(arrays, bad, line):
    rows = Table({name: array[:500] for name, array in arrays.items()}, 500, {17: bad})
    # With a checksum rows are seen first by the search for the mode, and by the thread that reads minibatches.
    model = model_of(RowSource(rows), checksum="known")
    arm = {"step_size": 1e-5, "batch_size": 50, "budget": STEPS, "position": jnp.zeros(D)}
    for read in (
        lambda: model_of(RowSource(rows)),
        lambda: map_result(model),
        lambda: sgtune.sample(model, "sgld", **arm),
    ):
        with pytest.raises(InputError, match=line) as caught:
            read()
        assert "\n" not in str(caught.value)


def test_a_source_that_grows_is_refused(arrays):
    table = Table(arrays, 500)
    model = model_of(RowSource(table))
    table.n = 501
    with pytest.raises(InputError, match="data: the source has 501 rows now; it had 500"):
        scores(model, np.zeros((1, D)))
    # It does not take the blame for what fails later.
    with pytest.raises(jax.errors.JaxRuntimeError, match="no memory"), named_faults():
        raise jax.errors.JaxRuntimeError("no memory")


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        (3, "rows: int is not allowed"),
        ({"x": np.zeros((4, 2)), "y": np.zeros(5)}, "rows: the arrays must share a leading axis"),
        (np.zeros((0, 2)), "rows: number of rows: 0"),
        (np.array(["a", "b"]), "data: 'data' has dtype <U1"),
        ({"x": np.zeros(3), "y": pd.Series([1.0, 2.0, 3.0])}, "^rows: pandas takes rows by their labels"),
    ],
)
def test_what_is_no_source_is_refused(rows, line):
    with pytest.raises(InputError, match=line):
        RowSource(rows)


def test_values_that_32_bits_do_not_hold_are_refused(arrays):
    times = {**arrays, "x": np.stack([1.7e9 + np.arange(N) / 100.0] * D, axis=1)}
    with pytest.raises(InputError, match="column 0 of 'x' loses its values in float32") as in_memory:
        model_of(times)
    with pytest.raises(InputError) as stored:
        model_of(RowSource(times))
    assert str(stored.value) == str(in_memory.value)
    with pytest.raises(InputError, match="'y' has the integer"):
        model_of(RowSource({**arrays, "y": np.arange(N) + 2**40}))


def test_rows_of_16_bits_have_a_checksum(arrays):
    half = {**arrays, "x": arrays["x"].astype(jnp.bfloat16)}
    one, other = (model_of(RowSource(half)).checksum for _ in range(2))
    assert one == other != model_of(RowSource(arrays)).checksum


def test_data_in_a_source_are_no_arrays(in_files):
    with pytest.raises(InputError, match="data: 'x' of the rows of a source is not allowed"):
        in_files.data["x"]
