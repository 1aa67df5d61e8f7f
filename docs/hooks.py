"""Pages of the documentation from other files: published tables and figures, and the keys of the configuration.

A link or a picture on a line of its own, whose title is ``table STUDY/NAME``, ``figure STUDY/NAME`` or ``provenance
STUDY``, leads to an artifact in results/published. On the site the artifact itself stands in its place: the table, the
figure with its caption, or the line about the run. A reader of the Markdown files has the link, or the picture.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from sgtune.study.report.publish import origin_of, read_captions, table_of
from sgtune.study.studies import STUDIES, find

PUBLISHED = Path("results/published")
CONFIGURATION, CONFIGURATION_PAGE = "config/README.md", "configuration.md"
"""A link to the first leads to the second on the site."""

LINE = re.compile(r'^!?\[[^\]\n]*\]\([^)\s]+ "(table|figure|provenance) ([\w/-]+)"\)$', re.M)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Published figures are pictures of the site, and the description of the configuration is a page."""
    root = Path(config.config_file_path).parent
    files.append(File.generated(config, CONFIGURATION_PAGE, abs_src_path=str(root / CONFIGURATION)))
    for path in sorted((root / PUBLISHED).rglob("figures/*.svg")):
        name = f"published/{path.relative_to(root / PUBLISHED).as_posix()}"
        files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page, config: MkDocsConfig, files: Files) -> str:
    """The page with its artifacts in place. If one is not published, its link stays, which a strict build refuses."""
    root = Path(config.config_file_path).parent / PUBLISHED
    captions = read_captions(root.parent.parent)
    up = "../" * page.file.src_uri.count("/")

    def in_place(match: re.Match) -> str:
        kind, full_name = match.groups()
        study, _, name = full_name.partition("/")
        folder = root / study
        sources = {
            "provenance": folder / "manifest.json",
            "table": folder / f"tables/{name}.csv",
            "figure": folder / f"figures/{name}.svg",
        }
        if not sources[kind].is_file():
            return match[0]
        if kind == "provenance":
            return origin_of(folder)
        if kind == "table":
            return table_of(folder, name, STUDIES[find(name).study], captions)
        title, caption = find(name).about.title, " ".join(captions[name].paragraphs)
        return (
            f'<figure markdown="span">\n![{title}]({up}published/{study}/figures/{name}.svg)\n'
            f"<figcaption markdown='span'>{title}. {caption}</figcaption>\n</figure>"
        )

    return LINE.sub(in_place, markdown).replace(f"](../{up}{CONFIGURATION})", f"]({up}{CONFIGURATION_PAGE})")
