"""What a question is: a function of the host that returns what it found, or raises Fail or Skip."""

import re
import traceback

QUESTIONS = []  # (name, function), in the order in which they are asked


class Fail(Exception):
    """Its text has three parts: what is required, what was found, what to do."""


class Skip(Exception):
    """The question has no meaning on this host, and why."""


class NotReported(Skip):
    """This driver does not know the field that was asked for."""


def check(function):
    QUESTIONS.append((function.__name__, function))
    return function


def host_check(function):
    """A question that only the host can answer: in a container it neither passes nor fails."""

    def ask(host):
        if host.contained():
            raise Skip(
                "host-level check of this %s; run it on the host: /opt/deeplearning/bin/gpu-check %s"
                % (host.place(), function.__name__)
            )
        return function(host)

    ask.__name__, ask.__doc__, ask.__module__ = function.__name__, function.__doc__, function.__module__
    return check(ask)


def version(text):
    return [int(part) for part in re.findall(r"\d+", text or "")]


def results(subject, names, questions=QUESTIONS):
    """The answers about a host, or, with the steps of acceptance.py, about a run of it."""
    for name, function in questions:
        if names and name not in names:
            continue
        try:
            outcome, message = "PASS", function(subject)
        except Skip as reason:
            outcome, message = "SKIP", str(reason)
        except Fail as problem:
            outcome, message = "FAIL", str(problem)
        except Exception:  # one question that breaks must not hide the others
            lines = traceback.format_exc().strip().splitlines()
            outcome, message = (
                "FAIL",
                "gpu-check itself failed: %s (%s). Report it with this line." % (lines[-1], lines[-3].strip()),
            )
        yield {"name": name, "question": function.__doc__, "outcome": outcome, "message": message}
