"""Whether a page for people is that of an audit.

Its plots are drawn by matplotlib, and other versions of it place lines otherwise. So of a plot only the words are
compared: it has none that the plots of the audit do not have.
"""

import re

_PLOT = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
_WORD = re.compile(r"[^\W_]+")


def is_same_page(found: str, expected: str) -> bool:
    """Whether two pages are the same but for where the lines of their plots run."""
    if found == expected:
        return True
    if _PLOT.sub("<svg>", found) != _PLOT.sub("<svg>", expected):
        return False
    return _words(found) <= _words(expected)


def _words(page: str) -> set[str]:
    """The words of all plots, without numbers and what ids are made of."""
    tokens = {token for plot in _PLOT.findall(page) for token in _WORD.findall(plot)}
    return {token for token in tokens if len(token) > 1 and not any(map(str.isdigit, token))}
