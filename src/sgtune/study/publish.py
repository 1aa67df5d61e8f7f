"""A finished run's files as the tracked copy that README shows: of the main study, and of each further one."""

import shutil
from pathlib import Path

from sgtune.errors import DataError
from sgtune.files import atomic_write, file_sha256, read_json
from sgtune.study.catalogue import STUDIES

__all__ = ["artifact_files", "publish", "published_folder", "show_results"]

RESULTS_BEGIN = "<!-- results: written by the rule `publish`, from the artifacts -->"
RESULTS_END = "<!-- end of results -->"
SHOWN = (
    *("table1", "table2", "table3", "figure3", "figure4", "figure5"),
    *("regret", "widths", "sensitivity", "signal_of_width", "ood", "tuning_time"),
)
"""What README shows; the rest is a link away."""


def published_folder(root: Path, study: str = "") -> Path:
    """Where the repository at ``root`` keeps the published copy of a further study, or of the main one."""
    return root / "results" / "published" / study


def artifact_files(artifacts: list[str]) -> tuple[Path, list[Path]]:
    """The run's folder, and every file that stands beside one of ``artifacts`` under its name (csv, md, pdf,
    ...)."""
    paths = [Path(path) for path in artifacts]
    beside = {twin for path in paths for twin in path.parent.glob(f"{path.stem}.*")}
    return paths[0].parent.parent, sorted(beside)


def publish(manifest: Path, destination: Path) -> None:
    """Replace ``destination`` by the files that a run's ``manifest`` names, and the manifest. The folders of further
    studies in it, which have manifests of their own, stay as they are.

    Raises:
        DataError: a file is missing or is not the one that the manifest names.
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
    for study in STUDIES:
        if (destination / study / manifest.name).is_file():
            shutil.copytree(destination / study, staging / study)
    shutil.rmtree(destination, ignore_errors=True)
    destination.parent.mkdir(parents=True, exist_ok=True)
    staging.rename(destination)


def show_results(readme: Path, published: Path, study: str = "") -> None:
    """Put the published tables and figures between the two `results` comments of ``readme``: those of the main study,
    or of a further one."""
    manifest = read_json(published / "manifest.json")
    text = readme.read_text(encoding="utf-8")
    lines = _comments(study)
    before, begin, rest = text.partition(lines[0])
    _, end, after = rest.partition(lines[1])
    if not (begin and end):
        raise DataError(f"{readme}: needs the lines {lines[0]!r} and {lines[1]!r} around its results")
    where = published.relative_to(readme.parent)
    origin = manifest["provenance"]
    parts = [
        f"The run `{manifest['run']}`, on {origin['cores']} cores of {origin['cpu']}, {origin['created'][:10]}. "
        f"All tables and figures: [{where}/]({where}/)."
    ]
    for name in STUDIES[study].shown if study else SHOWN:
        if f"figures/{name}.svg" in manifest["files"]:
            parts.append(f"![{name}]({where}/figures/{name}.svg)")
        if f"tables/{name}.md" in manifest["files"]:
            parts.append((published / "tables" / f"{name}.md").read_text(encoding="utf-8").strip())
    with atomic_write(readme) as temporary:
        temporary.write_text("\n\n".join([before + begin, *parts, end + after]), encoding="utf-8")


def _comments(study: str) -> tuple[str, str]:
    """The two lines of README between which the results of a further study stand, or of the main one."""
    if not study:
        return RESULTS_BEGIN, RESULTS_END
    return (
        f"<!-- results of {study}: written by the rule `publish_{study}`, from the artifacts -->",
        f"<!-- end of results of {study} -->",
    )
