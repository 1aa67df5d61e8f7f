"""From which N and D stochastic gradients beat NUTS: errors of a logistic regression's posterior after equal seconds.

    python benchmarks/against_nuts.py run folder        # hours; a result that is there is not made again
    python benchmarks/against_nuts.py publish folder    # benchmarks/published/against_nuts.{json,svg}

Seconds are those of a process that has nothing but the data: compilation, the mode, and tuning are among them. NUTS has
the best start that there is, the mode and the inverse Hessian there as its mass matrix, so that its warm-up only finds
its step size. Each result is a process of its own; nothing else may run beside it.
"""

import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from time import perf_counter

import numpy as np
from growth import model_of, rows_of

ROWS, DIMENSIONS = (10**4, 10**5, 10**6, 10**7), (10, 100)
SAMPLERS = ("sgld-cv", "sghmc-cv")
BUDGETS = (1, 4, 16)
"""Seconds of the planned chain, which is tuned in addition."""

NUTS_SECONDS, WARMUP, BLOCK = 60.0, 100, 20
REPLICATES = 3
LARGEST_OF_NUTS, TRUE_DRAWS, TRUE_SECONDS = 10**7, 4_000, 600.0
"""N D up to which a long chain of NUTS is the truth; above, the Laplace approximation, whose error falls as
1 / sqrt(N)."""


def by_nuts(model, seconds: float, most: int, seed: int):
    """After each block of draws: the seconds so far, and the draws."""
    import jax
    import jax.numpy as jnp

    from sgtune.mode.curvature import laplace_scale
    from sgtune.mode.find import map_position
    from sgtune.model.posterior import density_of, log_posterior
    from sgtune.study.ground_truth.nuts import Kernel, advance, initial_state

    began = perf_counter()
    start, scale, density = map_position(model), laplace_scale(model), density_of(model)
    offset = jax.jit(log_posterior)(density, start, model.data) / model.n_data
    kernel = Kernel(None, WARMUP, True, False, 10)
    arguments = (density, model.data, offset)
    key = jax.random.key_data(jax.random.key(seed))
    state = initial_state(kernel, start, jnp.asarray(scale @ scale.T, jnp.float32), key, arguments)
    done, kept = 0, []
    while perf_counter() - began < seconds and done < WARMUP + most:
        state, draws, _ = jax.block_until_ready(advance(kernel, BLOCK, state, arguments))
        done += BLOCK
        if done > WARMUP:
            kept.append(np.asarray(draws))
            yield perf_counter() - began, np.concatenate(kept)


def by_tuning(model, sampler: str, budget: float, seed: int):
    """The seconds of search, tuning and chain, and the draws."""
    from sgtune import Budget, tune_and_sample

    began = perf_counter()
    run = tune_and_sample(model, sampler, budget=Budget(seconds=budget), chains=1, seed=seed)
    return perf_counter() - began, np.concatenate(run.draws), dict(run[0].arm)


def truth(model, n: int, d: int) -> dict:
    """Mean and sd by NUTS or by the Laplace approximation."""
    from sgtune.mode.curvature import laplace_sd
    from sgtune.mode.find import map_position

    laplace = {"mean": np.asarray(map_position(model)), "sd": np.asarray(laplace_sd(model))}
    if n * d > LARGEST_OF_NUTS:
        return {name: values.tolist() for name, values in laplace.items()} | {"by": "laplace"}
    *_, (_, draws) = by_nuts(model, TRUE_SECONDS, TRUE_DRAWS, seed=99)
    exact = {"mean": draws.mean(0, dtype=np.float64), "sd": draws.std(0, dtype=np.float64)}
    found = {name: values.tolist() for name, values in exact.items()} | {"by": "nuts", "draws": len(draws)}
    return found | {"laplace": errors(laplace["mean"], laplace["sd"], found)}


def errors(mean: np.ndarray, sd: np.ndarray, exact: dict) -> dict[str, float]:
    """Root mean squares over parameters: of the error of the mean in sds, and of the relative error of the sd."""
    own = np.asarray(exact["sd"])
    return {
        "mean": float(np.sqrt(np.mean(((mean - np.asarray(exact["mean"])) / own) ** 2))),
        "sd": float(np.sqrt(np.mean((sd / own - 1) ** 2))),
    }


def of_draws(draws: np.ndarray, exact: dict) -> dict[str, float]:
    return errors(draws.mean(0, dtype=np.float64), draws.std(0, dtype=np.float64), exact)


