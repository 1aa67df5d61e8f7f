"""The ground truth for judging tuners: draws of NUTS, and checks whether they can be trusted.

Import the single module that you need: only `nuts` loads NumPyro and ArviZ, and only when it samples.
"""

from collections.abc import Mapping

R_HAT_TRUSTED = 1.05
"""The largest R-hat for 99 % of some quantities: above it their draws are not trusted."""

ESS_TRUSTED = 200
"""The smallest median ESS of some quantities: their sds are then known to about 5 %."""


def is_trusted(sampled: Mapping) -> bool:
    """Whether quantities with these diagnostics (the ``functionals`` or a block of a record) are sampled well enough.

    In files None stands for what is not finite.
    """
    r_hat, ess = sampled["r_hat_p99"], sampled["ess_median"]
    return r_hat is not None and r_hat <= R_HAT_TRUSTED and ess is not None and ess >= ESS_TRUSTED
