"""Bayesian logistic regression of nines against sevens (Shang et al. 2015, Sect. 4.2).

Their likelihood 1 / (1 + exp(-y w' x)), y = -1 or 1, is `sgtune.study.posteriors.logistic`'s; their prior is N(0, I).
"""

from functools import partial

from sgtune.study.posteriors import logistic

__all__ = ["from_arrays"]

from_arrays = partial(logistic.from_arrays, name="mnist79", prior_variance=1.0)
