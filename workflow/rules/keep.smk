"""Help for long runs: a forecast of their time, restoring a lost folder, and whether a finished run can be trusted."""

import sys

from sgtune.study.pipeline.saved import SAVED, exit_if_data_changed
from sgtune.support.files import remove_unfinished


localrules:
    compare,
    forecast,
    restore,
    verify,


rule restore:
    """Rebuild the run's folder up to the jobs that were finished when it was lost (results/saved)."""
    input:
        data_to_restore_on,
    log:
        f"{LOGS}/restore.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=settings_of_saved,
    script:
        "../scripts/restore.py"


rule forecast:
    """Print the expected hours of the run, by rule and model."""
    log:
        f"{LOGS}/forecast.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    script:
        "../scripts/forecast.py"


rule verify:
    """Compare every file of the finished run with its manifests: what is foreign, changed or missing."""
    log:
        f"{LOGS}/verify.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    script:
        "../scripts/verify.py"


rule compare:
    """Compare the tables of the finished run with the published ones, cell by cell."""
    log:
        f"{LOGS}/compare.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        published={study: config["published_as"] if study == MAIN else study for study in STUDIES},
    script:
        "../scripts/compare.py"


onstart:
    for folder in (RUN, SAVED / config["run"], DOWNLOADS):
        remove_unfinished(folder)
    makes_results = not {"compare", "forecast", "restore", "verify"} & set(workflow.dag_settings.targets)
    if makes_results:
        # Once a run, before the first job that reads them.
        exit_if_data_changed(RUN)
    is_there = any(Path(RUN, name).is_dir() for name in ("data", *STUDIES))
    is_lost = (SAVED / config["run"] / "jobs").is_dir() and not is_there
    if is_lost and makes_results:
        print(
            f"Warning: {RUN} is not there, but {SAVED / config['run']} has finished jobs of it. They are made again, "
            "and written over, unless you stop here and run the rule `restore` first.",
            file=sys.stderr,
        )


onsuccess:
    for line in places_of_targets():
        print(line)
