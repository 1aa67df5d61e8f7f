"""Verdicts on the paper's claims: from intervals over tuning runs, each of which counts once."""

import copy
from functools import partial

import numpy as np
import pytest
from artifact_records import SAMPLERS, make_records
from scipy import stats

from sgtune.study.audit import claims as judging
from sgtune.study.audit.artifacts import CLAIMS, RACES
from sgtune.study.audit.claims import (
    JUDGED,
    OTHERS,
    Interval,
    Judged,
    Results,
    claims,
    difference,
    verdict_on,
)
from sgtune.study.report.means import FreshRuns, chosen_losses, ratio


@pytest.fixture(scope="module")
def records():
    found = make_records(3, tunings=3)
    for row in {id(row): row for one in found["evaluation"] for row in one["table"]}.values():
        row["ksd_squared"] = row["ksd"] and row["ksd"] ** 2
    return found


def with_numbers(records, numbers, samplers=SAMPLERS, key="ksd_squared", model="logistic"):
    """The records with other ``numbers``: tuner -> one for each replicate."""

    def changed(one):
        own = numbers.get(one["tuner"]) if one["model"] == model and one["sampler"] in samplers else None
        if own is None:
            return one
        # Tuners with the same choice share its rows.
        rows = [row | {key: own[row["replicate"]], "diverged": False} for row in one["table"]]
        return one | {"table": rows}

    return records | {"evaluation": [changed(one) for one in records["evaluation"]]}


LOW, WIDE = (0.01, 0.0101, 0.0102), (400.0, 4e4, 4e6)
HIGH, HIGHER = (1e6, 1e6 + 1, 1e6 + 2), (2e6, 2e6 + 1, 2e6 + 2)
NOISE = (-27.0, 42.0, -56.0)
"""Unbiased squares of a long chain, of which few draws are scored, beside those of a short one, which has no noise."""


def test_intervals_are_those_of_welch():
    rng = np.random.default_rng(0)
    above, below = rng.normal(1, 2, 5), rng.normal(0, 1, 3)
    exact = stats.ttest_ind(above, below, equal_var=False).confidence_interval(0.95)
    found = difference(above, below, 3)
    assert found[:3] == pytest.approx((exact.low, above.mean() - below.mean(), exact.high))
    own = stats.ttest_1samp(above, 0).confidence_interval(0.95)
    assert difference(above, [0.0], 5)[:3] == pytest.approx((own.low, above.mean(), own.high))


def test_infinite_numbers_decide_if_all_are_and_one_number_alone_does_not():
    assert difference([np.inf, np.inf], [1.0, 2.0], 2)[:3] == (np.inf,) * 3
    assert difference([1.0, 2.0], [np.inf], 2)[:3] == (-np.inf,) * 3
    # Of some the mean is infinite, and the other end that of the others.
    own = difference([1.0, 2.0], [1.0, 2.0], 2)
    assert difference([1.0, np.inf, 2.0], [1.0, 2.0], 2)[:3] == (own.low, np.inf, np.inf)
    assert difference([1.0, 2.0], [1.0, np.inf, 2.0], 2)[:3] == (-np.inf, -np.inf, own.high)
    assert difference([1.0, np.inf], [1.0, 2.0], 2)[:3] == (-np.inf, np.inf, np.inf)
    assert difference([np.inf], [np.inf], 2)[:3] == (-np.inf, 0.0, np.inf)
    assert difference([3.0], [1.0, 2.0], 2)[:3] == (-np.inf, 1.5, np.inf)
    assert difference([2.0, 2.0, 2.0], [0.0], 3)[:3] == (2, 2, 2)


