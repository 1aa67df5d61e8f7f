"""Validation of the configuration, names and paths that all rules share."""

from pathlib import Path
from shlex import quote
from types import SimpleNamespace

from snakemake.common.configfile import load_configfile

from sgtune.study.config.validate import exit_unless_valid
from sgtune.study.catalogue import MODELS as ENTRIES
from sgtune.study.config.sections import model_settings, settings_of
from sgtune.study.pipeline.job import prepare_jobs
from sgtune.study.pipeline.plan import (
    check_costs,
    extras_of,
    ladder_settings,
    studied,
    tunes_alone,
    tuning_settings,
)
from sgtune.study.studies import MAIN, STUDIES, artifact, artifacts_of_run, files_of, number_in_paper

# What is of one's own: jobs, which read this file too, do not repeat its warning.
own = [*map(load_configfile, workflow.config_settings.configfiles), workflow.config_settings.config]
exit_unless_valid(config, check_costs, artifacts_of_run, own=own, warns=workflow.is_main_process)

prepare_jobs()

# A resource without a limit is ignored in a local run: untimed jobs would then run beside timed ones. The limit is
# set here and not in a profile, because --resources and --default-resources replace a profile's.
if "machine" not in workflow.global_resources:
    workflow.global_resources["machine"] = 1000

RUN = f"results/{config['run']}"
LOGS = f"{RUN}/logs"
MODELS = config["models"]

OF_MODEL = {
    "data": f"{RUN}/data/{{model}}.json",
    "map": f"{RUN}/data/{{model}}.map.npz",
    "laplace": f"{RUN}/data/{{model}}.laplace.npz",
}
"""Of a model its data, its mode and the curvature there."""

STUDIED = studied(config)
"""Every (model, sampler, tuner) of the run."""

WHOLE_MACHINE = 1000
"""The amount of the resource `machine` that a timed rule takes, so that nothing runs beside it."""

ALL_CORES = 1024
"""A number of threads that Snakemake lowers to its cores. (To ask for the number of cores would need one even where
nothing runs: --report, --unlock.)"""


