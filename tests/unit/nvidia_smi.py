"""The stand-in of nvidia-smi: its program, a driver of each branch, and the state that it answers."""

import json
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
DEMO = REPOSITORY / "demo/fixtures/nvidia-smi"
PROGRAM = REPOSITORY / "demo/gpu/files/nvidia-smi"
BRANCHES = {418: "418.67", 470: "470.82.01", 535: "535.104.05", 580: "580.95.05"}


def written(directory: Path, **state: object) -> Path:
    """The demo's state, with these parts changed."""
    path = directory / "state.json"
    content = json.loads((DEMO / "nvidia-smi-stand-in.json").read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, **state}), encoding="utf-8")
    return path
