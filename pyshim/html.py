"""What the pages of --html have in common: a document that loads nothing and runs no script; colours; tables.

Colours follow the reader's choice of light or dark, and paper is light; wide things scroll by themselves, so that the
page itself never does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from pyshim.errors import printable

_STYLE = """\
:root { color-scheme: light dark; --text: #1b1b1b; --back: #fff; --line: #d5d5d5; --dim: #5a5a5a }
@media (prefers-color-scheme: dark) { :root { --text: #e6e6e6; --back: #161616; --line: #444; --dim: #a8a8a8 } }
@media print {
  :root { color-scheme: light; --text: #000; --back: #fff; --line: #999; --dim: #444 }
  .scroll, .lanes { overflow: visible !important } figure, tr, dl { break-inside: avoid }
  th, td { white-space: normal !important } figure input, figure label { display: none }
}
* { print-color-adjust: exact; -webkit-print-color-adjust: exact }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--text); background: var(--back); margin: 16px;
  overflow-wrap: anywhere }
h1 { font-size: 1.2em } h2 { font-size: 1em; margin: 20px 0 4px }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 12px; margin: 12px 0 }
dt { color: var(--dim) } dd { margin: 0 }
.scroll { overflow-x: auto; margin: 12px 0 }
table { border-collapse: collapse; font-size: 13px }
th, td { padding: 3px 10px 3px 0; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line) }
th { color: var(--dim); font-weight: normal }
.left { text-align: left } code { font-size: 13px }
figure { margin: 0; font-size: 12px } figcaption { color: var(--dim); margin: 6px 0 }
.key { display: flex; flex-wrap: wrap; gap: 2px 16px; margin: 6px 0; padding: 0; list-style: none }
.key svg { width: 22px; height: 12px; vertical-align: -1px }
"""
_HEAD = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="UTF-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
"""


def document(title: str, heading: str, style: str, body: Iterable[str]) -> str:
    """Return the whole page. style: of its own, behind the common one."""
    head = f"{_HEAD}<title>{text(title)}</title>\n<style>\n{_STYLE}{style}</style>\n</head>\n<body>"
    return "\n".join([head, f"<h1>{text(heading)}</h1>", *body, "</body>\n</html>\n"])


def labelled(rows: Iterable[tuple[str, str]]) -> str:
    """Return a list of labels, as text, and what stands behind them, as HTML."""
    return f"<dl>{''.join(f'<dt>{text(label)}</dt><dd>{found}</dd>' for label, found in rows)}</dl>"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], left: Iterable[int]) -> str:
    """Return a table that scrolls by itself. left: the columns of text."""
    texts = frozenset(left)

    def row(cells: Iterable[object], element: str) -> str:
        found = []
        for column, cell in enumerate(cells):
            side = ' class="left"' if column in texts else ""
            found.append(f"<{element}{side}>{text(str(cell))}</{element}>")
        return f"<tr>{''.join(found)}</tr>"

    body = "\n".join(row(cells, "td") for cells in rows)
    return f'<div class="scroll"><table><thead>{row(heads, "th")}</thead><tbody>\n{body}\n</tbody></table></div>'


def key(fills: Iterable[tuple[str, str]]) -> str:
    """Return what fills mean: each with its words."""
    rows = [f'<li><svg><rect width="22" height="12" fill="{fill}"/></svg> {text(words)}</li>' for fill, words in fills]
    return f'<ul class="key">{"".join(rows)}</ul>'


def text(words: str) -> str:
    """Return text that means nothing to a browser, whatever a kernel or a file is called."""
    return escape(printable(words))
