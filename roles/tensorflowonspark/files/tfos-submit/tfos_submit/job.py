"""One spark-submit, the YARN application that it makes, and their end."""

from __future__ import absolute_import, division, print_function

import ctypes
import io
import os
import re
import signal
import subprocess
import sys
import threading
import time
from multiprocessing.pool import ThreadPool  # novermin (2.7 has it)

from ansible.module_utils.hadoop_dl_host import processes
from ansible.module_utils.hadoop_dl_host.text_columns import write

from tfos_submit.hints import lost, say_causes
from tfos_submit.logs import NO_LOGS, answers, collected_logs, driver_file, live_logs, shorten_logs
from tfos_submit.outcome import FAILED, INTERRUPTED, NO_EXECUTORS, OK, TOO_LONG, say, tell
from tfos_submit.shortage import shortage
from tfos_submit.waiting import Waiting, waits
from tfos_submit.watch import Watch
from tfos_submit.yarn import ENDED, YarnCommand, applications

LIBC = ctypes.CDLL(None)
DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
TAIL = 100000  # bytes of what spark-submit printed are kept


def begin():
    """In a session of its own, that ends when this program is killed."""
    os.setsid()
    LIBC.prctl(DEATH_SIGNAL, signal.SIGTERM)


class Job(object):
    """One spark-submit, the YARN application that it makes, and their end."""

    def __init__(self, options, command, variables, tag, manager, hadoop, login):
        """variables: of the driver. tag: by which YARN finds the application. manager: its ResourceManager. login: the ticket for both."""
        self.options, self.command, self.variables = options, command, variables
        self.tag, self.manager, self.login = tag, manager, login
        self.yarn = YarnCommand(hadoop.get("HADOOP_HOME", ""), variables)
        self.tails = {"stderr": b"", "stdout": b""}  # Spark's log; in client mode all that the script prints
        self.application = None
        self.addresses = None  # of the NodeManagers of its containers, once all run
        self.logs = ""
        self.process = None
        self.in_cluster = options.deploy_mode == "cluster"

    def start(self):
        self.process = subprocess.Popen(
            self.command,
            env=self.variables,
            stdin=open(os.devnull),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=begin,
        )
        readers = [threading.Thread(target=self.read, args=(name,)) for name in sorted(self.tails)]
        for reader in readers:
            reader.daemon = True
            reader.start()
        return readers

    def read(self, name):
        source, sink = getattr(self.process, name), getattr(sys, name)
        for chunk in iter(lambda: os.read(source.fileno(), 65536), b""):
            self.tails[name] = (self.tails[name] + chunk)[-TAIL:]
            tell(chunk, sink)

    def said(self, name):
        return self.tails[name].decode("utf-8", "replace")

    def look(self):
        """Ask YARN about the application; without an answer the name that Spark prints is kept."""
        application = self.manager.application(self.tag)
        if application:
            self.application = application
        elif self.application is None:
            match = re.search(r"Submitted application (application_\d+_\d+)", self.said("stderr"))
            if match:
                self.application = {"id": match.group(1)}
                say(
                    "the ResourceManager's web address (%s) does not answer: missing executors cannot be detected."
                    % self.manager.place()
                )
        return application

    def run(self):
        """Until the job ends or is ended; returns the exit status."""
        readers = self.start()
        handlers = [(number, signal.getsignal(number)) for number in ENDING]
        reason = None
        try:
            verdict = self.wait()
            if verdict in (NO_EXECUTORS, TOO_LONG):
                reason = self.reason(verdict)
                say("ending the job: " + reason)
                if verdict == TOO_LONG and self.application:
                    self.logs = live_logs(self.manager, self.application["id"])
        finally:  # whatever happened on the way here
            if self.process.poll() != 0:
                self.end()
            for reader in readers:
                reader.join(10)
        if verdict == FAILED:  # nothing of it runs, and another attempt may follow: Ctrl-C counts again
            for number, handler in handlers:
                signal.signal(number, handler)
        if not self.logs and self.application and self.reads_logs(verdict):
            self.logs = self.collect(verdict)
        if self.in_cluster and verdict in (OK, FAILED):
            write(driver_file(self.logs, "stdout") or "")
        if verdict in (FAILED, TOO_LONG):
            self.explain(verdict)
        if verdict == OK and self.options.result and not self.fetch_result():
            verdict = FAILED
        if reason:
            say("the job was ended: " + reason)  # again, because Spark has said much since
        return verdict

    def wait(self):
        """The exit status that the job's course calls for."""
        begin = processes.clock()
        watch = Watch(self.options.executors, self.options.wait, self.options.timeout, begin)
        waiting = Waiting(self.manager, self.options, begin)
        try:
            while self.process.poll() is None:
                self.pause(self.options.poll)
                self.login.renew()
                application = self.look()
                verdict = watch.judge(processes.clock(), application)
                waiting.look(processes.clock(), application)
                if watch.complete and self.addresses is None and self.options.attempts > 1:
                    self.addresses = sorted(set(dict(self.manager.containers(self.application["id"])).values()))
                if verdict is not None and self.process.poll() is None:
                    return verdict
        except KeyboardInterrupt:
            return INTERRUPTED
        return OK if self.process.returncode == 0 else FAILED

    def pause(self, seconds):
        """Wait so many seconds, or until the job ends."""
        for _ in range(20):
            if self.process.poll() is not None:
                return
            time.sleep(seconds / 20.0)

    def reason(self, verdict):
        late = "it may take %d s (--timeout), and they are over. " % self.options.timeout
        queued = waits(self.application)
        if verdict == TOO_LONG and not queued:
            return late + "Give it more time, or look at what its executors do."
        running = applications(self.manager.get("/apps?states=RUNNING,ACCEPTED"))
        other_apps = [app for app in running if app.get("id") != self.application.get("id")]
        text = shortage(self.options, self.application, self.manager.nodes(), len(other_apps))
        return late + text if queued else text

    def end(self):
        """No container and no process of this job may outlive it, however often somebody presses Ctrl-C."""
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        if self.process.poll() is None:
            self.kill_application()
            self.send(signal.SIGTERM)
            for _ in range(40):
                if self.process.poll() is not None:
                    break
                time.sleep(self.options.poll / 4.0)
        self.send(signal.SIGKILL)
        self.process.wait()
        self.look()  # without an answer, what was known before counts
        if self.application and self.application.get("state") not in ENDED:
            self.kill_application()

    def send(self, number):
        try:
            os.killpg(self.process.pid, number)
        except OSError:
            return  # it is gone

    def kill_application(self):
        if self.application:
            self.yarn.kill(self.application["id"])

    def reads_logs(self, verdict):
        return verdict in (FAILED, TOO_LONG) or (verdict == OK and self.in_cluster)

    def collect(self, verdict):
        """The containers' logs, in cluster mode with the driver's; of a job that failed those of all hosts."""
        pattern = r"(?m)^Container: \S+_000001 " if self.in_cluster else r"LogType"
        count = 0 if verdict == OK else self.options.executors + 1
        return collected_logs(self.yarn, self.application["id"], self.options.poll * 2, pattern, count)

    def fetch_result(self):
        """Whether the file that the script had to write is here; in cluster mode YARN collected it with the logs."""
        path = self.options.result
        if self.in_cluster:
            text = driver_file(self.logs, os.path.basename(path))
            if text is not None:
                with io.open(path, "w", encoding="utf-8") as output:
                    output.write(text)
            missing = text is None
        else:
            missing = not os.path.exists(path)
        if missing:
            say("the job succeeded, but the result %s (--result) was not written, or YARN did not collect it." % path)
        return not missing

    def loss(self):
        """What of the job was lost, if that and no error of the script ended it; else empty."""
        if self.process.returncode == 0:  # the script succeeded, and did not write --result
            return ""
        return lost(self.said("stderr"), self.said("stdout"), self.logs, self.lost_hosts)

    def lost_hosts(self):
        """A sentence about hosts of the job that YARN no longer has; empty if it has all. It notes a dead one after 10 minutes only."""
        states = dict((node["name"], node["state"]) for node in self.manager.every_node() or [])
        hosts = [(re.sub(r"^\w+://|:\d+$", "", address), address) for address in self.addresses or []]
        answering = ThreadPool(16).map(answers, [address for _, address in hosts])
        gone = [
            host
            for (host, _), is_there in zip(hosts, answering)
            if states.get(host, "RUNNING") not in ("RUNNING", "DECOMMISSIONING") or any(answering) and not is_there
        ]
        return "YARN no longer has %s." % ", ".join(gone) if gone else ""

    def explain(self, verdict):
        """The executors' logs and what they mean."""
        logs = self.logs
        short = shorten_logs(logs)
        if short:
            say("the ends of the containers' logs:\n%s" % short)
        elif self.application:
            say(NO_LOGS % ((self.application["id"],) * 2))
        status = self.process.returncode
        killed = verdict == FAILED and (status < 0 or status > 128)  # what Spark then says in the master's log alone
        end = "User application exited with status %d" % (128 - status if status < 0 else status) if killed else ""
        say_causes(self.said("stderr") + "\n" + end, self.said("stdout"), logs)
        if verdict == FAILED:
            say("the job failed%s." % (" (%s)" % self.application["id"] if self.application else "; YARN never saw it"))
