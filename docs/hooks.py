"""Tables and figures of published runs in the documentation: read from results/published, never typed.

On a line of its own `{{ table STUDY/NAME }}` or `{{ figure STUDY/NAME }}` stands for an artifact of a study, and
`{{ provenance STUDY }}` for the run that is published of it. Anything that is not published is said to be missing.
"""

import json
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from sgtune.study.catalogue import FIGURES, STUDIES
from sgtune.study.publish import ORIGIN, described

PUBLISHED = Path("results/published")
LINE = re.compile(r"^\{\{ (table|figure|provenance) ([\w/-]+) \}\}$", re.M)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Published figures are pictures of the site."""
    root = Path(config.config_file_path).parent
    for path in sorted((root / PUBLISHED).rglob("figures/*.svg")):
        name = f"published/{path.relative_to(root / PUBLISHED).as_posix()}"
        files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page, config: MkDocsConfig, files: Files) -> str:
    """The page with its artifacts in place."""
    root = Path(config.config_file_path).parent / PUBLISHED
    up = "../" * page.file.src_uri.count("/")

    def artifact(match: re.Match) -> str:
        kind, name = match.groups()
        study, _, name = name.partition("/")
        folder = root / study
        if kind == "provenance":
            return _provenance(folder)
        if kind == "table":
            path = folder / f"tables/{name}.md"
            return ORIGIN.sub("", path.read_text("utf-8")).strip() if path.is_file() else _missing(match)
        if not (folder / f"figures/{name}.svg").is_file():
            return _missing(match)
        about = (STUDIES[study].figures if study in STUDIES else FIGURES)[name]
        return (
            f'<figure markdown="span">\n![{about.title}]({up}published/{study}/figures/{name}.svg)\n'
            f"<figcaption>{described(about)}</figcaption>\n</figure>"
        )

    return LINE.sub(artifact, markdown)


def _missing(match: re.Match) -> str:
    return f"*Not published yet: {match.group(1)} `{match.group(2)}`.*"


def _provenance(folder: Path) -> str:
    path = folder / "manifest.json"
    if not path.is_file():
        return "*No run of this study is published yet.*"
    manifest = json.loads(path.read_text("utf-8"))
    origin = manifest["provenance"]
    return (
        f"The numbers on this page are from the run `{manifest['run']}`, made on {origin['created'][:10]} on "
        f"{origin['cores']} cores of {origin['cpu']}."
    )
