"""The library on one GPU: its tests, SGLD's speed beside BlackJAX's, the width of the lockstep, and one tuning.

Run by ``benchmarks/gpu.sh``. Every part is a process with a time limit of its own, which saves each number once it is
known: an error or a limit loses nothing but the rest of its part. All numbers are in one JSON.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter

LIMITS = {"steps": 60, "width": 90, "tuning": 120, "tests": 200}
"""Seconds of each part, in the order in which they run: all together less than eight minutes."""

BATTERY = [
    *("tests/samplers/test_invariance.py", "tests/stein", "tests/tuning", "tests/samplers"),
    *("tests/sampling", "tests/mode"),
]
LEFT_OUT = "not slow and not proof and not benchmark and not network and not end_to_end"
WIDEST, LEAST_GAIN = 2**14, 1.1
"""Chains are doubled up to the first number, or until two times in a row the steps of all hardly rise."""


def save(path: Path, found: dict) -> None:
    path.write_text(json.dumps(found, indent=1), encoding="utf-8")


def steps_per_second(advance, seconds: float) -> float:
    """Of ``advance(n)``, which blocks: the median over calls of about a twentieth of a second."""
    advance(1)
    n_steps, took, rates, began = 8, 0.0, [], perf_counter()
    while perf_counter() - began < seconds or len(rates) < 3:
        before = perf_counter()
        advance(n_steps)
        took = perf_counter() - before
        if took < 0.03:
            n_steps *= 2
        else:
            rates.append(n_steps / took)
    return sorted(rates)[len(rates) // 2]


def logistic_model(is_small: bool):
    """The paper's simulated data, N = 800,000 and D = 10; or the first 20,000 rows of a set of their own."""
    from sgtune.study.posteriors import logistic

    arrays = logistic.simulate(25_000, 20_000) if is_small else logistic.simulate()
    return logistic.from_arrays(arrays["train_inputs"], arrays["train_targets"], shuffle_seed=None)


def ensemble_of(model, sampler: str, width: int, batch_size: int):
    from sgtune import Arm
    from sgtune.sampling.lockstep import Lockstep

    return Lockstep(model, sampler, [Arm(1e-6, batch_size)] * width)


