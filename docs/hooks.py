"""Tables and figures of published runs in the documentation: read from results/published, never typed.

On a line of its own `{{ table STUDY/NAME }}` or `{{ figure STUDY/NAME }}` stands for an artifact of a study, and
`{{ provenance STUDY }}` for the run that is published of it. For anything that is not published, a line says which
command makes it, and where.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from sgtune.study.catalogue import FIGURES, STUDIES, TABLES
from sgtune.study.publish import MAIN, ORIGIN, described, origin_said

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
        kind, full_name = match.groups()
        study, _, name = full_name.partition("/")
        folder = root / study
        if kind == "provenance":
            return _provenance(folder)
        if kind == "table":
            path = folder / f"tables/{name}.md"
            if not path.is_file():
                return _missing(kind, study, name)
            return ORIGIN.sub("", path.read_text("utf-8")).strip()
        if not (folder / f"figures/{name}.svg").is_file():
            return _missing(kind, study, name)
        about = (STUDIES[study].figures if study in STUDIES else FIGURES)[name]
        return (
            f'<figure markdown="span">\n![{about.title}]({up}published/{study}/figures/{name}.svg)\n'
            f"<figcaption>{described(about)}</figcaption>\n</figure>"
        )

    return LINE.sub(artifact, markdown)


def _missing(kind: str, study: str, name: str) -> str:
    """What makes an artifact that is not published: of the tuning study the default run where it has the artifact, else
    `medium`."""
    file = f"tables/{name}.html" if kind == "table" else f"figures/{name}.svg"
    if study == MAIN and (TABLES | FIGURES)[name].needs_horizons:
        how = "`snakemake --cores all --configfile config/medium.yaml` makes it as "
        how += f"`results/medium/{file}`"
    elif study == MAIN:
        how = f"`snakemake --cores all` makes it as `results/quick/{file}`"
    elif study in STUDIES:
        how = f"`snakemake --cores all {study}` makes it as `results/quick/{study}/{file}`"
    else:
        how = f"the run of `config/{study}.yaml` makes it; that file has the command"
    return f"*The {kind} `{name}` is not published: {how}.*"


def _provenance(folder: Path) -> str:
    if not (folder / "manifest.json").is_file():
        return "*No such run is published yet.*"
    return origin_said(folder)
