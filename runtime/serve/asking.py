"""Asks the user of a client in the course of a request, as the handshake era has it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from ...registry import thaw
from .exchange import settle

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from .questions import Question

__all__ = ["ask", "can_ask"]

_LOGGER: Final = logging.getLogger("ptc.serve")


async def ask(context: ServerRequestContext, question: Question) -> None:
    """Asks the client's user, and settles the question; a question that is withdrawn is taken back from the client."""
    with anyio.CancelScope() as asking:
        question.on_withdrawn(asking.cancel)
        if not question.open:
            return
        try:
            form: Any = thaw(question.form)
            response = await context.session.elicit_form(question.message, form, context.request_id)
        except MCPError as error:
            _LOGGER.warning("the client could not ask its user: %s", error)
            question.fail()
        except ValidationError:
            _LOGGER.warning("the client's answer to a question is none")
            settle(question, None)
        else:
            settle(question, response)


def can_ask(context: ServerRequestContext) -> bool:
    """Tells whether the client can have its user fill in a form."""
    told = context.session.client_capabilities
    if told is None or told.elicitation is None:
        return False
    return told.elicitation.form is not None or told.elicitation.url is None
