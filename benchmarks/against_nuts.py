"""From which N and D stochastic gradients beat NUTS: errors of a logistic regression's posterior after equal seconds.

    python benchmarks/against_nuts.py run folder        # 75 minutes; a result that is there is not made again
    python benchmarks/against_nuts.py publish folder    # benchmarks/published/against_nuts.{json,svg}

Seconds are those of a process that has imported its packages and has the model with its data: the mode, compilation
and tuning are among them. NUTS has the best start that there is, the mode, and the best mass matrix, the inverse
Hessian there, so that its warm-up only finds its step size; it is one chain, whose gradients of all data use all cores.
The tuned chain starts at the mode, too. The posterior is nearly Gaussian: its Laplace approximation, which needs the
mode alone, is held beside both. Each result is a process of its own, and compiles all that it runs; nothing else may
run beside it.
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
TUNED = ("sghmc-cv 4", "sghmc-cv 16", "sgld-cv 16")
"""Samplers, and seconds of the planned chain, which is tuned in addition: as in `sgtune.tune_and_sample`, R is a tenth
of it."""

WARMUP = 19
"""Iterations in which NUTS finds its step size: from 20 on NumPyro would begin again near their end, with fewer."""

SIZES = {10**7: (60.0, 20, 3), 10**8: (120.0, 20, 2), 10**9: (300.0, 2, 1)}
"""By the largest N D that has them: seconds of NUTS, its iterations in a block, and replicates."""

TRUE_SECONDS, TRUE_DRAWS, TRUE_BLOCK = 60.0, 100_000, 20


def size_of(n: int, d: int) -> tuple[float, int, int]:
    """The entry of `SIZES`."""
    return next(own for most, own in SIZES.items() if n * d <= most)


def by_nuts(model, seconds: float, block: int, seed: int):
    """After each block of draws: the seconds so far, and the blocks."""
    import jax
    import jax.numpy as jnp
    from numpyro.infer import hmc  # noqa: F401 - an import is not counted

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
    while perf_counter() - began < seconds:
        state, draws, _ = jax.block_until_ready(advance(kernel, block, state, arguments))
        kept.append(np.asarray(draws)[max(0, WARMUP - done) :])
        done += block
        yield perf_counter() - began, kept


def by_tuning(model, sampler: str, seconds: float, seed: int):
    """The draws, and in ``about`` the seconds of all, the parts of them, the arm and the warnings."""
    from sgtune import Budget, tune
    from sgtune.tuning.run import RACE_SHARE

    began = perf_counter()
    budgets = {"budget": Budget(seconds=RACE_SHARE * seconds), "horizon": Budget(seconds=seconds)}
    result = tune(model, sampler, **budgets, seed=seed)
    chain = result.sample(check=False, seed=seed)
    arm = {name: number for name, number in result.best.items() if isinstance(number, int | float)}
    spent = perf_counter() - began
    parts = {
        "tuning": result.seconds["total"],
        "compiling": result.seconds["compilation"],
        "chain": chain.seconds,
    }
    return chain.draws, {"seconds": spent, "arm": arm, "warnings": result.warnings, "parts": parts}


def truth(model) -> dict:
    """Mean and sd by importance sampling from the Laplace approximation, whose own moments are the control variates,
    and their error by a jackknife."""
    import jax

    from sgtune.mode.curvature import laplace_scale
    from sgtune.mode.find import map_position
    from sgtune.model.posterior import density_of, log_posterior

    mode, scale, density = (
        np.asarray(map_position(model)),
        np.asarray(laplace_scale(model)),
        density_of(model),
    )
    offset = jax.jit(log_posterior)(density, mode, model.data) / model.n_data
    values_at = jax.jit(lambda at, data: jax.lax.map(lambda p: log_posterior(density, p, data, offset), at))
    rng, began, z, log_weights = np.random.default_rng(99), perf_counter(), [], []
    while len(z) < 10 or (perf_counter() - began < TRUE_SECONDS and len(z) * TRUE_BLOCK < TRUE_DRAWS):
        own = rng.standard_normal((TRUE_BLOCK, len(mode)))
        values = values_at((mode + own @ scale.T).astype(np.float32), model.data)
        z.append(own)
        log_weights.append(np.asarray(values, np.float64) + 0.5 * (own**2).sum(axis=1))
    x, log_weights = np.concatenate(z) @ scale.T, np.concatenate(log_weights)
    weights = np.exp(log_weights - log_weights.max())
    variances = (scale**2).sum(axis=1)

    def moments(kept) -> tuple[np.ndarray, np.ndarray]:
        share = (weights[kept] / weights[kept].mean())[:, None]
        shift = ((share - 1) * x[kept]).mean(axis=0)
        return mode + shift, np.sqrt(variances + ((share - 1) * x[kept] ** 2).mean(axis=0) - shift**2)

    mean, sd = moments(slice(None))
    parts = np.arange(len(x)) % 20
    without = [moments(parts != part) for part in range(20)]
    of_mean, of_sd = (np.stack(one).std(axis=0) * np.sqrt(19) / sd for one in zip(*without, strict=True))
    return {
        **{"mean": mean.tolist(), "sd": sd.tolist(), "draws": len(x)},
        "share": float(weights.sum() ** 2 / (weights**2).sum() / len(x)),
        "error": float(np.sqrt(np.mean(of_mean**2 + of_sd**2))),
        "laplace": errors(mode, np.sqrt(variances), {"mean": mean, "sd": sd}),
    }


def errors(mean: np.ndarray, sd: np.ndarray, exact: dict) -> dict[str, float | None]:
    """Root mean squares over parameters: of the error of the mean in sds, of the relative error of the sd, and of both
    (`sgtune.metrics.functional_error`); None where a draw is not finite."""
    own = np.asarray(exact["sd"])
    squares = ((mean - np.asarray(exact["mean"])) / own) ** 2, (sd / own - 1) ** 2
    found = {"mean": squares[0], "sd": squares[1], "error": squares[0] + squares[1]}
    roots = {name: float(np.sqrt(np.mean(square))) for name, square in found.items()}
    return {name: root if np.isfinite(root) else None for name, root in roots.items()}


def of_draws(draws: np.ndarray, exact: dict) -> dict[str, float | None]:
    return errors(draws.mean(0, dtype=np.float64), draws.std(0, dtype=np.float64), exact)


def measure(folder: Path, n: int, d: int, method: str, replicate: int) -> dict:
    """One process's result: the truth, or rows of seconds and errors, and the machine."""
    from sgtune.study.pipeline.provenance import of_processor

    # The rows are in no order: a shuffle would only cost time.
    model = model_of(rows_of(n, d, d), d, shuffle_seed=None)
    about = {"cpu": of_processor("model name"), "cores": os.cpu_count()}
    if method == "truth":
        return about | truth(model)
    exact = json.loads((folder / f"{n}-{d}-truth-0.json").read_text("utf-8"))
    if method == "nuts":
        seconds, block, _ = size_of(n, d)
        rows, last = [], 0.0
        for spent, kept in by_nuts(model, seconds, block, seed=replicate):
            draws = sum(map(len, kept))
            # Not each block: at steps of the seconds.
            if spent > 1.2 * last and draws > 1:
                rows.append({"seconds": spent, "draws": draws, **of_draws(np.concatenate(kept), exact)})
                last = spent
        return about | {"rows": rows}
    sampler, budget = method.split(" ")
    draws, row = by_tuning(model, sampler, float(budget), replicate)
    return about | {"rows": [row | {"draws": len(draws)} | of_draws(draws, exact)]}


