"""Type expressions as Python annotations, and the classes that they need (contract G12 to G20, G24)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..registry.steps import Step, descend
from .build import MAX_TYPES
from .expressions import ANY, DICT, MAX_KEY_LINES, SCALARS, Annotation, alternatives, container
from .model import (
    AnyType,
    ArrayType,
    LiteralType,
    ObjectType,
    Property,
    ReferenceType,
    ScalarType,
    TupleType,
    TypeDocument,
    TypeExpression,
    UnionType,
)
from .names import ClassNames, camel, is_field_name, joined
from .notes import MAX_NOTE_CHARS, comment_lines, constraint_notes, cut, notes_under, with_notes
from .remembered import Remembered
from .text import comment_text, quoted, scalar_text
from .views import ClassView, FieldView

__all__ = ["AnnotationWriter", "annotate_plain", "annotate_root"]

MAX_BRACKETS = 180
"""The deepest nesting of brackets in one annotation: Python's tokenizer allows 200 (contract G14)."""

MAX_HEIGHT = 1000
"""The tallest syntax tree of one annotation, long unions included: `ast.parse` gives up at about three times this."""

MAX_INLINE_CHARS = 80
"""A definition that is no class stands where it is used up to this length; a longer one gets a name of its own."""

_NO_NAMES: frozenset[str] = frozenset()
_NOT_REQUIRED = frozenset({"NotRequired"})


@dataclass(frozen=True, slots=True)
class _Field:
    """A field as it was written, what it uses, and how many types that took; it holds the property to keep its id."""

    property: Property
    view: FieldView
    names: frozenset[str]
    types: int


_FIELDS: Remembered[int, _Field] = Remembered()


def annotate_root(document: TypeDocument, base: str, names: ClassNames) -> tuple[Annotation, list[ClassView]]:
    """Writes one schema's type.

    Args:
        document: the type.
        base: the name for its root class (contract G18).
        names: hands out the class names, over the whole block.

    Returns:
        the annotation, and the classes it needs, nested before parent (contract G20).
    """
    return AnnotationWriter(document, base, names).root()


def annotate_plain(document: TypeDocument) -> Annotation:
    """Writes one schema's type without any class: objects are `dict[str, Any]` (contract G24)."""
    return descend(AnnotationWriter(document, "", ClassNames()).annotation(document.root, None, 0))


