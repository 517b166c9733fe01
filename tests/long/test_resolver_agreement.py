"""`scripts/stack resolve` and the plan, on 2,000 drawn requests and hosts: tests/unit/resolver/agreement.py."""

import agreement


def test_resolve_and_the_plan_say_the_same():
    texts = {str(case): text for case in agreement.drawn(2000, seed=2) if (text := agreement.disagreement(case))}
    assert texts == {}
