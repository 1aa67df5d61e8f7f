"""A finished study as a tracked copy: a folder with its tables and figures, and a page that shows all of them."""

import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from sgtune.study.report.artifact import Artifact, Study
from sgtune.study.report.table import Caption, markdown_tables, read_frame
from sgtune.support.errors import DataError
from sgtune.support.files import atomic_write, file_sha256, read_json, write_json

MAIN = "tuning"
"""The folder of the main study."""

SMALL_FACTORISATION = "small_pmf_2"
"""The run with a factorisation whose NUTS converges: README's table has its regret beside the main run's."""

IN_README = (MAIN, SMALL_FACTORISATION, "quick")
"""The published runs of which README has numbers. The last is the default run, which users compare theirs with."""

REGRET = Artifact("", (), "", rows=("tuner",), columns=("model",))
"""README's table."""

MARKS = (
    "<!-- results: written by the rule `publish`, from the artifacts -->",
    "<!-- end of results -->",
)
"""The two lines of README between which they stand."""

INDEX = "README.md"

COPIED = (".csv", ".json", ".md", ".svg")
"""Of a run's files: HTML and PDF show what the Markdown and the SVG show."""

ORIGIN = re.compile(r"\n\n\*\d[\d,]* result files? · [^\n]*\*\s*$")
"""The last line of a table's Markdown, with the origin of its numbers: a page shows it only once."""


def published_folder(root: Path, study: str = MAIN) -> Path:
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


def publish(manifest: Path, destination: Path, study: Study, captions: Mapping[str, Caption]) -> None:
    """Replace ``destination`` by the files that a run's ``manifest`` names (those that are `COPIED`), a manifest of
    these, and a page that shows them.

    Raises:
        DataError: a file is missing or differs from the manifest, or the files were not made from one commit.
    """
    held = read_json(manifest)
    files = {name: checksum for name, checksum in held["files"].items() if name.endswith(COPIED)}
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
    for name in files:
        (staging / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(manifest.parent / name, staging / name)
    write_json(staging / manifest.name, held | {"files": files})
    (staging / INDEX).write_text(page_of(staging, study, captions), encoding="utf-8")
    shutil.rmtree(destination, ignore_errors=True)
    destination.parent.mkdir(parents=True, exist_ok=True)
    staging.rename(destination)


def page_of(folder: Path, study: Study, captions: Mapping[str, Caption]) -> str:
    """The page of a published study: its origin, and all its tables and figures in the order of print."""
    manifest = read_json(folder / "manifest.json")
    parts = [f"# {study.label}: the published run `{manifest['run']}`", origin_of(folder)]
    figures = [name for name in study.figures if f"figures/{name}.svg" in manifest["files"]]
    tables = [name for name in study.tables if f"tables/{name}.md" in manifest["files"]]
    parts += ["## Figures"] * bool(figures)
    for name in figures:
        parts += [f"![{study.figures[name].title}](figures/{name}.svg)", f"*{study.figures[name].title}*"]
        parts += captions[name].paragraphs
    parts += ["## Tables"] * bool(tables)
    for name in tables:
        parts.append(ORIGIN.sub("", (folder / f"tables/{name}.md").read_text(encoding="utf-8")).strip())
    return "\n\n".join(parts) + "\n"


def origin_of(folder: Path) -> str:
    """The run that is published in ``folder``: its machine, and the last day and the commit of its results (tables and
    figures may be drawn later)."""
    manifest = read_json(folder / "manifest.json")
    origin = manifest["provenance"]
    facts = [name for name in manifest["files"] if name.startswith("tables/") and name.endswith(".json")]
    sources = [read_json(folder / name)["sources"] for name in facts]
    [commit, *_] = [commit for own in sources for commit in own["commit"]]
    last = max(moment for own in sources for moment in own["created"])
    machine = f"{origin['cores']} cores of {origin['cpu']}"
    return f"Run `{manifest['run']}`, {machine}, {last[:10]}, commit {commit[:10]}."


def show_results(readme: Path, published: Path) -> None:
    """Put the main results of the main study, ``published``, between the two comments in ``readme``.

    Raises:
        DataError: the comments are not there.
    """
    text = readme.read_text(encoding="utf-8")
    before, begin, rest = text.partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not (begin and end):
        raise DataError(f"{readme}: needs the lines {MARKS[0]!r} and {MARKS[1]!r} around its results")
    where = published.parent.relative_to(readme.parent).as_posix()
    parts = [
        "**Regret over the oracle's**",
        markdown_tables(_regret(published), REGRET, {"small_pmf": "Small PMF"}),
        f"![Regret of the tuners, by sampler]({where}/{MAIN}/figures/regret_dots.svg)",
    ]
    for name in IN_README:
        if name != SMALL_FACTORISATION and published.with_name(name).is_dir():
            parts.append(f"{origin_of(published.with_name(name))} [All of it]({where}/{name}/{INDEX}).")
    with atomic_write(readme) as temporary:
        temporary.write_text("\n\n".join([before + begin, *parts, end + after]), encoding="utf-8")


def _regret(published: Path) -> pd.DataFrame:
    """Regret over the oracle's by the main loss of each model, of the main run and of the small factorisation. Models
    and tuners without any number are left out, and so are tuners of one sampler."""
    frames = [read_frame(published / "tables/headline.csv")]
    small = published.with_name(SMALL_FACTORISATION) / "tables/headline.csv"
    if small.is_file():
        frames.append(read_frame(small).replace({"model": {"pmf": "small_pmf"}}))
    frame = pd.concat(frames).drop_duplicates(["model", "tuner"])
    frame = frame[~frame["tuner"].str.endswith("-smaller")]
    for field in ("model", "tuner"):
        frame = frame[frame.groupby(field)["value"].transform("count") > 0]
    return frame.assign(best=False).reset_index(drop=True)