def score_errors(model) -> dict[str, float]:
    """|score - exact| / |exact| half a digit from the MAP; the library's, and in the device's default precision."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from sgtune.mode.find import map_position
    from sgtune.model.posterior import scores

    positions = (
        np.asarray(map_position(model), np.float32) * np.linspace(0.9, 1.1, 32, dtype=np.float32)[:, None]
    )
    rows = np.asarray(model.data["signed_inputs"], np.float64)
    exact = np.array([rows.T @ (1 / (1 + np.exp(rows @ x))) - x / 10 for x in positions.astype(np.float64)])

    @jax.jit
    def by_default(positions, data):
        def log_density(position):
            return model.log_prior(position) + jnp.sum(model.log_likelihood(position, data))

        return jax.vmap(jax.grad(log_density))(positions)

    found = {"library": scores(model, positions), "default precision": by_default(positions, model.data)}
    size = np.linalg.norm(exact)
    return {name: float(np.linalg.norm(np.asarray(value) - exact) / size) for name, value in found.items()}


def steps(path: Path, is_small: bool) -> None:
    """Steps a second of one chain: the library's and BlackJAX's in turn, three times each."""
    import jax
    from test_speed import blackjax_sgld

    from sgtune.sampling import lockstep

    model = logistic_model(is_small)
    found = {
        "n_data": model.n_data,
        "dimension": model.dimension,
        "score_errors": score_errors(model),
        "sgld": [],
    }
    seconds = 0.2 if is_small else 0.4
    batch_sizes = (200, 2_000) if is_small else (800, 8_000, 80_000)
    try:
        import blackjax  # noqa: F401
    except Exception as error:  # not installed, or too old for this JAX
        found["blackjax"] = f"not importable: {error}"
    save(path, found)
    for batch_size in batch_sizes:
        for sampler in ("sgld", "sgld-cv"):
            ensemble = ensemble_of(model, sampler, 1, batch_size)
            advances = {"library": partial(ensemble.advance_chunk, 1)}
            began = perf_counter()
            ensemble.advance_chunk(1)
            row = {"sampler": sampler, "batch_size": batch_size, "compilation": perf_counter() - began}
            if "blackjax" not in found:
                advances["blackjax"] = blackjax_sgld(model, batch_size, sampler.endswith("cv"))
            rates = [{name: steps_per_second(of, seconds) for name, of in advances.items()} for _ in range(3)]
            for name in advances:
                row[name] = sorted(rate[name] for rate in rates)
            if "blackjax" in row:
                row["ratio"] = row["library"][1] / row["blackjax"][1]
            found["sgld"].append(row)
            save(path, found)
            print(row)
    # The choices of unrolled loops, tiles and XLA's level that the library makes on a CPU, on this device.
    found["sgld_as_on_a_cpu"] = {}
    jax.clear_caches()
    lockstep._compiled.clear()
    jax.default_backend = lambda: "cpu"
    for batch_size in batch_sizes:
        chain = ensemble_of(model, "sgld", 1, batch_size)
        advance = partial(chain.advance_chunk, 1)
        found["sgld_as_on_a_cpu"][batch_size] = steps_per_second(advance, seconds)
        save(path, found)


def width(path: Path, is_small: bool) -> None:
    """Steps a second of all chains of an ensemble, for 1, 2, 4, ... chains until it saturates."""
    model = logistic_model(is_small)
    found = {"n_data": model.n_data, "dimension": model.dimension, "lockstep": []}
    for batch_size, factor in ((200, 2),) if is_small else ((800, 2), (8_000, 4)):
        best, chains, gains = 0.0, 1, [LEAST_GAIN]
        while chains <= (8 if is_small else WIDEST) and max(gains[-2:]) >= LEAST_GAIN:
            ensemble = ensemble_of(model, "sgld", chains, batch_size)
            rate = chains * steps_per_second(partial(ensemble.advance_chunk, 1), 0.3)
            gains.append(rate / best if best else LEAST_GAIN)
            best = max(best, rate)
            row = {"batch_size": batch_size, "chains": chains, "chain_steps_per_second": rate}
            found["lockstep"].append(row)
            save(path, found)
            print(row)
            chains *= factor


def tuning(path: Path, is_small: bool) -> None:
    """MAMBA tunes SGLD with control variates for the paper's network, and a chain of the arm that it chose."""
    import sgtune
    from sgtune.mode.find import map_result
    from sgtune.study.posteriors import bnn

    arrays = bnn.simulate(600 if is_small else 60_000)
    model = bnn.from_arrays(
        arrays["train_images"],
        arrays["train_labels"],
        n_hidden=5 if is_small else 100,
        test_data={"inputs": arrays["test_images"], "targets": arrays["test_labels"]},
    )
    found = {"data": "simulated", "n_data": model.n_data, "dimension": model.dimension}
    began = perf_counter()
    mode = map_result(
        model, **({"epochs": 2, "max_steps": 3} if is_small else {"epochs": 20, "max_steps": 100})
    )
    found["mode"] = {"seconds": perf_counter() - began, **mode._asdict(), "position": None}
    save(path, found)
    budget = sgtune.Budget(seconds=0.05 if is_small else 1.0)
    # The grid of config/paper.yaml.
    grid = sgtune.tuning.Grid(
        log10_step_sizes=tuple(-2 - i / 2 for i in range(2 if is_small else 12)),
        batch_fractions=(1.0, 0.1, 0.01),
    )
    result = sgtune.tune(
        model,
        "sgld-cv",
        tuner=sgtune.tuning.Halving(grid=grid),
        budget=budget,
        preconditioner="none",
        report=print,
    )
    found |= {"budget": budget.seconds, "seconds": result.seconds, "steps": result.steps}
    found |= {"arms": sum(row["rung"] == 1 for row in result.rows), "best": result.best.to_record()}
    save(path, found)
    chain = sgtune.sample(model, "sgld-cv", **result.best, budget=budget, kept_draws=200)
    found |= {"chain_steps": chain.n_samples, "chain_diverged": chain.diverged}
    found["predictive"] = sgtune.metrics.predictive_metrics(model, chain.draws)
    save(path, found)


