"""The ground truth for judging tuners: draws of NUTS, and checks whether they can be trusted.

Import the single module that you need: only `nuts` loads NumPyro and ArviZ, and only when it samples.
"""

R_HAT_TRUSTED = 1.05
"""The largest R-hat for 99 % of the quantities that tuners are judged by: above it the draws are not trusted."""

ESS_TRUSTED = 200
"""The smallest median ESS of the quantities that tuners are judged by: sds are then known to about 5 %."""