def run(folder: Path) -> None:
    """Every result that is not there, replicate by replicate, so that a part of them makes a whole figure; of a process
    that failed its last words."""
    folder.mkdir(parents=True, exist_ok=True)
    cells = list(product(ROWS, DIMENSIONS))
    jobs = [(*cell, "truth", 0) for cell in cells]
    for replicate in range(max(replicates for *_, replicates in SIZES.values())):
        jobs += [
            (*cell, method, replicate)
            for cell in cells
            for method in ("nuts", *TUNED)
            if replicate < size_of(*cell)[2]
        ]
    # Programs of a job before this one would count as compiled.
    environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    for n, d, method, replicate in jobs:
        path = folder / f"{n}-{d}-{method.replace(' ', '-')}-{replicate}.json"
        if path.exists():
            continue
        command = [sys.executable, __file__, "measure", str(folder), f"{n}", f"{d}", method, f"{replicate}"]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, env=environment)
        if done.returncode == 0:
            text = done.stdout.splitlines()[-1]
        else:
            words = (done.stderr.strip().splitlines() or ["no words"])[-1]
            text = json.dumps({"failed": f"{words} (exit status {done.returncode})", "rows": []})
        if method == "truth" and done.returncode:
            sys.exit(f"{path.name}: {text}; without it nothing is judged")
        path.with_suffix(".part").write_text(text, encoding="utf-8")
        os.replace(path.with_suffix(".part"), path)
        print(path.name, text[:200] if done.returncode else "", flush=True)


LINES = {
    "nuts": ("NUTS", "#262626", "o"),
    "sgld-cv": ("SGLD-CV, tuned", "#0072B2", "s"),
    "sghmc-cv": ("SGHMC-CV, tuned", "#D55E00", "^"),
}