def battery(names: list[str], log: Path, is_small: bool, environment: dict | None = None):
    """Yield (outcome, name) of each test, as it ends."""
    workers = 1 if is_small else max(1, min(10, len(os.sched_getaffinity(0)) - 2))
    options = [
        "-v",
        "-n",
        str(workers),
        "--dist",
        "load",
        "--tb=short",
        "-p",
        "no:cacheprovider",
        "-m",
        LEFT_OUT,
    ]
    command = [sys.executable, "-m", "pytest", *options, *names]
    with log.open("w", encoding="utf-8") as kept:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        for line in process.stdout:
            kept.write(line)
            kept.flush()
            if ended := re.match(r"\[gw\d+\] \[ *\d+%\] (\w+) (\S.*\S)", line):
                yield ended.groups()
        process.wait()


def tests(path: Path, is_small: bool) -> None:
    """The library's tests, without slow ones; those that fail once more, on the CPU of the same machine."""
    names = ["tests/stein/test_stein.py"] if is_small else BATTERY
    counts, failed = {}, []
    found = {"of": names, "outcomes": counts, "failed": failed, "is_complete": False}
    for outcome, name in battery(names, path.with_suffix(".log"), is_small):
        counts[outcome] = counts.get(outcome, 0) + 1
        if outcome in ("FAILED", "ERROR"):
            failed.append(name)
        save(path, found)
    found["is_complete"] = True
    save(path, found)
    if failed:
        on_cpu = os.environ | {"JAX_PLATFORMS": "cpu"}
        outcomes = battery(failed, path.with_suffix(".cpu.log"), is_small, on_cpu)
        found["failed_on_cpu_too"] = [name for outcome, name in outcomes if outcome in ("FAILED", "ERROR")]
        save(path, found)


PARTS = {"steps": steps, "width": width, "tuning": tuning, "tests": tests}


def run_part(name: str, folder: Path, is_small: bool, limit: float) -> dict:
    """The numbers of one part, with its seconds; with ``error`` and the end of its output if it did not end well."""
    path, log, began = folder / f"{name}.json", folder / f"{name}.out", perf_counter()
    path.unlink(missing_ok=True)
    command = [
        sys.executable,
        __file__,
        "--part",
        name,
        "--out",
        str(path),
        *(["--small"] if is_small else []),
    ]
    with log.open("w", encoding="utf-8") as output:
        # A session of its own, which ends as a whole.
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            status = process.wait(timeout=limit)
            error = f"ended with status {status}" if status else None
        except subprocess.TimeoutExpired:
            error = f"not done after {limit:.0f} s"
        finally:
            # At the limit, and if this process is ended: a part that is left would hold the card.
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    found["part_seconds"] = perf_counter() - began
    if error:
        found |= {"error": error, "output": log.read_text(encoding="utf-8", errors="replace")[-3_000:]}
    print(f"{name}: {found['part_seconds']:.0f} s{', ' + error if error else ''}")
    return found


