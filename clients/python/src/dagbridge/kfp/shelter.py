"""A pipeline's text inside of a step's input: KFP would fill its placeholders with the values of the step."""

from __future__ import annotations

_OPEN, _SHELTERED = "{{$", "{{dagbridge$"


def sheltered(text: str) -> str:
    """The text without anything that KFP takes for a placeholder."""
    return text.replace(_OPEN, _SHELTERED)


def restored(text: str) -> str:
    """The text as it was."""
    return text.replace(_SHELTERED, _OPEN)
