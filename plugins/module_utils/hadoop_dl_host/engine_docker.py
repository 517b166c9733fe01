"""What an engine image needs of Docker: build, ask, save, remove, each with a limit. Python 2.7 and 3, standard library only."""

import json
import os
import re

from . import processes

SECONDS = 120  # of a question to the daemon
ASK_SECONDS = 900  # of a program in an image: the first import of TensorFlow from a cold disk
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
SECRET = re.compile(r"//[^/@\s]+@")
# What docker run prints after the cause.
AFTERWARDS = re.compile(r"error waiting for container|^(See|Run) 'docker run --help'")
CAUSES = (
    r"(ERROR|E): ",
    r"\w+(Error|Mismatch|Exception): ",
    r".*HASHES",
    r"No matching|Could not",
    r"Error response from daemon: ",
    r".*\S",
)
ENGINE_USER = "8536:8536"  # cdsw, in every engine


class Refused(Exception):
    """What is required, what was found, what to do."""


def reason(text):
    """The line that names the cause: apt and pip print ERROR or E, an old pip a traceback, Docker's daemon its own words, a build its last line."""
    lines = [SECRET.sub("//...@", COLOURS.sub("", line)).strip() for line in text.splitlines()]
    lines = [re.sub(r"^docker: (?=Error response from daemon: )", "", line) for line in lines]
    lines = [line for line in lines if line and not AFTERWARDS.search(line)] or lines
    for pattern in CAUSES:
        causes = [line for line in lines if re.match(pattern, line)]
        if causes:
            return (causes[0] if pattern == r"(ERROR|E): " else causes[-1]).rstrip(".")[:400]
    return "no output"


class Docker(object):
    """The daemon behind one socket; CDSW from 1.6 on may have another than Docker's own."""

    def __init__(self, socket, lock=None):
        self.socket = socket
        self.lock = lock

    def run(self, argv, seconds=SECONDS):
        environment = dict(os.environ, LC_ALL="C", DOCKER_BUILDKIT="0")
        return processes.run(["docker", "--host", "unix://" + self.socket] + argv, seconds, environment, lock=self.lock)

    def check(self):
        """The directory in which the daemon keeps images."""
        # docker info of some releases ends with a trace if no daemon answers; docker version has a sentence.
        answer = self.run(["version", "--format", "{{.Server.Version}}"])
        if answer.status == 0:
            answer = self.run(["info", "--format", "{{json .DockerRootDir}}"])
        try:
            root_directory = json.loads(answer.output.splitlines()[-1]) if answer.status == 0 and answer.output else ""
        except ValueError:
            root_directory = ""
        if not root_directory:
            cause = answer.problem if answer.late or answer.status == 127 else reason(answer.error or answer.output)
            raise Refused(
                "Docker must answer on %s, but: %s. Start it, or set cdsw_engine_socket to the socket of CDSW's Docker."
                % (self.socket, cause)
            )
        return root_directory

    def image(self, reference):
        """Id, size and labels of an image; None if there is none."""
        answer = self.run(["inspect", "--type", "image", reference])
        if answer.status != 0:
            if "no such" in answer.error.lower():
                return None
            raise Refused("Docker must tell about image %s, but: %s." % (reference, reason(answer.error)))
        image = json.loads(answer.output)[0]
        config = image.get("Config") or {}
        lines = ["%s %s\n" % (name.upper(), json.dumps(config.get(name) or [])) for name in ("Entrypoint", "Cmd")]
        return {"id": image["Id"], "size": image["Size"], "labels": config.get("Labels") or {}, "begins": lines}

    def build(self, directory, tag, network, seconds):
        answer = self.run(
            ["build", "--network", network, "--force-rm", "--pull=false", "--tag", tag, directory], seconds
        )
        if answer.late:
            raise Refused("the build did not end within %d s" % seconds)
        if answer.status != 0:
            raise Refused("the build failed: %s" % reason(answer.output + "\n" + answer.error))

    def install(self, image, name, directory, target, command, seconds):
        """Run a command in the image, without a network; what it leaves becomes the image. It reads a copy of the directory as target.

        The image then begins with the command, and docker commit cannot say that it begins with nothing; a Dockerfile can.
        """
        lines = self.image(image)["begins"]
        begin = ["create", "--name", name, "--network", "none", "--entrypoint", "/bin/sh", image, "-c", command]
        steps = [begin, ["cp", directory, "%s:%s" % (name, target)], ["start", "--attach", name]]
        self.run(["rm", "--force", name])  # of a run that was killed
        try:
            for argv in steps + [["commit", name, image]]:
                answer = self.run(argv, seconds)
                if answer.late:
                    raise Refused("the installation did not end within %d s" % seconds)
                if answer.status != 0:
                    raise Refused("the installation failed: %s" % reason(answer.output + "\n" + answer.error))
        finally:
            self.run(["rm", "--force", name])
        last = directory + "-last"
        os.mkdir(last)
        with open(os.path.join(last, "Dockerfile"), "w") as handle:
            handle.write("FROM %s\n%s" % (image, "".join(lines)))
        self.build(last, image, "none", seconds)

    def ask(self, image, name, program, arguments):
        """What a program answers in the image, as the engine's user, without a network."""
        self.run(["rm", "--force", name])  # of a run that was killed
        argv = ["run", "--rm", "--name", name, "--network", "none", "--user", ENGINE_USER]
        argv += ["--env", "CDSW_ENGINE_ID=engine", "--env", "HOME=/home/cdsw", "--workdir", "/"]
        answer = self.run(argv + ["--entrypoint", program, image] + arguments, ASK_SECONDS)
        if answer.late:
            self.run(["rm", "--force", name])
        return answer

    def tag(self, image, name):
        answer = self.run(["tag", image, name])
        if answer.status != 0:
            raise Refused("the image could not get its name: %s" % reason(answer.error))

    def remove(self, reference):
        """Why an image stays; empty if it is gone. An image that a container uses stays, because the removal is not forced."""
        answer = self.run(["rmi", reference], 600)
        if answer.status == 0 or "no such image" in answer.error.lower():
            return ""
        return answer.problem if answer.late else reason(answer.error)

    def remove_steps(self, label):
        """Remove what a build that failed left of its steps: images without a name and with this label."""
        answer = self.run(
            ["images", "--quiet", "--no-trunc", "--filter", "dangling=true", "--filter", "label=" + label]
        )
        return [stuck for stuck in [self.remove(image_id) for image_id in sorted(set(answer.output.split()))] if stuck]

    def save(self, reference, path, seconds):
        answer = self.run(["save", "--output", path, reference], seconds)
        if answer.status != 0:
            cause = "it did not end within %d s" % seconds if answer.late else reason(answer.error)
            raise Refused("the image could not be saved as %s: %s" % (path, cause))


def answered(answer):
    """The JSON of a program's last line, or Refused with its words."""
    lines = [line for line in answer.output.splitlines() if line.startswith("{")]
    try:
        return json.loads(lines[-1])
    except (IndexError, ValueError):
        cause = "it did not end in time" if answer.late else reason(answer.error or answer.output)
        raise Refused(cause)
