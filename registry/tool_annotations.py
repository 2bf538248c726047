"""What a tool says of its effects: claims that policies may go by, and that nobody has proved."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ToolAnnotations"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnnotations:
    """What a tool says of its effects; `None` where it says nothing.

    The names are those of the Model Context Protocol (`readOnlyHint` and so on). Whoever wrote the tool wrote them, so
    they are as trustworthy as that: a rule that allows by them trusts the tool's author.

    Attributes:
        title: a name for people.
        read_only: it changes nothing.
        destructive: it may delete or overwrite, and does not merely add.
        idempotent: a second call with the same arguments changes nothing more.
        open_world: it deals with something outside that others change as well, for example the web.

    Raises:
        TypeError: a claim is neither a bool nor `None`, or the title is no text.
    """

    title: str | None = None
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.title, str | None):
            raise TypeError(f"the title of a tool must be text or None, not {type(self.title).__name__}")
        for name in ("read_only", "destructive", "idempotent", "open_world"):
            claim = getattr(self, name)
            if claim is not None and type(claim) is not bool:
                raise TypeError(f"{name} must be True, False or None, not {type(claim).__name__}")

    @property
    def assumed(self) -> ToolAnnotations:
        """The same with nothing left open: what is not said is taken for the worse, as the protocol has it.

        A tool that says nothing counts as one that changes things, destroys, must not be repeated and reaches outside.
        One that calls itself read-only and destructive at once counts as destructive.
        """
        read_only = self.read_only is True and self.destructive is not True
        return ToolAnnotations(
            title=self.title,
            read_only=read_only,
            destructive=not read_only and self.destructive is not False,
            idempotent=read_only or self.idempotent is True,
            open_world=self.open_world is not False,
        )
