"""Help for long runs: a forecast of their time, and restoring a lost folder."""

import sys

from sgtune.study.pipeline.saved import SAVED
from sgtune.support.files import remove_unfinished


localrules:
    restore,
    forecast,


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


onstart:
    for folder in (RUN, SAVED / config["run"], DOWNLOADS):
        remove_unfinished(folder)
    is_there = any(Path(RUN, name).is_dir() for name in ("data", *STUDIES))
    is_lost = (SAVED / config["run"] / "jobs").is_dir() and not is_there
    if is_lost and not {"restore", "forecast"} & set(workflow.dag_settings.targets):
        print(
            f"Warning: {RUN} is not there, but {SAVED / config['run']} has finished jobs of it. They are made again, "
            "and written over, unless you stop here and run the rule `restore` first.",
            file=sys.stderr,
        )


onsuccess:
    for line in places_of_targets():
        print(line)
