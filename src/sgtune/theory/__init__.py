"""Predictions of an arm's error before it runs, for posteriors close to Gaussian, and rates of convergence of
chains."""
