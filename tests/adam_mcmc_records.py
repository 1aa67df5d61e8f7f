"""Records of AdamMCMC's study for the tests of its verdicts and findings: a few chains each."""

FAR = [0.80, 0.82, 0.81, 0.81]
NEAR = [0.97, 1.0, 1.02, 0.99]
STEPS = 10_000


def bias_of(variant, squares, ratio=0.1, acceptance=0.5, **fields):
    return {
        **{"variant": variant, "dimension": 2, "ratio": ratio, "squares": squares},
        **{"acceptance": [acceptance] * 4, "jump": [0.1] * 4, **fields},
    }


def bias_record(*cells):
    return {"scale": 0.7, "steps": STEPS, "warmup": 1_000, "chains": 4, "cells": list(cells)}


def acceptance_record(dimension, **of_noisy):
    plain = {
        **{"drift_ratio": 0.1, "directional_noise": 0, "scale": 0.7, "acceptance": [0.2, 0.21] * 2},
        **{"time": 5.0, "time_without": [5.0] * 4, "square": NEAR, "jump": [0.1] * 4},
        **{"arm": {"batch_size": 1}, "steps": STEPS},
    }
    noisy = {**plain, "directional_noise": 1, "acceptance": [0.5, 0.51, 0.5, 0.51], **of_noisy}
    common = {"target": f"gaussian-{dimension}", "dimension": dimension, "warmup": 1_000}
    return {**common, "cells": [plain, noisy]}
