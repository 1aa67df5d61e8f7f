"""What is said of samplers at equal seconds: which differences are claimed, and of what a reader is warned."""

import pytest

from sgtune.study.adam_mcmc.equal_time import (
    error_findings,
    log_loss_findings,
    remarks_on_ksd,
    remarks_on_predictions,
    remarks_on_steps,
)

ARM = {"step_size": 0.1, "batch_size": 6, "n_leapfrog": None}


def evaluated(sampler, model="logistic", *, races=1, at_map=0.2, **metrics):
    """Runs with these values of the metrics, in the order of the replicates."""
    n_runs = len(next(iter(metrics.values())))
    rows = [{"replicate": i} | {name: own[i] for name, own in metrics.items()} for i in range(n_runs)]
    common = {"model": model, "sampler": sampler, "tuner": "mamba", "best": ARM, "arms": [ARM] * races}
    return {**common, "table": rows, "seconds": 4.0, "race_seconds": 1.0, "map": {"log_loss": at_map}}


def own(*records):
    return {record["sampler"]: record for record in records}


def test_an_error_is_called_smaller_only_beyond_the_t_interval():
    """Standard errors of 0.01 and about 0.01: AdamMCMC is 10 of them better than SGNHT, and 2 better than SGLD."""
    spread = (-0.0173, 0.0, 0.0173)
    records = own(
        evaluated("adam-mcmc", xi_white=[0.30 + x for x in spread]),
        evaluated("sgld", xi_white=[0.33 + x for x in spread]),
        evaluated("sgnht", xi_white=[0.45 + x for x in spread]),
    )
    (line,) = error_findings(records)
    assert line == (
        "Logistic regression, ξ whitened of samplers with a test on all data against those without: clearly smaller "
        "for AdamMCMC than for SGNHT; undecided in 1 pair of 2, of which the largest difference is AdamMCMC's, "
        "9% ± 4% smaller than SGLD's."
    )


def test_an_error_that_is_clearly_larger_is_said():
    records = own(
        evaluated("mala", xi_white=[0.60, 0.61, 0.62]), evaluated("sgld", xi_white=[0.30, 0.31, 0.32])
    )
    (line,) = error_findings(records)
    assert "clearly larger for MALA than for SGLD." in line


def test_log_losses_are_compared_with_the_map():
    records = own(
        evaluated("adam-mcmc", "bnn", log_loss=[0.2001, 0.1999, 0.2000]),
        evaluated("sgld", "bnn", log_loss=[0.150, 0.151, 0.149]),
        evaluated("sgnht", "bnn", log_loss=[0.250, 0.251, 0.249]),
    )
    (line,) = log_loss_findings(records)
    assert "smaller with SGLD (0.15000 ± 0.00058); larger with SGNHT (0.25000 ± 0.00058)" in line
    assert "not clearly different with AdamMCMC" in line
    assert "one race per sampler" in line
    assert log_loss_findings(own(evaluated("sgld", log_loss=[0.1, 0.1, 0.1]))) == []
    (near,) = remarks_on_predictions(records)
    assert near.startswith("Neural network, AdamMCMC: the log-loss differs from the MAP's by less than 1%")


@pytest.mark.parametrize(("ksd_of_best", "n_lines"), [(900.0, 1), (50.0, 0)])
def test_a_ksd_that_is_largest_for_the_best_predictions_is_a_warning(ksd_of_best, n_lines):
    losses = {"sghmc": 0.13, "sgld": 0.15}
    ksds = {"sghmc": ksd_of_best, "sgld": 400.0}
    records = own(
        *(
            evaluated(name, "bnn", log_loss=[loss] * 3, ksd=[ksds[name]] * 3, ksd_floor=[40.0] * 3)
            for name, loss in losses.items()
        )
    )
    lines = remarks_on_ksd(records)
    assert len(lines) == n_lines
    assert all("SGHMC has the smallest log-loss, 0.13, and the largest KSD, 900" in line for line in lines)


@pytest.mark.parametrize(("seconds", "n_lines"), [(0.1, 1), (0.01, 0), (None, 0)])
def test_a_race_of_few_steps_is_a_warning(seconds, n_lines):
    record = evaluated("adam-mcmc", "bnn", log_loss=[0.2] * 3) | {"seconds_per_step": [seconds]}
    lines = remarks_on_steps(own(record))
    assert len(lines) == n_lines
    assert all("R pays for 10 steps of the chosen arm, and the run for 40" in line for line in lines)
