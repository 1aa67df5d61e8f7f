"""What AdamMCMC's study reads from a few chains: t intervals, chains that are stuck, too slow or biased; its tables and
figures from small records; the judges and costs of its races."""

from math import inf

import numpy as np
import pytest
from scipy.stats import t as student

from sgtune.sampling.budget import CostTable
from sgtune.study.adam_mcmc import figures, known_targets, races, tables, verdicts
from sgtune.study.adam_mcmc.artifacts import NAMES
from sgtune.study.adam_mcmc.known_targets import standard_normal
from sgtune.study.report.table import AT_CAP

FAR, NEAR, STEPS = [0.80, 0.82, 0.81, 0.81], [0.97, 1.0, 1.02, 0.99], 10_000


def cell(square=NEAR, jump=0.1, acceptance=0.5, steps=1_600, halves=None):
    halves = [list(square), list(square)] if halves is None else halves
    own = {"square": list(square), "halves": halves, "steps": steps}
    return own | {name: [x] * len(square) for name, x in (("jump", jump), ("acceptance", acceptance))}


def test_half_width_is_students_quantile():
    assert verdicts.t_quantile(4) == pytest.approx(student.ppf(0.975, 3)) == pytest.approx(3.18, abs=0.005)
    assert verdicts.t_quantile(1) == inf
    assert verdicts.is_beyond(3.19, 1.0, 4)
    assert verdicts.is_beyond(-3.18, 1.0, 32) > verdicts.is_beyond(-3.18, 1.0, 4)
    assert not verdicts.is_beyond(5.0, None, 1)


def test_a_bias_needs_more_of_few_chains_than_of_many():
    """0.75, a standard error of 0.05: 0.15 beyond the bound of 0.1 are three of them."""
    spread = 0.05 * np.sqrt(3)
    few = [0.75 - spread, 0.75 + spread] * 2
    many = (0.75 + 0.05 * np.sqrt(31) * np.array([-1, 1] * 16)).tolist()
    assert not verdicts.is_biased({"square": few})
    assert verdicts.is_biased({"square": many})
    assert verdicts.is_biased({"squares": many})
    assert not verdicts.is_biased({"square": [0.5]})


def test_only_chains_from_exact_starts_end_because_of_a_bias():
    """On the posterior 1,600 steps once showed a bias of four chains that 2,400 steps did not have."""
    biased = cell([0.5, 0.51] * 2)
    assert verdicts.is_biased(biased)
    assert verdicts.is_decided(biased, 5_000, starts_are_exact=True)
    assert not verdicts.is_decided(biased, 5_000, starts_are_exact=False)
    # Each half has another E x^2: these chains have a bias, but have not settled.
    drifting = cell([0.5, 0.51] * 2, halves=[[1.5, 1.51] * 2, [0.1, 0.11] * 2])
    assert not verdicts.is_decided(drifting, 5_000, starts_are_exact=True)
    assert verdicts.is_decided(drifting, 5_000, starts_are_exact=True, must_settle=False)
    assert not verdicts.is_decided(drifting, 5_000, starts_are_exact=False, must_settle=False)
    # Stuck chains, and those that would still be too slow, end anyway.
    assert verdicts.is_decided(cell([0.5, 0.51] * 2, acceptance=0.0), 5_000, starts_are_exact=False)
    assert verdicts.is_decided(cell([0.5, 0.51] * 2, jump=0.001), 5_000, starts_are_exact=False)
    assert not verdicts.is_decided(cell([0.5, 0.51] * 2, jump=0.001), 50_000, starts_are_exact=False)
    # Without a bias they end when they have moved enough: 30 x E x^2 / 1,600 is 0.019.
    for jump, ends in ((0.02, True), (0.018, False)):
        assert verdicts.is_decided(cell(jump=jump), 5_000, starts_are_exact=True) == ends


