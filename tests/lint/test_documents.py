"""Pages say what is there: links lead somewhere, named files exist, examples are in the language they claim."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ROOT / "pypto/runtime/native/include"
PAGES = sorted(
    subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
)

# `pypto/ir/nodes.py`, `tests/unit/x`: a path of the checkout, not a pattern and not a placeholder.
_PATH = re.compile(r"`((?:pypto|docs|kernels|rules|tests|toolchains|tools)/[\w./-]*)(?::\w+)?`")
_MODULE = re.compile(r"`(pypto(?:\.\w+)+)(?:\(.*\))?`")


def prose(page: str) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", (ROOT / page).read_text(), flags=re.M | re.S)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", prose(str(page.relative_to(ROOT))), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_there_are_pages() -> None:
    assert {"README.md", "docs/architecture.md", "docs/guide/three-doors.md"} <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        place, _, anchor = target.partition("#")
        path = ((ROOT / page).parent / place).resolve() if place else ROOT / page
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
            dead.append(target)
    assert dead == []


@pytest.mark.parametrize("page", PAGES)
def test_named_files_and_modules_exist(page: str) -> None:
    text = prose(page)
    absent = [name for name in _PATH.findall(text) if not any((folder / name).exists() for folder in (ROOT, HEADERS))]
    absent += [name for name in _MODULE.findall(text) if not named(name)]
    assert absent == []


def named(name: str) -> bool:
    """Whether a dotted name is a module, or something that a module defines or offers."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        path = ROOT.joinpath(*parts[:count])
        sources = [p for p in (path.with_suffix(".py"), path / "__init__.py") if p.is_file()]
        if sources:
            return count == len(parts) or re.search(rf"\b{parts[count]}\b", sources[0].read_text()) is not None
    return False


def blocks(language: str) -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for text in re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S):
            yield page, text


@pytest.mark.parametrize(("page", "text"), list(blocks("python")))
def test_examples_in_python_can_be_parsed(page: str, text: str) -> None:
    ast.parse(text)


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/guide/")])
def test_every_guide_is_listed_in_the_readme(page: str) -> None:
    assert f"({page})" in (ROOT / "README.md").read_text()
