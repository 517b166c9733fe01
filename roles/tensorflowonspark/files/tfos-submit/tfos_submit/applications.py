"""tfos-submit jobs, logs and stop: a user's applications in YARN, whoever submitted them and from where."""

import re
import time

from ansible.module_utils.hadoop_dl_host.text_columns import columns, write
from ansible.module_utils.hadoop_dl_host.yarn_cluster import gpus_of

from tfos_submit.first_error import errors
from tfos_submit.hints import say_causes
from tfos_submit.logs import NO_LOGS, live_logs
from tfos_submit.outcome import FAILED, OK, say
from tfos_submit.waiting import waits
from tfos_submit.yarn import ENDED, WAITING, number

LAST = 10  # ended applications that are listed
PAUSE = 4  # seconds between two questions for logs that YARN still collects
CLIENT_MODE = r"deploy\.yarn\.ExecutorLauncher|Driver now available"  # only then in a log of Spark's master
CLIENT = "SUCCEEDED (client mode)"
COLLECTING = ("NOT_START", "RUNNING", "RUNNING_WITH_FAILURE")
TITLES = ("APPLICATION", "NAME", "STATE", "QUEUE", "AGE", "CONTAINERS", "GPUS", "TRACKING")


def jobs(options, manager, yarn, user):
    """List the user's applications: those that run, those that wait, the last ones that ended. Returns the exit status."""
    if options.all:
        return holders(manager)
    apps = manager.applications_of(user)
    old_apps = [app for app in apps if app.get("state") in ENDED]
    # YARN hides times from those who may not view an application.
    old_apps.sort(key=lambda app: (int(app.get("finishedTime") or 0), number(app)), reverse=True)
    living = [app for app in apps if app not in old_apps]
    living.sort(key=lambda app: (app.get("state") in WAITING, number(app)))
    if apps:
        cells = [row(app, time.time()) for app in living + old_apps[:LAST]]
        write("\n".join(columns([TITLES] + cells)) + "\n")
        if any(CLIENT in line[2] for line in cells):
            say("%s: YARN reports this also if the script failed. tfos-submit logs APPLICATION shows why." % CLIENT)
    else:
        say("YARN has no application of %s." % user)
    return OK


def holders(manager):
    """List the running applications of all users that hold GPUs, the largest first. Returns the exit status."""
    apps = [app for app in manager.applications("states=RUNNING") if gpus_of(app)]
    apps.sort(key=lambda app: (-gpus_of(app), number(app)))
    if apps:
        cells = [(app["user"],) + row(app, time.time()) for app in apps]
        write("\n".join(columns([("USER",) + TITLES] + cells)) + "\n")
        say("YARN does not know what these GPUs do. The operators' report has that (docs/operate/report.md).")
    else:
        say("no application that YARN shows to you holds a GPU.")
    return OK


def row(app, now):
    """The cells of an application. now: seconds since 1970."""
    is_over = app.get("state") in ENDED
    start_time = int(app.get("startedTime") or 0) // 1000
    state = app.get("finalStatus") if app.get("state") == "FINISHED" else app.get("state")
    return (
        app.get("id"),
        re.sub(r"\s+", " ", app.get("name") or "")[:24],
        CLIENT if state == "SUCCEEDED" and "client-mode" in (app.get("applicationTags") or "").split(",") else state,
        app.get("queue"),
        age(max(0, int(now) - start_time)) if start_time else "-",
        "-" if is_over else max(0, int(app.get("runningContainers", 0))),
        "-" if gpus_of(app) is None else gpus_of(app),
        app.get("trackingUrl") or "-",
    )


def age(seconds):
    """So many seconds as 59s, 59m, 1h05m or 2d04h."""
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if days:
        return "%dd%02dh" % (days, hours % 24)
    return "%dh%02dm" % (hours, minutes % 60) if hours else "%dm" % minutes if minutes else "%ds" % seconds


def when_collected(manager, application):
    """The application once YARN has collected the logs of every host, which takes a few seconds after its end."""
    for _ in range(6):
        if application.get("state") not in ENDED or application.get("logAggregationStatus") not in COLLECTING:
            return application
        time.sleep(PAUSE)
        application = manager.named(application["id"]) or application
    say("YARN still collects the logs of %s: those of some hosts may be missing." % application.get("id"))
    return application


def logs(options, manager, yarn, user):
    """Print an application's log, then what it means unless its script succeeded. Returns the exit status."""
    name = options.application
    application = manager.named(name)
    if waits(application):
        say("%s waits in queue %s (%s) and has no logs yet." % (name, application.get("queue"), application["state"]))
        return FAILED
    application = when_collected(manager, application)
    text = yarn.logs(name)
    runs = bool(application) and application.get("state") not in ENDED
    if runs and "LogType" not in text:  # before Hadoop 3, `yarn logs` has those of ended applications only
        text = live_logs(manager, name)
    if not text:
        say("%s runs, but YARN's hosts give none of its logs." % name if runs else NO_LOGS % (name, name))
        say_causes(application.get("diagnostics", ""), "", "")
        return FAILED
    write(text.rstrip("\n") + "\n")
    is_client = re.search(CLIENT_MODE, text)
    if application.get("finalStatus") != "SUCCEEDED":
        say_causes(application.get("diagnostics", ""), "", text, not runs)
    elif is_client and errors(text, anything=False):
        say("YARN reports SUCCEEDED: in client mode, also if the script failed. If it did, this is why:")
        say_causes("", "", text)
    elif is_client:
        say("no executor failed. In client mode, what the script printed is where it ran, and YARN has none of it.")
    return OK


def stop(options, manager, yarn, user):
    """End an application as its owner, or as whom YARN allows to. Returns the exit status; YARN's refusal is printed."""
    answer = yarn.kill(options.application)
    if answer:
        already_over = "already finished" in answer
        say("%s %s ended." % (options.application, "had already" if already_over else "was"))
    return OK if answer else FAILED
