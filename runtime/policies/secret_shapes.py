"""Secrets that can be told by their shape alone: tokens with a prefix of their issuer, keys, passwords in URLs.

The list is our own and short. The detector libraries at hand look for secrets in the files of a code base: they report
lines and not places, so that what they find cannot be cut out (of some tokens they give back the prefix alone); they
miss what is issued today; and they bring an HTTP client to try out what they have found. Whoever has a detector
gives it to `RedactionPolicy(detectors=...)`.

Each pattern begins with something fixed or at the edge of a word, and no part of it can match the same characters in
two ways, so that no text takes long. Where there is a group `secret`, only that is the secret. The end of an
escape is such an edge too: in a `repr`, a URL or coloured text its last letter stands right before a token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

__all__ = ["COMMON_FIELDS", "KEY_END", "Found", "find_shapes", "spans_of"]

COMMON_FIELDS: Final = (
    "access_key", "access_token", "api_key", "auth_token", "authorization", "client_secret", "connection_string",
    "cookie", "credential", "credentials", "id_token", "passphrase", "passwd", "password", "private_key", "pwd",
    "refresh_token", "secret", "secret_access_key", "secret_key", "session_token", "set_cookie", "token",
)  # fmt: skip
"""Names of fields that mostly hold secrets; for `RedactionPolicy(fields=...)`."""

_KEY_NAME: Final = r"(?:[A-Z0-9]{1,20} ){0,3}?PRIVATE KEY(?: BLOCK)?-----"
KEY_END: Final = re.compile(rf"-----END {_KEY_NAME}")
"""The last line of a private key."""


class Found(NamedTuple):
    """A secret in a text.

    Attributes:
        start: its first character.
        end: the one after its last.
        value: what it says, where that is not what is written.
    """

    start: int
    end: int
    value: object = None


_EDGES: Final = (r"\b", r"\\[abfnrtv]", r"\\x[0-9A-Fa-f]{2}", r"\\u[0-9A-Fa-f]{4}", r"%[0-9A-Fa-f]{2}", r"[0-9;\[]m")
"""The edge of a word, and the ends of escapes: of text, of a URL, of a terminal's colours."""


def _edged(pattern: str) -> str:
    """Has a pattern that begins at the edge of a word begin behind an escape as well.

    The edge is looked for behind the first character, because a search is quick when it begins with one that is fixed.
    """
    first = re.match(r"\\b(\[[^\]]+\]|\\d|\w)(?![*+?{])", pattern)
    if first is None:
        if pattern.startswith(r"\b"):
            raise ValueError(f"no single character stands at the edge where {pattern!r} begins")
        return pattern
    behind = "|".join(f"(?<={edge}{first[1]})" for edge in _EDGES)
    return f"{first[1]}(?:{behind}){pattern[first.end() :]}"


