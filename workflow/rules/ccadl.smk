"""The study of CCAdL (Shang et al. 2015): its chains. `snakemake --cores all ccadl` makes all of it."""

from sgtune.study.ccadl.settings import settings_of as settings_of_ccadl

CCADL = f"{RUN}/ccadl"


wildcard_constraints:
    method="[a-z-]+",


def settings_of_normal(wildcards):
    """The configuration that one sampler's chains depend on."""
    return settings_of_ccadl(config, "normal", wildcards.method)


rule sample_normal:
    """Mean and precision of a normal by one sampler (Sect. 4.1): chains of every (h, A), all replicates."""
    output:
        normal=f"{CCADL}/normal/{{method}}.json",
    log:
        f"{LOGS}/ccadl/sample_normal/{{method}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=settings_of_normal,
        parts=f"{RUN}/unfinished/ccadl/normal/{{method}}",
    script:
        "../scripts/sample_normal.py"


STUDY_RESULTS["ccadl"] = {
    "normal": expand(rules.sample_normal.output.normal, method=config["ccadl"]["normal"]["samplers"]),
    "settings": [f"{CCADL}/settings.json"],
    "published": [workflow.source_path("../resources/ccadl/published.csv")],
}