def test_a_verdict_needs_the_whole_interval_on_one_side():
    at_least, at_most = Judged("", "", None, 5), Judged("", "", None, 5, at_most=True)
    for interval, first, second in (
        (Interval(5, 5.5, 6, 3), "holds", "cannot tell (3 runs)"),
        (Interval(2, 3, 4, 3), "fails", "holds"),
        (Interval(4, 5, 6, 3), "cannot tell (3 runs)", "cannot tell (3 runs)"),
        (Interval(4, 4.5, 5, 3), "cannot tell (3 runs)", "holds"),
        (Interval(5.5, 6, 7, 5), "holds", "fails"),
        (Interval(0, 6, 6, 1), "cannot tell (1 run)", "cannot tell (1 run)"),
        (Interval(0, 6, 6, np.inf), "cannot tell", "cannot tell"),
    ):
        assert (verdict_on(interval, at_least), verdict_on(interval, at_most)) == (first, second)


def test_each_tuning_run_counts_once_by_the_mean_over_the_runs_of_its_choice(records):
    results = Results(records, "logistic")
    record = results.evaluation["sgld", "mamba-ksd"]
    accuracies = [row["accuracy"] for row in record["table"]]
    again = [row | {"replicate": row["replicate"] + 3, "accuracy": 0.5} for row in record["table"]]
    results.evaluation["sgld", "mamba-ksd"] = record | {"table": record["table"] + again}
    expected = [(one + 0.5) / 2 for one in accuracies]
    assert results.by_tuning("sgld", "mamba-ksd", "accuracy") == pytest.approx(expected)
    # The heuristic has one choice: its runs count.
    assert len(results.evaluation["sgld", "heuristic"]["arms"]) == 1
    assert len(results.by_tuning("sgld", "heuristic", "accuracy")) == 3
    # Of five tuning runs two were used by no evaluation run.
    results.evaluation = {("sgld", "mamba-ksd"): record | {"arms": [record["arms"][0]] * 5}}
    assert results.by_tuning("sgld", "mamba-ksd", "accuracy") == pytest.approx(accuracies)
    assert results.runs("mamba-ksd") == 3


def test_of_fewer_than_three_tuning_runs_nothing_is_known_and_the_others_decide(records):
    few = copy.deepcopy(with_numbers(records, {"mamba-ksd": LOW} | dict.fromkeys(OTHERS, HIGH)))
    for one in few["evaluation"]:
        one["arms"] = one["arms"][:2] if one["tuner"] == "grid" else one["arms"]
    found = Results(few, "logistic")
    count = partial(judging.lowest, ours=RACES[:1])
    assert count(found)[:3] == (0, 6, 6)
    assert count(found, others=("heuristic",))[:3] == (6, 6, 6)
    # A lower KSD of the heuristic decides against MAMBA, whatever grid search has.
    lower = Results(with_numbers(few, {"heuristic": (0.001,) * 3}), "logistic")
    assert count(lower)[:3] == (0, 0, 0)


def test_a_claim_on_losses_knows_tuners_without_any_arm(records):
    nowhere, without = copy.deepcopy(records), copy.deepcopy(records)
    for one, other in zip(nowhere["regret"], without["regret"], strict=True):
        for chosen in one["chosen"]:
            if chosen["tuner"] == "mamba-fssd":
                chosen["arms"] = [None]
        other["chosen"] = [chosen for chosen in other["chosen"] if chosen["tuner"] != "mamba-fssd"]
    found, expected = (JUDGED["ours_logistic"].find(Results(one, "logistic")) for one in (nowhere, without))
    assert found.value == pytest.approx(expected.value)


def test_a_tuner_without_randomness_does_not_make_runs_few_and_one_search_of_another_has_no_spread(records):
    results = Results(records, "logistic")
    assert results.runs("mamba-ksd", "heuristic") == 3
    assert results.runs("heuristic") == np.inf
    assert JUDGED["accuracy_logistic"].find(results).runs == 3
    record = results.evaluation["sgld", "grid"]
    results.evaluation["sgld", "grid"] = record | {"arms": record["arms"][:1]}
    assert len(results.by_tuning("sgld", "grid", "accuracy")) == 1
    found = results.beyond("sgld", "mamba-ksd", ["grid"], "accuracy")
    assert (found.low, found.high, found.runs) == (-np.inf, np.inf, 1)