def test_chains_that_moved_too_little_are_too_slow():
    jump = verdicts.LEAST_MOVES / STEPS
    for square, share, is_slow in (
        *((1.0, 0.99, True), (1.0, 1.01, False), (1.0, 0.0, True)),
        # In a narrow law small jumps are enough; in a wide one they are not.
        *((0.01, 0.011, False), (2.0, 1.9, True)),
    ):
        assert verdicts.is_too_slow(cell([square] * 4, jump=share * jump), STEPS) == is_slow
    assert verdicts.squares_cause(cell(jump=0.0), STEPS) == "– (too slow)"
    assert verdicts.squares_cause(cell(jump=0.0, acceptance=1e-4), STEPS) == "– (stuck)"
    assert verdicts.squares_cause(cell(), STEPS) == ""


def test_chains_that_drift_are_too_slow():
    first = [1.0, 1.1, 0.9, 1.0]
    assert verdicts.is_drifting({"halves": [first, [1.5, 1.61, 1.4, 1.5]]})
    # Differences of 0.1 with a standard error of 0.02: five, and with 4 chains 9.2 are needed, with 32 chains 3.3.
    spread = 0.02 * np.sqrt(3) * np.array([-1, 1, -1, 1])
    assert not verdicts.is_drifting({"halves": [[1.0] * 4, (1.1 + spread).tolist()]})
    wide = 0.02 * np.sqrt(31) * np.array([-1, 1] * 16)
    assert verdicts.is_drifting({"halves": [[1.0] * 32, (1.1 + wide).tolist()]})
    assert not verdicts.is_drifting({"halves": [[1.0] * 32, (1.06 + wide).tolist()]})
    # A clear difference of less than 5% changes no verdict.
    assert not verdicts.is_drifting({"halves": [[1.0] * 4, [1.040, 1.041, 1.040, 1.041]]})
    assert verdicts.is_drifting({"halves": [[0.010] * 4, [0.0110, 0.0111, 0.0110, 0.0111]]})
    assert verdicts.is_too_slow(cell(jump=1.0, halves=[first, [1.5, 1.6, 1.4, 1.5]]), STEPS)


def acceptance(dimension, square=NEAR, scales=(0.7, 1.4), n_data=1, **of_noisy):
    """Without noise along the update 0.5 is accepted; with it other chains may have other numbers."""
    cells = [
        {"drift_ratio": 0.1, "directional_noise": along, "scale": scale}
        | cell(square, steps=STEPS, **(of_noisy if along else {}))
        for along in (0, 1)
        for scale in scales
    ]
    target = f"gaussian-{dimension}" if n_data == 1 else "logistic"
    return {"target": target, "n_data": n_data, "dimension": dimension, "warmup": 10, "cells": cells}


def shown(cells, **of):
    [found] = [cell for cell in cells if all(getattr(cell, name) == value for name, value in of.items())]
    return found.shown


def test_acceptance_stands_with_and_without_noise_and_squares_at_the_middle_s_of_all_targets():
    found = [acceptance(1_000), acceptance(10, scales=(0.35, 0.7, 1.4)), acceptance(10, n_data=9)]
    cells = tables.adam_acceptance({"acceptance": found})
    rates = [cell for cell in cells if cell.metric == "acceptance_rate"]
    assert len(rates) == 6 + 4 + 4
    assert {cell.value for cell in rates} == {0.5}
    squares = [cell for cell in cells if cell.metric == "second_moment"]
    # Not of the posterior, whose chains start from approximate draws.
    assert {cell.model for cell in squares} == {"gaussian-10", "gaussian-1000"}
    assert {cell.detail for cell in squares} == {"0.1, 0, 0.7", "0.1, 1, 0.7"}
    assert squares[0].value == pytest.approx(0.995)
    assert squares[0].se == pytest.approx(0.0104, abs=1e-4)


