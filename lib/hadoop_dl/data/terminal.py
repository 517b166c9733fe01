"""Text from hosts and servers, made safe to print: without control characters that move the operator's cursor or change colours."""

from typing import Any

KEPT = "\n\t"
LONGEST = 200  # characters of a cell or of what a program printed last
PARAGRAPH = 2000  # of a message that names several things


def printable(text: str) -> str:
    """The text with U+FFFD for every control character, other than the end of a line and a tab."""
    return "".join(c if c in KEPT or c.isprintable() else "\ufffd" for c in text.replace("\r\n", "\n"))


def one_line(text: Any, longest: int = LONGEST) -> str:
    """The text on one line, cut after so many characters."""
    line = printable(" ".join(str(text)[: 8 * longest].split()))
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def printable_values(value: Any) -> Any:
    """The same for every text in what JSON carried."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [printable_values(item) for item in value]
    if isinstance(value, dict):
        return {printable(key): printable_values(item) for key, item in value.items()}
    return value
