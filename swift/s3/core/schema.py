"""Schemas of bucket configurations: XML and values in both directions from one declaration.

    RULE = Record(Rule, Leaf("ID", "id", RAW), Section("Expiration", Leaf("Days", "days", number(error))))
    RULE.read({"ID": "a", "Expiration": {"Days": "3"}})  ->  Rule(id="a", days=3)
    RULE.write(Rule(id="a", days=3))  ->  {"ID": "a", "Expiration": {"Days": 3}}

A node names an element and the field of the value that it is; an absent element leaves the default of the
field, and a field with its default is not rendered unless it always is. Rules about several fields are
functions on values, outside of the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from swift.base.digits import is_digits
from swift.s3.core.errors import S3Error
from swift.s3.core.xml import (
    Element,
    Group,
    Parsed,
    RepeatedGroup,
    RepeatedText,
    Text,
    Tree,
    Value,
    tree_of,
    trees_of,
)

T = TypeVar("T")
NUMBER_MAX = 2**31 - 1


# --- kinds of text --------------------------------------------------------------------------------------


class Kind(NamedTuple):
    """Text of an element and the value that it means; ``parse`` raises ``S3Error``."""

    parse: Callable[[str], object]
    render: Callable[..., Value] = str


#: Text with its blanks, which are part of names.
RAW = Kind(str)
TEXT = Kind(str.strip)


def number(error: S3Error, *, least: int = 1, most: int = NUMBER_MAX) -> Kind:
    """Return the kind of whole numbers within bounds."""

    def parse(text: str) -> int:
        text = text.strip()
        if not is_digits(text) or not least <= int(text) <= most:
            raise error
        return int(text)

    return Kind(parse, int)


def choice(known: Mapping[str, object]) -> Kind:
    """Return the kind of a word out of a few, each with its value."""
    words = {value: word for word, value in known.items()}

    def parse(text: str) -> object:
        if text.strip() not in known:
            raise S3Error("MalformedXML")
        return known[text.strip()]

    return Kind(parse, words.__getitem__)


BOOLEAN = Kind(
    lambda text: choice({"true": True, "false": False}).parse(text.lower()),
    lambda value: "true" if value else "false",
)


# --- nodes ----------------------------------------------------------------------------------------------


class Node(Protocol):
    """One element of a schema, or several that mean one field."""

    @property
    def elements(self) -> tuple[Element, ...]:
        """The elements of the document."""

    def read(self, tree: Tree, found: dict[str, object]) -> None:
        """Add the fields that a parent element has; raise ``S3Error``."""

    def write(self, value: object, defaults: Mapping[str, object], tree: dict[str, Value]) -> None:
        """Add the elements of a value to those of its parent."""


class Leaf:
    """An element with text: a field; ``always``: required, and rendered also with the field's default."""

    def __init__(
        self, name: str, field: str, kind: Kind = TEXT, *, required: bool = False, always: bool = False
    ):
        self.elements = (Text(name, required=required or always),)
        self._name, self._field, self._kind, self._always = name, field, kind, always

    def read(self, tree: Tree, found: dict[str, object]) -> None:
        """Add the field."""
        text = tree.get(self._name)
        if isinstance(text, str):
            found[self._field] = self._kind.parse(text)

    def write(self, value: object, defaults: Mapping[str, object], tree: dict[str, Value]) -> None:
        """Add the element."""
        content = getattr(value, self._field)
        if self._always or content != defaults.get(self._field, MISSING):
            tree[self._name] = self._kind.render(content)


class Texts:
    """An element with text that may occur several times: a field with a tuple."""

    def __init__(self, name: str, field: str, kind: Kind = TEXT, *, required: bool = False):
        self.elements = (RepeatedText(name, required=required),)
        self._name, self._field, self._kind = name, field, kind

    def read(self, tree: Tree, found: dict[str, object]) -> None:
        """Add the field."""
        texts = tree.get(self._name)
        if isinstance(texts, list):
            found[self._field] = tuple(self._kind.parse(text) for text in texts if isinstance(text, str))

    def write(self, value: object, defaults: Mapping[str, object], tree: dict[str, Value]) -> None:
        """Add the elements."""
        content = getattr(value, self._field)
        if content:
            tree[self._name] = [self._kind.render(item) for item in content]


