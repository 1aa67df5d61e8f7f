"""A finished run as a tracked copy, a folder for each study, with a page that shows all of it."""

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from sgtune.errors import DataError
from sgtune.files import atomic_write, file_sha256, read_json
from sgtune.study.catalogue import FIGURES, STUDIES, TABLES, Artifact

__all__ = ["MAIN", "artifact_files", "described", "publish", "published_folder", "show_results"]

MAIN = "tuning"
"""The folder and, in README's comments, the name of the main study."""

SHOWN = ("headline", "regret_dots")
"""What README shows of the main study; the rest is a link away."""

INDEX = "README.md"

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
    for name, checksum in files.items():
        if file_sha256(manifest.parent / name) != checksum:
            raise DataError(
                f"{manifest.parent / name}: not the file that {manifest} names; make the run's artifacts again"
            )
        if name.startswith("tables/") and name.endswith(".json"):
            commits = read_json(manifest.parent / name)["sources"]["commit"]
            if len(commits) != 1 or commits[0].endswith("-dirty"):
                raise DataError(
                    f"{manifest.parent / name}: made by {', '.join(commits) or 'no commit'}; "
                    "make the run again, all of it from one clean commit"
                )
    staging = destination.with_name(f".{destination.name}")
    shutil.rmtree(staging, ignore_errors=True)
    for name in [*files, manifest.name]:
        target = staging / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(manifest.parent / name, target)
    (staging / INDEX).write_text(_page(staging, destination.name), encoding="utf-8")
    shutil.rmtree(destination, ignore_errors=True)
    destination.parent.mkdir(parents=True, exist_ok=True)
    staging.rename(destination)


def show_results(readme: Path, published: Path, study: str = MAIN) -> None:
    """Put the main results of a study between its two comments in ``readme``.

    Runs that are published under another name (``published_as`` in the configuration) are evidence: README leaves
    them to the documentation.

    Raises:
        DataError: the comments are not there.
    """
    if study != MAIN and study not in STUDIES:
        return
    manifest = read_json(published / "manifest.json")
    text = readme.read_text(encoding="utf-8")
    lines = _comments(study)
    before, begin, rest = text.partition(lines[0])
    _, end, after = rest.partition(lines[1])
    if not (begin and end):
        raise DataError(f"{readme}: needs the lines {lines[0]!r} and {lines[1]!r} around its results")
    where = published.relative_to(readme.parent).as_posix()
    names = SHOWN if study == MAIN else STUDIES[study].shown
    parts = [
        *_shown(published, manifest, names, f"{where}/"),
        f"{_origin(manifest)} [All of it]({where}/{INDEX}).",
    ]
    with atomic_write(readme) as temporary:
        temporary.write_text("\n\n".join([before + begin, *parts, end + after]), encoding="utf-8")


def _page(folder: Path, study: str) -> str:
    """All tables and figures of a published study, in the catalogue's order."""
    manifest = read_json(folder / "manifest.json")
    title = "Tuning" if study == MAIN else STUDIES[study].label if study in STUDIES else study
    tables, figures = _catalogue(study)
    parts = [f"# {title}: the published run", _origin(manifest) + _seconds_of_jobs(folder, manifest)]
    parts += ["## Figures", *_shown(folder, manifest, figures, has_captions=True)]
    parts += ["## Tables", *_shown(folder, manifest, tables)]
    return "\n\n".join(parts) + "\n"


def _catalogue(study: str) -> tuple[Mapping, Mapping]:
    return (STUDIES[study].tables, STUDIES[study].figures) if study in STUDIES else (TABLES, FIGURES)


def _shown(
    folder: Path,
    manifest: Mapping,
    names: Sequence[str] | Mapping,
    where: str = "",
    *,
    has_captions: bool = False,
) -> list[str]:
    """Those of the artifacts that the run has, as Markdown. Figures have their titles, or their captions."""
    parts = []
    for name in names:
        if f"tables/{name}.md" in manifest["files"]:
            table = (folder / "tables" / f"{name}.md").read_text(encoding="utf-8")
            parts.append(ORIGIN.sub("", table).strip())
        if f"figures/{name}.svg" in manifest["files"]:
            about = _figure(name)
            title = about.title if about else name
            caption = described(about) if about and has_captions else title
            parts.append(f"![{title}]({where}figures/{name}.svg)\n\n*{caption}*")
    return parts


def _figure(name: str) -> Artifact | None:
    catalogues = [FIGURES, *(study.figures for study in STUDIES.values())]
    return next((known[name] for known in catalogues if name in known), None)


def described(about: Artifact) -> str:
    """A figure's caption, after its title unless the caption begins with the same words."""
    subject = about.title.partition(":")[0]
    return about.caption if about.caption.startswith(subject) else f"{about.title}. {about.caption}"


def _seconds_of_jobs(folder: Path, manifest: Mapping) -> str:
    """How long the jobs behind the table with the longest ones took, in a sentence; empty if no table says it."""
    tables = [
        folder / name for name in manifest["files"] if name.startswith("tables/") and name.endswith(".json")
    ]
    found = {path.stem: read_json(path).get("sources", {}).get("seconds") or 0.0 for path in tables}
    longest = max(found, key=found.get, default=None)
    if longest is None or not found[longest]:
        return ""
    return f" The jobs behind `{longest}` took {found[longest] / 60:,.0f} minutes in all."


def _origin(manifest: Mapping) -> str:
    origin = manifest["provenance"]
    commit = f", commit {origin['commit'][:10]}" if origin.get("commit") else ""
    machine = f"{origin['cores']} cores of {origin['cpu']}"
    return f"The run `{manifest['run']}`, on {machine}, {origin['created'][:10]}{commit}."


def _comments(study: str) -> tuple[str, str]:
    """The two lines of README between which the results of a study stand."""
    rule = "publish" if study == MAIN else f"publish_{study}"
    return (
        f"<!-- results of {study}: written by the rule `{rule}`, from the artifacts -->",
        f"<!-- end of results of {study} -->",
    )
