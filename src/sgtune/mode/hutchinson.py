"""The diagonal of a Hessian that is too large for memory."""

import numpy as np
from jaxtyping import Float, PyTree

from sgtune.model import Model
from sgtune.model.positions import flatten
from sgtune.model.posterior import hessian_products
from sgtune.support.errors import InputError, check_integer

__all__ = ["hutchinson_diagonal"]


PROBES = 32


def hutchinson_diagonal(
    model: Model, position: PyTree, n_probes: int = PROBES, seed: int = 0
) -> Float[np.ndarray, " D"]:
    """Diagonal of the Hessian of -log pi: the mean of z * (H z) over Rademacher probes z (Hutchinson).

    The contribution of a prior of independent parameters is exact; the likelihood's contribution to entry i has the
    variance sum over j != i of H_ij^2 / n_probes. Entries below the prior's curvature, which are impossible with a
    concave likelihood, are raised to it; entries that are still <= 0 are set to the smallest positive entry.

    Raises:
        InputError: no entry is positive.
    """
    n_probes = check_integer("n_probes", n_probes, at_least=1)
    asked = (flatten(position).tobytes(), n_probes, seed)
    if model.found.hessian_diagonal is not None and model.found.hessian_diagonal[0] == asked:
        return model.found.hessian_diagonal[1]
    signs = np.random.default_rng(seed).integers(0, 2, (n_probes, model.dimension))
    probes = (2 * signs - 1).astype(np.float32)
    likelihood, prior = hessian_products(model, position, probes)
    prior_diagonal = -np.mean(probes * prior, axis=0, dtype=np.float64)
    diagonal = prior_diagonal - np.mean(probes * likelihood, axis=0, dtype=np.float64)
    diagonal = np.where((prior_diagonal > 0) & (diagonal < prior_diagonal), prior_diagonal, diagonal)
    positive = diagonal > 0
    if not positive.any():
        raise InputError(
            f"position: -log pi of model {model.name!r} has no direction of positive curvature there"
        )
    diagonal = np.where(positive, diagonal, diagonal[positive].min())
    # `find_map` ends with the diagonal that the Laplace scale needs; it takes tens of seconds for a network.
    model.found.hessian_diagonal = (asked, diagonal)
    return diagonal
