"""Functions of a job's wildcards that the rules of the studies share: inputs, settings, artifacts."""


def settings_of_method(kind):
    """The configuration that one sampler's results of `kind` depend on, as a function of a job's wildcards."""

    def of_job(wildcards):
        return ccadl_settings(config, kind, wildcards.method, getattr(wildcards, "set", None))

    return of_job


def download_of_set(wildcards):
    """The input of a set; empty if it is simulated."""
    if CCADL_CONFIG["data"]["simulated"] is not None:
        return []
    if wildcards.set == "mnist79":
        return [rules.download_mnist.output.source]
    return expand(rules.download_set.output.source, download=wildcards.set)


def chains_of_logistic(wildcards):
    """The chains of the logistic regression's reference."""
    n_chains = CCADL_CONFIG["logistic"]["reference"]["chains"]
    return expand(rules.sample_set_nuts.output.draws, chain=range(n_chains))


def settings_of_race(wildcards):
    """The configuration that the races of one sampler depend on."""
    return adam_mcmc_settings(config, "race", wildcards.kernel)


def settings_of_evaluation(wildcards):
    """The configuration that the evaluation of one sampler depends on."""
    return adam_mcmc_settings(config, "evaluation", wildcards.kernel)


def settings_of_preconditioned(wildcards):
    """The configuration that a model with and without a preconditioner depends on."""
    return posteriors_settings(config, "preconditioned", wildcards.model)


def settings_of_audit(wildcards):
    """The configuration that one sampler with one defect depends on."""
    return audit_settings(config, wildcards.defect, wildcards.kernel)


def cost_of_logistic(wildcards):
    """The costs that convert seconds to steps on the logistic regression."""
    return cost_of(SimpleNamespace(model="logistic"))


def references_of_logistic(wildcards):
    """The summary of the logistic regression's reference, if it has one."""
    return expand(rules.combine_nuts.output.facts, model="logistic") if has_reference("logistic") else []


def caption_of(wildcards):
    """The caption of a table or figure: where it has changed, the artifact is made again."""
    return CAPTIONS[getattr(wildcards, "table", None) or wildcards.figure]


def artifacts_of(wildcards):
    """The files of a study's tables and figures by which Snakemake knows them."""
    return files_of(config, wildcards.study)


def results_of_study(wildcards):
    """The result files of this run that the study's artifacts are made from."""
    names = artifacts_of_run(config, wildcards.study)
    jobs = [SimpleNamespace(study=wildcards.study, table=name) for name in names]
    paths = dict.fromkeys(path for job in jobs for path in sources_of(job))
    return [path for path in paths if path.startswith(f"{RUN}/")]


def places_of_targets():
    """Lines for the end of a run: where the tables and figures of its targets are, and how to see them as pages."""
    targets = workflow.dag_settings.targets or {"all"}
    lines = [
        f"{entry.label}: {RUN}/{study}/tables and {RUN}/{study}/figures"
        for study, entry in STUDIES.items()
        if {study, "all" if study == MAIN else study} & set(targets)
    ]
    files = [path for study in STUDIES for path in files_of(config, study) if Path(path).stem in targets]
    own = workflow.config_settings
    keys = [quote(f"{name}={value}") for name, value in own.config.items()]
    given = [("--configfile", own.configfiles), ("--config", keys)]
    command = ["snakemake", *sorted(targets), "--report report.zip"]
    command += [part for option, values in given if values for part in (option, *map(str, values))]
    pages = f"As pages for a browser: {' '.join(command)}"
    return [*lines, *files, pages] if lines or files else []
