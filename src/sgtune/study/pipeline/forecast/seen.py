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
"""Seconds of start-up and compilation of a job, by rule, measured on two cores; 1 for any other rule."""

PLAIN = {"data": 3.0, "combine_nuts": 5.0, "table": 1.5, "figure": 4.0}
"""Seconds of jobs that do not depend on a budget of the configuration, measured on two cores."""

PREDICTION = 0.1
"""The cost of one prediction of the test set, in full-batch gradients."""

SCORES, COMPARABLE = {"logistic": 0.2, "pmf": 0.9, "bnn": 0.9}, 3.0
"""The measured cost of a score, in SGLD's gradients of as many data terms; 0.5 for any other model. Many scores at a
time are cheaper where positions are small. The value of an earlier run replaces it, if the numbers
of terms differ by at most the factor `COMPARABLE`."""

DISTINCT = {"evaluation": 0.85, "regret": 0.65}
"""The share of distinct arms among the arms to run (the tuners' choices, the finalists of all losses, and others); some
are chosen twice: 0.82 and 0.6 in the run quick."""

FORESEEING, FORESEEING_AN_ARM = 7e-5, 3e-6
"""Measured seconds of the tuner theory per parameter: at the mode, and for the error of each arm."""

LINEAR = ("mamba", "mamba-psd", "mamba-fssd")
"""Tuners whose discrepancy is linear in the number of points: its time is negligible compared with the scores."""

PAIR, PAIR_OF_PARAMETERS = 2e-8, 2e-11
"""Seconds of one pair of points in a KSD: a constant, and an addition per parameter."""

LEAPFROGS = {"logistic": 7.0, "pmf": 127.0}
"""Leapfrogs per draw of NUTS, from `results/published`; 63 for any other model."""

BESIDE = {"logistic": 2.0, "pmf": 2.0, "bnn": 1.8}
"""Measured time of a job that shares two cores with another one, over its time alone, since a step uses both cores; 2
for any other model. Chains of NUTS were timed while they shared the cores, so they have no such factor."""
