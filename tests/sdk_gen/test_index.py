"""Large tool sets: the index, what a budget allows, what is told of one tool alone, and that texts stay as they are."""

from __future__ import annotations

import ast
import difflib
import hashlib
import importlib.util
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ptc.registry.definition import ToolSchema
from ptc.sdk_gen import Catalogue, DiscoveryCalls, estimate_tokens, render_python
from ptc.sdk_gen.index import MAX_GROUPS, MAX_LINE_CHARS, group_of, index_lines, one_line

FORMS = ("index", "names", "groups")


def load_catalogues() -> Any:
    spec = importlib.util.spec_from_file_location("catalogues", Path(__file__).parent / "catalogues.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


catalogues = load_catalogues()


def tool(name: str, description: str = "", *fields: str, output: Any = None) -> ToolSchema:
    properties = {field: {"type": "string"} for field in fields}
    return ToolSchema(
        name=name,
        description=description,
        parameters={"type": "object", "properties": properties, "additionalProperties": False},
        output={"type": "null"} if output is None else output,
    )


CALLS = DiscoveryCalls(search=tool("search", "Finds tools.", "query"), describe=tool("describe", "Declares.", "name"))

SMALL = [
    tool("mail_send", "Sends a mail. It cannot be taken back.", "to", "text"),
    tool("mail_list", "Lists mails.", "folder"),
    tool("add-note", "Adds a note.", "text"),
    tool("weather", "", "city"),
]


def index_of(text: str) -> list[str]:
    """The index at the end of a block, without its first line."""
    return text.partition("tools: Tools\n\n")[2].splitlines()[1:]


# The lines ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("github_create_issue", "github"),
        ("github-create-issue", "github"),
        ("mcp__github__create_issue", "mcp__github"),
        ("files.read", "files"),
        ("a/b/c", "a/b"),
        ("weather", "weather"),
        ("_private_tool", "private"),
        ("__", "__"),
        ("", ""),
    ],
)
def test_a_name_belongs_to_the_group_of_its_prefix(name: str, group: str) -> None:
    assert group_of(name) == group


@pytest.mark.parametrize(
    ("description", "line"),
    [
        ("Sends a mail. It cannot be taken back.", "Sends a mail"),
        ("Sends a mail.", "Sends a mail"),
        ("Reads v1.2 of a\nfile! Then more", "Reads v1.2 of a file"),
        ("Sends, e.g. a mail, to people. More.", "Sends, e.g. a mail, to people"),
        ("Title\n\nSends a mail.", "Title"),
        ("\n \n  Sends a mail\n\nand more", "Sends a mail"),
        ("Compares one vs. two. More.", "Compares one vs. two"),
        ("Sends a letter, i.e. a mail. More.", "Sends a letter, i.e. a mail"),
        ("x" * MAX_LINE_CHARS, "x" * MAX_LINE_CHARS),
        ("x" * (MAX_LINE_CHARS + 1), "x" * (MAX_LINE_CHARS - 3) + "..."),
        ("words " * 20, ("words " * 16).rstrip() + "..."),
        ("  \n ", ""),
        ("", ""),
        ("\u5929\u6c17\u3092\u8abf\u3079\u308b\u3002\u6b21\u306e\u6587\u3002", "\u5929\u6c17\u3092\u8abf\u3079\u308b"),
        ("now\u202ehidden\x00", "now\\u202ehidden\\x00"),
    ],
)
def test_a_line_is_the_first_sentence_on_one_visible_line(description: str, line: str) -> None:
    assert one_line(description) == line


@pytest.mark.parametrize("description", ["word " * 5_000, "x" * 10_000, "\U0001f600" * 5_000, "\x00" * 500])
def test_a_long_description_is_cut(description: str) -> None:
    line = one_line(description)
    assert len(line) <= MAX_LINE_CHARS
    assert line.endswith("...")