def measure(folder: Path, n: int, d: int, method: str, replicate: int) -> dict | list[dict]:
    """One process's result: the truth, or rows of seconds and errors."""
    model = model_of(rows_of(n, d, d), d)
    if method == "truth":
        return truth(model, n, d)
    exact = json.loads((folder / f"{n}-{d}-truth-0.json").read_text("utf-8"))
    if method == "nuts":
        found = by_nuts(model, NUTS_SECONDS, 10**6, seed=replicate)
        # Not each block: at doublings of the seconds.
        rows, last = [], 0.0
        for seconds, draws in found:
            if seconds > 1.2 * last:
                rows.append({"seconds": seconds, "draws": len(draws), **of_draws(draws, exact)})
                last = seconds
        return rows
    sampler, budget = method.split(" ")
    seconds, draws, arm = by_tuning(model, sampler, float(budget), replicate)
    arm = {name: value for name, value in arm.items() if isinstance(value, int | float)}
    return [{"seconds": seconds, "draws": len(draws), "arm": arm, **of_draws(draws, exact)}]


def run(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    methods = ["nuts", *(f"{sampler} {budget}" for sampler, budget in product(SAMPLERS, BUDGETS))]
    for n, d in product(ROWS, DIMENSIONS):
        jobs = [("truth", 0), *((method, i) for i in range(REPLICATES) for method in methods)]
        for method, replicate in jobs:
            path = folder / f"{n}-{d}-{method.replace(' ', '-')}-{replicate}.json"
            if path.exists():
                continue
            arguments = [
                sys.executable,
                __file__,
                "measure",
                str(folder),
                str(n),
                str(d),
                method,
                str(replicate),
            ]
            found = subprocess.run(arguments, capture_output=True, text=True, encoding="utf-8", check=False)
            if found.returncode:
                print(path.name, found.stderr[-2_000:], flush=True)
                continue
            path.with_suffix(".part").write_text(found.stdout.splitlines()[-1], encoding="utf-8")
            os.replace(path.with_suffix(".part"), path)
            print(path.name, flush=True)


def publish(folder: Path) -> None:
    import pandas as pd
    import seaborn as sns
    from matplotlib.figure import Figure

    rows, truths = [], {}
    for path in sorted(folder.glob("*.json")):
        n, d, *method, replicate = path.stem.split("-")
        held = json.loads(path.read_text("utf-8"))
        if method == ["truth"]:
            truths[f"{n} {d}"] = {"by": held["by"], "laplace": held.get("laplace")}
            continue
        name = "nuts" if method == ["nuts"] else "-".join(method[:2])
        about = {"n": int(n), "d": int(d), "method": name, "replicate": int(replicate)}
        about |= {"budget": None if name == "nuts" else int(method[-1])}
        rows += [about | row for row in held]
    target = Path(__file__).parent / "published" / "against_nuts.json"
    from sgtune.study.pipeline.provenance import of_processor

    record = {"cpu": of_processor("model name"), "cores": os.cpu_count(), "truths": truths, "rows": rows}
    target.write_text(json.dumps(record, indent=1), encoding="utf-8")
    frame = pd.DataFrame(rows)
    sns.set_theme("paper", "ticks")
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots(len(DIMENSIONS), len(ROWS), sharex=True, sharey=True)
    names = {"nuts": "NUTS", "sgld-cv": "SGLD-CV, tuned", "sghmc-cv": "SGHMC-CV, tuned"}
    looks = {"nuts": ("#262626", "o"), "sgld-cv": ("#0072B2", "s"), "sghmc-cv": ("#D55E00", "^")}
    for (i, d), (k, n) in product(enumerate(DIMENSIONS), enumerate(ROWS)):
        axis = axes[i, k]
        for method, (color, marker) in looks.items():
            own = frame[(frame["n"] == n) & (frame["d"] == d) & (frame["method"] == method)]
            groups = own.groupby(
                "budget" if method != "nuts" else pd.cut(np.log2(own["seconds"]), range(-1, 9)), observed=True
            )
            line = groups[["seconds", "mean"]].mean()
            axis.plot(
                line["seconds"], line["mean"], color=color, marker=marker, ms=3, lw=1, label=names[method]
            )
        axis.set(xscale="log", yscale="log", title=f"N = {n:,}" if i == 0 else "")
        if k == 0:
            axis.set_ylabel(f"D = {d}\nerror of means (sd)")
        if i == 1:
            axis.set_xlabel("seconds in all")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(target.with_suffix(".svg"))


if __name__ == "__main__":
    command, folder, *others = sys.argv[1:]
    if command == "measure":
        n, d, method, replicate = others
        print(json.dumps(measure(Path(folder), int(n), int(d), method, int(replicate))))
    else:
        {"run": run, "publish": publish}[command](Path(folder))
