"""The costs of AdamMCMC's study: the smallest of several passes, and remarks on costs that contradict each other."""

import pytest

from sgtune.sampling.budget import CostTable
from sgtune.study.adam_mcmc import costs
from sgtune.study.adam_mcmc.costs import least_costs, remarks_on_costs
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