@pytest.mark.parametrize(
    ("square", "options", "rate", "number"),
    [
        (FAR, {}, "0.500", "0.8100 ± 0.0041"),
        (NEAR, {"jump": 1e-4}, "0.500 *", "– (too slow)"),
        # The starts were exact, so that E x^2 shows a bias before it has settled.
        (FAR, {"jump": 1e-4}, "0.500 *", "0.8100 ± 0.0041 *"),
        (FAR, {"acceptance": 5e-4, "jump": 1e-4}, "5.00 × 10⁻⁴ *", "– (stuck)"),
        (NEAR, {"acceptance": 1e-6}, "< 2.50 × 10⁻⁵ *", "– (stuck)"),
    ],
)
def test_chains_that_have_not_settled_have_a_star_and_no_misleading_square(square, options, rate, number):
    cells = tables.adam_acceptance({"acceptance": [acceptance(10, square, (0.7,), **options)]})
    assert shown(cells, metric="acceptance_rate", detail="0.1, 1, 0.7") == rate
    assert shown(cells, metric="second_moment", detail="0.1, 1, 0.7") == number


def test_bias_stands_beside_its_acceptance_and_is_left_out_of_chains_that_are_too_slow():
    common = {"variant": "prolate", "dimension": 2, "squares": FAR}
    cells = [common | {"ratio": ratio} | cell(FAR, jump=jump) for ratio, jump in ((0.1, 0.1), (1.0, 1e-4))]
    found = {"bias": [{"scale": 0.7, "steps": STEPS, "warmup": 10, "chains": 4, "cells": cells}]}
    numbers = {(cell.metric, cell.detail): (cell.value, cell.shown) for cell in tables.adam_bias(found)}
    assert numbers["second_moment", "0.1"] == (pytest.approx(0.81), "0.8100 ± 0.0041")
    assert numbers["second_moment", "1"] == (None, "– (too slow)")
    assert numbers["acceptance_rate", "1"][0] == 0.5
    [axis] = figures.adam_bias_curves(found).axes
    assert {x for line in axis.lines for x in line.get_xdata()} == {0.1}
    assert set(figures.VARIANT_MARKERS) == set(known_targets.VARIANTS) <= set(NAMES)


def raced(**changes):
    """Three races of MALA: MAMBA chose arm 0 twice and arm 1 once, MAMBA-KSD arm 2, which accepts nothing."""
    losses = {0: [0.20, 0.22, 0.24], 1: [0.30, 0.33, 0.36], 2: [0.60, 0.66, 0.72]}
    runs = [
        {"arm": arm, "seconds": 2.0, "losses": {"xi_white": own}, "diverged": [False] * 3}
        | {"acceptance": [accepted] * 3}
        for (arm, own), accepted in zip(losses.items(), (0.75, 0.15, 0.0), strict=True)
    ]
    # What was accepted in shorter runs does not count.
    runs += [run | {"seconds": 1.0, "acceptance": [1.0] * 3} for run in runs]
    regret = {
        **{"losses": ["xi_white"], "arms": [{"step_size": 10.0**-i} for i in range(3)], "runs": runs},
        "chosen": [{"tuner": "mamba", "arms": [0, 1, 0]}, {"tuner": "mamba-ksd", "arms": [2, None, 2]}],
        **{"oracles": {"xi_white": [0]}, "random": [1, 1], "frozen": {"xi_white": 0.66}},
    }
    arms = [{"step_size": h, "batch_size": 10, "n_leapfrog": None} for h in (1e-5, 1e-4)]
    races = [{"judge": "mamba", "replicate": i, "best": arm} for i, arm in enumerate(arms)]
    common = {"model": "logistic", "sampler": "mala", "seconds": 1.0, "trusted": True, "races": races}
    return {**common, "regret": regret, **changes}


