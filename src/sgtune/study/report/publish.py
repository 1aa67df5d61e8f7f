"""A finished run as a tracked copy, a folder for each study, with a page that shows all of it."""

import csv
import re
import shutil
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from sgtune.study.mamba.catalogue_figures import FIGURES
from sgtune.study.mamba.catalogue_tables import EVERYTHING, TABLES
from sgtune.study.pipeline.saved import SAVED
from sgtune.study.report.artifact import Artifact
from sgtune.study.report.labels import MODELS, TUNERS, in_order, label
from sgtune.study.report.layout import DAGGER, DASH
from sgtune.study.report.studies import STUDIES
from sgtune.support.errors import DataError
from sgtune.support.files import atomic_write, file_sha256, read_json, write_json

__all__ = [
    "IN_README",
    "MAIN",
    "artifact_files",
    "described",
    "origin_said",
    "publish",
    "published_folder",
    "show_results",
]

MAIN = "tuning"
"""The folder of the main study."""

SMALL_FACTORISATION = "small_pmf_2"
"""The study of a factorisation whose NUTS converges: README's table has its regret beside the main study's."""

SMALL = {"pmf": "Small PMF"}

QUICK = "quick"
"""The default run: a user compares an own run with it."""

IN_README = (MAIN, SMALL_FACTORISATION, QUICK)
"""The studies of which README has numbers."""

NAMES = {
    MAIN: "Tuning",
    "judges": "Ten tuning runs on the logistic regression",
    "horizons": "Tuning for runs of 1, 10 and 100 s",
    "evidence": "Races of ten seconds, and Gaussians of 10,000 dimensions",
    SMALL_FACTORISATION: "A small matrix factorisation",
    QUICK: "Small budgets",
}
"""Of studies that are not in the catalogue, in the titles of their pages."""

RESULT = ("headline", "regret_dots")
"""What the page of a main study begins with."""

MARKS = (
    "<!-- results: written by the rule `publish`, from the artifacts -->",
    "<!-- end of results -->",
)
"""The two lines of README between which they stand."""

INDEX = "README.md"

SETTINGS = "settings.json"
"""A folder with this file is the folder of a run, with all that the run keeps on disk."""

ORIGIN = re.compile(r"\n\n\*\d[\d,]* result files? · [^\n]*\*\s*$")
"""The last line of a table's Markdown, with the origin of its numbers: a page shows it only once."""


def published_folder(root: Path, study: str = MAIN) -> Path:
    """Where the repository at ``root`` keeps the published copy of a study."""
    return root / "results" / "published" / study


def artifact_files(artifacts: list[str]) -> tuple[Path, list[Path]]:
    """The run's folder, and every file beside one of ``artifacts`` with the same stem (csv, md, pdf, ...)."""
    paths = [Path(path) for path in artifacts]
    beside = {twin for path in paths for twin in path.parent.glob(f"{path.stem}.*")}
    return paths[0].parent.parent, sorted(beside)


def publish(manifest: Path, destination: Path) -> None:
    """Replace ``destination`` by the files that a run's ``manifest`` names, the manifest, and a page that shows them.

    Raises:
        DataError: a file is missing or differs from the manifest, or the files were not made from one commit.
    """
    files = read_json(manifest)["files"]
    commits: set[str] = set()
    for name, checksum in files.items():
        if file_sha256(manifest.parent / name) != checksum:
            raise DataError(
                f"{manifest.parent / name}: not the file that {manifest} names; make the run's artifacts again"
            )
        if name.startswith("tables/") and name.endswith(".json"):
            own = read_json(manifest.parent / name)["sources"]["commit"]
            commits |= set(own)
            if not own or len(commits) > 1 or own[0].endswith("-dirty"):
                raise DataError(
                    f"{manifest.parent / name}: made by {', '.join(sorted(commits)) or 'no commit'}; "
                    "make the run again, all of it from one clean commit"
                )
    staging = destination.with_name(f".{destination.name}")
    shutil.rmtree(staging, ignore_errors=True)
    for name in [*files, manifest.name]:
        target = staging / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(manifest.parent / name, target)
    if (manifest.parent / SETTINGS).is_file():
        sizes = {"bytes": _bytes_of(manifest.parent)}
        saved = manifest.parent.parent / SAVED.name / manifest.parent.name
        sizes |= {"saved_bytes": _bytes_of(saved)} if saved.is_dir() else {}
        write_json(staging / manifest.name, read_json(manifest) | sizes)
    (staging / INDEX).write_text(_page(staging, destination.name), encoding="utf-8")
    shutil.rmtree(destination, ignore_errors=True)
    destination.parent.mkdir(parents=True, exist_ok=True)
    staging.rename(destination)