def threads_of_long_jobs(wildcards):
    """Some of many cores for the jobs that others wait for: gradients of all data are large products of matrices. On
    fewer than eight cores one, because other jobs need those."""
    return max(1, (workflow.resource_settings.cores or 1) // 4)


wildcard_constraints:
    model="|".join(MODELS),
    sampler="|".join(config["samplers"]),
    chain=r"\d+",
    dimension=r"\d+",
    study="|".join(STUDIES),


def settings(kind, model=None):
    """The configuration that results of `kind` depend on, as a function of a job's wildcards (or for `model`)."""

    def of_job(wildcards):
        return settings_of(config, kind, model or wildcards.model)

    return of_job


def settings_of_tuning(wildcards):
    """The configuration that each tuner of a sampler depends on."""
    return tuning_settings(config, wildcards.model, wildcards.sampler)


def settings_of_ladder(wildcards):
    """The configuration that the Gaussians of one dimension depend on."""
    return ladder_settings(config, int(wildcards.dimension))


def has_table(model):
    """Whether a given cost table converts seconds to steps."""
    return model_settings(config, model)["calibration"]["table"] is not None


def cost_of(wildcards):
    """The costs that convert seconds to steps: those measured here, or the given table."""
    table = model_settings(config, wildcards.model)["calibration"]["table"]
    return table or expand(rules.calibrate_cost.output.cost, model=wildcards.model)[0]


def table_of(wildcards):
    """The cost table that the run was given, if it was."""
    return [cost_of(wildcards)] if has_table(wildcards.model) else []


def is_by_the_clock(model):
    """Whether evaluation runs of `model` last their seconds by the wall clock."""
    return model_settings(config, model)["evaluation"]["clock"] == "wall"


def cost_of_evaluation(wildcards):
    """The costs that convert an evaluation run's seconds to steps, if the run does not use the wall clock."""
    return [] if is_by_the_clock(wildcards.model) else [cost_of(wildcards)]


def machine_of_evaluation(wildcards):
    """The whole machine for runs by the clock; runs of a given number of steps may run in parallel."""
    return WHOLE_MACHINE if is_by_the_clock(wildcards.model) else 1


def threads_of_evaluation(wildcards):
    """As `machine_of_evaluation`."""
    return ALL_CORES if is_by_the_clock(wildcards.model) else 1


def machine_of_tuning(wildcards):
    """The whole machine where tuning measures seconds or uses the wall clock."""
    return WHOLE_MACHINE if tunes_alone(config, wildcards.model) else 1


def threads_of_tuning(wildcards):
    """As `machine_of_tuning`."""
    return ALL_CORES if tunes_alone(config, wildcards.model) else 1


def has_reference(model):
    """Whether NUTS samples `model`; if not, no rule may wait for its draws."""
    return "reference" in extras_of(config, model)


def reference_of(wildcards):
    """The reference's summary, for models that have a reference."""
    referenced = [wildcards.model] if has_reference(wildcards.model) else []
    return expand(rules.combine_nuts.output.facts, model=referenced)


def draws_of(wildcards):
    """The reference's draws, for models that have a reference."""
    return [f"{RUN}/reference/{wildcards.model}/nuts.nc"] if has_reference(wildcards.model) else []


def ood_of(wildcards):
    """The out-of-distribution inputs, for models that have such inputs."""
    return [f"{RUN}/data/{wildcards.model}.ood.json"] if ENTRIES[wildcards.model].out_of_distribution else []


def chains_of(wildcards):
    """The chains of a model's reference."""
    n_chains = model_settings(config, wildcards.model)["reference"]["chains"]
    return expand(rules.sample_nuts.output.draws, model=wildcards.model, chain=range(n_chains))


STUDY_RESULTS = {}
"""For each study the result files that its tables and figures are made from, by kind, and its `data` if it has any. Its
rules file (workflow/rules/{study}.smk) adds them."""


def artifact_of(wildcards):
    """The entry of the table or figure of a job."""
    return artifact(getattr(wildcards, "table", None) or wildcards.figure)


TABLES_FIRST = " Tables"
"""The heading of tables in a report, which is sorted: a browser does not show the blank."""


def labels_of(wildcards):
    """The title of a table or figure in a report, whose lists are sorted by it. Blanks before it, which a browser does
    not show, keep the order of print: first what has a number in the paper."""
    study = STUDIES[wildcards.study]
    names = sorted([*study.tables, *study.figures], key=number_in_paper)
    name = getattr(wildcards, "table", None) or wildcards.figure
    return {"artifact": " " * (len(names) - names.index(name)) + artifact(name).title}


def category_of(wildcards):
    """The section of a study in a report, in the order of print by blanks, as for titles."""
    names = list(STUDIES)
    return " " * (len(names) - names.index(wildcards.study)) + STUDIES[wildcards.study].label


def sources_of(wildcards):
    """The result files that a table or figure is made from; of one model those that are of this model or of none."""
    entry = artifact_of(wildcards)
    if entry.model is None:
        return [path for kind in entry.kinds for path in STUDY_RESULTS[wildcards.study][kind]]
    return [
        path for kind in entry.kinds for model in (entry.model, "") for path in RESULTS[kind].get(model, [])
    ]


def sections_of(wildcards):
    """The settings that the results of a study may depend on: its own section, the main study's and those that are no
    study's."""
    own = (MAIN, wildcards.study)
    return {name: section for name, section in config.items() if name in own or name not in STUDIES}


def results_of(model):
    """The results of `model`, and the tables and figures of it alone."""
    results = [path for of_models in RESULTS.values() for path in of_models.get(model, [])]
    return results + [path for path in files_of(config, MAIN) if artifact(Path(path).stem).model == model]
