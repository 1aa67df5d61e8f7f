"""What the configuration's section ``ccadl`` says, and what each of the study's results depends on.

Imports nothing heavy: the workflow reads it while it is parsed.
"""

from collections.abc import Mapping

from sgtune.errors import InputError

__all__ = ["check", "settings_of"]


def check(section: Mapping) -> None:
    """What the schema cannot say of the section, because it compares one key with another.

    Raises:
        InputError: one line naming the key, its value and what is allowed.
    """
    normal = section["normal"]
    if normal["batch_size"] > normal["n_data"]:
        raise InputError(
            f"ccadl.normal.batch_size: {normal['batch_size']} is not allowed; it must be <= ccadl.normal.n_data = "
            f"{normal['n_data']}"
        )


def settings_of(config: Mapping, experiment: str, method: str) -> dict:
    """What the results of one sampler in an experiment depend on; Snakemake reruns the job when it changes.

    Args:
        experiment: a key of the section.
        method: the sampler; results do not depend on which others there are.
    """
    own = {name: value for name, value in config["ccadl"][experiment].items() if name != "samplers"}
    return {"seed": config["seed"], "ccadl": {experiment: own | {"samplers": [method]}}}
