"""Keys of the audit of the code behind the paper."""

from sgtune.study.config.main import SamplerName, Section, Unrepeated


class Audit(Section):
    """The defects of the code behind the paper, one at a time, on the logistic regression; made by the rule audit. All
    other settings are those of the main study, so that its results are those without a defect."""

    samplers: Unrepeated[SamplerName] = ["sgld", "sgld-cv", "sghmc", "sghmc-cv", "sgnht", "sgnht-cv"]
    """Samplers; those that the run has."""
