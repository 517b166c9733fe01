"""What an application in its queue waits for."""

import re

from ansible.module_utils.hadoop_dl_host.yarn_cluster import amount

from tfos_submit.outcome import say
from tfos_submit.shortage import diagnostics
from tfos_submit.yarn import WAITING, applications, leaf_queue, number

PAUSE = 60  # seconds between two looks at the queue; nothing new, nothing said


def waits(application):
    """Whether YARN has the application in a queue and has started nothing of it."""
    return (
        bool(application) and application.get("state") in WAITING and int(application.get("runningContainers", 0)) < 1
    )


class Waiting(object):
    """Reports an application's place in its queue, and why YARN does not start it. Knows the time only as it is told."""

    def __init__(self, manager, options, begin):
        """manager: the ResourceManager. begin: of the job, in seconds; before options.wait nothing is said."""
        self.manager, self.options = manager, options
        self.due = begin + options.wait
        self.said = None

    def look(self, now, application):
        """Print a report if the place or the reason is new. now: in seconds. application: YARN's answer, or None."""
        if not waits(application) or now < self.due:
            return
        self.due = now + PAUSE
        # YARN's own words begin with the time; the details are what others use meanwhile.
        reason = re.sub(r"^\[[^]]*\] ", "", diagnostics(application))
        news = (self.earlier(application), reason.partition(" Details :")[0])
        if news != self.said:
            self.said = news
            self.report(application, news[0], reason)

    def report(self, application, earlier, reason):
        queue = application.get("queue") or self.options.queue or "default"
        parts = ["the application waits in queue %s (%s)." % (queue, application.get("state"))]
        if earlier is not None:
            parts.append(place(earlier))
        leaf = leaf_queue(self.manager.scheduler(), queue)
        if amount(leaf.get("absoluteCapacity")):  # 0 for a queue that has nodes with a label only
            parts.append(
                "The queue uses %.0f %% of its capacity, which is %.0f %% of the cluster."
                % (amount(leaf.get("usedCapacity")), leaf["absoluteCapacity"])
            )
        parts += ["YARN says: %s." % reason.rstrip(".;")] if reason else []
        parts.append("It may wait until --timeout (%d s) is over; Ctrl-C ends it." % self.options.timeout)
        say(" ".join(parts))

    def earlier(self, application):
        """How many applications of this queue were submitted earlier and wait as well; None: YARN does not answer."""
        answer = self.manager.get("/apps?states=ACCEPTED")
        if answer is None:
            return None
        peers = [app for app in applications(answer) if app.get("queue") == application.get("queue")]
        return len([app for app in peers if number(app) < number(application)])


def place(earlier):
    """A sentence for so many earlier applications."""
    if not earlier:
        return "No application that was submitted earlier waits there."
    if earlier == 1:
        return "1 application that was submitted earlier waits there, too."
    return "%d applications that were submitted earlier wait there, too." % earlier
