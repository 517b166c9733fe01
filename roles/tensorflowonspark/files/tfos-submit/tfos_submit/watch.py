"""Judges an application's progress."""

from tfos_submit.outcome import NO_EXECUTORS, TOO_LONG
from tfos_submit.yarn import ENDED


class Watch(object):
    """Judges an application's progress. Knows the time only as it is told."""

    def __init__(self, executors, wait, timeout, now):
        self.executors, self.wait = executors, wait
        self.deadline = now + timeout
        self.since = None
        self.complete = False

    def judge(self, now, application):
        """NO_EXECUTORS, TOO_LONG, or None while all is well."""
        if now >= self.deadline:
            return TOO_LONG
        if not application or self.complete or application.get("state") in ENDED:
            return None
        if int(application.get("runningContainers", 0)) > self.executors:  # and the ApplicationMaster
            self.complete = True
            return None
        if application.get("state") != "RUNNING":  # it waits in its queue; executors are asked for once its master runs
            self.since = None
            return None
        if self.since is None:
            self.since = now
        return NO_EXECUTORS if now - self.since >= self.wait else None
