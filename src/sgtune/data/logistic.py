"""The simulated data set of the logistic regression (paper Sect. 4.1, App. B.1.1): the paper's own."""

from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from sgtune.errors import DataError, check_integer
from sgtune.files import atomic_write, file_sha256, read_json, write_json

__all__ = ["load", "simulate", "write"]

CORRELATION = 0.4
PRIOR_VARIANCE = 10.0
NAMES = ("train_inputs", "train_targets", "test_inputs", "test_targets", "true_position")


def simulate(
    n_rows: int = 1_000_000, n_train: int = 800_000, dimension: int = 10, seed: int = 42
) -> dict[str, np.ndarray]:
    """The data set of the published study; with the defaults it is the very one.

    theta_true ~ N(0, 10 I); X = Z C with Z standard normal and C the lower Cholesky factor of the matrix with
    entries (2 rho u - rho)^|i - j|, rho = 0.4, one uniform u for all entries;
    y_i ~ Bernoulli(sigmoid(x_i' theta)).
    (Z C has not the covariance C C' that Z C' would have; the published data were made so.)

    Returns:
        ``train_inputs`` (n_train, D) and ``test_inputs`` (n_rows - n_train, D) float32, ``train_targets`` and
        ``test_targets`` uint8 of 0 and 1, ``true_position`` (D,) float32.

    Raises:
        InputError: a size is out of range.
    """
    import jax
    import jax.numpy as jnp

    n_rows = check_integer("n_rows", n_rows, at_least=2)
    n_train = check_integer("n_train", n_train, at_least=1, at_most=n_rows - 1)
    dimension = check_integer("dimension", dimension, at_least=1)
    # The study ran on a JAX whose random bits are those that this flag gives when off.
    with jax.threefry_partitionable(False):
        key_targets, key_position, key_correlation, key_inputs = jax.random.split(jax.random.PRNGKey(seed), 4)
        position = jnp.sqrt(PRIOR_VARIANCE) * jax.random.normal(key_position, (dimension,))
        base = 2 * CORRELATION * jax.random.uniform(key_correlation) - CORRELATION
        index = jnp.arange(dimension)
        covariance = base ** jnp.abs(index[:, None] - index[None, :])
        inputs = jax.random.normal(key_inputs, (n_rows, dimension)) @ jnp.linalg.cholesky(covariance)
        probability = jax.nn.sigmoid(inputs @ position)
        targets = jax.vmap(jax.random.bernoulli)(jax.random.split(key_targets, n_rows), probability)
    inputs, targets = np.asarray(inputs), np.asarray(targets).astype(np.uint8)
    return {
        "train_inputs": inputs[:n_train],
        "train_targets": targets[:n_train],
        "test_inputs": inputs[n_train:],
        "test_targets": targets[n_train:],
        "true_position": np.asarray(position),
    }


def write(path_npz: str | Path, arrays: dict[str, np.ndarray], *, seed: int = 42) -> None:
    """``arrays`` of `simulate` as ``path_npz``, and beside it a ``.json``: its SHA-256, how it was made."""
    import jax

    path_npz = Path(path_npz)
    with atomic_write(path_npz) as temporary:
        np.savez(temporary, **{name: arrays[name] for name in NAMES})
    write_json(
        path_npz.with_suffix(".json"),
        {
            "file": path_npz.name,
            "sha256": file_sha256(path_npz),
            "made_by": "sgtune.data.logistic.simulate",
            "seed": seed,
            "n_train": len(arrays["train_targets"]),
            "n_test": len(arrays["test_targets"]),
            "dimension": len(arrays["true_position"]),
            "versions": {"jax": jax.__version__, "numpy": np.__version__},
        },
    )


def load(data_dir: str | Path) -> dict[str, np.ndarray]:
    """The arrays of ``data_dir/logistic.npz``, as `simulate` gives them.

    Raises:
        DataError: the file or its ``.json`` is missing, truncated, not what was written, or holds other
            arrays, other shapes, values that are not finite, or targets that are not 0 and 1.
    """
    path = Path(data_dir) / "logistic.npz"
    if not path.is_file():
        raise DataError(f"{path}: the file is missing; sgtune.data.logistic.write makes it")
    sidecar = read_json(path.with_suffix(".json"))
    expected = sidecar.get("sha256") if isinstance(sidecar, dict) else None
    if not expected:
        raise DataError(f"{path.with_suffix('.json')}: no entry 'sha256'; expected that of {path.name}")
    found = file_sha256(path)
    if found != expected:
        raise DataError(f"{path}: truncated or changed: SHA-256 {found[:12]}..., expected {expected[:12]}...")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise DataError(f"{path}: not a readable .npz file ({' '.join(str(error).split())})") from None
    _check(path, arrays)
    return arrays


def _check(path: Path, arrays: dict[str, np.ndarray]) -> None:
    if set(arrays) != set(NAMES):
        raise DataError(f"{path}: holds {', '.join(sorted(arrays))}; expected {', '.join(sorted(NAMES))}")
    dimension = arrays["true_position"].size
    n_train, n_test = arrays["train_targets"].size, arrays["test_targets"].size
    shapes = ((n_train, dimension), (n_train,), (n_test, dimension), (n_test,), (dimension,))
    for name, shape in zip(NAMES, shapes, strict=True):
        dtype = np.uint8 if name.endswith("targets") else np.float32
        array = arrays[name]
        if array.shape != shape or array.dtype != dtype or array.size == 0:
            raise DataError(
                f"{path}: {name} is {array.dtype} {array.shape}; expected {np.dtype(dtype)} {shape}"
            )
        if dtype is np.uint8 and array.max() > 1:
            raise DataError(f"{path}: {name} holds {array.max()}; expected 0 and 1 only")
        if dtype is np.float32 and not np.isfinite(array).all():
            raise DataError(f"{path}: {name} holds values that are not finite; expected finite numbers only")
