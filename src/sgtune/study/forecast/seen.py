"""Measurements from other machines, which a forecast uses where there is no earlier run."""

__all__ = [
    "BESIDE",
    "COMPARABLE",
    "DISTINCT",
    "FORESEEING",
    "FORESEEING_AN_ARM",
    "LEAPFROGS",
    "LINEAR",
    "OVERHEAD",
    "PAIR",
    "PAIR_OF_PARAMETERS",
    "PLAIN",
    "PREDICTION",
    "SCORES",
]

OVERHEAD = {
    **{"find_map": 8.0, "sample_nuts": 6.0, "combine_nuts": 1.0, "calibrate_cost": 12.0, "tune_sampler": 4.0},
    **{"evaluate_sampler": 2.0, "compare_clocks": 2.0, "screen_grid": 5.0, "rerun_finalists": 5.0},
    **{"compare_horizons": 8.0},
    **{"estimate_discrepancies": 11.0, "measure_widths": 2.0},
}
"""Start-up and compilation of a job in seconds, as seen on two cores; of another one 1."""

PLAIN = {"data": 3.0, "combine_nuts": 5.0, "table": 1.5, "figure": 4.0}
"""Seconds of jobs that no budget of the configuration decides, as seen on two cores."""

PREDICTION = 0.1
"""What predictions of the test set cost, in gradients of all training data."""

SCORES, COMPARABLE = {"logistic": 0.2, "pmf": 0.9, "bnn": 0.9}, 3.0
"""What a score costs, in SGLD's gradients of as many data terms: many at a time are cheaper where positions are small.
As seen; 0.5 for another model. An earlier run's value is better, if its scores had about as many terms."""

DISTINCT = {"evaluation": 0.85, "regret": 0.65}
"""Share of runs that differ, of those that the tuners' choices, the finalists of all losses, ... would be if no arm
were among them twice: 0.82 and 0.6 were seen in the run quick."""

FORESEEING, FORESEEING_AN_ARM = 7e-5, 3e-6
"""Seconds of the tuner theory for each parameter: at the mode, and for each arm's error. As seen."""

LINEAR = ("mamba", "mamba-psd", "mamba-fssd")
"""Tuners that use no pairs of points: the time of their discrepancies is negligible beside the scores."""

PAIR, PAIR_OF_PARAMETERS = 2e-8, 2e-11
"""Seconds of one pair of points in a KSD: at least, and for each parameter."""

LEAPFROGS = {"logistic": 7.0, "pmf": 127.0}
"""Of a draw of NUTS, as `results/published` has them; 63 of another model."""

BESIDE = {"logistic": 2.0, "pmf": 2.0, "bnn": 1.8}
"""How many times as long two jobs beside each other on two cores take as one alone: a step keeps both cores busy. As
seen; 2 of another model. Chains of NUTS were timed beside each other."""
