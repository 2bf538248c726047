"""Restrictions by a rule for names: they hold for tools that come later, and are otherwise like any restriction."""

from __future__ import annotations

import ptc
import pytest
from ptc.registry import ScopeKey, ToolRegistrationError, ToolRegistry
from ptc.registry.views import NameRestriction


def define(name):
    async def execute(_arguments):
        return None

    return ptc.define_tool(name=name, description="", parameters={}, output={"type": "null"}, execute=execute)


@pytest.fixture
def registry():
    made = ToolRegistry()
    for name in ("a_one", "b_one"):
        made.context().register(define(name))
    return made


def names(registry, scope):
    return [one.name for one in registry.definitions(scope)]


def is_of_a(name):
    return name.startswith("a_")


def test_it_holds_for_tools_that_come_and_go_later(registry):
    scope = ScopeKey("scope")
    lift = registry.context(scope).restrict_names(is_of_a)
    assert names(registry, scope) == ["a_one"]
    gone = registry.context().register(define("a_two"))
    registry.context().register(define("b_two"))
    assert names(registry, scope) == ["a_one", "a_two"]
    assert registry.get("b_two", scope) is None
    gone()
    assert names(registry, scope) == ["a_one"]
    lift()
    assert names(registry, scope) == ["a_one", "b_one", "b_two"]
    assert not registry.has_layer(scope)


def test_it_hides_inherited_tools_from_a_scope_and_those_below_and_never_its_own(registry):
    scope, below, beside = ScopeKey("scope"), ScopeKey("below"), ScopeKey("beside")
    registry.bind(below, scope)
    tools = registry.context(scope)
    tools.restrict_names(is_of_a)
    tools.register(define("own"))
    assert names(registry, scope) == ["a_one", "own"]
    assert names(registry, below) == ["a_one"]  # `own` is inherited there, and hidden like the rest
    assert names(registry, beside) == ["a_one", "b_one"]


def test_several_restrictions_intersect_whatever_their_kind(registry):
    tools = registry.context(ScopeKey("scope"))
    registry.context().register(define("a_two"))
    tools.restrict_names(is_of_a)
    tools.restrict(deny=["a_one"])
    assert names(registry, tools.scope) == ["a_two"]
    tools.restrict_names(lambda name: name != "a_two")
    assert names(registry, tools.scope) == []


def test_a_change_is_told_and_a_listener_can_refuse_it(registry):
    tools = registry.context(ScopeKey("scope"))
    told = []
    registry.context().on("tools/change", lambda: told.append(names(registry, tools.scope)))
    lift = tools.restrict_names(is_of_a)
    lift()
    assert told == [["a_one"], ["a_one", "b_one"]]

    def refuse():
        raise ValueError("no")

    registry.context().on("tools/change", refuse)
    with pytest.raises(ValueError, match="no"):
        tools.restrict_names(is_of_a)
    assert names(registry, tools.scope) == ["a_one", "b_one"]


def test_only_true_is_seen_and_each_name_is_asked_for_once(registry):
    tools = registry.context(ScopeKey("scope"))
    asked = []

    def sees(name):
        asked.append(name)
        return 1

    tools.restrict_names(sees)
    assert names(registry, tools.scope) == names(registry, tools.scope) == []
    assert asked == ["a_one", "b_one"]


def test_answers_about_names_that_do_not_exist_do_not_pile_up(registry):
    scope = ScopeKey("scope")
    restriction = NameRestriction(is_of_a)
    registry.layers.open(scope).restrictions.append(restriction)
    for number in range(20_000):
        registry.get(f"a_{number}", scope)
    assert restriction._sees.cache_info().currsize < 20_000


def test_what_makes_no_sense_is_refused(registry):
    with pytest.raises(ToolRegistrationError, match="a restriction needs a scope"):
        registry.context().restrict_names(is_of_a)
    with pytest.raises(ToolRegistrationError, match="sees must be a function that takes a name, not list"):
        registry.context(ScopeKey("scope")).restrict_names(["a_one"])
