"""The seconds of every job of a run, rule by rule, from the configuration and the costs of a step."""

from sgtune.sampling.chain import FEWEST_STEPS
from sgtune.study.catalogue import losses_of, method_of
from sgtune.study.config.checks import SMALL_DIMENSION
from sgtune.study.config.sections import (
    has_horizons,
    has_regret,
    n_races,
    settings_of,
    shapes_of,
    tunes_alone,
    tuning_settings,
)
from sgtune.study.experiments.per_sampler import tuning_arguments
from sgtune.study.experiments.screen import RANDOM_ARMS
from sgtune.study.pipeline.forecast.report import Row
from sgtune.study.pipeline.forecast.seen import (
    BESIDE,
    DISTINCT,
    FORESEEING,
    FORESEEING_AN_ARM,
    LEAPFROGS,
    LINEAR,
    OVERHEAD,
    PLAIN,
    PREDICTION,
)
from sgtune.study.pipeline.forecast.work import WorkOfModel
from sgtune.tuning import TUNERS, Settings
from sgtune.tuning.halving import halving_schedule

__all__ = ["StudyOfModel"]

LBFGS_STEPS, PASSES = 2_000, 1.5
"""L-BFGS: the steps of a large model if no earlier run has recorded them, and the passes over the data in a step."""

ADAM_BATCH = 1_000
"""The batch size of `sgtune.mode.adam`."""