def test_the_lowest_ksd_is_counted_with_what_is_decided_for_and_against(records):
    count = JUDGED["ksd_logistic"].find
    best = with_numbers(records, {"mamba-fssd": LOW} | dict.fromkeys(OTHERS, HIGH))
    worst = with_numbers(records, dict.fromkeys(RACES, HIGH))
    worst = with_numbers(worst, dict.fromkeys(RACES, LOW) | dict.fromkeys(OTHERS, HIGH), ["sghmc"])
    unknown = with_numbers(records, dict.fromkeys(RACES, WIDE))
    assert count(Results(best, "logistic"))[:3] == (6, 6, 6)
    # Of SGHMC alone MAMBA is the best; no diverged run is better than ours.
    assert count(Results(worst, "logistic"))[:3] == (1, 1, 1)
    found = count(Results(unknown, "logistic"))
    assert found.low < found.high


def test_many_samplers_need_clearer_differences_than_one(records):
    """The half-width is 2.3 for one comparison, and 4.0 for six."""
    found = with_numbers(records, {"mamba-ksd": (0, 1, 2)} | dict.fromkeys(OTHERS, (3, 4, 5)))
    results = Results(found, "logistic")
    lows = [judging.lowest(results, RACES[:1], samplers=own).low for own in (SAMPLERS[:1], SAMPLERS)]
    assert lows == [1, 0]


def test_the_heuristic_is_judged_for_sgnht_against_all_others(records):
    first = with_numbers(records, {"heuristic": LOW} | dict.fromkeys((*RACES, "grid"), HIGH), ["sgnht"])
    second = with_numbers(first, {"mamba-fssd": [0.001] * 3}, ["sgnht"])
    found = [JUDGED["heuristic_logistic"].find(Results(one, "logistic")) for one in (first, second)]
    assert [one[:3] for one in found] == [(1, 1, 1), (0, 0, 0)]


def test_an_ece_is_near_the_best_up_to_half_a_point_and_stability_is_lost_by_what_smaller_steps_mend(records):
    of_bnn = {"key": "ece", "model": "bnn"}
    for ours, n_near in ((0.024, 6), (0.026, 0)):
        found = with_numbers(records, {"mamba-ksd": [ours] * 3} | dict.fromkeys(OTHERS, [0.02] * 3), **of_bnn)
        assert JUDGED["ece_bnn"].find(Results(found, "bnn"))[:3] == (n_near,) * 3
    found = with_numbers(found, {"mamba-ksd-smaller": [0.006] * 3}, **of_bnn)
    assert JUDGED["unstable_bnn"].find(Results(found, "bnn"))[:3] == pytest.approx((2, 2, 2))


def test_noise_of_a_ksd_decides_nothing(records):
    """The mean of logarithms of such squares falls with their noise: it would be far below the short chain's."""
    found = with_numbers(records, {"mamba-ksd": NOISE, "grid": (39.0, 21.0, 13.0)})
    results = Results(found, "logistic")
    compared = results.beyond("sgld", "mamba-ksd", ["grid"], "ksd")
    assert compared.low < 0 < compared.value == pytest.approx(73 / 3 + 41 / 3)
    assert compared.value < compared.high


