r"""The hash chain of a session: what is hashed, byte by byte, so that records written today can be verified later.

A session has a genesis hash and one hash for each event. Each is a SHA-256 digest of 32 bytes.

    genesis = SHA256( "ptc-session 1\n" + header )
    header  = the UTF-8 bytes of the compact JSON text of [id, agent, opened_us, labels], where labels is an object of
              texts whose keys are in code point order; characters beyond ASCII stand for themselves

    hash(n) = SHA256( hash(n - 1) + canonical(n) ), and hash(-1) is the genesis hash
    canonical(n) = the UTF-8 bytes of "<seq> <time_us> <mono_us> <cites> <type>\n<data>"

`seq`, `time_us`, `mono_us` and `cites` are decimal integers without leading zeros; `cites` is `-` when the event cites
nothing. `type` is printable ASCII without spaces, so the first line ends where it seems to. `data` is the event's JSON
text exactly as it is stored: to verify a record nothing is parsed and nothing is written anew.

A session's last hash vouches for its header and for all its events: their content, number and order.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from ...registry.lossless import to_json_text

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["EVENT_TYPE", "canonical_event", "canonical_stored", "genesis_hash", "next_hash"]

EVENT_TYPE: Final = re.compile(r"[!-~]{1,100}")
"""What the type of an event looks like: printable ASCII without spaces."""


def genesis_hash(session: str, agent: str, opened_us: int, labels: Mapping[str, str]) -> bytes:
    """Returns the hash that a session starts from.

    Args:
        session: the session's id.
        agent: the name of its agent.
        opened_us: when it was opened, in microseconds since 1970 UTC.
        labels: what its host says of it.
    """
    header = to_json_text([session, agent, opened_us, {key: labels[key] for key in sorted(labels)}])
    return sha256(b"ptc-session 1\n" + header.encode()).digest()


def canonical_event(seq: int, time_us: int, mono_us: int, cites: int | None, type: str, data: str) -> bytes:  # noqa: A002  # the field's name
    """Returns the bytes of one event that are hashed; `data` is its JSON text as stored."""
    return canonical_stored(seq, time_us, mono_us, cites, type.encode(), data.encode())


def canonical_stored(
    seq: int,
    time_us: int,
    mono_us: int,
    cites: int | None,
    type: bytes | bytearray,  # noqa: A002  # the field's name
    data: bytes | bytearray,
) -> bytes:
    """Returns the same as `canonical_event`, from texts in UTF-8."""
    return b"%d %d %d %b %b\n%b" % (seq, time_us, mono_us, b"-" if cites is None else b"%d" % cites, type, data)


def next_hash(previous: bytes, canonical: bytes) -> bytes:
    """Returns the hash of an event from the hash before it and the event's canonical bytes."""
    return sha256(previous + canonical).digest()
