"""The result files of the study of MAMBA, by kind and model ("" for those of no model)."""

PATTERNS = {
    "cost": rules.calibrate_cost.output.cost,
    "tuning": rules.tune_sampler.output.tuning,
    "evaluation": rules.evaluate_sampler.output.evaluation,
    "screen": rules.screen_grid.output.screen,
    "regret": rules.rerun_finalists.output.regret,
    "clocks": rules.compare_clocks.output.clocks,
    "estimates": rules.estimate_discrepancies.output.estimates,
    "widths": rules.measure_widths.output.widths,
    "checks": rules.check_sampler.output.checks,
}

RESULTS = {
    kind: {
        model: list(
            dict.fromkeys(
                path
                for name, sampler, _ in STUDIED
                if name == model
                for path in collect(pattern, model=model, sampler=sampler)
            )
        )
        for model in MODELS
        # In coordinates of its mode all discrepancies of a model of one's own are scaled: there is nothing to compare.
        if (kind != "widths" or (has_reference(model) and ENTRIES[model].in_paper))
        and (kind not in ("screen", "regret") or "regret" in extras_of(config, model))
        and (kind != "checks" or not ENTRIES[model].in_paper)
    }
    for kind, pattern in PATTERNS.items()
}
RESULTS["horizons"] = {
    model: collect(rules.compare_horizons.output.horizons, model=model)
    for model in MODELS
    if "horizons" in extras_of(config, model)
}
RESULTS["reference"] = {
    model: collect(rules.find_map.output.facts, model=model)
    + (collect(rules.combine_nuts.output.facts, model=model) if has_reference(model) else [])
    for model in MODELS
}
RESULTS["data"] = {
    model: [f"{RUN}/data/{model}.json"]
    + ([f"{RUN}/data/{model}.ood.json"] if ENTRIES[model].out_of_distribution else [])
    for model in MODELS
}
# Without a model, and about the paper's questions: not for a model of one's own alone.
OF_PAPER = any(ENTRIES[model].in_paper for model in MODELS)
RESULTS["ladder"] = {
    "": collect(
        rules.measure_ladder.output.ladder, dimension=config["ladder"]["dimensions"] if OF_PAPER else []
    )
}
RESULTS["sensitivity"] = {"": list(rules.measure_sensitivity.output) if OF_PAPER else []}
RESULTS["settings"] = {"": [f"{RUN}/mamba/settings.json"]}
RESULTS["published"] = {"": [workflow.source_path("../resources/published.csv")]}
RESULTS["paper_settings"] = {"": [workflow.source_path("../resources/paper_settings.yaml")]}

STUDY_RESULTS["mamba"] = {
    kind: [path for paths in of_models.values() for path in paths] for kind, of_models in RESULTS.items()
}
