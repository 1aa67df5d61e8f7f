"""Run the arms that a sampler's tuners chose, and judge their draws."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.experiments.evaluate import evaluate_tuned
    from sgtune.study.experiments.tune import chosen_arms, with_facts

    tuned = this.read(snakemake.input.tuning, snakemake.params.tuning_settings)["tuners"]
    task = this.task()
    record = evaluate_tuned(task, chosen_arms(tuned), this.settings["evaluation"])
    record["tuners"] = with_facts(record["tuners"], tuned)
    this.write(snakemake.output.evaluation, {**task.names, "task": task.model.task, **record})
