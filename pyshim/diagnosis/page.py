"""The page of --html: the verdict, the picture of one step, and everything else as text and tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyshim import html
from pyshim.diagnosis.answer import LABEL
from pyshim.diagnosis.look import TraceAnswer
from pyshim.diagnosis.parts import Part, Prose, Table
from pyshim.diagnosis.picture import STYLE, picture
from pyshim.diagnosis.whole import whole


def page(answer: TraceAnswer) -> str:
    """Return the whole document."""
    verdict, *rest = whole(answer)
    assert isinstance(verdict, Prose)
    return html.document("overlap explain", verdict.text, STYLE, [picture(answer), *_parts(rest)])


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
            yield html.table(part.heads, part.rows, part.left)
        elif part.text:
            yield f"<p>{html.text(part.text)}</p>"
    if labelled:
        yield _list(labelled)


def _list(parts: Iterable[Prose]) -> str:
    return html.labelled(
        (part.label, f"<code>{html.text(part.text)}</code>" if part.code else html.text(part.text)) for part in parts
    )
