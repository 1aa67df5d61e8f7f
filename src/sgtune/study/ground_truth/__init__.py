"""What tuners are judged against: draws of NUTS, and how far they can be trusted.

Import the module that is needed: `nuts` alone loads NumPyro and ArviZ, and those only when it samples.
"""

R_HAT_TRUSTED = 1.05
"""The most that R-hat may be for 99 % of what tuners are judged by: above it the draws are no ground truth."""

ESS_TRUSTED = 200
"""The least that the median ESS may be of what tuners are judged by: their sds are then known to about 5 %."""
