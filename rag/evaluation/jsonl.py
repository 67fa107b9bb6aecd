"""Files of one JSON object, or one row, a line; errors name the file and the line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rag.errors import UsageError


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, numbered from 1 with the blank ones counted."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror or error})") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not UTF-8 text; save it as UTF-8") from None
    return ((number, line) for number, line in enumerate(lines, start=1) if line.strip())


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in text_lines(path):
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise UsageError(f"{path}, line {number}: not a JSON object; correct or delete it")
        yield number, row
