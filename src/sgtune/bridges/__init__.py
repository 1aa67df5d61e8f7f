"""Bridges to other packages: models of NumPyro come in, draws go out to ArviZ. Each package is an extra."""