def test_the_index_has_groups_apart_and_odd_names_as_strings() -> None:
    descriptions = {one.name: one.description for one in SMALL}
    assert index_lines(descriptions, "index") == [
        '"add-note": Adds a note',
        "",
        "mail_list: Lists mails",
        "mail_send: Sends a mail",
        "",
        "weather",
    ]
    assert index_lines(descriptions, "names") == ['"add-note"', "", "mail_list", "mail_send", "", "weather"]
    assert index_lines(dict.fromkeys(["weather", "clock", "mail_a", "mail_b"], ""), "index") == [
        "clock",
        "",
        "mail_a",
        "mail_b",
        "",
        "weather",
    ]
    assert index_lines(dict.fromkeys(["weather", "clock"], ""), "index") == ["clock", "weather"]
    assert index_lines(descriptions, "groups") == ['"add-note"', "mail: 2 tools", "weather"]


def test_only_the_largest_groups_are_listed() -> None:
    names = [f"big_{n}" for n in range(9)] + [f"area{n:03}_{m}" for n in range(70) for m in range(2)] + ["alone"]
    lines = index_lines(dict.fromkeys(names, ""), "groups")
    assert len(lines) == MAX_GROUPS + 1
    assert lines[:2] == ["area000: 2 tools", "area001: 2 tools"]
    assert "big: 9 tools" in lines
    assert lines[-1] == f"and {2 * (70 - MAX_GROUPS + 1) + 1} tools more"


def test_what_a_group_says_is_short_and_counts_right() -> None:
    long = "x" * 500
    assert index_lines({f"{long}_a": "", f"{long}_b": ""}, "groups") == [f"{long[:80]}: 2 tools"]
    names = [f"area{n:03}_{m}" for n in range(MAX_GROUPS) for m in range(2)]
    assert index_lines(dict.fromkeys([*names, "alone"], ""), "groups")[-1] == "and 1 tool more"
    assert index_lines(dict.fromkeys(names, ""), "groups")[-1] == f"area{MAX_GROUPS - 1:03}: 2 tools"


# The text ----------------------------------------------------------------------------------------------------------


@pytest.mark.contract("G1")
def test_the_full_text_is_that_of_render_python() -> None:
    for name in catalogues.names():
        tools = catalogues.catalogue(name)
        assert Catalogue(tools).full == render_python(tools)


@pytest.mark.contract("G23")
@pytest.mark.parametrize("form", FORMS)
def test_the_index_is_a_comment_behind_the_declarations_of_the_two_calls(form: Any) -> None:
    sdk = Catalogue(SMALL).index(form, CALLS)
    module = ast.parse(sdk.block)
    protocol = next(node for node in module.body if isinstance(node, ast.ClassDef) and node.name == "Tools")
    assert not sdk.block.endswith("\n")
    assert [node.name for node in protocol.body if isinstance(node, ast.AsyncFunctionDef)] == ["describe", "search"]
    expected = index_lines({one.name: one.description for one in SMALL}, form)
    assert index_of(sdk.block) == [f"# {line}" if line else "#" for line in expected]
    assert sdk.block.startswith(
        render_python([CALLS.search, CALLS.describe]).block + "\n\n# The other members of `tools`"
    )


@pytest.mark.contract("G4")
@pytest.mark.parametrize("form", FORMS)
def test_the_instructions_say_how_the_rest_is_read(form: Any) -> None:
    calls = DiscoveryCalls(search=tool("find_tools"), describe=tool("declare"))
    sdk = Catalogue(SMALL).index(form, calls)
    plain = render_python(SMALL).instructions
    added = sdk.instructions.removeprefix(plain + "\n- ")
    assert "\n" not in added
    assert 'await tools.find_tools("' in added
    assert 'await tools.declare(["' in added
    assert ("groups" in added) == (form == "groups")


@pytest.mark.parametrize(
    "text",
    ['"""', "\\", "a\nb", "# \n```\n", "\x00\x0c\x85\u2028", "\ud800", "\u202eabc", "*/", "{{ x }}", "x" * 10_000],
)
def test_no_name_and_no_description_breaks_the_block(text: str) -> None:
    hostile = [tool(text, text, "a"), tool(f"{text}_{text}", text), tool(f"{text}_b", text), *SMALL]
    for form in FORMS:
        sdk = Catalogue(hostile).index(form, CALLS)
        sdk.text.encode("utf-8")
        assert len(ast.parse(sdk.block).body) == len(ast.parse(Catalogue(SMALL).index(form, CALLS).block).body)
        assert [line for line in sdk.text.splitlines() if line.startswith("```")] == ["```python", "```"]


