"""The figure and the table of the limits have each run's numbers over what is possible."""

import copy

import numpy as np
import pytest
from artifact_records import make_records, record_of

from sgtune.study.audit.figures import LIMIT, SERIES, limit_ratios, limits


@pytest.mark.parametrize("is_large", [False, True])
def test_each_panel_has_the_means_over_runs_beside_its_limit(is_large):
    """In many dimensions the floors of all series are those of draws of NUTS."""
    records = copy.deepcopy(make_records(2, models=("logistic", "bnn"), tunings=2))
    ours = record_of(records, "logistic", "sgld", "mamba-ksd")
    numbers = {"ksd": 0.0, "ksd_squared": 144.0, "ksd_floor": 3.0}
    numbers |= {"xi_white": 0.2, "ess_median": 500.0, "seconds": 10.0}
    ours["table"] = [row | numbers for row in ours["table"]]
    (nuts,) = [one for one in records["reference"] if "blocks" in one]
    # The seconds are those of all chains, which run at once.
    nuts["diagnostics"] |= {"seconds": 800.0, "chains": 2}
    of_nuts, limit = nuts["blocks"]["logistic"]["ess_median"] / 400, nuts["monte_carlo_error"]["xi_white"]
    nuts["functionals"] = None
    own = {"sampler": "sgld-cv", "coordinates": "laplace", "losses": {"xi_white": 0.05}, "arm": {}}
    own |= {"row": {"ksd": 6.0, "ksd_squared": 36.0, "ksd_floor": 3.0, "ess_median": 5_000.0}}
    runs = [own | {"replicate": 0}, own | {"replicate": 1}]
    runs.append(runs[0] | {"coordinates": "none", "losses": {"xi_white": 9.0}})
    records["preconditioned"] = [{"model": "logistic", "seconds": 10.0, "runs": runs}]
    if is_large:
        for row in [*ours["table"], *(one["row"] for one in runs)]:
            row |= {"ksd_floor": 99.0, "ksd_scaled_floor": 1.5}
        for one in records["reference"]:
            one["sd" if "sd" in one else "laplace_sd"] = [1.0] * 300
        exact = {"width": 1, "discrepancy": "ksd", "value": 2.0, "n_points": 600}
        rows = [exact | {"scale": scale} for scale in ("identity", "laplace")]
        records["widths"] = [{"model": "logistic", "rows": rows}]
    axes = dict(zip(LIMIT, limits(records).axes, strict=True))
    table = {(one.sampler, one.tuner, one.metric): one for one in limit_ratios(records)}
    whose = (("sgld", "mamba-ksd"), ("sgld-cv", "mamba-none"), ("sgld-cv", "mamba-laplace"))
    expected = {
        "ksd_over_exact": (4.0, 2.0, 2.0),
        "error_over_nuts": (0.2 / limit, 9.0 / limit, 0.05 / limit),
        "ess_rate_over_nuts": (50 / of_nuts, 500 / of_nuts, 500 / of_nuts),
    }
    for name, values in expected.items():
        drawn = [container[0].get_xydata()[0] for container in axes[name].containers]
        for value, about, row in zip(values, whose, (-0.3, 1.1, 1.3), strict=True):
            assert table[*about, name].value == pytest.approx(value)
            assert any(np.allclose(one, (value, row)) for one in drawn)
    assert [axis.lines[-1].get_xdata()[0] for axis in axes.values()] == [1.0] * 3
    assert {one.tuner for one in table.values()} == {*SERIES}


def test_a_ksd_within_its_noise_has_an_upper_end_and_doubts_are_said():
    records = copy.deepcopy(make_records(3, models=("logistic",), tunings=3))
    ours = record_of(records, "logistic", "sgld", "mamba-ksd")
    squares = (-27.0, 42.0, -56.0)
    ours["table"] = [
        row | {"ksd": 1.0, "ksd_squared": square, "ksd_floor": 2.0, "diverged": False}
        for row, square in zip(ours["table"], squares, strict=True)
    ]
    for one in records["reference"]:
        if "diagnostics" in one:
            one["trusted"] = False
            one["diagnostics"] |= {"seconds": 800.0, "chains": 2}
    axes = dict(zip(LIMIT, limits(records | {"preconditioned": []}).axes, strict=True))
    upper = np.sqrt(2 * np.std(squares, ddof=1) / np.sqrt(3)) / 2
    ends = [line.get_xydata()[0] for line in axes["ksd_over_exact"].lines if len(line.get_xdata()) == 1]
    assert any(np.allclose(end, (upper, -0.3)) for end in ends)
    assert ["not trusted" in axis.get_xlabel() for axis in axes.values()] == [False, True, True]