class StudyOfModel(WorkOfModel):
    """The jobs of one model. Methods give the seconds of each job of a rule, without its start-up."""

    def rows(self) -> list[Row]:
        """All rules of the model, in the order of the pipeline."""
        by_the_clock = self.settings["evaluation"]["clock"] == "wall"
        judged = self.config["samplers"] if has_regret(self.config, self.model) else []
        jobs = {
            "find_map": [self.mode()],
            "sample_nuts": self.chains(),
            "calibrate_cost": [self.calibration()],
            "tune_sampler": [self.tuning(sampler) for sampler in self.config["samplers"]],
            "evaluate_sampler": [self.evaluation(sampler) for sampler in self.config["samplers"]],
            "compare_clocks": [self.clocks()],
            "screen_grid": [self.screen(sampler) for sampler in judged],
            "rerun_finalists": [self.finalists(sampler) for sampler in judged],
            "compare_horizons": [self.horizons()] if has_horizons(self.config, self.model) else [],
            "estimate_discrepancies": [self.estimates()],
            "measure_widths": [self.widths()] if self.referenced else [],
        }
        timed = {
            "calibrate_cost",
            *(["tune_sampler"] if tunes_alone(self.config, self.model) else []),
            "compare_clocks",
            *(["evaluate_sampler"] if by_the_clock else []),
        }
        rows = [
            Row(
                rule,
                self.model,
                [self.overhead(rule) + seconds for seconds in of_rule],
                rule in timed,
                1.0 if rule == "sample_nuts" else BESIDE.get(self.model, 2.0),
            )
            for rule, of_rule in jobs.items()
        ]
        summary = [self.last.seconds.get("combine_nuts", PLAIN["combine_nuts"])] if self.referenced else []
        return [*rows[:2], Row("combine_nuts", self.model, summary), *rows[2:]]

    def overhead(self, rule: str) -> float:
        return self.last.overhead.get(rule, OVERHEAD.get(rule, 1.0))

    # --- the reference ---

    def mode(self) -> float:
        section = self.settings["map"]
        if self.costs.dimension <= SMALL_DIMENSION:
            return self.gradients(100)
        known = self.last.lbfgs_steps if self.last.map_tolerance <= section["tolerance"] else None
        n_steps = min(section["max_steps"], LBFGS_STEPS if known is None else known)
        if known is None and section["max_steps"] > LBFGS_STEPS:
            self.unknown.append(
                f"how many steps the mode of {self.model} takes: {LBFGS_STEPS:,} are counted, up to "
                f"{section['max_steps']:,} are allowed (map.max_steps)"
            )
        batches = section["epochs"] * -(-self.n_data // ADAM_BATCH)
        return self.gradients(batches, min(ADAM_BATCH, self.n_data)) + self.gradients(PASSES * n_steps)

    def chains(self) -> list[float]:
        section = self.settings["reference"]
        if not self.referenced:
            return []
        deepest = 2 ** section["max_tree_depth"] - 1
        known = self.last.leapfrogs_per_draw or LEAPFROGS.get(self.model, 63.0)
        if self.last.cut_short > 0.05:
            # Some trajectories reached the greatest tree depth, so their full length is unknown.
            known = max(known, LEAPFROGS.get(self.model, deepest))
            self.unknown.append(
                f"how long trajectories of NUTS on {self.model} are: {self.last.cut_short:.0%} in "
                f"{self.last.origin.partition(' ')[0]} were cut short; {min(known, deepest):,.0f} leapfrogs "
                f"are counted, up to {deepest:,} are allowed (reference.max_tree_depth)"
            )
        iterations = section["n_warmup"] + section["n_draws"] / section["chains"]
        leapfrog = self.last.seconds_per_leapfrog or self.gradients(1.5)
        return [iterations * min(known, deepest) * leapfrog] * section["chains"]

    # --- tuning ---

    def calibration(self) -> float:
        shapes = shapes_of(settings_of(self.config, "cost", self.model), self.n_data)
        long = [self.last.slowness * self.costs.step(*shape) for shape in shapes]
        return sum(max(self.settings["calibration"]["seconds"], min(3 * step, 1.0)) + step for step in long)

    def tuning(self, sampler: str) -> float:
        total = 0.0
        holds_out = False
        for tuner, own in tuning_settings(self.config, self.model, sampler).items():
            method, arguments = TUNERS[method_of(tuner)], tuning_arguments(own, tuner)
            settings, budget = arguments["settings"], arguments["budget"] or method.default
            arms = method.arms(self.n_data, sampler, settings)
            if method.choose is not None:
                total += self.costs.dimension * (FORESEEING + FORESEEING_AN_ARM * len(arms))
            if method.metric is None:
                continue
            schedule = method.schedule(len(arms), settings, budget.amount)
            costs = self.arm_costs(sampler, arms)
            at_most = method.points if settings.points is None else settings.points
            sampling, points = self.race(
                schedule,
                costs,
                in_steps=budget.seconds is None,
                thin=method.thin if settings.thin is None else settings.thin,
                at_most=at_most,
                growth=settings.pruning_rate,
                by_the_clock=settings.clock == "wall",
            )
            judging = sum(n for n, _ in points) * PREDICTION * self.gradients(1)
            if method.looks_ahead:
                # Each draw is scored separately, with control variates.
                rows = min(settings.score_rows, self.n_data)
                judging = self.gradients(sum(n for n, _ in points), min(2 * rows, self.n_data))
            elif method.tasks is None:
                judging = self.scores(sum(n for n, _ in points), settings.score_fraction * self.n_data)
            if method.tasks is None and method_of(tuner) not in LINEAR:
                judging += sum(n / each * self.ksd(each) for n, each in points if each)
            holds_out = holds_out or (method.tasks is not None and own["tuning"]["validation_fraction"] > 0)
            total += n_races(tuner, own) * (sampling + judging)
        # The mode without the held-out rows is found once, by the first job that needs it.
        is_first = sampler == self.config["samplers"][0]
        return total + (self.mode() if holds_out and is_first else 0.0)

    # --- the chosen arms ---

    def n_chosen(self, sampler: str) -> list[int]:
        """For each tuner of a sampler, the largest number of arms that it can choose."""
        tuners = tuning_settings(self.config, self.model, sampler)
        return [n_races(tuner, own) for tuner, own in tuners.items()]

    def runs(self, n_tables: int, n_curves: int) -> float:
        """Seconds of one tuner's evaluation runs: ``n_tables`` for tables, ``n_curves`` for curves, which overlap."""
        section = self.settings["evaluation"]
        stretch = 1.0 if section["clock"] == "wall" else self.stretch
        short = max(0, n_curves - n_tables) * section["curves"]["seconds"][-1]
        seconds = stretch * (n_tables * section["seconds"] + short)
        n_curves *= len(section["curves"]["seconds"])
        for n, part in ((n_tables, section), (n_curves, section["curves"])):
            judged = self.scores(part["ksd_points"]) + 2 * self.ksd(part["ksd_points"])
            seconds += n * (judged + PREDICTION * self.gradients(part["prediction_draws"]))
        return seconds

    def evaluation(self, sampler: str) -> float:
        section = self.settings["evaluation"]
        runs = self.runs(section["replicates"], section["curves"]["replicates"])
        return len(self.n_chosen(sampler)) * DISTINCT["evaluation"] * runs

    def clocks(self) -> float:
        return self.runs(self.settings["evaluation"]["replicates"], 0)

    def screen(self, sampler: str) -> float:
        section, mamba = self.settings["regret"], self.settings["mamba"]
        own = tuning_settings(self.config, self.model, sampler)
        grid = {name: tuple(values) for name, values in self.settings["grids"].items() if name != "smaller"}
        names = [name for name in ("log10_step_sizes", "batch_fractions", "n_leapfrogs") if name in grid]
        further = {name: values for name, values in grid.items() if name not in names}
        settings = Settings(**{name: grid[name] for name in names}, hyperparameters=further)
        costs = self.arm_costs(sampler, TUNERS["mamba-ksd"].arms(self.n_data, sampler, settings))
        screen, lockstep = section["screen"], self.last.lockstep
        each = [max(screen["seconds"], FEWEST_STEPS * cost) for cost in costs]
        seconds = screen["replicates"] * sum(each) * self.stretch * lockstep["single"]
        seconds += (
            screen["replicates"] * len(costs) * PREDICTION * self.gradients(section["prediction_draws"])
        )
        schedule = halving_schedule(len(costs), mamba["pruning_rate"], mamba["seconds"])
        n_oracle_races = self.n_oracles()
        return seconds + (n_oracle_races * self.race(schedule, costs)[0] if own else 0.0)

    def n_oracles(self) -> int:
        """Races of oracles, of all losses that have one."""
        n_losses = len(losses_of(self.model, self.referenced))
        # Older records of a configuration have no such key: one loss had an oracle.
        losses = min(self.settings["regret"]["screen"].get("oracle_losses", 1), n_losses)
        return self.settings["tuning"]["replicates"] * losses

    def finalists(self, sampler: str) -> float:
        section = self.settings["regret"]
        n_losses = len(losses_of(self.model, self.referenced))
        n_arms = (
            n_losses * section["finalists"] + self.n_oracles() + RANDOM_ARMS + sum(self.n_chosen(sampler))
        )
        n_arms *= DISTINCT["regret"]
        seconds = n_arms * section["seconds"][-1] * self.stretch * self.last.lockstep["race"]
        predicted = (
            n_arms * len(section["seconds"]) * PREDICTION * self.gradients(section["prediction_draws"])
        )
        return section["replicates"] * (seconds + predicted)

    def horizons(self) -> float:
        """Races, and fresh runs of all chosen arms for the longest horizon."""
        settings = settings_of(self.config, "horizons", self.model)
        section, mamba, own = (
            settings["horizons"],
            settings["mamba"],
            tuning_arguments(settings, "mamba")["settings"],
        )
        n, seconds = len(section["seconds"]), 0.0
        for sampler in section["samplers"]:
            arms = TUNERS["mamba"].arms(self.n_data, sampler, own)
            schedule = halving_schedule(len(arms), mamba["pruning_rate"], mamba["seconds"])
            seconds += n * self.race(schedule, self.arm_costs(sampler, arms))[0]
            seconds += n * self.costs.dimension * (FORESEEING + FORESEEING_AN_ARM * len(arms))
            # Each of two tuners chooses one arm for each horizon.
            n_arms = DISTINCT["regret"] * 2 * n
            chains = section["replicates"] * n_arms * section["seconds"][-1]
            seconds += chains * self.stretch * self.last.lockstep["race"]
        return seconds

    # --- the discrepancies ---

    def estimates(self) -> float:
        section = self.settings["estimates"]
        fixed_step, fixed_fraction = section["log10_step_size"], section["batch_fraction"]
        arms = [(step, fixed_fraction) for step in section["log10_step_sizes"]]
        arms += [(fixed_step, fraction) for fraction in section["batch_fractions"]]
        seconds = 0.0
        for _, fraction in dict.fromkeys(arms):
            step = self.last.slowness * self.costs.gradient(fraction * self.n_data)
            n_points = min(section["max_points"], max(section["thin"], section["seconds"] / step))
            seconds += section["seconds"] * self.stretch * self.last.lockstep["single"]
            # Two KSDs use scores of all data, and two use scores of batches.
            seconds += (
                self.scores(n_points) + self.scores(n_points, fraction * self.n_data) + 4 * self.ksd(n_points)
            )
        return seconds

    def widths(self) -> float:
        section = self.settings["widths"]
        each = self.scores(section["points"]) + 2 * self.ksd(section["points"])
        return len(section["widths"]) * each
