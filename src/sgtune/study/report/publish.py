"""A finished study as a tracked copy: a folder with its tables and figures, and a page that shows all of them."""

import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from math import hypot, isnan
from pathlib import Path

import pandas as pd

from sgtune.study.pipeline.provenance import SUMS
from sgtune.study.report.artifact import Artifact, Study
from sgtune.study.report.table import FIELDS, Caption, markdown_tables, read_frame, to_markdown
from sgtune.support.errors import DataError, InputError
from sgtune.support.files import atomic_write, file_sha256, read_json, write_json

MAIN_RUN = "paper"
"""The folder of the main run."""

SMALL_FACTORISATION = "small_pmf_2"
"""The run with a factorisation whose NUTS converges: README's table has its regret beside the main run's."""

IN_REGRET = (MAIN_RUN, SMALL_FACTORISATION)
"""The published runs of which README's table of regret has numbers."""

CLAIMS_OF = "audit"
"""The folder of the audit of the main run, which judges the paper's claims."""

IN_README = (*IN_REGRET, CLAIMS_OF)
"""The published runs of which README has numbers."""

CLAIMS = ("ksd_logistic", "ksd_pmf", "ece_bnn", "time_logistic", "ours_logistic", "ours_pmf")
"""README's claims."""

REGRET = Artifact((), "", rows=("tuner",), columns=("model",))
"""README's table."""

LEFT_OUT = ("mamba-psd", "mamba-ksd-scaled", "random", "frozen")
"""Tuners that README's table leaves to the runs' own."""

MARKS = {
    part: (f"<!-- {part}: written by the rule `publish`, from the artifacts -->", f"<!-- end of {part} -->")
    for part in ("claims", "results")
}
"""The two lines of README between which each part stands."""

INDEX = "README.md"

PASSING = ("logs", "unfinished", "checkpoints", SUMS)
"""Folders of a run whose files are no results."""

RESULTS = (".csv", ".html", ".json", ".md", ".nc", ".npy", ".npz", ".pdf", ".svg")
"""Suffixes of results."""

COPIED = (".csv", ".svg")
"""Of a run's files: a page has the tables, and the manifest has the provenance; PDF and HTML stay with the run."""


def published_folder(root: Path, study: str = MAIN_RUN) -> Path:
    """Where the repository at ``root`` keeps a published run."""
    return root / "results" / "published" / study


def read_captions(root: Path) -> dict[str, Caption]:
    """The captions of the repository at ``root``, by the name of the artifact."""
    files = sorted((root / "workflow" / "captions").glob("*.md"))
    return {path.stem: Caption(path.read_text(encoding="utf-8")) for path in files}


def checksums(artifacts: Iterable[str]) -> dict[str, str]:
    """By name in the study's folder: the checksum of every file beside one of ``artifacts`` with the same stem."""
    paths = [Path(path) for path in artifacts]
    beside = sorted({twin for path in paths for twin in path.parent.glob(f"{path.stem}.*")})
    return {path.relative_to(paths[0].parent.parent).as_posix(): file_sha256(path) for path in beside}


def sums_of_run(run: Path, without: Iterable[str] = ()) -> dict[str, str]:
    """By name in the folder ``run``: the checksum of every result below it, not below the folders ``without``."""
    names = [path.relative_to(run) for path in run.rglob("*") if path.is_file()]
    kept = [name for name in names if not {*name.parts} & {*PASSING, *without} and name.suffix in RESULTS]
    kept = [name for name in kept if name.name[0] != "." and name.name != "manifest.json"]
    return {name.as_posix(): file_sha256(run / name) for name in sorted(kept)}


def verify(run: Path, studies: Iterable[str]) -> list[str]:
    """A line for each file of a finished run that is not as the manifests of its ``studies`` have it: one that is
    foreign (it stands beside their files, and none of them has it), changed or missing.
    """
    known: dict[str, str] = {}
    for study in studies:
        if (run / study / "manifest.json").is_file():
            held = read_json(run / study / "manifest.json")
            known |= held.get("results", {}) | {f"{study}/{name}": own for name, own in held["files"].items()}
    if not known:
        raise DataError(f"{run}: no study has a manifest there; the run must be finished")
    folders = {Path(name).parent for name in known}
    found = {name: own for name, own in sums_of_run(run).items() if Path(name).parent in folders}
    # The rule collect_costs makes it for other runs, and no artifact is made from it.
    for files in (found, known):
        files.pop("cost/table.json", None)
    faults = dict.fromkeys(known.keys() - found, "missing")
    faults |= dict.fromkeys(found.keys() - known, "foreign")
    faults |= {name: "changed" for name in known.keys() & found if found[name] != known[name]}
    return [f"{fault}: {run / name}" for name, fault in sorted(faults.items())]


