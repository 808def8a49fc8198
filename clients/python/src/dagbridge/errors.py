"""What a gateway answers instead of what was asked for: one exception per kind, with the gateway's own sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class DagBridgeError(Exception):
    """Any refusal; ``code`` is the number of a gRPC status, ``message`` the gateway's sentence."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class InvalidArgument(DagBridgeError):
    """The request is wrong; ``violations`` has every fault: the field's path and what is wrong with it."""

    def __init__(self, message: str, code: int = 3, violations: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message, code)
        self.violations = tuple(violations)


class NotFound(DagBridgeError):
    """There is no such job, run, task or output."""


class AlreadyExists(DagBridgeError):
    """The same key, tryNumber and uid were submitted with another content."""


class FailedPrecondition(DagBridgeError):
    """Not in the state that this needs: retrying a job that runs, a lower try than the newest."""


class Denied(DagBridgeError):
    """No token, a wrong one, or one that may not do this."""


class Unavailable(DagBridgeError):
    """The gateway cannot be reached, or cannot answer now; it may have taken the request."""


_KINDS: dict[int, type[DagBridgeError]] = {
    5: NotFound,
    6: AlreadyExists,
    7: Denied,
    9: FailedPrecondition,
    14: Unavailable,
    16: Denied,
}


def from_status(status: Mapping[str, Any]) -> DagBridgeError:
    """The exception for a ``google.rpc.Status`` in JSON: ``{"code", "message", "details"}``."""
    code, message = int(status.get("code", 2)), str(status.get("message", "the gateway gave no reason"))
    if code == 3:
        faults = [
            (str(v.get("field", "")), str(v.get("description", "")))
            for detail in status.get("details", ())
            for v in detail.get("fieldViolations", ())
        ]
        return InvalidArgument(message, code, faults)
    return _KINDS.get(code, DagBridgeError)(message, code)
