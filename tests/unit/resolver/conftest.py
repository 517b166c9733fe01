from pathlib import Path

import pytest

from hadoop_dl.plan import target


@pytest.fixture(autouse=True)
def _no_kept_verdicts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No verdict of an earlier run is used, and none is kept in this checkout."""
    monkeypatch.setattr(target, "VERDICTS", tmp_path / "verdicts.json")
    target.verdicts.cache_clear()
