"""Pages of the documentation from other files: published tables and figures, figures of benchmarks, and the keys of the
configuration.

A link or a picture on a line of its own, whose title is ``table STUDY/NAME``, ``figure STUDY/NAME`` or ``provenance
STUDY``, leads to an artifact in results/published. On the site the artifact itself stands in its place, under a heading
of its own: the table, with the labels that rows share in one cell, between its caption and its notes; the figure above
its own; or the line about the run. A reader of the Markdown files has the link, or the picture.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from sgtune.study.report.publish import origin_of, read_captions
from sgtune.study.report.table import html_tables, read_frame
from sgtune.study.studies import STUDIES, find

PUBLISHED, BENCHMARKS = Path("results/published"), Path("benchmarks/published")
CONFIGURATION, CONFIGURATION_PAGE = "config/README.md", "configuration.md"
"""A link to the first leads to the second on the site."""

LINE = re.compile(r'^!?\[[^\]\n]*\]\([^)\s]+ "(table|figure|provenance) ([\w/-]+)"\)$', re.M)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Published figures and those of benchmarks are pictures of the site, and the description of the configuration is
    a page."""
    root = Path(config.config_file_path).parent
    files.append(File.generated(config, CONFIGURATION_PAGE, abs_src_path=str(root / CONFIGURATION)))
    for path in sorted((root / PUBLISHED).rglob("figures/*.svg")):
        name = f"published/{path.relative_to(root / PUBLISHED).as_posix()}"
        files.append(File.generated(config, name, abs_src_path=str(path)))
    for path in sorted((root / BENCHMARKS).glob("*.svg")):
        files.append(File.generated(config, f"benchmarks/{path.name}", abs_src_path=str(path)))
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
        about, of, _ = find(name)
        caption = captions[name]
        if kind == "table":
            frame = read_frame(sources[kind])
            shown = (
                html_tables(frame, about, STUDIES[of].names)
                .replace("h2>", "h4>")
                .replace("dataframe", "cells")
            )
            above, below = _notes(caption.above), _notes(caption.below(frame))
        else:
            shown = f'<img alt="{about.title}" src="{up}published/{study}/figures/{name}.svg">'
            above, below = "", _notes(*caption.paragraphs)
        # Pages lie in folders of their own, so that a relative address of HTML needs one step more than a link.
        shown = shown.replace('src="', 'src="../') if not page.is_homepage else shown
        heading = f"### {about.title} {{#{study}-{name}}}"
        return f'{heading}\n\n{above}<div class="artifact">\n{shown}\n</div>\n\n{below}'

    markdown = LINE.sub(in_place, markdown).replace(
        f"](../{up}{CONFIGURATION})", f"]({up}{CONFIGURATION_PAGE})"
    )
    markdown = markdown.replace(f"](../{up}{BENCHMARKS}/", f"]({up}benchmarks/")
    return markdown.replace("](../docs/", "](") if page.file.src_uri == CONFIGURATION_PAGE else markdown


def _notes(*paragraphs: str) -> str:
    words = "\n\n".join(filter(None, paragraphs))
    return f'<div class="notes" markdown="1">\n{words}\n</div>\n\n' if words else ""
