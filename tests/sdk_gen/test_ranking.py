"""Which tools fit a few words: what counts, what counts as the same, and that the order is always the same."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from typing import Any

import pytest
from ptc.sdk_gen.ranking import MAX_QUERY_CHARS, MAX_TEXT_CHARS, Ranking, SearchText, words_of


def load_catalogues() -> Any:
    spec = importlib.util.spec_from_file_location("catalogues", Path(__file__).parent / "catalogues.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


catalogues = load_catalogues()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("listOpenIssues", ["list", "open", "issue"]),
        ("HTTPServer_v2", ["http", "server", "v2"]),
        ("mcp__git-hub.create/issue", ["mcp", "git", "hub", "create", "issue"]),
        ("queries boxes classes status bus gas", ["query", "box", "class", "status", "bus", "gas"]),
        ("Send it to the tools, please", ["send"]),
        ("STRASSE stra\u00dfe \uff21\uff22", ["strasse", "strasse", "ab"]),
        ("\u5929\u6c17\u3092\u8abf weather", ["\u5929\u6c17", "\u6c17\u3092", "\u3092\u8abf", "weather"]),
        ("api\u5929\u6c17", ["api", "\u5929\u6c17"]),
        ("\u5929", ["\u5929"]),
        ("", []),
        ("\ud800 \x00 !?", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert words_of(text) == words


TOOLS = [
    SearchText("mail_send", "Sends a message to somebody.", ["recipient", "text"]),
    SearchText("mail_list", "Lists the messages of a folder.", ["folder"]),
    SearchText("repository_create", "Makes a repository.", ["owner"]),
    SearchText("calendar", "Knows appointments, and the recipient of each mail about them.", []),
]


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("send a message", ["mail_send", "mail_list"]),
        ("folders", ["mail_list"]),
        ("recipient", ["calendar", "mail_send"]),
        ("repo", ["repository_create"]),
        ("repositories", ["repository_create"]),
        ("mailbox", ["mail_list", "mail_send", "calendar"]),
        ("MAIL_LIST", ["mail_list", "mail_send", "calendar"]),
        ("nothing", []),
        ("to the of", []),
        ("", []),
    ],
)
def test_the_best_match_comes_first(query: str, best: list[str]) -> None:
    assert Ranking(TOOLS).search(query) == best


def test_a_tools_own_name_comes_first_however_it_is_spelled() -> None:
    tools = [SearchText("list", "x " * 500), SearchText("list_list", "List list."), SearchText("Get", "list")]
    assert Ranking(tools).search(" List ")[0] == "list"


def test_equals_come_by_name_in_any_order_of_registration() -> None:
    tools = [SearchText(f"tool_{n:02}", "does the same") for n in range(30)]
    for seed in range(3):
        random.Random(seed).shuffle(tools)
        assert Ranking(tools).search("same") == sorted(tool.name for tool in tools)

    pair = Ranking([SearchText("tool_x", "second"), SearchText("tool_y", "first")])
    assert pair.search("first second") == pair.search("second first") == ["tool_x", "tool_y"]


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    tools = [SearchText(f"tool_{n}", "common") for n in range(9)]
    assert Ranking([*tools, SearchText("z", "rare")]).search("common rare")[0] == "z"


@pytest.mark.parametrize(
    ("query", "better", "worse"),
    [
        ("ship", SearchText("z_ship", "Does it."), SearchText("a", "Ship and ship.")),
        ("repo", SearchText("z", "one repo"), SearchText("a", "one repository")),
        ("repository", SearchText("z", "one repository"), SearchText("a", "one repo")),
        ("colour", SearchText("z", "the colour"), SearchText("a", "the thing", ["colour"])),
        ("red wine", SearchText("z", "red wine"), SearchText("a", "red paint")),
    ],
)
def test_what_counts_more(query: str, better: SearchText, worse: SearchText) -> None:
    assert Ranking([better, worse]).search(query) == [better.name, worse.name]


def test_three_letters_are_enough_for_the_beginning_of_a_word() -> None:
    ranking = Ranking([SearchText("x", "an article"), SearchText("y", "the env"), SearchText("z", "go")])
    assert ranking.search("art") == ["x"]
    assert ranking.search("environment") == ["y"]
    assert ranking.search("ar") == []
    assert ranking.search("gopher") == []


def test_only_the_beginning_of_long_texts_counts() -> None:
    tools = [SearchText("a", "x " * MAX_TEXT_CHARS + "late"), SearchText("b", "early")]
    ranking = Ranking(tools)
    assert ranking.search("late") == []
    assert ranking.search(" " * MAX_QUERY_CHARS + "early") == []
    assert ranking.search("y" * 10_000_000) == []


def test_no_tools() -> None:
    assert Ranking([]).search("anything") == []


ASKED = {
    "create an issue in the repo": "create_issue",
    "screenshot of the page": "browser_take_screenshot",
    "what time is it in Tokyo": "get_current_time",
    "list pull requests": "list_pull_requests",
    "move files to another directory": "move_file",
    "search the web": "brave_web_search",
    "commit the staged changes": "git_commit",
    "add a comment to a Jira ticket": "jira_add_comment",
    "create a confluence page": "confluence_create_page",
    "aggregate documents in mongodb": "aggregate",
    "scale the replicas of a deployment": "kubectl_scale",
    "knowledge graph entities": "create_entities",
    "drop a collection": "drop-collection",
    "install a helm chart": "install_helm_chart",
    "convert timezones": "convert_time",
}


def test_what_models_ask_for_is_among_the_first_five_of_all_real_tools() -> None:
    tools = {tool.name: tool for name in catalogues.names() for tool in catalogues.catalogue(name)}
    ranking = Ranking(
        SearchText(tool.name, tool.description, list(tool.parameters.get("properties", {})))  # type: ignore[arg-type]
        for tool in tools.values()
    )
    missed = {query: found for query, name in ASKED.items() if name not in (found := ranking.search(query)[:5])}
    assert missed == {}
    first = [query for query, name in ASKED.items() if ranking.search(query)[0] == name]
    assert len(first) >= 10
