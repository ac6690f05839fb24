"""What the site needs beside its configuration: a page in its navigation for each method, and links to the repository.

Links from a page to a file outside docs/ work on GitHub as they stand; on the site they go to the repository.
"""

import logging
import re
import tomllib
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parent.parent
_LINK = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+[^)#\s]*)((?:#[^)\s]*)?)\)")
_log = logging.getLogger("mkdocs.hooks.links")


def _repository() -> str | None:
    with (_ROOT / "pyproject.toml").open("rb") as file:
        urls = tomllib.load(file)["project"].get("urls", {})
    names = {name.lower(): url.rstrip("/") for name, url in urls.items()}
    return names.get("repository") or names.get("source")


def on_config(config: Any, **_: Any) -> Any:
    """Put a page for each method beside docs/methods/README.md, in the order of their names."""
    docs = Path(config["docs_dir"])
    for section in config["nav"]:
        for pages in section.values():
            if isinstance(pages, list) and "methods/README.md" in pages:
                listed = {page for entry in pages for page in (entry.values() if isinstance(entry, dict) else [entry])}
                found = sorted(f"methods/{file.name}" for file in (docs / "methods").glob("*.md"))
                at = pages.index("methods/README.md") + 1
                pages[at:at] = [page for page in found if page not in listed]
    return config


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Point links to files that are not pages at the repository, and warn of those that lead nowhere."""
    docs = Path(config["docs_dir"])
    repository = _repository()

    def outside(link: re.Match[str]) -> str:
        text, path, anchor = link.groups()
        target = (docs / page.file.src_uri).parent.joinpath(path).resolve()
        if target.is_relative_to(docs) or not target.is_relative_to(_ROOT):
            return link[0]  # a page, or a mistake: MkDocs checks it
        if not target.exists():
            _log.warning("Doc file '%s' contains a link '%s', but there is no such file.", page.file.src_uri, path)
        if repository is None:
            return text
        return f"[{text}]({repository}/blob/main/{target.relative_to(_ROOT)}{anchor})"

    return _LINK.sub(outside, markdown)