def show_results(readme: Path, published: Path) -> None:
    """Put the main results of the main study, ``published``, between the two comments in ``readme``.

    Raises:
        DataError: the comments are not there.
    """
    manifest = read_json(published / "manifest.json")
    text = readme.read_text(encoding="utf-8")
    before, begin, rest = text.partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not (begin and end):
        raise DataError(f"{readme}: needs the lines {MARKS[0]!r} and {MARKS[1]!r} around its results")
    where = published.relative_to(readme.parent).as_posix()
    parts = [
        _headline(published),
        *_shown(published, manifest, ("regret_dots",), f"{where}/", has_captions=False),
        f"{origin_said(published)} [All of it]({where}/{INDEX}).",
    ]
    quick = published.with_name(QUICK)
    if quick.is_dir():
        where = quick.relative_to(readme.parent).as_posix()
        parts.append(f"{origin_said(quick)} [All of it, to compare yours with]({where}/{INDEX}).")
    with atomic_write(readme) as temporary:
        temporary.write_text("\n\n".join([before + begin, *parts, end + after]), encoding="utf-8")


def _page(folder: Path, study: str) -> str:
    """All tables and figures of a published study, in the catalogue's order."""
    manifest = read_json(folder / "manifest.json")
    title = STUDIES[study].label if study in STUDIES else NAMES.get(study, study)
    tables, figures = _catalogue(study)
    parts = [f"# {title}: the published run", origin_said(folder)]
    result = _shown(folder, manifest, RESULT)
    parts += ["## Result", *result] if result else []
    for heading, names in (("Figures", figures), ("Tables", tables)):
        shown = _shown(folder, manifest, [name for name in names if name not in RESULT])
        parts += [f"## {heading}", *shown] if shown else []
    return "\n\n".join(parts) + "\n"


def _catalogue(study: str) -> tuple[Mapping, Mapping]:
    return (STUDIES[study].tables, STUDIES[study].figures) if study in STUDIES else (TABLES, FIGURES)


def _shown(
    folder: Path,
    manifest: Mapping,
    names: Sequence[str] | Mapping,
    where: str = "",
    *,
    has_captions: bool = True,
) -> list[str]:
    """Those of the artifacts that the run has, as Markdown; pictures with or without their captions."""
    parts = []
    for name in names:
        if f"tables/{name}.md" in manifest["files"]:
            table = (folder / "tables" / f"{name}.md").read_text(encoding="utf-8")
            parts.append(ORIGIN.sub("", table).strip())
        if f"figures/{name}.svg" in manifest["files"]:
            about = _figure(name)
            title = about.title if about else name
            picture = f"![{title}]({where}figures/{name}.svg)"
            caption = described(about) if about else title
            parts.append(f"{picture}\n\n*{caption}*" if has_captions else picture)
    return parts


def _headline(published: Path) -> str:
    """README's table: regret over the oracle's, of the main study and, where it is published, the small factorisation.

    README says in its own words what the numbers are. Models without a number and tuners of one sampler are left out.
    """
    columns: dict[str, dict[str, Mapping[str, str]]] = {}
    for folder, names in ((published, MODELS), (published.with_name(SMALL_FACTORISATION), SMALL)):
        path = folder / "tables/headline.csv"
        if path.is_file():
            with path.open(encoding="utf-8") as file:
                for row in csv.DictReader(file):
                    # The first loss of a model is the main one.
                    columns.setdefault(names[row["model"]], {}).setdefault(row["tuner"], row)
    columns = {name: rows for name, rows in columns.items() if any(row["value"] for row in rows.values())}
    tuners = in_order({tuner for rows in columns.values() for tuner in rows}, TUNERS)
    lines = [f"| Tuner | {' | '.join(columns)} |", f"| :-- |{' --: |' * len(columns)}"]
    for tuner in tuners:
        cells = [rows.get(tuner) for rows in columns.values()]
        if tuner.endswith("-smaller") or not any(cell and cell["value"] for cell in cells):
            continue
        mark = f" {DAGGER}" if any(cell and cell["at_test_set"] == "True" for cell in cells) else ""
        shown = " | ".join(cell["shown"] if cell else DASH for cell in cells)
        lines.append(f"| {label(tuner, TUNERS)}{mark} | {shown} |")
    return "**Regret over the oracle's**\n\n" + "\n".join(lines)


