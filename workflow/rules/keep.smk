"""What survives the loss of a run's folder: small results, which every finished job also saves elsewhere."""

import sys

from sgtune.study.saved import SAVED


localrules:
    restore,


rule restore:
    """Rebuild the run's folder up to the jobs that were finished when it was lost (results/saved)."""
    input:
        [path for model in MODELS for path in RESULTS["data"][model]],
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


onstart:
    is_lost = (SAVED / config["run"]).is_dir() and not Path(RUN).is_dir()
    if is_lost and "restore" not in workflow.dag_settings.targets:
        print(
            f"Warning: {RUN} is not there, but {SAVED / config['run']} has finished jobs of it. They are made again, "
            "and written over, unless you stop here and run the rule `restore` first.",
            file=sys.stderr,
        )
