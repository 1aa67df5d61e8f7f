"""How time and memory grow with N, in memory and in a file, with D, and with the number of arms; steps from 10 GB.

    python benchmarks/growth.py run folder            # hours; a result that is there is not made again
    python benchmarks/growth.py run folder --small    # minutes: a few cases, of fewer rows
    python benchmarks/growth.py publish folder        # benchmarks/published/growth.{json,svg}

The folder needs 11 GB; files of rows are made there on the spot, and deleted after. Each result is a process of its
own, with the peak of its resident memory, and nothing else may run beside it. A file that is "cold" is not in the
system's cache when its steps begin, one that is "warm" is, as far as memory allows.
"""

import json
import mmap
import os
import resource
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

ROWS, COLUMNS, BIG = (10**5, 10**6, 10**7, 10**8), 25, 10**8
DIMENSIONS, ROWS_OF_DIMENSIONS = (10, 100, 1_000, 10_000, 100_000), 2_000
ARMS, ROWS_OF_ARMS = (1, 4, 16, 64, 256), 10**5
BATCHES, SAMPLERS = (100, 1_000, 10_000), ("sgld", "sgld-cv")
BATCH, SECONDS, TERMS = 1_000, 10.0, 10**7
"""Rows of a minibatch, seconds in which steps are counted, and data terms of the arm of `tune` that runs longest."""

SMALL = 100


def coefficients(d: int) -> np.ndarray:
    return (np.random.default_rng(d).standard_normal(d) / np.sqrt(d)).astype(np.float32)


def rows_of(n: int, d: int, seed: int) -> np.ndarray:
    """Inputs of a logistic regression times the signs of their targets."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d), dtype=np.float32)
    sign = np.where(rng.random(n, dtype=np.float32) < 1 / (1 + np.exp(-x @ coefficients(d))), 1, -1)
    x *= sign[:, None].astype(np.float32)
    return x


def write_rows(path: Path, n: int) -> None:
    """A ``.npy`` file of n rows, a piece at a time."""
    with path.open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (n, COLUMNS)}
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, n, 10**6):
            file.write(rows_of(min(10**6, n - start), COLUMNS, start).tobytes())
        file.flush()
        os.fsync(file.fileno())


def model_of(data, d: int, **options):
    import jax.numpy as jnp

    from sgtune import define_model
    from sgtune.model import log_sigmoid

    return define_model(
        "logistic",
        log_prior=lambda position: -0.5 * position @ position,
        log_likelihood=lambda position, rows: log_sigmoid(rows @ position),
        data=data,
        init=lambda key: jnp.zeros(d),
        **options,
    )


def timed(call) -> float:
    began = perf_counter()
    call()
    return perf_counter() - began


def ensemble_of(model, sampler: str, batch: int, width: int = 1):
    """At the coefficients of the data, which are near the mode: no search."""
    from sgtune import Arm
    from sgtune.sampling.lockstep import Lockstep

    at = coefficients(model.dimension)
    # So short steps that all stay there.
    return Lockstep(model, sampler, [Arm(1e-3 / model.n_data, batch)] * width, position=at, centre=at)


def seconds_of_step(ensemble, seconds: float) -> float:
    from sgtune.sampling.by_clock import advance_for

    return advance_for(ensemble, seconds, most_kept=1_000)[2][-1][0] / ensemble.steps_done


def seconds_of_tune(model, n_arms: int | None = None, terms: int = TERMS) -> float:
    from sgtune import Budget, tune
    from sgtune.tuning import Grid, Halving

    steps = None if n_arms is None else tuple(np.linspace(-4.0, -1.0, n_arms))
    fractions = (min(1.0, BATCH / model.n_data),)
    tuner = Halving(grid=Grid(log10_step_sizes=steps, batch_fractions=fractions))
    return timed(lambda: tune(model, "sgld-cv", tuner=tuner, budget=Budget(gradients=terms)))


def seconds_of_pass(model) -> float:
    """Of a score at one position, once its program is compiled."""
    from sgtune.model.posterior import scores

    at = coefficients(model.dimension)[None]
    scores(model, at)
    return timed(lambda: scores(model, at))


def of_data(path: Path, where: str):
    """A model of the rows in a file, or of the same rows in memory; None if memory is too small for them."""
    from sgtune import RowSource

    if where != "memory":
        return model_of(RowSource(np.load(path, mmap_mode="r")), COLUMNS, checksum=path.name)
    # With what the system keeps of files; in kilobytes.
    known = Path("/proc/meminfo").read_text("utf-8").split()
    free = known[known.index("MemAvailable:") + 1]
    if path.stat().st_size * 1.5 > 1024 * int(free):
        return None
    # Mapped, and in their order: the rows as read and a shuffled copy would each take the memory once more.
    return model_of(np.load(path, mmap_mode="r"), COLUMNS, checksum=path.name, shuffle_seed=None)


def cool(path: Path) -> None:
    """Take a file out of the system's cache."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def warm(path: Path) -> None:
    with path.open("rb", buffering=0) as file:
        while file.read(2**24):
            pass


def steps_from(path: Path, where: str, sampler: str, batch: int, seconds: float) -> dict:
    model = of_data(path, where)
    if model is None:
        return {"steps_per_second": None}
    ensemble = ensemble_of(model, sampler, batch)
    ensemble.advance_chunk(0)
    if where != "memory":
        for each in model.data.source._maps:
            # Pages that are mapped would stay in the cache.
            each.madvise(mmap.MADV_DONTNEED)
        {"cold": cool, "warm": warm}[where](path)
    return {"steps_per_second": 1 / seconds_of_step(ensemble, seconds)}


