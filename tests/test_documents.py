"""Documentation that runs: code blocks of the README and the guide, and links that lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LONG = {"several_tasks.md", "maps.md"}  # about a minute each; .ci/run executes them after the suite
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("guide/*.md"))] if (ROOT / "README.md").exists() else []


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow if page.name in LONG else ()) for page in PAGES],
    ids=lambda p: p.name,
)
def test_python_blocks_run_in_order(page, monkeypatch, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    namespace: dict = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", [*PAGES, *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda p: str(p.name))
def test_local_links_exist(page):
    for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target
