"""Hooks of the documentation's build: links to files of the repository, and folders whose pages are all listed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

DOCS: Final = Path(__file__).parents[1]
ROOT: Final = DOCS.parent
_LINK: Final = re.compile(r"\[([^\]\n]*)\](?:\(([^)\s]+)\)|\[([^\]\n]+)\])")
_DEFINITION: Final = re.compile(r"^\[([^\]\n]+)\]: +(\S+)$", re.MULTILINE)
_CODE: Final = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)


def on_config(config: Any) -> Any:
    """List the pages of a folder where the navigation names only the folder."""
    for section in config.nav:
        for title, content in section.items() if isinstance(section, dict) else ():
            if isinstance(content, str) and (DOCS / content).is_dir():
                pages = sorted((DOCS / content).glob("*.md"))
                section[title] = [f"{content}/{page.name}" for page in pages if page.stem != "template"]
    return config


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Turn links that leave the documentation into links to the repository; where none is known, into their text."""
    folder = (DOCS / page.file.src_uri).parent
    return with_links_outside(markdown, folder, config.extra["repository"].rstrip("/"))


def with_links_outside(markdown: str, folder: Path, repository: str) -> str:
    """Return a page of a folder, with links to files outside the documentation led to `repository`, or taken off."""
    outside = {
        name: path for name, target in _DEFINITION.findall(markdown) if (path := _outside(folder, target)) is not None
    }

    def link(match: re.Match[str]) -> str:
        text, target, name = match.groups()
        path = _outside(folder, target) if target else outside.get(name)
        if path is None:
            return match[0]
        return f"[{text}]({repository}/{path})" if repository else text

    def prose(part: str) -> str:
        kept = _DEFINITION.sub(lambda match: "" if match[1] in outside else match[0], part)
        return _LINK.sub(link, kept)

    parts, start = [], 0
    for code in _CODE.finditer(markdown):
        parts += [prose(markdown[start : code.start()]), code[0]]
        start = code.end()
    return "".join([*parts, prose(markdown[start:])])


def _outside(folder: Path, target: str) -> str | None:
    """Return the path in the repository that a link leads to; None for pages of the documentation, and other sites."""
    path = urlsplit(target).path
    file = (folder / path).resolve()
    if urlsplit(target).scheme or not path or (file.is_relative_to(DOCS) and file.suffix == ".md"):
        return None
    return file.relative_to(ROOT).as_posix()
