"""What is not available, in words: what it is, and what to write instead."""

from __future__ import annotations

from typing import Final

from ....guest.absence import WAYS_OUT

__all__ = ["ATTRIBUTES", "BUILTINS", "MODULES", "attribute_refusal"]

BUILTINS: Final = {
    "__import__": "write an import statement",
    "breakpoint": "there is no debugger; use print(...)",
    "compile": "write the code itself; for data use json.loads(...)",
    "eval": "write the expression itself; for data use json.loads(...), for numbers int(...) or float(...)",
    "exec": "write the code itself",
    "globals": "keep named values in a dict of your own",
    "help": "the signatures of the tools are in their description",
    "input": "there is nobody to ask; write the value into the program",
    "locals": "keep named values in a dict of your own",
    "open": "there are no files; use the tools, or io.StringIO and io.BytesIO for data in memory",
}
"""Builtins that are not there."""

ATTRIBUTES: Final = {
    "__base__": "use isinstance(...) or issubclass(...)",
    "__bases__": "use isinstance(...) or issubclass(...)",
    "__class__": "use type(...)",
    "__code__": "",
    "__context__": "use __cause__ with `raise ... from ...`, or traceback.format_exc() for the text",
    "__dict__": "use vars(...) on an object of your own class",
    "__func__": "call the method itself",
    "__getattribute__": "define __getattr__ or a property",
    "__globals__": "",
    "__mro__": "use isinstance(...) or issubclass(...)",
    "__reduce__": "define __copy__ or __deepcopy__",
    "__reduce_ex__": "define __copy__ or __deepcopy__",
    "__self__": "",
    "__subclasses__": "keep your own list of classes",
    "__traceback__": "use traceback.format_exc() for the text",
    "__wrapped__": "keep the function under a name of its own",
}
"""What to write instead of a special attribute."""

MODULES: Final = WAYS_OUT
"""What to use instead of a module."""


def attribute_refusal(name: str) -> str:
    """Returns the text for an attribute that programs may not read."""
    text = f"the attribute {name!r} is not available in this sandbox: it leads into the interpreter"
    way_out = ATTRIBUTES.get(name)
    return f"{text}; {way_out}" if way_out else text