def test_ksds_are_comparable_by_the_largest_factor_over_samplers(records):
    def found(pairs, others):
        """With the squares of both tuners for some samplers, and for all others."""
        changed, tuners = records, ("mamba-ksd", "grid-ksd")
        for sampler in SAMPLERS:
            own = dict(zip(tuners, pairs.get(sampler, others), strict=True))
            changed = with_numbers(changed, own, [sampler])
        return changed

    small, large = (100.0, 101.0, 102.0), (225.0, 226.0, 227.0)
    # Factors in opposite directions do not cancel, and a sampler with two noisy KSDs tells nothing.
    pairs = {"sgld": (small, large), "sghmc": (NOISE, NOISE)}
    clear = Results(found(pairs, (large, small)), "logistic")
    low, value, high, runs, _ = JUDGED["grid_ksd"].find(clear)
    assert value == pytest.approx((226 / 101) ** 0.5)
    assert low < value < high < 1.05 * low
    assert runs == 3
    # Where one is noise, the other may be any number of times as large, or nothing is known.
    error, half = 1 / 3**0.5, stats.t.ppf(0.975, 2)
    for ours, theirs, least in (
        (NOISE, large, (226 - half * error) / (half * np.std(NOISE, ddof=1) * error)),
        (small, (1000.0, 10.0, 200.0), 1.0),
    ):
        pairs["sghmc"] = (ours, theirs)
        results = Results(found(pairs, (small, small)), "logistic")
        one_sided = JUDGED["grid_ksd"].find(results)
        assert one_sided.high == np.inf
        assert verdict_on(one_sided, JUDGED["grid_ksd"]) == "cannot tell (3 runs)"
        results.samplers = ["sghmc"]
        assert JUDGED["grid_ksd"].find(results).low == pytest.approx(least**0.5)
        record = results.evaluation["sghmc", "grid-ksd"]
        results.evaluation["sghmc", "grid-ksd"] = record | {"arms": record["arms"][:2]}
        assert JUDGED["grid_ksd"].find(results).low == 0
    none = found({}, (NOISE, NOISE))
    (cell,) = (cell for cell in claims(none) if (cell.metric, cell.detail) == ("grid_ksd", "ours"))
    assert (cell.value, cell.shown) == (None, "– (noise)")


def test_few_races_that_agree_do_not_show_what_others_would_choose(records):
    found = copy.deepcopy(records)
    for record in found["evaluation"]:
        for arm in record["arms"]:
            arm["batch_size"] = record["n_data"] // 100
    every = JUDGED["batches_logistic"].find(Results(found, "logistic"))
    # One choice of another race may differ: 6, 6, 5 have the standard error 1/3.
    assert (every.value, every.high, every.of) == (6, 6, 6)
    assert every.low == pytest.approx(6 - stats.t.ppf(0.975, 2) / 3)
    # Of two races nothing is known.
    for record in found["evaluation"]:
        record["arms"] = record["arms"][:2]
    assert JUDGED["batches_logistic"].find(Results(found, "logistic"))[:3] == (0, 6, 6)


def test_our_errors_are_compared_as_the_table_of_regret_does(records):
    """With the noise of fresh runs, also where all races choose one arm."""
    own = copy.deepcopy(
        [one for one in records["regret"] if (one["model"], one["sampler"]) == ("logistic", "sgld")]
    )
    results = Results(records | {"regret": own}, "logistic")
    (record,) = results.regret
    for chosen in record["chosen"]:
        chosen["arms"] = chosen["arms"][:1] * 3
    found = JUDGED["ours_logistic"].find(results)
    seconds, key = max(run["seconds"] for run in record["runs"]), record["losses"][0]
    fresh, arms = FreshRuns(record, seconds, key), {one["tuner"]: one["arms"] for one in record["chosen"]}
    others = ("mamba-ksd", "mamba-fssd", "grid", "heuristic", "grid-ksd")
    ratios = [
        ratio(*(chosen_losses(fresh.losses, arms[one], key) for one in (other, "mamba"))) for other in others
    ]
    least = min(ratios, key=lambda one: one.value)
    assert found.value == pytest.approx(least.value)
    assert found.low < found.value < found.high
    # An infinite end where a loss is at the cap, which may be any larger one.
    for run in record["runs"]:
        run["losses"][key] = [10.0] * 4 if run["arm"] == arms["mamba"][0] else run["losses"][key]
    assert JUDGED["ours_logistic"].find(results).low == 0


