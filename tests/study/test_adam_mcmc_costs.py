"""The costs of AdamMCMC's study: the smallest of several passes, and remarks on costs that contradict each other."""

import pytest

from sgtune.sampling.budget import CostTable
from sgtune.study.adam_mcmc import costs
from sgtune.study.adam_mcmc.cost_remarks import remarks_on_costs
from sgtune.study.adam_mcmc.cost_table import adam_costs, cost_findings
from sgtune.study.adam_mcmc.costs import least_costs
from sgtune.study.adam_mcmc.gaussians import standard_normal

MODEL = standard_normal(2)


def test_a_disturbance_of_one_pass_does_not_change_a_cost(monkeypatch):
    passes = iter(
        [{("mala", 8, None): 3.0, ("hmc", 8, 5): 5.0}, {("mala", 8, None): 1.0, ("hmc", 8, 5): 9.0}]
    )
    monkeypatch.setattr(costs, "calibrate_cost", lambda *args, **options: CostTable(next(passes)))
    table, remarks = least_costs(MODEL, [("mala", 8, None), ("hmc", 8, 5)], {"seconds": 0.1, "repeats": 2})
    assert (table.lookup("mala", 8, None), table.lookup("hmc", 8, 5)) == (1.0, 5.0)
    assert remarks == []


@pytest.mark.parametrize(("of_ten", "is_said"), [(2.0, False), (1.3, False), (1.1, True), (2.4, True)])
def test_a_step_of_twice_the_leapfrogs_costs_about_twice_as_much(of_ten, is_said):
    found = remarks_on_costs({("hmc", 8, 5): 1.0, ("hmc", 8, 10): of_ten, ("sghmc", 8, 5): 7.0})
    assert bool(found) == is_said
    assert all(line.startswith("hmc, n=8: a step of L=10 costs") for line in found)


@pytest.mark.parametrize(("of_sgnht", "is_said"), [(0.66, True), (0.95, False), (1.6, False)])
def test_a_thermostat_does_not_make_a_step_cheaper(of_sgnht, is_said):
    costs = {("sgld", 8, None): 1.0, ("sgnht", 8, None): of_sgnht, ("sgnht", 9, None): 0.1}
    found = remarks_on_costs(costs)
    assert bool(found) == is_said
    assert all(line.startswith("n=8: a step of sgnht costs 0.66 times a step of sgld") for line in found)
    assert remarks_on_costs(costs, used=[("sgnht", 9, None)]) == []


def row_of(sampler, n, seconds, n_leapfrog=None):
    return {"sampler": sampler, "batch_size": n, "n_leapfrog": n_leapfrog, "seconds_per_step": seconds}


def arms_of(sampler, *shapes):
    arms = [{"step_size": 0.1, "batch_size": n, "n_leapfrog": n_leapfrog} for n, n_leapfrog in shapes]
    return {"model": "logistic", "sampler": sampler, "arms": arms}


def records(*chosen):
    rows = [
        row_of("adam-mcmc", 100, 0.05),
        row_of("adam-mcmc", 1_000, 0.06),
        *(row_of("sgld", n, n / 100_000) for n in (100, 1_000, 10_000)),
        # A step of twice the leapfrogs that costs three times as much.
        *(
            row_of("sghmc", n, seconds, n_leapfrog)
            for n in (100, 1_000)
            for n_leapfrog, seconds in ((5, 1.0), (10, 3.0))
        ),
    ]
    origin = {"load_before": [0.5, 1.0, 2.0], "load_after": [1.25, 1.0, 2.0], "cores": 2}
    costs = {"model": "logistic", "n_data": 10_000, "rows": rows, "warnings": ["sghmc"], "provenance": origin}
    return {"costs": [costs], "evaluations": list(chosen)}


ADAM = arms_of("adam-mcmc", (100, None), (1_000, None))


def test_a_test_is_compared_at_equal_batch_sizes():
    table = adam_costs(records(ADAM, arms_of("sgld", (100, None))))
    assert table.columns[1:] == (("Over SGLD", "same n"), ("Over SGLD", "n = 1%"))
    ratios = [[cell.value for cell in row.cells[1:]] for row in table.rows]
    assert ratios == [pytest.approx(own) for own in ([50.0, 50.0], [6.0, 60.0], [1.0, 1.0])]
    lines = cost_findings(records(ADAM, arms_of("sgld", (100, None))))
    assert [line.partition("costs as much as ")[2] for line in lines] == [
        "50 steps of SGLD with the same n.",
        "6 steps of SGLD with the same n.",
    ]


def test_tuned_sgld_with_larger_batches_is_said_to_be_no_cheaper():
    *_, line = cost_findings(records(ADAM, arms_of("sgld", (10_000, None))))
    assert line == (
        "Logistic regression: the races chose n=10000 for SGLD; such a step costs 2 times a step of AdamMCMC with "
        "n=100 and 1.7 times a step of AdamMCMC with n=1000."
    )


@pytest.mark.parametrize(("chosen", "n_said"), [([(100, 5)], 1), ([(100, 5), (1_000, 10)], 2), ([], 0)])
def test_remarks_are_on_chosen_shapes_alone_and_no_findings(chosen, n_said):
    found = records(ADAM, arms_of("sghmc", *chosen))
    caption = adam_costs(found).caption
    assert caption.count("Logistic regression, SGHMC, n=") == n_said
    assert "load of the machine was 0.5 before the measurements and 1.25 after them, on 2 cores" in caption
    assert not any("idle machine" in line for line in cost_findings(found))