def ratios(frame) -> list[dict]:
    """Of each tuned chain the error of NUTS after the same seconds, over its own: that of the same replicate,
    interpolated between its blocks; None where NUTS has no draws yet."""
    found = []
    for row in frame[frame["method"] != "nuts"].to_dict("records"):
        about = {name: row[name] for name in ("n", "d", "method", "budget", "replicate", "seconds", "error")}
        same = (frame[["n", "d", "replicate"]] == [row["n"], row["d"], row["replicate"]]).all(axis=1)
        own = frame[same & (frame["method"] == "nuts")].sort_values("seconds")
        ratio = None
        if len(own) and own["seconds"].iloc[0] <= row["seconds"]:
            at = np.interp(np.log(row["seconds"]), np.log(own["seconds"]), np.log(own["error"]))
            ratio = float(np.exp(at) / row["error"])
        found.append(about | {"ratio": ratio})
    return found


def publish(folder: Path) -> None:
    """The results, and errors of NUTS over those of tuned chains, as one JSON; and the figure: geometric means over the
    replicates that did not fail."""
    import pandas as pd
    import seaborn as sns
    from matplotlib.figure import Figure

    from sgtune.study.report.style import log_ticks

    rows, truths, failed, machines = [], {}, [], set()
    for path in sorted(folder.glob("*.json")):
        n, d, *method, replicate = path.stem.split("-")
        held = json.loads(path.read_text("utf-8"))
        machines |= {(held["cpu"], held["cores"])} if "cpu" in held else set()
        if method == ["truth"]:
            truths[f"{n} {d}"] = {name: held[name] for name in ("draws", "share", "error", "laplace")}
            continue
        name = "nuts" if method == ["nuts"] else "-".join(method[:2])
        about = {"n": int(n), "d": int(d), "method": name, "replicate": int(replicate)}
        about |= {"budget": None if name == "nuts" else int(method[-1])}
        rows += [about | row for row in held["rows"]]
        if not held["rows"] or any(row["error"] is None for row in held["rows"]):
            reason = held.get("failed", "too slow" if name == "nuts" else "diverged")
            failed.append(about | {"reason": reason})
    target = Path(__file__).parent / "published" / "against_nuts.json"
    frame = pd.DataFrame(rows).dropna(subset="error")
    record = {"machines": sorted(machines), "truths": truths, "failed": failed, "ratios": ratios(frame)}
    target.write_text(json.dumps(record | {"rows": rows}, indent=1), encoding="utf-8")
    sns.set_theme("paper", "ticks")
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots(len(DIMENSIONS), len(ROWS), sharex=True, sharey=True)
    cells = [(i, d, k, n) for (i, d), (k, n) in product(enumerate(DIMENSIONS), enumerate(ROWS))]
    for i, d, k, n in (cell for cell in cells if f"{cell[3]} {cell[1]}" in truths):
        axis, exact = axes[i, k], truths[f"{n} {d}"]
        axis.axhline(
            exact["laplace"]["error"], color="#009E73", lw=0.8, ls="--", label="Laplace approximation"
        )
        for method, (name, color, marker) in LINES.items():
            own = frame[(frame["n"] == n) & (frame["d"] == d) & (frame["method"] == method)]
            # Rows of NUTS are at steps of 1.2: four of them share a point.
            points = np.floor(np.log(own["seconds"]) / np.log(1.2) / 4) if method == "nuts" else own["budget"]
            line = np.exp(np.log(own[["seconds", "error"]]).groupby(points).mean())
            style = {"color": color, "marker": marker, "ms": 4, "lw": 1.2, "label": name}
            axis.plot(line["seconds"], line["error"], **style)
        lost = [one["method"] for one in failed if (one["n"], one["d"]) == (n, d)]
        words = "\n".join(f"{lost.count(name)} {name} failed" for name in LINES if name in lost)
        axis.text(0.97, 0.95, words, ha="right", va="top", fontsize=6, transform=axis.transAxes)
        axis.set(xscale="log", yscale="log", title=f"N = {n:,}" if i == 0 else "")
        log_ticks(axis.xaxis)
        log_ticks(axis.yaxis)
        if k == 0:
            axis.set_ylabel(f"D = {d}\nerror (sds)")
        if i == len(DIMENSIONS) - 1:
            axis.set_xlabel("seconds in all")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(target.with_suffix(".svg"))


if __name__ == "__main__":
    command, folder, *others = sys.argv[1:]
    if command == "measure":
        n, d, method, replicate = others
        print(json.dumps(measure(Path(folder), int(n), int(d), method, int(replicate))))
    else:
        {"run": run, "publish": publish}[command](Path(folder))