class AnnotationWriter:
    """Writes the annotations of one document.

    A `hint` is the name that a class at this place would get; `None` asks for no classes. `_inside` holds the
    definitions that are being written into the same annotation: a type that contains itself needs a class to do so.
    """

    max_brackets = MAX_BRACKETS
    max_height = MAX_HEIGHT
    remembers = True
    """Whether fields are written as this class itself writes them, so that they may be remembered."""
    mapping = DICT
    """What an object is that no class says more of."""

    def __init__(self, document: TypeDocument, base: str, names: ClassNames) -> None:
        self.classes: list[ClassView] = []
        self._root = document.root
        self._definitions = document.definitions
        self._names = names
        self._prefix = base
        self._base = base
        self._class_names: dict[int, str] = {}
        self._memo: dict[tuple[str, bool], Annotation] = {}
        self._inside: set[str] = set()
        self._types_left = MAX_TYPES
        self._root_targets = self._targets_of(document.root)

    def root(self) -> tuple[Annotation, list[ClassView]]:
        """Writes the whole document; see `annotate_root`."""
        return descend(self.annotation(self._root, self._base, 0)), self.classes

    def _targets_of(self, type_: TypeExpression) -> set[str]:
        """The definitions that are the root itself; their class takes the root's name."""
        targets: set[str] = set()
        while isinstance(type_, ReferenceType) and type_.target not in targets:
            targets.add(type_.target)
            type_ = self._definitions.get(type_.target, AnyType())
        return targets

    def annotation(self, type_: TypeExpression, hint: str | None, depth: int) -> Step[Annotation]:
        """Writes any type; `depth` counts the brackets around it (contract G14)."""
        self._types_left -= 1
        if self._types_left < 0:
            return ANY
        written: Annotation
        match type_:
            case AnyType():
                written = ANY
            case ScalarType():
                written = SCALARS[type_.kind]
            case LiteralType():
                written = self.literal(type_)
            case ArrayType():
                written = yield from self._wrapped("list[", type_.items, "each item", hint, depth)
            case TupleType():
                written = yield from self._tuple(type_, hint, depth)
            case ObjectType():
                written = yield from self.object(type_, hint, depth)
            case UnionType():
                written = yield from self._union(type_, hint, depth)
            case ReferenceType():
                written = yield from self._reference(type_, hint, depth)
        if written.height > self.max_height:
            written = ANY
        notes = _own_notes(type_)
        return replace(written, notes=notes + written.notes) if notes else written

    def literal(self, type_: LiteralType) -> Annotation:
        """Writes the listed values."""
        values = ", ".join(scalar_text(value) for value in type_.values)
        return Annotation(f"Literal[{values}]", frozenset({"Literal"}), 1, 2)

    def _flat(self, type_: TypeExpression) -> Annotation | None:
        """Writes what most fields have, a scalar or a list of one; `None` when it takes more to write."""
        if self._types_left <= 1:
            return None
        if type(type_) is ArrayType:
            items = type_.items
            if type(items) is not ScalarType:
                return None
            self._types_left -= 2
            notes = constraint_notes(type_.constraints) + notes_under("each item", constraint_notes(items.constraints))
            return Annotation(f"list[{SCALARS[items.kind].text}]", _NO_NAMES, 1, 3, notes)
        if type(type_) is not ScalarType:
            return None
        self._types_left -= 1
        if not type_.constraints:
            return SCALARS[type_.kind]
        return Annotation(SCALARS[type_.kind].text, notes=constraint_notes(type_.constraints))

    def _wrapped(
        self, opening: str, item: TypeExpression, label: str, hint: str | None, depth: int
    ) -> Step[Annotation]:
        """Writes a container of one item type."""
        if depth >= self.max_brackets:
            return ANY
        inner: Annotation = yield self.annotation(item, hint, depth + 1)
        return container(opening, inner, notes_under(label, inner.notes))

    def _tuple(self, type_: TupleType, hint: str | None, depth: int) -> Step[Annotation]:
        """Writes a list, because that is what JSON gives; the order of its items goes into words."""
        if depth >= self.max_brackets:
            return ANY
        every = type_.items if type_.rest is None else (*type_.items, type_.rest)
        items: list[Annotation] = []
        notes: tuple[str, ...] = ()
        for number, item in enumerate(every, start=1):
            written: Annotation = yield self.annotation(item, hint and joined(hint, str(number)), depth + 1)
            items.append(replace(written, notes=()))
            label = f"item {number}" if number <= len(type_.items) else "further items"
            notes += notes_under(label, written.notes)
        words = ", ".join(item.text for item in items[: len(type_.items)])
        rest = "" if type_.rest is None else f", then any number of {items[-1].text}"
        rest = ", then anything" if isinstance(type_.rest, AnyType) else rest
        count = f"exactly {len(items)} items" if type_.is_fixed else "items in order"
        return container("list[", alternatives(items), (cut(f"{count}: {words}{rest}"), *notes))

    def _union(self, type_: UnionType, hint: str | None, depth: int) -> Step[Annotation]:
        branches: list[Annotation] = []
        for number, branch in enumerate(type_.branches, start=1):
            branches.append((yield self.annotation(branch, hint and joined(hint, str(number)), depth)))
        return alternatives(branches)

    def object(self, type_: ObjectType, hint: str | None, depth: int) -> Step[Annotation]:
        """Writes an object: a class where it has keys, and a mapping where it has none, or where none may be named."""
        if hint is None:
            return self.mapping
        if not type_.properties and type_.additional is not None:
            opening = self.mapping.text.removesuffix("Any]")
            written: Annotation = yield from self._wrapped(opening, type_.additional, "each value", hint, depth)
            return replace(written, names=written.names | self.mapping.names - {"Any"})
        if not all(self.is_field(item.name) for item in type_.properties):
            keys: tuple[str, ...] = yield from self._keys(type_, hint)
            return replace(self.mapping, keys=keys)
        known = self._class_names.get(id(type_))
        if known is not None:
            return Annotation(known)
        name = self._class_names[id(type_)] = self._names.allocate(hint)
        if hint == self._base:
            self._prefix = name
        yield from self._class(type_, name)
        return Annotation(name)

    def is_field(self, name: str) -> bool:
        """Whether a class can have a field of this name."""
        return is_field_name(name)

    def _known_field(self, item: Property) -> _Field | None:
        """Returns what has been written of a property that many objects share."""
        known = _FIELDS.get(id(item)) if item.nodes and self.remembers else None
        if known is None or known.types >= self._types_left:
            return None
        self._types_left -= known.types
        return known

    def _class(self, type_: ObjectType, name: str) -> Step[None]:
        """Writes a TypedDict: its nested classes first, then itself."""
        around, self._inside = self._inside, set()
        fields: list[FieldView] = []
        used = {"TypedDict"}
        for item in type_.properties:
            field = self._known_field(item)
            if field is None:
                before = self._types_left
                written = self._flat(item.type)
                if written is None:
                    written = yield self.annotation(item.type, joined(name, camel(item.name)), 1)
                field = _field(item, written, before - self._types_left)
                if item.nodes and self.remembers and self._types_left >= 0:  # else it may have come out as `Any`
                    _FIELDS.keep(id(item), field)
            used |= field.names
            fields.append(field.view)
        remark = extra = ""
        if isinstance(type_.additional, AnyType):
            remark = "undeclared keys are accepted"
        elif type_.additional is not None:
            plain: Annotation = yield self.annotation(type_.additional, None, 0)
            remark = comment_text(cut(f"undeclared keys are accepted, with values {plain.text}"))
            extra = plain.text
        if type_.stated and isinstance(type_.additional, AnyType):
            extra = ANY.text
        self._inside = around
        self.classes.append(ClassView(name, frozenset(used), tuple(fields), remark, extra=extra))

    def _keys(self, type_: ObjectType, hint: str) -> Step[tuple[str, ...]]:
        """Lists the keys of an object that no TypedDict can have, because the type alone would hide them (G16)."""
        lines: list[str] = []
        for item in type_.properties[:MAX_KEY_LINES]:
            written: Annotation = yield self.annotation(item.type, joined(hint, camel(item.name)), 0)
            key = f"{quoted(item.name)}{'' if item.required else '?'}: {written.text}"
            words = with_notes(item.description, written.notes)
            lines += [f"{key} - {words}" if words else key, *(f"  {line}" for line in written.keys)]
        left = len(type_.properties) - MAX_KEY_LINES
        return (*lines[: 2 * MAX_KEY_LINES], f"and {left} more") if left > 0 else tuple(lines[: 2 * MAX_KEY_LINES])

    def _reference(self, type_: ReferenceType, hint: str | None, depth: int) -> Step[Annotation]:
        """Writes what a reference stands for: a class by its name, a short type in full, a long one under a name."""
        target = type_.target
        key = (target, hint is None)
        if key not in self._memo:
            if target in self._inside:
                return ANY
            self._inside.add(target)
            definition = self._definitions.get(target, AnyType())
            inner_hint = None if hint is None else self._definition_hint(target)
            written: Annotation = yield self.annotation(definition, inner_hint, 0)
            self._inside.discard(target)
            if key not in self._memo:
                self._memo[key] = self._named(written, inner_hint)
        found = self._memo[key]
        return ANY if depth + found.brackets > self.max_brackets else found

    def _definition_hint(self, target: str) -> str:
        if target in self._root_targets:
            return self._base
        return joined(self._prefix, camel(target.rsplit("/", 1)[-1]))

    def _named(self, written: Annotation, hint: str | None) -> Annotation:
        if len(written.text) <= MAX_INLINE_CHARS or written.text.isidentifier():
            return written
        if hint is None:
            return written if len(written.text) <= MAX_NOTE_CHARS else ANY
        name = self._names.allocate(hint)
        self.classes.append(ClassView(name, written.names, alias=written.text))
        return Annotation(name, notes=written.notes, keys=written.keys)


def _field(item: Property, written: Annotation, types: int) -> _Field:
    comments = comment_lines(item.description, written.notes, written.keys)
    names = written.names if item.required else written.names | _NOT_REQUIRED
    return _Field(item, FieldView(comments, item.name, written.text, item.required), names, types)


def _own_notes(type_: TypeExpression) -> tuple[str, ...]:
    """Returns the type's own constraints as a note, without those that the note on a tuple's items says."""
    constraints = type_.constraints
    if not constraints:
        return ()
    if isinstance(type_, TupleType) and type_.is_fixed:
        constraints = tuple(item for item in constraints if item.keyword not in ("minItems", "maxItems"))
    return constraint_notes(constraints)
