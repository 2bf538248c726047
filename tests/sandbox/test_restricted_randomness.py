"""A run of the restricted sandbox gets no random number and no place that another run could know."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from ptc.sandbox.restricted import RestrictedSandbox, template
from ptc.sandbox.restricted.inside.reseed import reseed
from ptc.sandbox.seam import SandboxRequest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the restricted backend needs Linux")

RANDOM = """
import random, secrets, uuid
import numpy as np
from numpy.random import default_rng, rand, randint
return [
    np.random.random(), rand(), int(randint(1 << 30)), default_rng().random(),
    random.random(), random.Random().random(), random.SystemRandom().random(), str(uuid.uuid4()), secrets.token_hex(8),
    random.sample(range(1 << 30), 2),
]
"""


@pytest.mark.contract("F6")
@pytest.mark.anyio
async def test_runs_share_no_random_numbers_with_a_package_of_the_host() -> None:
    async with RestrictedSandbox(modules=["numpy"], ready=2) as sandbox:
        rows: list[list[Any]] = []
        for _ in range(5):
            result = await sandbox.run(SandboxRequest(program=RANDOM))
            assert result.error is None, result.error.message
            rows.append(json.loads(result.value_json or "null"))
    for column in zip(*rows, strict=True):
        assert len({json.dumps(one) for one in column}) == len(rows)


def test_a_state_is_made_anew_from_fresh_entropy() -> None:
    numpy_random = pytest.importorskip("numpy").random
    numbers = set()
    for _ in range(3):
        numpy_random.seed(1)
        reseed()
        numbers.add(numpy_random.random())
    assert len(numbers) == 3


@pytest.mark.contract("F6")
@pytest.mark.anyio
async def test_a_program_is_not_told_where_its_host_is(monkeypatch: pytest.MonkeyPatch) -> None:
    start = subprocess.Popen

    def elsewhere(*args: Any, **options: Any) -> Any:
        return start(*args, **{**options, "env": {"TZ": "EST5EDT,M3.2.0,M11.1.0"}})

    monkeypatch.setattr(template.subprocess, "Popen", elsewhere)
    program = (
        "import time\nfrom datetime import datetime\n"
        "return [str(datetime.fromtimestamp(0)), time.tzname, time.mktime(time.gmtime(0)), time.localtime(0).tm_hour]"
    )
    async with RestrictedSandbox() as sandbox:
        result = await sandbox.run(SandboxRequest(program=program))
    assert result.value_json == '["1970-01-01 00:00:00",["UTC","UTC"],0.0,0]'
