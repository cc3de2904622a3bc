"""Settings of pages that the site's generator asks for while it builds."""

from typing import Any


def on_page_markdown(markdown: str, page: Any, **given: Any) -> str:
    """Leave pages for developers out of the search."""
    if page.file.src_uri.startswith("development/"):
        page.meta["search"] = {"exclude": True}
    return markdown
