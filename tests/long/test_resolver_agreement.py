"""`scripts/stack resolve` and the plan, on 2,000 drawn requests and hosts: tests/unit/resolver/agreement.py."""

from __future__ import annotations

import agreement


def test_resolve_and_the_plan_say_the_same() -> None:
    texts = {str(case): text for case in agreement.drawn(2000, seed=2) if (text := agreement.disagreement(case))}
    assert texts == {}
