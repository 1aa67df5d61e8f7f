"""The defects of the code behind the paper, one at a time, on the logistic regression. `snakemake --cores all audit`
makes all of it."""

from sgtune.study.audit.artifacts import audited, settings_of as audit_settings

AUDIT = f"{RUN}/audit"


wildcard_constraints:
    defect="[a-z_]+",


rule audit_sampler:
    """The choices of tuners for one sampler with one defect, and runs of them, by the main study's cost table."""
    input:
        **ON_LAPLACE,
        reference=references_of_logistic,
        cost=cost_of_logistic,
    output:
        audit=f"{AUDIT}/audits/{{defect}}/{{kernel}}.json",
    log:
        f"{LOGS}/audit/audit_sampler/{{defect}}-{{kernel}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=settings_of_audit,
        cost_settings=settings("cost", "logistic"),
        reference_settings=settings("reference", "logistic"),
        parts=f"{RUN}/unfinished/audit/{{defect}}/{{kernel}}",
    script:
        "../scripts/audit_sampler.py"


STUDY_RESULTS["audit"] = (
    {
        "audits": [
            path
            for defect, sampler in audited(config)
            for path in expand(rules.audit_sampler.output.audit, defect=defect, kernel=sampler)
        ],
    }
    | {
        kind: [path for paths in RESULTS[kind].values() for path in paths]
        for kind in ("evaluation", "tuning", "regret", "estimates", "reference", "widths", "published")
    }
    # The figure is of the models with a reference.
    | {
        "preconditioned": expand(
            rules.compare_preconditioned.output.preconditioned,
            model=[
                model for model in POSTERIORS_CONFIG["models"] if model in MODELS and has_reference(model)
            ],
        )
    }
)