_SHAPES: Final[tuple[tuple[tuple[str, ...], re.Pattern[str]], ...]] = tuple(
    (tuple(hints.split()), re.compile(_edged(pattern)))
    for hints, pattern in (
        # A key without its end is one too: a policy may have cut it off.
        ("-----BEGIN", rf"-----BEGIN {_KEY_NAME}(?s:.*?)(?:-----END {_KEY_NAME}|\Z)"),
        # JSON web token. Only where nothing joins on before it may its head be of any length, which keeps this quick.
        ("eyJ", r"\beyJ(?:[\w-]{8,4096}+|(?<![\w-]eyJ)[\w-]{8,}+)\.eyJ[\w-]{8,}+\.[\w-]*+"),
        ("earer", r"\b[Bb]earer +(?P<secret>[\w.~+/=-]{16,}+)"),
        ("asic", r"\b[Aa]uthorization\\*+[\"']?\s*+[:=]\s*+\\*+[\"']?[Bb]asic +(?P<secret>[\w+/=-]{8,}+)"),
        ("://", r"://[^\s/:@\"']{0,100}:(?P<secret>[^\s/@\"']{1,200})@"),  # password in a URL
        ("AKIA ASIA ABIA ACCA", r"\bA(?:KIA|SIA|BIA|CCA)[0-9A-Z]{16}\b"),  # AWS
        ("AccountKey=", r"\bAccountKey=(?P<secret>[\w+/]{40,}+={0,2})"),  # Azure
        ("SharedAccessSignature=", r"\bSharedAccessSignature=(?P<secret>[^\s;\"']{20,}+)"),
        ("AIza", r"\bAIza[\w-]{35}"),  # Google
        ("GOCSPX-", r"\bGOCSPX-[\w-]{20,}+"),
        ("ya29.", r"\bya29\.[\w-]{20,}+"),
        ("gho_ ghp_ ghs_ ghu_ ghr_", r"\bgh[oprsu]_[A-Za-z0-9]{30,}+"),  # GitHub
        ("github_pat_", r"\bgithub_pat_\w{22,}+"),
        ("gl", r"\bgl(?:agent|cbt|dt|feat|ft|imt|oas|pat|ptt|rt|soat|wt)-[\w-]{20,}+"),  # GitLab
        ("xox", r"\bxox[abeoprs]-[\w-]{10,}+"),  # Slack
        ("xapp-", r"\bxapp-\d-[\w-]{10,}+"),
        ("hooks.slack.com", r"\bhooks\.slack\.com/services/(?P<secret>[\w/]{20,}+)"),
        ("k_live_ k_test_", r"\b[rs]k_(?:live|test)_[0-9A-Za-z]{16,}+"),  # Stripe
        ("whsec_", r"\bwhsec_[\w+/=]{20,}+"),
        ("sk-", r"\bsk-[\w-]{20,}+"),  # OpenAI, Anthropic and others
        ("xai-", r"\bxai-[\w-]{40,}+"),
        ("hf_", r"\bhf_[A-Za-z0-9]{30,}+"),  # Hugging Face
        ("npm_", r"\bnpm_[A-Za-z0-9]{36}"),
        ("pypi-", r"\bpypi-[\w-]{50,}+"),
        ("SG.", r"\bSG\.[\w-]{16,}+\.[\w-]{16,}+"),  # SendGrid
        ("SK", r"\bSK[0-9a-f]{32}\b"),  # Twilio
        ("_v1_", r"\bdo[opr]_v1_[0-9a-f]{64}"),  # DigitalOcean
        ("shpat_ shpca_ shppa_ shpss_", r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),  # Shopify
        ("hvs. hvb.", r"\bhv[bs]\.[\w-]{20,}+"),  # Vault
        ("dapi", r"\bdapi[0-9a-f]{32}"),  # Databricks
        ("dp.", r"\bdp\.(?:ct|pt|sa|st)\.[\w.-]{30,}+"),  # Doppler
        ("ntn_", r"\bntn_[A-Za-z0-9]{40,}+"),  # Notion
        ("lin_", r"\blin_(?:api|oauth)_[A-Za-z0-9]{30,}+"),  # Linear
        (":AA", r"\b\d\d{7,9}:AA[\w-]{33}"),  # Telegram
        ("AGE-SECRET-KEY-", r"\bAGE-SECRET-KEY-1[0-9A-Z]{58}"),
    )
)
"""The shapes, each with the texts of which one is in every secret of it: those are found far quicker."""

_HINT: Final = re.compile("|".join(sorted({re.escape(hint) for hints, _shape in _SHAPES for hint in hints})))
_SHORTEST: Final = 8


def find_shapes(text: str) -> Iterator[Found]:
    """Yields what in a text has the shape of a secret."""
    if len(text) < _SHORTEST or _HINT.search(text) is None:
        return
    for hints, shape in _SHAPES:
        if any(hint in text for hint in hints):
            yield from spans_of(shape, text)


def spans_of(pattern: re.Pattern[str], text: str) -> Iterator[Found]:
    """Yields what a pattern matches; its group `secret` where it has one."""
    group = "secret" if "secret" in pattern.groupindex else 0
    for match in pattern.finditer(text):
        begin, end = match.span(group)
        if begin < end:  # a group that had no part in it begins at -1
            yield Found(begin, end)
