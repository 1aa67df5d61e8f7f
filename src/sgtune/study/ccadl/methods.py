"""The study's samplers as the library has them; h and A of the paper are their ``step_size`` and ``friction``."""

from sgtune.samplers.covariance import FORMS
from sgtune.support.errors import check_choice

__all__ = ["METHODS", "sampler_of"]

METHODS = {"sghmc": "sghmc-shang", "sgnht": "sgnht-shang", "ccadl": "ccadl", "mccadl": "mccadl"}
"""By the name of the configuration, the name in `sgtune.samplers` with the full covariance."""

WITHOUT_COVARIANCE = ("sgnht",)


def sampler_of(method: str, covariance: str) -> str:
    """The name in `sgtune.samplers` of a sampler of the study with that form of covariance, "full" or "diagonal".

    Raises:
        InputError: no such sampler, or no such form.
    """
    check_choice("sampler", method, METHODS)
    check_choice("covariance", covariance, FORMS)
    is_diagonal = covariance == "diagonal" and method not in WITHOUT_COVARIANCE
    return METHODS[method] + ("-diagonal" if is_diagonal else "")
