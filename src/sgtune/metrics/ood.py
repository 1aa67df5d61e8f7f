"""Uncertainty on out-of-distribution inputs (Lakshminarayanan et al. 2017; Coullon et al. 2023, Sect. 3.3.3)."""

import numpy as np
from jaxtyping import Array, Float

from sgtune.metrics.calibration import class_probabilities
from sgtune.support.errors import InputError

__all__ = ["auroc", "compare_entropies", "predictive_entropy"]

BINS = 40

ENTROPY_FACTS = ("auroc", "entropy_test", "entropy_ood", "edges", "histogram_test", "histogram_ood")
"""The entries of the result of `compare_entropies`."""


def predictive_entropy(probabilities: Float[Array | np.ndarray, "m ..."]) -> Float[np.ndarray, " m"]:
    """Entropy of each predicted distribution over the classes, in nats: -sum over classes of p log p, with 0 log 0 = 0.

    Args:
        probabilities: of all classes, ``(m, classes)``, or P(y = 1), ``(m,)``.

    Returns:
        (m,), between 0 and log(classes).
    """
    from scipy.special import entr

    return entr(class_probabilities(probabilities)).sum(axis=1)


def auroc(negatives: Float[np.ndarray, " n"], positives: Float[np.ndarray, " k"]) -> float:
    """Probability that a random positive has the higher value than a random negative; a tie counts half.

    Raises:
        InputError: one of the two has no values.
    """
    if not (len(negatives) and len(positives)):
        raise InputError(
            f"auroc: {len(negatives)} negatives and {len(positives)} positives; each needs one or more"
        )
    # Slow to import, and most jobs have no such inputs.
    from scipy.stats import rankdata

    ranks = rankdata(np.concatenate([negatives, positives]))
    n, k = len(negatives), len(positives)
    return float((ranks[n:].sum() - k * (k + 1) / 2) / (n * k))


def compare_entropies(
    test: Float[Array | np.ndarray, "m ..."], ood: Float[Array | np.ndarray, "k ..."]
) -> dict:
    """Entropies of the averaged probabilities at the test inputs and at the out-of-distribution inputs.

    Returns:
        ``auroc`` of the entropy as a detector of the latter; means ``entropy_test`` and ``entropy_ood``, in nats;
        ``edges`` of equal bins over [0, log(classes)], and the densities ``histogram_test`` and ``histogram_ood``.
    """
    largest = np.log(class_probabilities(test).shape[1])
    edges = np.linspace(0, largest, BINS + 1)
    # Because of rounding, the entropy of equal probabilities can exceed the last edge.
    entropies = {
        name: np.minimum(predictive_entropy(p), largest) for name, p in (("test", test), ("ood", ood))
    }
    result = {"auroc": auroc(entropies["test"], entropies["ood"]), "edges": edges.tolist()}
    for name, values in entropies.items():
        result[f"entropy_{name}"] = float(values.mean())
        result[f"histogram_{name}"] = np.histogram(values, edges, density=True)[0].tolist()
    return result
