"""The table of the study's findings: what was asked, and the sentences that the records allow."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

from sgtune.study.adam_mcmc.acceptance_table import shown_scale
from sgtune.study.adam_mcmc.bias_findings import bias_findings
from sgtune.study.adam_mcmc.cost_table import cost_findings
from sgtune.study.adam_mcmc.distance_findings import DISTANCES, distance_findings
from sgtune.study.adam_mcmc.equal_time import (
    error_findings,
    log_loss_findings,
    remarks_on_ksd,
    remarks_on_predictions,
    remarks_on_steps,
)
from sgtune.study.adam_mcmc.evaluation_table import by_model_and_sampler
from sgtune.study.adam_mcmc.findings import acceptance_findings
from sgtune.study.adam_mcmc.names import targets_in
from sgtune.study.adam_mcmc.regret_table import regret_findings
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.layout import Cell, Row, Table
from sgtune.study.report.records import Records, need

__all__ = ["adam_findings"]


def adam_findings(records: Records) -> Table:
    """A row per question; those without records are left out."""
    name = "adam_findings"
    found = targets_in(need(records, "acceptance", name))
    of_models = list(by_model_and_sampler(records.get("evaluations") or []).values())
    equal = [line for own in of_models for line in (*error_findings(own), *log_loss_findings(own))]
    misleading = [
        line
        for own in of_models
        for line in (*remarks_on_steps(own), *remarks_on_ksd(own), *remarks_on_predictions(own))
    ]
    answers = {
        "Does noise along the update raise acceptance?": acceptance_findings(found, shown_scale(found)),
        "Does the algorithm keep its target (Theorem 1)?": [
            line for record in records.get("bias") or [] for line in bias_findings(record)
        ],
        "Is convergence geometric (Theorem 2)?": [
            line for record in records.get("distances") or [] for line in distance_findings(record, DISTANCES)
        ],
        "Can the acceptance rate replace the race (MAMBA, Sect. 5.1)?": regret_findings(records),
        "What does a test on all data cost?": cost_findings(records),
        "Which sampler is better at equal seconds?": equal,
        "What misleads at equal seconds?": misleading,
    }
    return Table(
        name=name,
        title=artifact(name).title,
        caption="Every number is from this run. γ is the size of Adam's step, s the sd of the isotropic noise of a "
        "proposal, and s_d the sd of its noise along the update, in units of the update. E x² is the mean square of "
        "the draws in posterior sds, 1 under the target; D the number of parameters; T the trace of the curvature, D "
        "of N(0, I). ξ(σ̂) and ξ whitened are errors of the posterior's sds.\n"
        "A difference is claimed if its 95% t interval excludes 0: beyond 4.3 standard errors with 3 races, 3.2 with 4 "
        "chains, and two with many. Differences between samplers, judges, and chains with and without noise along the "
        "update need more: the intervals of all comparisons of one kind together hold with 95% (Bonferroni). ± is one "
        "standard error. Cases whose chains are stuck or too slow for an estimate of E x² are counted as too slow to "
        "tell.",
        stub=("Question",),
        columns=(("", "Finding"),),
        rows=tuple(
            Row((question,), (Cell("logistic", "adam-mcmc", "", "", text="\n".join(lines), detail=question),))
            for question, lines in answers.items()
            if lines
        ),
        is_prose=True,
    )
