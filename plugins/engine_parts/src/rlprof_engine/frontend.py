"""The requests of a server: its own process watches them, since the order of a window passes there.

The server's process answers such an order, too. Its answer has the state `frontend`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rlprof import CaptureError
from rlprof_engine.requests import write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rlprof_engine.requests import Requests

_ATTRIBUTE = "_rlprof_requests"


def watched(owner: Any, text: str, watch: Callable[[], Requests]) -> str:
    """Do what the order *text* asks of the requests of *owner*; return the answer. Never raise.

    The answer is empty if the order does not concern requests. *watch* begins with a window.
    """
    answer: dict[str, Any] = {"state": "frontend"}
    try:
        message = json.loads(text)
        order = json.loads(message["order"])
        if not message.get("requests") or order["verb"] == "prepare":
            return ""
        whose = [order["run"], order["window"]]
        before, requests = vars(owner).pop(_ATTRIBUTE, (None, None))
        if requests is not None:
            answer["requests"] = requests.ended()
            requests.put_back()
        if order["verb"] == "begin":
            requests = watch()
            answer = {"state": "frontend", "unsupported": requests.unsupported}
            requests.start()
            setattr(owner, _ATTRIBUTE, (whose, requests))
        elif before != whose:  # another run has begun since
            return ""
    except Exception as exc:  # a server must go on
        answer["unsupported"] = {"requests": f"{type(exc).__name__}: {exc}"[:500]}
    return json.dumps(answer)


class Served:
    """The requests of a server in one window, as its own process answered."""

    def __init__(self, answers: list[dict[str, Any]]) -> None:
        """Take the *answers* to the order that began the window."""
        nobody = "rlprof is not in the one process that serves this engine's requests"
        unsupported = [one["unsupported"] for one in answers]
        self.unsupported: dict[str, str] = unsupported[0] if unsupported else {"requests": nobody}
        self.answers: list[dict[str, Any]] | None = None
        """The answers to the order that ended it; None: that order failed."""

    def start(self) -> None:
        """Do nothing: the order has begun it."""

    def stop(self, folder: Path, _: object = None) -> None:
        """Write the file; raise CaptureError if the server did not return what it watched."""
        if self.unsupported.get("requests") or self.answers is None:
            return
        text = next((one["requests"] for one in self.answers if one.get("requests")), "")
        if not text:
            raise CaptureError(f"requests: the server returned none: {self.answers or 'no answer'}")
        write(folder, text)


def parted(answers: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the answers of the processes that compute, and those of frontends."""
    mine = [one for one in answers if one["state"] == "frontend"]
    return [one for one in answers if one["state"] != "frontend"], mine