def test_nothing_is_known_of_errors_against_a_reference_that_is_not_trusted(records):
    regret = [one | {"trusted": False} if one["model"] == "logistic" else one for one in records["regret"]]
    doubted = [one | {"trusted": False} if "trusted" in one else one for one in records["reference"]]
    for change in ({"regret": regret}, {"reference": doubted}):
        cells = {cell.detail: cell for cell in claims(records | change) if cell.metric == "ours_logistic"}
        assert (cells["ours"].value, cells["ours"].shown) == (None, "– (reference)")
        assert cells["verdict"].text == "cannot tell"


def test_without_any_ksd_nothing_is_known_of_the_lowest(records):
    none = with_numbers(records, dict.fromkeys((*RACES, *OTHERS), [None] * 3))
    found = JUDGED["ksd_logistic"].find(Results(none, "logistic"))
    assert (found.low, found.high) == (0, 6)


def audits_of(records):
    """The records of MAMBA with low KSDs, as an audit has them."""
    found = with_numbers(records, dict.fromkeys(RACES, LOW))["evaluation"]
    own = [one for one in found if one["model"] == "logistic" and one["tuner"] in RACES]
    return [one | {"defect": "as_published"} for one in own]


def verdicts_of(records):
    return {cell.metric: cell.text for cell in claims(records) if cell.detail == "verdict"}


def test_defects_decide_only_what_does_not_hold_without_them(records):
    audits = audits_of(records)
    fails = with_numbers(records, dict.fromkeys(RACES, HIGHER) | dict.fromkeys(OTHERS, HIGH))
    before, after = verdicts_of(fails), verdicts_of(fails | {"audits": audits})
    some = verdicts_of(fails | {"audits": audits[:2]})
    assert before["ksd_logistic"] == "fails"
    assert some["ksd_logistic"] == "fails", "other samplers were not audited"
    assert after["ksd_logistic"] == "holds only with the published defects"
    others = [name for name in after if JUDGED[name].model != "logistic"]
    assert [after[name] for name in others] == [before[name] for name in others]


def test_what_holds_by_the_published_ece_alone_holds_only_with_that_defect(records):
    ours, others = {"mamba-ksd": [0.03] * 3}, dict.fromkeys(OTHERS, [0.02] * 3)
    found = with_numbers(records, ours | others, key="ece", model="bnn")
    low = with_numbers(found, {"mamba-ksd": [0.01] * 3} | others, key="ece_published", model="bnn")
    high = with_numbers(found, ours | others, key="ece_published", model="bnn")
    verdicts = [verdicts_of(one)["ece_bnn"] for one in (low, high)]
    assert verdicts == ["holds only with the published defects", "fails"]


def test_defects_do_not_decide_what_nobody_can_tell(records):
    unknown = with_numbers(records, dict.fromkeys(RACES, WIDE) | dict.fromkeys(OTHERS, HIGH))
    unknown = with_numbers(unknown, {"grid-ksd": LOW})
    verdicts = verdicts_of(unknown | {"audits": audits_of(records)})
    assert verdicts["ksd_logistic"] == "cannot tell (3 runs); with the published defects it holds"
    # Grid search by KSD, whose KSD is that of the audited MAMBA, is not audited.
    assert verdicts["grid_ksd"] != "holds"
    assert "defects" not in verdicts["grid_ksd"] + verdicts["accuracy_logistic"]


