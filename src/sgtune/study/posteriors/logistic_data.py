"""The simulated data set of the logistic regression (paper Sect. 4.1, App. B.1.1): the paper's own."""

from pathlib import Path

import numpy as np

from sgtune.study.posteriors.store import check_range, read_arrays, write_arrays
from sgtune.support.errors import DataError, check_integer

__all__ = ["load", "simulate", "write"]

CORRELATION = 0.4
PRIOR_VARIANCE = 10.0
ARRAYS = {
    "true_position": (np.float32, ("D",)),
    "train_inputs": (np.float32, ("n_train", "D")),
    "train_targets": (np.uint8, ("n_train",)),
    "test_inputs": (np.float32, ("n_test", "D")),
    "test_targets": (np.uint8, ("n_test",)),
}
NAMES = tuple(ARRAYS)


def simulate(
    n_rows: int = 1_000_000, n_train: int = 800_000, dimension: int = 10, seed: int = 42
) -> dict[str, np.ndarray]:
    """The simulated data set; with the defaults it is identical to the published study's.

    theta_true ~ N(0, 10 I); X = Z C with Z standard normal and C the lower Cholesky factor of the matrix with
    entries (2 rho u - rho)^|i - j|, rho = 0.4, one uniform u for all entries;
    y_i ~ Bernoulli(sigmoid(x_i' theta)).
    (Z C does not have the covariance C C', which Z C' would have; the published data were made this way.)

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


def write(path_json: str | Path, arrays: dict[str, np.ndarray], *, seed: int = 42) -> None:
    """``arrays`` of `simulate` as ``path_json`` and the files beside it, for `load`.

    Raises:
        DataError: an array has another dtype or shape, or holds values that are not finite, or targets that are not
            0 and 1.
    """
    import jax

    path = Path(path_json)
    for name in NAMES:
        if name.endswith("targets"):
            check_range(path, name, arrays[name], 0, 1)
        elif not np.isfinite(arrays[name]).all():
            raise DataError(f"{path}: {name} holds values that are not finite; expected finite numbers only")
    # The rows are independent draws: in random order already.
    write_arrays(
        path,
        arrays,
        ARRAYS,
        {
            "made_by": "sgtune.study.posteriors.logistic_data.simulate",
            "seed": seed,
            "n_train": len(arrays["train_targets"]),
            "n_test": len(arrays["test_targets"]),
            "dimension": len(arrays["true_position"]),
            "versions": {"jax": jax.__version__, "numpy": np.__version__},
        },
        training=("train_inputs", "train_targets"),
    )


def load(data_dir: str | Path) -> dict:
    """The arrays of ``data_dir/logistic``, as `simulate` gives them, mapped into memory; and their ``checksum``.

    Raises:
        DataError: ``logistic.json`` or a file that it names is missing, truncated, or of another dtype or shape.
    """
    arrays, facts = read_arrays(Path(data_dir) / "logistic.json", ARRAYS, "the rule simulate_logistic")
    return {**arrays, "checksum": facts["checksum"]}