def with_rows(path: Path, where: str, seconds: float, terms: int) -> dict:
    model = of_data(path, where)
    if model is None:
        return {}
    return {
        "check": timed(lambda: model_of(model.data.source, COLUMNS)) if where == "file" else None,
        "step": seconds_of_step(ensemble_of(model, "sgld-cv", BATCH), seconds),
        "pass": seconds_of_pass(model),
        "tune": seconds_of_tune(model, terms=terms),
    }


def with_dimensions(d: int, seconds: float, terms: int) -> dict:
    model = model_of(rows_of(ROWS_OF_DIMENSIONS, d, 0), d)
    return {
        "step": seconds_of_step(ensemble_of(model, "sgld-cv", BATCH), seconds),
        "pass": seconds_of_pass(model),
        "tune": seconds_of_tune(model, terms=terms),
    }


def with_arms(width: int, seconds: float, terms: int) -> dict:
    model = model_of(rows_of(ROWS_OF_ARMS, 10, 0), 10)
    return {
        "step": seconds_of_step(ensemble_of(model, "sgld-cv", BATCH, width), seconds),
        "tune": seconds_of_tune(model, width, terms),
    }


def cases(small: bool) -> list[dict]:
    """All results, by the number of rows of the file that they need, which comes first."""
    rows, big = ([10**5], BIG // SMALL) if small else (ROWS, BIG)
    batches, samplers = (BATCHES[1:2], SAMPLERS[1:]) if small else (BATCHES, SAMPLERS)
    of_rows = [{"of": "rows", "n": n, "where": where} for n in rows for where in ("memory", "file")]
    of_steps = [
        {"of": "steps", "n": big, "where": where, "sampler": sampler, "batch": batch}
        for where in ("memory", "warm", "cold")
        for sampler in samplers
        for batch in batches
    ]
    dimensions, arms = (DIMENSIONS[:2], ARMS[:2]) if small else (DIMENSIONS, ARMS)
    others = [{"of": "dimensions", "d": d} for d in dimensions] + [{"of": "arms", "arms": w} for w in arms]
    return sorted(of_rows + of_steps, key=lambda case: case["n"]) + others


def measure(case: dict, path: Path, small: bool) -> dict:
    limits = {"seconds": 0.5, "terms": TERMS // SMALL} if small else {"seconds": SECONDS, "terms": TERMS}
    if case["of"] == "steps":
        found = steps_from(path, case["where"], case["sampler"], case["batch"], limits["seconds"])
    elif case["of"] == "rows":
        found = with_rows(path, case["where"], **limits)
    elif case["of"] == "dimensions":
        found = with_dimensions(case["d"], **limits)
    else:
        found = with_arms(case["arms"], **limits)
    # Linux counts kilobytes.
    return {**case, **found, "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def run(folder: Path, small: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    data, held = folder / "rows.npy", None
    try:
        for case in cases(small):
            path = folder / ("-".join(str(part) for part in case.values()) + ".json")
            if path.exists():
                continue
            if case.get("n", held) != held:
                write_rows(data, case["n"])
                held = case["n"]
            arguments = [
                sys.executable,
                __file__,
                "measure",
                str(data),
                json.dumps(case),
                *["--small"] * small,
            ]
            found = subprocess.run(arguments, capture_output=True, text=True, encoding="utf-8", check=False)
            if found.returncode:
                print(path.name, found.stderr[-2_000:], flush=True)
                continue
            path.with_suffix(".part").write_text(found.stdout.splitlines()[-1], encoding="utf-8")
            os.replace(path.with_suffix(".part"), path)
            print(found.stdout.splitlines()[-1], flush=True)
    finally:
        data.unlink(missing_ok=True)


PANELS = {"rows": ("n", "N"), "dimensions": ("d", "D"), "arms": ("arms", "arms")}
LOOKS = {"step": ("#0072B2", "o"), "pass": ("#D55E00", "s"), "tune": ("#262626", "^")}


def publish(folder: Path) -> None:
    import seaborn as sns
    from matplotlib.figure import Figure

    from sgtune.study.pipeline.provenance import of_processor

    found = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))]
    target = Path(__file__).parent / "published" / "growth.json"
    record = {"cpu": of_processor("model name"), "cores": os.cpu_count(), "rows": found}
    target.write_text(json.dumps(record, indent=1), encoding="utf-8")
    sns.set_theme("paper", "ticks")
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    for axis, (of, (number, label)) in zip(figure.subplots(1, 3), PANELS.items(), strict=True):
        for what, (color, marker) in LOOKS.items():
            for where in ("memory", "file") if of == "rows" else (None,):
                own = [
                    one for one in found if one["of"] == of and one.get("where") == where and one.get(what)
                ]
                own.sort(key=lambda one: one[number])
                axis.plot(
                    [one[number] for one in own],
                    [one[what] for one in own],
                    color=color,
                    marker=marker,
                    ms=4,
                    lw=1,
                    ls="--" if where == "file" else "-",
                    label=what + (f", {where}" if where else ""),
                )
        axis.set(xscale="log", yscale="log", xlabel=label)
    figure.axes[0].set_ylabel("seconds")
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False
    )
    figure.savefig(target.with_suffix(".svg"))


if __name__ == "__main__":
    command, where, *others = sys.argv[1:]
    is_small = "--small" in others
    if command == "measure":
        print(json.dumps(measure(json.loads(others[0]), Path(where), is_small)))
    elif command == "run":
        run(Path(where), is_small)
    else:
        publish(Path(where))