def test_times_are_ratios_of_geometric_means_and_estimates_the_largest_factor(records):
    found = copy.deepcopy(records)
    for record in found["tuning"]:
        factor = {"grid": 3.0, "grid-ksd": 2.0}.get(record["tuner"], 1.0)
        record["seconds"]["warm"] = factor * (1 + 0.01 * record["replicate"])
    logistic = Results(found, "logistic")
    for name, factor in (("time_logistic", 3), ("grid_ksd_time", 2)):
        low, value, high, runs, _ = JUDGED[name].find(logistic)
        assert value == pytest.approx(factor)
        assert low < factor < high
        assert runs == 3
    # The records' estimates: stochastic ones are 1.3 times, thinned ones 1.1 times those of all draws.
    for name, factor in (("stochastic", 1.3), ("thinned", 1.1)):
        models = [Results(found, model) for model in ("logistic", "pmf", "bnn")]
        assert JUDGED[name].find(*models)[:3] == pytest.approx((factor,) * 3)
    # Models are no sample: the interval is their range.
    (row, *_) = (
        row
        for row in models[0].estimates[0]["rows"]
        if (row["figure"], row["gradients"], row["points"]) == ("step_size", "stochastic", "all")
        and row["ksd"]
    )
    row["ksd"] *= 5
    found = JUDGED["stochastic"].find(*models)
    assert (found.low, found.high) == pytest.approx((1.3, 6.5))
    assert verdict_on(found, JUDGED["stochastic"]) == "cannot tell"


def test_a_lost_estimate_does_not_follow_and_of_no_estimate_nothing_is_known(records):
    lost, none = copy.deepcopy(records["estimates"]), copy.deepcopy(records["estimates"])
    for row in (row for one in lost for row in one["rows"]):
        row["ksd"] = None if row["gradients"] == "stochastic" else row["ksd"]
    for row in (row for one in none for row in one["rows"]):
        row["ksd"] = None
    verdicts = [verdicts_of(records | {"estimates": own}) for own in (lost, none)]
    assert [one["stochastic"] for one in verdicts] == ["fails", "cannot tell"]


def test_the_largest_of_many_differences_is_rarely_wrong():
    """Sixty comparisons of numbers of one distribution."""
    rng, wrong = np.random.default_rng(2), []
    for _ in range(100):
        pairs = [(rng.normal(size=5), rng.normal(size=5)) for _ in range(60)]
        found = judging._end(
            max, lambda n, own=pairs: [judging._size(difference(*pair, 5, n)) for pair in own]
        )
        wrong.append(found.low > 0)
    assert np.mean(wrong) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 100)


def test_the_largest_difference_is_an_absolute_one(records):
    same = dict.fromkeys((*RACES, *OTHERS, "grid-ksd"), [0.94] * 3)
    found = with_numbers(records, same, key="accuracy")
    found = with_numbers(found, {"grid": [0.90] * 3}, ["sgnht"], key="accuracy")
    assert JUDGED["accuracy_logistic"].find(Results(found, "logistic"))[:3] == pytest.approx((4, 4, 4))


def test_every_claim_has_a_row_with_the_papers_number_ours_and_a_verdict(records):
    cells = claims(records)
    assert list(dict.fromkeys(cell.metric for cell in cells)) == list(CLAIMS) == list(JUDGED)
    assert {cell.detail for cell in cells} == {"the paper", "ours", "verdict"}
    for cell in cells:
        if cell.detail == "ours" and cell.value is not None:
            low, high = cell.span
            assert low <= cell.value <= high


def test_a_small_run_judges_what_it_has(records):
    few = {
        kind: [
            one
            for one in found
            if one.get("model") != "pmf" and one.get("sampler") in (None, "sgld", "sghmc-cv")
        ]
        for kind, found in records.items()
    }
    judged = {cell.metric for cell in claims(few | {"regret": [], "estimates": []})}
    gone = {
        # With two samplers a count of five could only fail.
        *("ksd_logistic", "batches_logistic", "ece_bnn", "batches_bnn"),
        "heuristic_logistic",
        "time_logistic",
        "time_bnn",
        "unstable_bnn",
        "ours_logistic",
        "stochastic",
        "thinned",
    }
    assert judged == set(CLAIMS) - gone - {"ksd_pmf", "time_pmf", "ours_pmf"}
