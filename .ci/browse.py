"""Open the built site, or a report, in a browser as a reader would: python .ci/browse.py FOLDER [FOLDER ...]

At the width of a desk and of a phone, and never with a console error. Of a site every page: all pictures load,
nothing is wider than the page, and on a desk no table is wider than its column. Of a report its first page, whose
heading one sees without scrolling, and where each link opens its result; the lists, in the order of the papers; and
every result: its entry, and its page, which is not empty, whose pictures load, and whose wide tables scroll. Links of
the site are checked when it is built.
Needs Playwright and a Chromium (`CHROMIUM` names it).
"""

import functools
import math
import os
import re
import shutil
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

from playwright.sync_api import Page, TimeoutError, sync_playwright

from sgtune.study.studies import STUDIES

WINDOWS = {"desk": (1400, 900), "large desk": (1920, 1080), "phone": (390, 844)}
BROKEN_PICTURES = (
    "[...document.images].filter(image => image.complete && !image.naturalWidth).map(image => image.src)"
)
LINKS = "[...document.querySelectorAll('.prose li')].map(item => [item.textContent, item.querySelector('a')?.href])"
BOXES = """["h1", "ul"].map(name => document.querySelector(`.prose ${name}`).getBoundingClientRect())
    .map(box => [box.top, box.bottom])"""
OPENED = (
    "document.querySelector('iframe')?.contentDocument?.querySelector('h1')?.getBoundingClientRect().height"
)
LISTED = "[...document.querySelectorAll('nav tbody tr')].map(row => row.cells[0].textContent.trim())"
OVERFLOW = "document.documentElement.scrollWidth - window.innerWidth"
WIDE_TABLES = """[...document.querySelectorAll("article table")].filter(table => {
    const column = table.closest(".artifact, .md-typeset__scrollwrap") ?? table.parentElement;
    return table.scrollWidth > column.clientWidth;
}).map(table => table.closest(".artifact")?.previousElementSibling.textContent ?? table.textContent.slice(0, 60))"""


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing of it; a browser asks each site for an icon, whether it has one or not."""

    def do_GET(self):
        if self.path == "/favicon.ico":
            self.send_response(204)
            self.end_headers()
        else:
            super().do_GET()

    def log_message(self, *arguments):
        pass


def complaints_of(page: Page, address: str) -> Iterator[str]:
    """What is wrong with the page that is open."""
    for source in page.evaluate(BROKEN_PICTURES):
        yield f"{address}: the picture {source} does not load"
    if (beyond := page.evaluate(OVERFLOW)) > 0:
        yield f"{address}: {beyond} pixels wider than the window"


def browse_site(page: Page, folder: Path, address: str) -> Iterator[str]:
    for path in sorted(folder.rglob("*.html")):
        name = path.relative_to(folder).as_posix()
        page.goto(f"{address}/{name}", wait_until="networkidle")
        yield from complaints_of(page, name)
        if page.viewport_size["width"] >= WINDOWS["desk"][0]:
            for table in page.evaluate(WIDE_TABLES):
                yield f"{name}: the table “{table}” is wider than its column"


def browse_report(page: Page, address: str) -> Iterator[str]:
    """Every result of Snakemake's report: its entry, and the table or picture itself."""
    page.goto(f"{address}/report.html", wait_until="networkidle")
    results = page.evaluate("Object.entries(results).map(([name, result]) => [name, result.data_uri])")
    if not results:
        yield "report.html: it has no results"
    links = page.evaluate(LINKS)
    if not links:
        yield "report.html: its first page has no links"
    height = page.viewport_size["height"]
    (top, bottom), (_, end) = page.evaluate(BOXES)
    if not 0 <= top < bottom <= height:
        yield f"report.html: its first heading is not in a window {height} pixels high"
    if end > height and page.viewport_size["width"] >= WINDOWS["desk"][0]:
        yield f"report.html: its links are not in a window {height} pixels high"
    for text, link in links:
        if link is None:
            yield f"report.html: “{text}”"
            continue
        page.evaluate("app.setView({content: 'text', contentText: 'no result'})")
        page.evaluate(unquote(link).removeprefix("javascript:"))
        try:
            page.wait_for_function(OPENED)
        except TimeoutError:
            yield f"report.html: the link “{text}” does not open its result"
    categories = page.evaluate("categories")
    labels = [
        name.strip() for name in page.evaluate("Object.keys(categories).sort((a, b) => a.localeCompare(b))")
    ]
    if labels != [study.label for study in STUDIES.values() if study.label in labels]:
        yield f"report.html: {', '.join(labels)} are not in the order of the studies"
    for category, lists in categories.items():
        for name in lists:
            page.evaluate("found => app.setView(found)", {"navbarMode": "menu"})
            view = {"navbarMode": "subcategory", "category": category, "subcategory": name}
            page.evaluate("found => app.setView(found)", view)
            page.wait_for_timeout(50)
            numbers = [re.match(r"(?:Table|Figure) (\d+)\.", title) for title in page.evaluate(LISTED)]
            numbers = [int(found[1]) if found else math.inf for found in numbers]
            if not numbers or numbers != sorted(numbers):
                yield f"report.html: {category},{name} are not in the order of the paper"
    for name, _ in results:
        page.evaluate("name => app.showResultInfo(name)", name)
        page.wait_for_timeout(20)
    for name, where in results:
        if not where.startswith("data:"):
            page.goto(f"{address}/{where}", wait_until="networkidle")
            if page.evaluate("document.documentElement.outerHTML.length") < 200:
                yield f"{name}: its page is empty"
            # A picture has a size of its own.
            if where.endswith(".html"):
                yield from complaints_of(page, name)


def browse(folder: Path, executable: str) -> list[str]:
    """What is wrong with the site or report in ``folder``."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    found: list[str] = []
    kind = (
        browse_report if (folder / "report.html").is_file() else functools.partial(browse_site, folder=folder)
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        for width, height in WINDOWS.values():
            page = browser.new_page(viewport={"width": width, "height": height})
            page.on("pageerror", lambda error: found.append(f"{error}"))
            page.on("console", lambda said: found.extend([said.text] if said.type == "error" else []))
            found.extend(kind(page, address=address))
            page.close()
        browser.close()
    server.shutdown()
    return list(dict.fromkeys(found))


if __name__ == "__main__":
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("no Chromium: CHROMIUM names none, and none is on the path")
    wrong = [line for argument in sys.argv[1:] for line in browse(Path(argument), chromium)]
    print("\n".join(wrong) or f"nothing to complain of in {', '.join(sys.argv[1:])}")
    sys.exit(bool(wrong))
