"""What tuners are judged against: draws of NUTS, and how far they can be trusted.

Import the module that is needed: `nuts` alone loads NumPyro and ArviZ, and those only when it samples.
"""

R_HAT_TRUSTED = 1.01
"""Of the worst parameter (Vehtari et al. 2021): draws above it are no ground truth."""