# The budget --------------------------------------------------------------------------------------------------------


def test_the_estimate_is_a_token_for_every_four_bytes() -> None:
    assert [estimate_tokens(text) for text in ("", "a", "abcd", "abcde", "\u00e9\u00e9\u00e9", "\ud800")] == [
        0, 1, 1, 2, 2, 1,
    ]  # fmt: skip


def test_the_first_form_that_fits_is_taken() -> None:
    tools = catalogues.generated(200)
    catalogue = Catalogue(tools)
    texts = {"full": catalogue.full, **{form: catalogue.index(form, CALLS) for form in FORMS}}
    sizes = {form: len(text.text) for form, text in texts.items()}
    assert sizes["full"] > sizes["index"] > sizes["names"] > sizes["groups"]
    for form, size in sizes.items():
        for budget in (size, size + 1):
            fitted = catalogue.fit(budget, len, CALLS)
            assert (fitted.form, fitted.text, fitted.tokens) == (form, texts[form], size)
    assert catalogue.fit(sizes["full"] - 1, len, CALLS).form == "index"
    assert catalogue.fit(1, len, CALLS).form == "groups"


def test_when_nothing_fits_the_shortest_text_is_given() -> None:
    fitted = Catalogue([tool("weather")]).fit(10, len, CALLS)
    assert fitted.form == "full"
    assert fitted.tokens == len(fitted.text.text) > 10


@pytest.mark.parametrize("count", [1.0, "1", None, True])
def test_a_count_that_is_no_integer_is_refused(count: Any) -> None:
    with pytest.raises(TypeError, match="count_tokens must return an integer"):
        Catalogue(SMALL).fit(10, lambda _text: count, CALLS)


# One tool ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*catalogues.names(), "collisions"])
def test_what_is_told_of_one_tool_is_what_the_full_block_says_of_it(name: str) -> None:
    """Class by class and method by method, so that the parts of all tools make up the block."""
    collisions = [tool("add-note", "", "a"), tool("add_note", "", "b"), tool("addNote", "", "c"), tool("AddNote")]
    tools = collisions if name == "collisions" else catalogues.catalogue(name)
    catalogue = Catalogue(tools)
    names = sorted(one.name for one in tools)
    classes, members = "", ""
    for one in names:
        head, protocol, body = catalogue.declared([one]).rpartition("class Tools(Protocol):\n")
        assert protocol
        classes += head
        members += body.removeprefix("    pass\n") + "\n"
    before, _, rest = catalogue.full.block.partition("    toolName: str\n\n\n")
    assert before.startswith("from typing import")
    told = f"{classes}class Tools(Protocol):\n"
    assert rest.startswith(told)
    assert rest.removeprefix(told).removeprefix("    pass\n") == f"{members}\n\ntools: Tools"
    assert catalogue.declared(names) == rest.removesuffix("\n\n\ntools: Tools")


def test_several_tools_come_in_the_order_that_is_asked_for() -> None:
    declared = Catalogue(SMALL).declared(["weather", "add-note", "mail_list"])
    places = [declared.index(part) for part in ("def weather(", 'tools["add-note"]', "def mail_list(")]
    assert places == sorted(places)
    assert declared.count("class Tools(Protocol):") == 1


def test_an_unknown_name_has_near_ones() -> None:
    catalogue = Catalogue(SMALL)
    with pytest.raises(KeyError):
        catalogue.declared(["mail_sent"])
    assert catalogue.near("mail_sent") == ["mail_send"]
    assert catalogue.near("send_mail") == ["mail_send", "mail_list"]
    assert catalogue.near("note") == ["add-note"]
    assert catalogue.near("quite something else") == []
    assert catalogue.near("x" * 10_000_000) == []
    letters = "".join(one for one in map(chr, range(0x1200, 0x1380)) if one.isalpha())[:250]
    assert Catalogue([tool("q" + letters[:90])]).near("p" + letters[:90]) == ["q" + letters[:90]]
    assert Catalogue([tool("q" + letters)]).near("p" + letters) == []  # spelling is compared up to a length


