"""The page of --html: the verdict, the picture of one step, and everything else as text and tables.

It loads nothing and runs no script; colours follow the reader's choice of light or dark; wide things scroll by
themselves, so that the page itself never does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from pyshim.diagnosis.answer import LABEL
from pyshim.diagnosis.look import TraceAnswer
from pyshim.diagnosis.parts import Part, Prose, Table
from pyshim.diagnosis.picture import STYLE as PICTURE_STYLE
from pyshim.diagnosis.picture import picture
from pyshim.diagnosis.whole import whole
from pyshim.errors import printable

_STYLE = """\
:root { color-scheme: light dark; --text: #1b1b1b; --back: #fff; --line: #d5d5d5; --dim: #5a5a5a }
@media (prefers-color-scheme: dark) { :root { --text: #e6e6e6; --back: #161616; --line: #444; --dim: #a8a8a8 } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--text); background: var(--back); margin: 16px;
  overflow-wrap: anywhere }
h1 { font-size: 1.2em }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 12px; margin: 12px 0 }
dt { color: var(--dim) } dd { margin: 0 }
.scroll { overflow-x: auto; margin: 12px 0 }
table { border-collapse: collapse; font-size: 13px }
th, td { padding: 3px 10px 3px 0; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line) }
th { color: var(--dim); font-weight: normal }
.left { text-align: left } code { font-size: 13px }
"""
_HEAD = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="UTF-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>overlap explain</title>
<style>
"""


def page(answer: TraceAnswer) -> str:
    """Return the whole document."""
    verdict, *rest = whole(answer)
    assert isinstance(verdict, Prose)
    lines = [
        f"{_HEAD}{_STYLE}{PICTURE_STYLE}</style>\n</head>\n<body>",
        f"<h1>{_text(verdict.text)}</h1>",
        picture(answer),
        *_parts(rest),
        "</body>\n</html>\n",
    ]
    return "\n".join(lines)


def _parts(parts: Iterable[Part]) -> Iterator[str]:
    """Yield the elements; lines with labels that follow each other become one list."""
    labelled: list[Prose] = []
    for part in parts:
        if isinstance(part, Prose) and part.width == LABEL:
            labelled.append(part)
            continue
        if labelled:
            yield _list(labelled)
            labelled = []
        if isinstance(part, Table):
            yield _table(part)
        elif part.text:
            yield f"<p>{_text(part.text)}</p>"
    if labelled:
        yield _list(labelled)


def _list(parts: Iterable[Prose]) -> str:
    rows = []
    for part in parts:
        text = f"<code>{_text(part.text)}</code>" if part.code else _text(part.text)
        rows.append(f"<dt>{_text(part.label)}</dt><dd>{text}</dd>")
    return f"<dl>{''.join(rows)}</dl>"


def _table(table: Table) -> str:
    def row(cells: Iterable[object], element: str) -> str:
        found = []
        for column, cell in enumerate(cells):
            side = ' class="left"' if column in table.left else ""
            found.append(f"<{element}{side}>{_text(str(cell))}</{element}>")
        return f"<tr>{''.join(found)}</tr>"

    body = "\n".join(row(cells, "td") for cells in table.rows)
    return f'<div class="scroll"><table><thead>{row(table.heads, "th")}</thead><tbody>\n{body}\n</tbody></table></div>'


def _text(words: str) -> str:
    """Return text that means nothing to a browser, whatever a kernel or a file is called."""
    return escape(printable(words))
