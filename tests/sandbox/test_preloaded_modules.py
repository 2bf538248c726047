"""What of the standard library is in the guest, and that there is a reason for what is not."""

from __future__ import annotations

import json

import pytest
from ptc.sandbox.guest.preload import MODULES, OMITTED

from .conftest import Run

PRELOADED = {name.partition(".")[0] for name in MODULES}


@pytest.mark.anyio
async def test_each_module_of_the_standard_library_is_there_or_left_out_for_a_reason(run: Run) -> None:
    result = await run("import sys\nreturn sorted(sys.stdlib_module_names)")
    assert result.error is None, result.error.message
    names = set(json.loads(result.value_json or "null"))
    public = {name for name in names if not name.startswith("_")}
    assert public - PRELOADED - set(OMITTED) == set()
    assert set(OMITTED) - public == set(), "reasons for what is no module"
    assert PRELOADED & set(OMITTED) == set()
    assert PRELOADED - names == set()


@pytest.mark.anyio
async def test_the_lists_say_what_can_be_imported(run: Run) -> None:
    result = await run(
        "import importlib\n"
        "def there(name):\n"
        "    try:\n"
        "        importlib.import_module(name)\n"
        "    except ImportError:\n"
        "        return False\n"
        "    return True\n"
        f"return [[n for n in {sorted(MODULES)!r} if not there(n)], [n for n in {sorted(OMITTED)!r} if there(n)]]"
    )
    assert result.error is None, result.error.message
    assert result.value_json == "[[],[]]"


def test_a_reason_is_a_sentence_about_the_module() -> None:
    for name, reason in OMITTED.items():
        assert name.isidentifier()
        assert len(reason.split()) > 3
