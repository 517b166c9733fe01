"""Debian's Chromium without a window: what a page is after its scripts ran."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser")


def program() -> str:
    program_path = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    return program_path or pytest.skip(
        f"none of {', '.join(BROWSERS)} is installed (Debian: apt-get install chromium-headless-shell)"
    )


def opened(address: str, profile: Path, *options: str) -> str:
    """The document that Chromium has after the page's scripts ran."""
    command = [program(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={profile}"]
    completed = subprocess.run(
        [*command, "--window-size=1600,1000", "--virtual-time-budget=30000", *options, "--dump-dom", address],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


def answers(address: str, profile: Path, *options: str) -> dict[str, Any]:
    """What a driver, a page that uses another one, wrote as JSON into its element "answers"."""
    document = opened(address, profile, *options)
    match = re.search(r'<pre id="answers">(.*?)</pre>', document, re.S)
    assert match, document[:2000]
    content: dict[str, Any] = json.loads(html.unescape(match[1]))
    assert "error" not in content, content["error"]
    return content
