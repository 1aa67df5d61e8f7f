"""Validation of the configuration, names and paths that all rules share."""

from sgtune.artifacts import REQUIRES
from sgtune.config import exit_unless_valid
from sgtune.workflow import offer_package_to_jobs, settings_of

exit_unless_valid(config, workflow.source_path("../schemas/config.schema.yaml"))

offer_package_to_jobs()

# A resource without a limit is ignored in a local run, and then untimed jobs would run beside timed ones. The limit is
# set here and not in a profile, because --resources and --default-resources replace a profile's.
if "machine" not in workflow.global_resources:
    workflow.global_resources["machine"] = 1000

RUN = f"results/{config['run']}"
LOGS = f"{RUN}/logs"
MODELS, SAMPLERS, TUNERS = config["models"], config["samplers"], config["tuners"]

WHOLE_MACHINE = 1000
"""Of the resource `machine`: what a timed rule takes, so that nothing runs beside it."""


wildcard_constraints:
    model="|".join(MODELS),
    sampler="|".join(SAMPLERS),
    tuner="|".join(TUNERS),
    chain=r"\d+",


def settings(kind):
    """The configuration that results of `kind` depend on, as a function of a job's wildcards."""

    def of_job(wildcards):
        return settings_of(config, kind, getattr(wildcards, "tuner", None))

    return of_job


def sources_of(wildcards):
    """The result files that a table or figure is made from (`RESULTS` of artifacts.smk)."""
    kinds = REQUIRES[getattr(wildcards, "table", None) or wildcards.figure]
    return [path for kind in kinds for path in RESULTS[kind]]
