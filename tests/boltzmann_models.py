"""An independent discriminative RBM in float64 that enumerates hidden states, and a small one of the library's."""

from itertools import product

import numpy as np
from scipy import special, stats

from sgtune.study.posteriors import drbm

__all__ = ["boltzmann_log_probabilities", "boltzmann_position", "normal_log_prior", "small_boltzmann"]

N_FEATURES, N_CLASSES, N_HIDDEN = 5, 3, 4


def boltzmann_log_probabilities(position, inputs):
    """log p(y | x), ``(n, K)``, from p(y, h | x) ~ exp(d_y + h' c + h' U e_y + h' W x), h in {0, 1}^H."""
    states = np.array(list(product((0, 1), repeat=len(position["c"]))))
    energies = (
        (states @ position["W"] @ inputs.T).T[:, :, None]
        + (states @ position["U"])[None]
        + (states @ position["c"])[None, :, None]
        + position["d"]
    )
    return special.log_softmax(special.logsumexp(energies, axis=1), axis=1)


def normal_log_prior(position):
    return sum(stats.norm.logpdf(leaf).sum() for leaf in position.values())


def boltzmann_position(seed, n_features=N_FEATURES, n_classes=N_CLASSES, n_hidden=N_HIDDEN):
    rng = np.random.default_rng(seed)
    shapes = {
        "U": (n_hidden, n_classes),
        "W": (n_hidden, n_features),
        "c": (n_hidden,),
        "d": (n_classes,),
    }
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


def small_boltzmann(n_data=40, seed=0):
    """A model of so many rows, and its inputs (float64) and labels."""
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(n_data, N_FEATURES)).astype(np.float32)
    labels = rng.integers(N_CLASSES, size=n_data).astype(np.uint8)
    model = drbm.from_arrays(inputs, labels, n_hidden=N_HIDDEN, n_classes=N_CLASSES, shuffle_seed=None)
    return model, inputs.astype(float), labels
