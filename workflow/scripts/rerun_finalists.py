"""Run the best arms of a grid, and the chosen arms, in fresh replicates."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.experiments.screen import rerun_finalists
    from sgtune.study.experiments.tune import chosen_arms, with_facts

    files, params = snakemake.input, snakemake.params
    tuned = this.read(files.tuning, params.tuning_settings)["tuners"]
    screened = this.read(files.screen, params.screen_settings)
    task = this.task()
    found = rerun_finalists(task, this.settings["regret"], screened, chosen_arms(tuned))
    found["chosen"] = with_facts(found["chosen"], tuned)
    trusted = (this.reference_record() or {"trusted": None})["trusted"]
    this.write(snakemake.output.regret, {**task.names, "trusted": trusted, **found})