def test_regret_is_over_the_best_arm_which_stands_with_its_own_error():
    of = {(cell.tuner, cell.metric): cell for cell in tables.adam_regret({"races": [raced()]})}
    # A race in which every arm diverged counts as the cap.
    ratios = {"mamba": 7 / 6, "mamba-ksd": (2 * 3 + 10 / 0.22) / 3, "oracle": 1, "random": 1.5, "frozen": 3}
    rates = {"mamba": 55, "mamba-ksd": 0, "oracle": 75, "random": 15}
    for metric, expected in (("xi_white_x100_regret", ratios), ("acceptance_percent", rates)):
        found = {tuner: cell.value for (tuner, name), cell in of.items() if name == metric}
        assert found == pytest.approx(expected)
    finalist = of["finalist", "xi_white_x100"]
    assert (finalist.value, finalist.se) == pytest.approx((22, 2 / 3**0.5))
    assert finalist.shown == "22.0 ± 1.2"
    # Its race without an arm counts as one that did not stay finite.
    assert of["mamba-ksd", "xi_white_x100_regret"].shown.endswith("(6/9)")
    doubted = tables.adam_regret({"races": [raced(trusted=False)]})
    assert shown(doubted, tuner="finalist", metric="xi_white_x100") == "22.0 ± 1.2 *"


def test_a_loss_at_the_cap_is_a_lower_bound_and_nothing_is_said_of_more_than_a_bound():
    record = raced()
    record["regret"]["runs"][2]["losses"]["xi_white"][1] = 10.0
    regret = {"metric": "xi_white_x100_regret"}
    assert shown(tables.adam_regret({"races": [record]}), tuner="mamba-ksd", **regret).startswith("≥")
    for run in record["regret"]["runs"]:
        run["losses"]["xi_white"][1] = 10.0
    for tuner in ("mamba", "frozen"):
        assert shown(tables.adam_regret({"races": [record]}), tuner=tuner, **regret) == AT_CAP


def test_choices_are_the_arms_of_the_races():
    [cell] = tables.adam_choices({"races": [raced()]})
    assert (cell.tuner, cell.shown) == ("mamba", "h=1e-05 n=10; h=0.0001 n=10")


@pytest.mark.parametrize(("floor", "is_best"), [(79.0, False), (5.0, True)])
def test_samplers_stand_beside_the_map_and_a_ksd_below_that_of_exact_draws_is_never_the_best(floor, is_best):
    arm = {"step_size": 0.1, "batch_size": 6, "n_leapfrog": None}
    found = [
        {"model": "logistic", "sampler": sampler, "tuner": "mamba", "best": arm, "arms": [arm]}
        | {"table": [{"replicate": i, "ksd": ksd + i, "ksd_floor": floor} for i in range(3)]}
        | {"map": {"ksd": 3.162}}
        for sampler, ksd in (("sgld", 100.0), ("sgnht", 20.0))
    ]
    cells = tables.adam_evaluation({"evaluations": found})
    ksd = {cell.sampler: cell for cell in cells if cell.metric == "ksd"}
    assert (ksd["sgnht"].best, ksd["sgld"].best) == (is_best, False)
    assert (ksd["sgld"].value, ksd["sgld"].sd) == (pytest.approx(101), None)
    assert ksd["sgld"].se == pytest.approx(1 / 3**0.5)
    assert ksd["map"].value == 3.162


def test_a_disturbance_of_one_pass_does_not_change_a_cost(monkeypatch):
    passes, asked = iter([3.0, 1.0]), []

    def measured(model, shapes, **options):
        asked.append(shapes)
        return CostTable(dict.fromkeys(shapes, 2.0) | {shapes[0]: next(passes)})

    monkeypatch.setattr(races, "calibrate", measured)
    grids = {"hmc": {"log10_step_sizes": [-3, -2], "n_leapfrogs": [5]}}
    mala, hmc = ("mala", 8, None), ("hmc", 8, 5)
    table = races.least_costs(standard_normal(2, 8), grids, [mala], {"seconds": 0.1, "repeats": 2})
    assert asked == [[mala, hmc]] * 2
    assert (table.lookup(*mala), table.lookup(*hmc)) == (1.0, 2.0)
