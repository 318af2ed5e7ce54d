"""Elements of a page. Text reaches a page only through here, as text: the tree writes it out, and so escapes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Union
from xml.etree import ElementTree

Element = ElementTree.Element
Child = Union[Element, str, None, Iterable["Child"]]
_UNPRINTABLE = "\N{REPLACEMENT CHARACTER}"


def element(name: str, /, *children: Child, **attributes: object) -> Element:
    """Of attributes, None is left out and True stands alone; stroke_width is stroke-width, and class_ is class."""
    made = Element(name)
    for key, value in attributes.items():
        if value is not None and value is not False:
            made.set(key.rstrip("_").replace("_", "-"), "" if value is True else plain(_number(value)))
    for child in children:
        _add(made, child)
    return made


def _add(parent: Element, child: Child) -> None:
    if child is None:
        return
    if isinstance(child, Element):
        parent.append(child)
    elif not isinstance(child, str):
        for one in child:
            _add(parent, one)
    elif len(parent):
        parent[-1].tail = (parent[-1].tail or "") + plain(child)
    else:
        parent.text = (parent.text or "") + plain(child)


def prose(text: str) -> list[Child]:
    """A sentence in which `this` is code."""
    return [element("code", part) if index % 2 else part for index, part in enumerate(text.split("`"))]


def isolated(name: str) -> Element:
    """A name in a sentence: letters that run from right to left do not move what stands beside it."""
    return element("bdi", name)


def plain(text: str) -> str:
    """What a program calls itself may hold anything: control characters, halves of pairs, and marks that turn the
    direction of what stands behind them."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _UNPRINTABLE for character in text)


def _number(value: object) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def written(tree: Element) -> str:
    return ElementTree.tostring(tree, encoding="unicode", method="html")
