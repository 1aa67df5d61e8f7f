"""Running a sampler: an arm, what it may spend, chains in lockstep, one chain.

Import the module that is needed: `budget` does without JAX.
"""