# Stability ---------------------------------------------------------------------------------------------------------


def texts(tools: list[ToolSchema]) -> list[str]:
    catalogue = Catalogue(tools)
    return [
        catalogue.full.text,
        *(catalogue.index(form, CALLS).text for form in FORMS),
        *(catalogue.declared([one]) for one in sorted(one.name for one in tools)),
        *(repr(catalogue.search(query)) for query in ("create a note", "list issues", "mail")),
        repr(catalogue.near("mail_sent")),
    ]


@pytest.mark.contract("G1")
def test_texts_do_not_depend_on_the_order_of_registration() -> None:
    tools = [*catalogues.catalogue("github"), *SMALL, tool("add_note"), tool("addNote", "", "x")]
    first = texts(tools)
    for seed in range(5):
        random.Random(seed).shuffle(tools)
        assert texts(tools) == first


@pytest.mark.contract("G1")
def test_texts_do_not_depend_on_the_hash_seed() -> None:
    program = (
        "import sys, hashlib, importlib.util\n"
        f"spec = importlib.util.spec_from_file_location('index_tests', {__file__!r})\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "print(module.digest())"
    )
    for seed in ("0", "1", "4242"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == digest()


def digest() -> str:
    """What all texts of a mixed set come to."""
    tools = [*catalogues.catalogue("notion"), *catalogues.generated(50), *SMALL, tool("add_note", "", "x")]
    return hashlib.sha256("\0".join(texts(tools)).encode()).hexdigest()


def changed(before: str, after: str) -> tuple[list[str], list[str]]:
    """The lines that are gone and those that are new."""
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    return [line[2:] for line in lines if line[0] == "-"], [line[2:] for line in lines if line[0] == "+"]


TOUCHED = tool("mail_send", "Sends mail to many people. Slowly.", "to", "text", "reply_to")
OTHERS = [one for one in SMALL if one.name != "mail_send"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([*OTHERS, SMALL[0]], [*OTHERS, TOUCHED], id="changed"),
        pytest.param(OTHERS, [*OTHERS, TOUCHED], id="added"),
        pytest.param([*OTHERS, TOUCHED], OTHERS, id="removed"),
    ],
)
def test_a_change_in_one_tool_changes_its_own_lines_only(before: list[ToolSchema], after: list[ToolSchema]) -> None:
    old, new = Catalogue(before), Catalogue(after)
    own = {"", "#"}  # what sets lines apart belongs to both sides
    for catalogue in (old, new):
        if "mail_send" in catalogue:
            own.update(catalogue.declared(["mail_send"]).splitlines())
            own.update(f"# {line}" for line in (catalogue.line("mail_send"), "mail_send"))
    for form in ("full", "index", "names"):
        was, now = (one.full if form == "full" else one.index(form, CALLS) for one in (old, new))
        gone, added = changed(was.text, now.text)
        assert own.issuperset(gone + added)
        assert bool(gone + added) == (form != "names" or len(before) != len(after))
        assert was.instructions == now.instructions


@pytest.mark.contract("G19", "G23")
def test_only_the_import_line_and_names_that_read_alike_can_change_with_another_tool() -> None:
    """Those two are the contract's: the exact imports, and numbers in the order of the tools."""
    alike = [tool("add-note", "", "a"), tool("add_note", "", "b")]
    gone, added = changed(Catalogue(SMALL[:2] + alike).full.text, Catalogue(SMALL[:2] + alike[1:]).full.text)
    assert added == ["    async def add_note(self, args: AddNoteArgs) -> None: ..."]
    assert "    async def add_note(self, args: AddNoteArgs2) -> None: ..." in gone
    assert not any("mail" in line.lower() for line in gone)
    literal = tool("other", "", output={"type": "string", "enum": ["a"]})
    gone, added = changed(Catalogue(SMALL).full.text, Catalogue([*SMALL, literal]).full.text)
    assert gone == ["from typing import NotRequired, Protocol, TypedDict"]
    assert added[0] == "from typing import Literal, NotRequired, Protocol, TypedDict"
    assert all("ther" in line for line in added[1:] if line.strip() not in ("", "pass"))