def compare(run: Path, published: Path) -> list[str]:
    """A line for each cell of the tables below ``run`` that differs from the ``published`` one, and one with how many
    agree: their values by three standard errors of their difference, which the spread of the replicates gives. A cell
    of one replicate, or without a number, is not judged.
    """
    lines, agree, judged, shown, alone = [], 0, 0, 0, 0
    tables = [
        path for path in sorted(published.glob("tables/*.csv")) if (run / "tables" / path.name).is_file()
    ]
    if not tables:
        raise DataError(f"{run}: no table of {published} is there; the run must be finished")
    keys = list(FIELDS)
    for csv in tables:
        pair = [read_frame(path).drop_duplicates(keys) for path in (run / "tables" / csv.name, csv)]
        both = pair[0].merge(pair[1], "outer", keys, suffixes=("", "_there"), indicator=True)
        for cell in both.to_dict("records"):
            where = " ".join(filter(None, (csv.stem, *(cell[key] for key in keys))))
            if cell["_merge"] != "both":
                alone += 1
                lines.append(f"{where}: only {'here' if cell['_merge'] == 'left_only' else 'published'}")
                continue
            (value, error), (other, their) = _number(cell, ""), _number(cell, "_there")
            is_judged = min(cell["replicates"], cell["replicates_there"]) > 1 and not isnan(error + their)
            agrees = abs(value - other) <= 3 * hypot(error, their) + 1e-6 * abs(other)
            judged, agree, shown = judged + is_judged, agree + (is_judged and agrees), shown + (not is_judged)
            text = f"{where}: {cell['shown']} here, {cell['shown_there']} published"
            if is_judged and not agrees:
                lines.append(f"{text}: differs")
            elif not is_judged and cell["shown"] != cell["shown_there"]:
                lines.append(f"{text}: not judged")
    return [*lines, f"{agree} of {judged} cells agree; {shown} are not judged, {alone} are only in one run."]


def _number(cell: Mapping, side: str) -> tuple[float, float]:
    """The value of a cell and its standard error; of one that is not told from 0 its upper end is two of these."""
    if isnan(cell[f"value{side}"]):
        return 0.0, cell[f"upper{side}"] / 2
    return cell[f"value{side}"], cell[f"se{side}"]