def machine() -> dict:
    """The processor, the card and its driver, and the versions; of JAX in a process of its own, which leaves the card
    free."""
    from sgtune.study.pipeline.provenance import of_processor

    facts = "{'backend': jax.default_backend(), 'device': jax.devices()[0].device_kind}"
    program = f"import jax, json; print(json.dumps({facts}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    found = (
        json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"error": done.stderr[-2_000:]}
    )
    try:
        query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
        answer = subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()[0]
        found |= dict(zip(("card", "driver", "memory"), answer.split(", "), strict=False))
    except (OSError, IndexError, subprocess.CalledProcessError):
        found |= {"card": None, "driver": None}
    for package in ("jax", "jaxlib", "jax-cuda13-plugin", "jax-cuda12-plugin", "numpy", "blackjax"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    commit = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    return found | {
        "commit": subprocess.run(commit, capture_output=True, text=True).stdout.strip() or None,
        "python": sys.version.split()[0],
        "cpu": of_processor("model name"),
        "cpu_family": of_processor("cpu family", "CPU implementer"),
        "cpu_model": of_processor("model\t", "CPU part"),
        "cores": len(os.sched_getaffinity(0)),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def markdown(found: dict) -> str:
    """The speeds, and how each part ended, as tables. A card has them only if JAX ran on it."""
    processor = "{cores} cores of {cpu}, family {cpu_family}, model {cpu_model}".format(**found)
    is_on_card = found.get("backend") == "gpu" and found["card"]
    driver = f"driver {found['driver']}, " if is_on_card else ""
    device = (
        found["card"] if is_on_card else processor if found.get("backend") == "cpu" else found.get("device")
    )
    lines = [
        f"# {device}{', small data' * found['is_small']}",
        "",
        f"JAX {found['jax']}, {driver}{found['date'][:10]}, commit {(found['commit'] or 'unknown')[:10]}.",
        "",
    ]
    rows = found["parts"].get("steps", {}).get("sgld", [])
    lines += ["| Sampler | Batch | Steps/s | BlackJAX | Ratio |", "| --- | ---: | ---: | ---: | ---: |"]
    for row in rows:
        rates = [f"{sorted(row[name])[1]:,.0f}" if name in row else "–" for name in ("library", "blackjax")]
        ratio = f"{row['ratio']:.2f}" if "ratio" in row else "–"
        lines.append(f"| {row['sampler']} | {row['batch_size']:,} | {rates[0]} | {rates[1]} | {ratio} |")
    lines += [
        "",
        "| Batch | Chains | Steps/s of all chains | Over one chain |",
        "| ---: | ---: | ---: | ---: |",
    ]
    single = 1.0
    for row in found["parts"].get("width", {}).get("lockstep", []):
        rate = row["chain_steps_per_second"]
        single = rate if row["chains"] == 1 else single
        lines.append(f"| {row['batch_size']:,} | {row['chains']:,} | {rate:,.0f} | {rate / single:,.1f} |")
    lines += ["", "| Part | Seconds | Outcome |", "| --- | ---: | --- |"]
    for name, part in found["parts"].items():
        counts = [f"{number} {outcome.lower()}" for outcome, number in part.get("outcomes", {}).items()]
        lines.append(
            f"| {name} | {part['part_seconds']:.0f} | {', '.join([*counts, part.get('error', 'done')])} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/gpu/gpu.json"), help="the JSON")
    parser.add_argument("--small", action="store_true", help="small data and few tests, for a CPU")
    parser.add_argument(
        "--seconds",
        type=float,
        default=sum(LIMITS.values()),
        help="for all parts; the last ones get what is left",
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="these parts")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        PARTS[given.part](given.out, given.small)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    folder = given.out.parent
    folder.mkdir(parents=True, exist_ok=True)
    began = perf_counter()
    found = {**machine(), "is_small": given.small, "parts": {}}
    save(given.out, found)
    for name in given.only:
        left = max(1.0, given.seconds - (perf_counter() - began))
        found["parts"][name] = run_part(name, folder, given.small, min(LIMITS[name], left))
        found["seconds"] = perf_counter() - began
        save(given.out, found)
    given.out.with_suffix(".md").write_text(markdown(found), encoding="utf-8")
    print(
        json.dumps(
            {**found, "parts": {name: {**part, "output": None} for name, part in found["parts"].items()}}
        )
    )


if __name__ == "__main__":
    main()
