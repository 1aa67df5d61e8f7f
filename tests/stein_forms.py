"""Naive forms of Eqs. (3) and (4), and draws on which the fast forms are compared with them."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from scipy.signal import lfilter

from sgtune.stein.quadratic import N_STRETCHES

varied = settings(max_examples=25, deadline=None, derandomize=True)
sizes = {"n": st.integers(1, 9), "dimension": st.integers(1, 6), "seed": st.integers(0, 2**31 - 1)}
# Each program is compiled once per dimension.
few_shapes = sizes | {"dimension": st.sampled_from([1, 4])}


def kernel(x, y):
    """k and its derivatives for c = 1, beta = -1/2, term by term: k, grad_x k, grad_y k, div_x grad_y k."""
    difference = x - y
    base = 1.0 + np.sum(difference**2)
    gradient_x = -(base**-1.5) * difference
    divergence = sum(base**-1.5 - 3.0 * difference[i] ** 2 * base**-2.5 for i in range(len(x)))
    return base**-0.5, gradient_x, -gradient_x, divergence


def naive_pairs(positions, scores):
    """k_pi of Eq. (3) with grad U = -score for each pair, (n, n), in a float64 double loop."""
    positions, grad_u = np.asarray(positions, np.float64), -np.asarray(scores, np.float64)
    pairs = np.empty((len(positions), len(positions)))
    for i, (x, u) in enumerate(zip(positions, grad_u, strict=True)):
        for j, (y, w) in enumerate(zip(positions, grad_u, strict=True)):
            k, k_x, k_y, k_xy = kernel(x, y)
            pairs[i, j] = u @ w * k - u @ k_y - w @ k_x + k_xy
    return pairs


def check_stretches(found, kernel, stretch, rtol):
    """Compare sums of a kernel over stretches with loops, with tolerances of the largest: sums may cancel."""
    sums, own = np.zeros((N_STRETCHES, N_STRETCHES)), np.zeros(N_STRETCHES)
    for i, a in enumerate(stretch):
        own[a] += kernel[i, i]
        for j, b in enumerate(stretch):
            sums[a, b] += kernel[i, j] * (i != j)
    np.testing.assert_array_equal(found.counts, np.bincount(stretch, minlength=N_STRETCHES))
    np.testing.assert_allclose(found.own, own, rtol=rtol)
    np.testing.assert_allclose(found.sums, sums, rtol=rtol, atol=rtol * own.sum())


def mean_of_pairs(kernel, n_draws):
    """Of all draws the mean over all pairs, Eq. (3); for a subset of ``n_draws`` the form in the docstring of `ksd`."""
    n = len(kernel)
    if n_draws == n:
        return kernel.mean()
    diagonal = np.diag(kernel).mean()
    elsewhere = max(0.0, kernel[~np.eye(n, dtype=bool)].mean()) if n > 1 else diagonal
    return elsewhere + (diagonal - elsewhere) / n_draws


def naive_fssd(positions, scores, locations):
    """Eq. (4) with g of Sect. 2.2.2 and grad U = -score, in float64 loops."""
    positions, grad_u = np.asarray(positions, np.float64), -np.asarray(scores, np.float64)
    locations = np.asarray(locations, np.float64)
    total = 0.0
    for v in locations:
        witness = np.zeros(positions.shape[1])
        for x, u in zip(positions, grad_u, strict=True):
            k, k_x, _, _ = kernel(x, v)
            witness += (-u * k + k_x) / len(positions)
        total += np.sum(witness**2)
    return np.sqrt(total / locations.size)


def some_draws(seed, n, dimension, *, offset=0.0, spread=1.0, size=1.0):
    rng = np.random.default_rng(seed)
    positions = offset + spread * rng.standard_normal((n, dimension))
    scores = size * rng.standard_normal((n, dimension))
    return positions.astype(np.float32), scores.astype(np.float32)


def autoregressive(rng, n, dimension, memory):
    """A stationary chain of N(0, I) with autocorrelations memory^k, of the time (1 + memory) / (1 - memory)."""
    noise = rng.standard_normal((n, dimension))
    noise[1:] *= np.sqrt(1 - memory**2)
    return lfilter([1], [1, -memory], noise, axis=0)


def a_factor(seed, dimension):
    """A random lower-triangular factor with a positive diagonal."""
    rng = np.random.default_rng(seed)
    return np.tril(rng.normal(0, 0.5, (dimension, dimension)), -1) + np.diag(rng.uniform(0.3, 3.0, dimension))