def publish(manifest: Path, destination: Path, study: Study, captions: Mapping[str, Caption]) -> None:
    """Replace ``destination`` by the files that a run's ``manifest`` names (those that are `COPIED`), a manifest of
    these with the sources of each table, and a page that shows them; and list it in the index beside it.
    """
    held = read_json(manifest)
    with suppress(DataError):
        other = read_json(destination / manifest.name)["run"]
        if other != held["run"]:
            raise InputError(
                f"run: {held['run']!r} is not allowed to replace {other!r} in {destination}; delete that first, or "
                "give the main study another folder by published_as"
            )
    sources: dict[str, dict] = {}
    commits: set[str] = set()
    for name, checksum in held["files"].items():
        path = manifest.parent / name
        if file_sha256(path) != checksum:
            raise DataError(f"{path}: not the file that {manifest} names; make the run's artifacts again")
        if name.startswith("tables/") and name.endswith(".json"):
            sources[path.stem] = read_json(path)["sources"]
            own = sources[path.stem]["commit"]
            commits |= set(own)
            is_dirty = any(commit.endswith("-dirty") for commit in own)
            if not own or len(commits) > study.n_commits or is_dirty:
                allowed = (
                    "one clean commit" if study.n_commits == 1 else f"at most {study.n_commits} clean commits"
                )
                raise DataError(
                    f"{path}: made by {', '.join(sorted(commits)) or 'no commit'}; "
                    f"make the run again, all of it from {allowed}"
                )
    if not sources:
        raise DataError(
            f"{manifest}: names no table, which has the commit of the run; make one of its tables"
        )
    files = {name: checksum for name, checksum in held["files"].items() if name.endswith(COPIED)}
    staging = destination.with_name(f".{destination.name}")
    shutil.rmtree(staging, ignore_errors=True)
    for name in files:
        (staging / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(manifest.parent / name, staging / name)
    kept = {name: value for name, value in held.items() if name != "results"}
    write_json(staging / manifest.name, kept | {"files": files, "sources": sources})
    (staging / INDEX).write_text(page_of(staging, study, captions), encoding="utf-8")
    destination.parent.mkdir(parents=True, exist_ok=True)
    # After a kill between the two renames the old folder is still there, under the other name.
    old = destination.with_name(f".old-{destination.name}")
    shutil.rmtree(old, ignore_errors=True)
    with suppress(FileNotFoundError):
        destination.rename(old)
    staging.rename(destination)
    shutil.rmtree(old, ignore_errors=True)
    write_index(destination.parent)


def page_of(folder: Path, study: Study, captions: Mapping[str, Caption]) -> str:
    """The page of a published study: its origin, and all its tables and figures in the order of print."""
    manifest = read_json(folder / "manifest.json")
    parts = [f"# {study.label}: the published run `{manifest['run']}`", origin_of(folder)]
    figures = [name for name in study.figures if f"figures/{name}.svg" in manifest["files"]]
    tables = [name for name in study.tables if f"tables/{name}.csv" in manifest["files"]]
    parts += ["## Figures"] * bool(figures)
    for name in figures:
        parts += [f"![{study.figures[name].title}](figures/{name}.svg)", f"*{study.figures[name].title}*"]
        parts += captions[name].paragraphs
    parts += ["## Tables"] * bool(tables)
    return "\n\n".join(parts + [table_of(folder, name, study, captions) for name in tables]) + "\n"


def table_of(folder: Path, name: str, study: Study, captions: Mapping[str, Caption]) -> str:
    """The Markdown of a published table, from its CSV."""
    frame = read_frame(folder / f"tables/{name}.csv")
    return to_markdown(frame, study.tables[name], captions[name], "", study.names).strip()


def origin_of(folder: Path) -> str:
    """The run that is published in ``folder``: its machine, and the last day and the commits of its results (tables
    and figures may be drawn later)."""
    manifest = read_json(folder / "manifest.json")
    origin, sources = manifest["provenance"], manifest["sources"].values()
    commits = sorted({commit[:10] for own in sources for commit in own["commit"]})
    last = max(moment for own in sources for moment in own["created"])
    machine = f"{origin['cores']} cores of {origin['cpu']}"
    return f"Run `{manifest['run']}`, {machine}, {last[:10]}, commit{'s'[: len(commits) > 1]} {', '.join(commits)}."


def write_index(published: Path) -> None:
    """The page of the folder of all published runs."""
    lines = ["# Published runs", ""]
    for manifest in sorted(published.glob("[!.]*/manifest.json")):
        name, files = manifest.parent.name, read_json(manifest)["files"]
        n_tables, n_figures = (sum(path.startswith(form) for path in files) for form in ("tables", "figures"))
        counts = f"Tables: {n_tables}, figures: {n_figures}."
        lines.append(f"* [{name}]({name}/{INDEX}): {origin_of(manifest.parent)} {counts}")
    with atomic_write(published / INDEX) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def show_results(readme: Path, published: Path, audit: Study) -> None:
    """Put the claims, which the study ``audit`` judges, and the main results of the main study, ``published``, between
    their comments in ``readme``."""
    where = published.parent.relative_to(readme.parent).as_posix()
    origins = [
        f"{'Claims: ' if name == CLAIMS_OF else ''}{origin_of(published.with_name(name))} "
        f"[All of it]({where}/{name}/{INDEX})."
        for name in IN_README
        if published.with_name(name).is_dir()
    ]
    results = [
        markdown_tables(_regret(published), REGRET, {"pmf": "MovieLens", "small_pmf": "Small PMF"}),
        f"![Regret of the tuners, by sampler]({where}/{MAIN_RUN}/figures/regret_dots.svg)",
        " ".join(origins),
    ]
    text = readme.read_text(encoding="utf-8")
    for part, content in {"claims": _claims(published, audit), "results": results}.items():
        before, begin, rest = text.partition(MARKS[part][0])
        _, end, after = rest.partition(MARKS[part][1])
        if not (begin and end):
            raise DataError(
                f"{readme}: needs the lines {MARKS[part][0]!r} and {MARKS[part][1]!r} around its {part}"
            )
        text = "\n\n".join([before + begin, *content, end + after])
    with atomic_write(readme) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _claims(published: Path, audit: Study) -> list[str]:
    """The table of `CLAIMS`, if the audit of the same run is published."""
    folder = published.with_name(CLAIMS_OF)
    runs = {read_json(each / "manifest.json")["run"] for each in (folder, published) if each.is_dir()}
    if not folder.is_dir() or len(runs) > 1:
        return []
    frame = read_frame(folder / "tables/claims.csv")
    frame = frame[frame["metric"].isin(CLAIMS)].reset_index(drop=True)
    return [markdown_tables(frame, audit.tables["claims"], audit.names)]


def _regret(published: Path) -> pd.DataFrame:
    """Regret over the oracle's by the main loss of each model, of the runs `IN_README`. Models and tuners without any
    number are left out, and so are tuners of one sampler and `LEFT_OUT`."""
    small = {SMALL_FACTORISATION: {"model": {"pmf": "small_pmf"}}}
    tables = {name: published.with_name(name) / "tables/headline.csv" for name in IN_REGRET}
    frames = [
        read_frame(path).replace(small.get(name, {})) for name, path in tables.items() if path.is_file()
    ]
    frame = pd.concat(frames).drop_duplicates(["model", "tuner"])
    frame = frame[~(frame["tuner"].str.endswith("-smaller") | frame["tuner"].isin(LEFT_OUT))]
    for field in ("model", "tuner"):
        frame = frame[frame.groupby(field)["value"].transform("count") > 0]
    return frame.assign(best=False).reset_index(drop=True)
