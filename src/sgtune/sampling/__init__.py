"""Running a sampler: an arm, its budget, chains in lockstep, one chain.

Import the single module that you need: `budget`, for example, does not import JAX.
"""
