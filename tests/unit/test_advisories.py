"""The report's note about a stack whose lock has packages with known advisories."""

from hadoop_dl.data import advisories
from hadoop_dl.data.stacks import load_stack


def test_the_report_names_a_stack_with_known_advisories():
    stack = load_stack("tf1.15-cpu-py36-el8")
    [note] = advisories.notes(f"{stack.name}-{stack.lock().digest}")
    assert note.startswith("tf1.15-cpu-py36-el8 has known advisories: ")
    assert "tensorflow 1.15.5" in note
    newer_stack = load_stack("tf2.21-cpu-py311")
    assert advisories.notes(f"{newer_stack.name}-{newer_stack.lock().digest}") == []
    assert advisories.notes(f"{stack.name}-0123456789ab") == advisories.notes("../../etc") == advisories.notes("") == []