def _figure(name: str) -> Artifact | None:
    catalogues = [FIGURES, *(study.figures for study in STUDIES.values())]
    return next((known[name] for known in catalogues if name in known), None)


def _table_title(name: str) -> str:
    catalogues = [TABLES, *(study.tables for study in STUDIES.values())]
    return next((known[name].title for known in catalogues if name in known), name)


def described(about: Artifact) -> str:
    """A figure's caption, after its title unless the caption begins with the same words."""
    subject = about.title.partition(":")[0]
    return about.caption if about.caption.startswith(subject) else f"{about.title}. {about.caption}"


def _bytes_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def origin_said(folder: Path) -> str:
    """The run that is published in ``folder``: its machine, the last day and the commit of its results (tables and
    figures may be drawn later), how long its jobs took, and what it keeps on disk."""
    manifest = read_json(folder / "manifest.json")
    origin, sources = manifest["provenance"], _sources(folder, manifest)
    commits = [commit for own in sources.values() for commit in own.get("commit", ())]
    commits += [origin["commit"]] if not commits and origin.get("commit") else []
    commit = f", commit {commits[0][:10]}" if commits else ""
    machine = f"{origin['cores']} cores of {origin['cpu']}"
    last = max(
        (moment for own in sources.values() for moment in own.get("created", ())), default=origin["created"]
    )
    said = f"The run `{manifest['run']}`, on {machine}, {last[:10]}{commit}."
    said += _seconds_said(folder, sources)
    if "bytes" in manifest:
        said += f" The run keeps {manifest['bytes'] / 1e9:.2g} GB on disk"
        saved = manifest.get("saved_bytes")
        said += (
            "."
            if saved is None
            else f"; `snakemake restore` rebuilds it on the same machine from {saved / 1e6:.2g} MB of saved files."
        )
    return said


def _seconds_said(folder: Path, sources: Mapping[str, Mapping]) -> str:
    """How long all jobs took, by the table of timings; without it, the jobs behind the table with the longest ones.

    The time from the first result to the last stands beside it, unless it is longer, because of interruptions.
    """
    timings = folder / "tables/timings.csv"
    if timings.is_file():
        with timings.open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if (row["metric"], row["detail"]) == ("total_seconds", EVERYTHING):
                    return f" {_minutes(float(row['value']), sources, 'Its jobs')}."
    found = {name: own.get("seconds") or 0.0 for name, own in sources.items()}
    longest = max(found, key=found.get, default=None)
    if longest is None or not found[longest]:
        return ""
    own = {longest: sources[longest]}
    return f" {_minutes(found[longest], own, f'The jobs behind the table “{_table_title(longest)}”')}."


def _minutes(seconds: float, sources: Mapping[str, Mapping], jobs: str) -> str:
    moments = [datetime.fromisoformat(at) for own in sources.values() for at in own.get("created", ())]
    passed = (max(moments) - min(moments)).total_seconds() if moments else 0.0
    beside = (
        f", and ran beside each other: {passed / 60:,.0f} minutes from the first job to the last"
        if 60 < passed < seconds
        else ""
    )
    return f"{jobs} add up to {seconds / 60:,.0f} minutes{beside}"


def _sources(folder: Path, manifest: Mapping) -> dict[str, Mapping]:
    """Of each table: what it was made from."""
    return {
        Path(name).stem: read_json(folder / name).get("sources", {})
        for name in manifest["files"]
        if name.startswith("tables/") and name.endswith(".json")
    }