class Section:
    """An element whose children are fields of the same value; ``exactly``: the number of children."""

    def __init__(self, name: str, *nodes: Node, required: bool = False, exactly: int | None = None):
        self.elements = (Group(name, *elements_of(nodes), required=required),)
        self._name, self._nodes, self._exactly = name, nodes, exactly

    def read(self, tree: Tree, found: dict[str, object]) -> None:
        """Add the fields of the children."""
        if self._name not in tree:
            return
        inner = tree_of(tree[self._name])
        if self._exactly not in (None, len(inner)):
            raise S3Error("MalformedXML")
        for node in self._nodes:
            node.read(inner, found)

    def write(self, value: object, defaults: Mapping[str, object], tree: dict[str, Value]) -> None:
        """Add the element unless it would be empty."""
        inner: dict[str, Value] = {}
        for node in self._nodes:
            node.write(value, defaults, inner)
        if inner:
            tree[self._name] = inner


class Fixed:
    """An element that is no field: ``validate`` gets its content and raises ``S3Error``.

    ``rendered`` is its content in documents; None: it is left out.
    """

    def __init__(self, element: Element, validate: Callable[[Parsed], object], rendered: Value | None = None):
        self.elements = (element,)
        self._name, self._validate, self._rendered = element.name, validate, rendered

    def read(self, tree: Tree, found: dict[str, object]) -> None:
        """Validate the element."""
        if self._name in tree:
            self._validate(tree[self._name])

    def write(self, value: object, defaults: Mapping[str, object], tree: dict[str, Value]) -> None:
        """Add the element."""
        if self._rendered is not None:
            tree[self._name] = self._rendered


class Record(Generic[T]):
    """The children of an element as a value: a dataclass or a named tuple.

    ``constants`` are fields that the document does not state; ``validate`` raises ``S3Error``.
    """

    def __init__(
        self,
        make: Callable[..., T],
        *nodes: Node,
        validate: Callable[[T], object] | None = None,
        constants: Mapping[str, object] | None = None,
    ):
        self.elements = elements_of(nodes)
        self._make, self._nodes, self._validate = make, nodes, validate
        self._constants = dict(constants or {})
        self._defaults: Mapping[str, object] = (
            {field.name: field.default for field in fields(make)}
            if is_dataclass(make)
            else getattr(make, "_field_defaults", {})
        )

    def read(self, tree: Tree) -> T:
        """Return the value; raise ``S3Error``."""
        found: dict[str, object] = dict(self._constants)
        for node in self._nodes:
            node.read(tree, found)
        value = self._make(**found)
        if self._validate is not None:
            self._validate(value)
        return value

    def write(self, value: T) -> dict[str, Value]:
        """Return the children of the element."""
        tree: dict[str, Value] = {}
        for node in self._nodes:
            node.write(value, self._defaults, tree)
        return tree


class Many(Generic[T]):
    """An element with children that may occur several times: a field with a tuple of values."""

    def __init__(self, name: str, field: str, record: Record[T], *, required: bool = False):
        self.elements = (RepeatedGroup(name, *record.elements, required=required),)
        self._name, self._field, self._record = name, field, record

    def read(self, tree: Tree, found: dict[str, object]) -> None:
        """Add the field."""
        if self._name in tree:
            found[self._field] = tuple(map(self._record.read, trees_of(tree[self._name])))

    def write(self, value: object, defaults: Mapping[str, object], tree: dict[str, Value]) -> None:
        """Add the elements."""
        content = getattr(value, self._field)
        if content:
            tree[self._name] = [self._record.write(item) for item in content]


def elements_of(nodes: tuple[Node, ...]) -> tuple[Element, ...]:
    """Return the elements of several nodes."""
    return tuple(element for node in nodes for element in node.elements)
