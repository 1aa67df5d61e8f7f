"""What theory says of an arm before it runs, for posteriors close to Gaussian, and how fast chains come to a target."""
