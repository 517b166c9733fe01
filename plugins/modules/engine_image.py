#!/usr/bin/python
"""Build an engine image for CDSW, test it, save it, and make it the active one; the earlier ones stay for the way back."""

from __future__ import absolute_import, division, print_function

DOCUMENTATION = r"""{
"module": "engine_image",
"short_description": "Build, test and keep engine images of Cloudera Data Science Workbench",
"description": [
  "The tag has a digest of everything that the image is made from, its base included. An image that was built before becomes active again without a build.",
  "An image that cannot be built, or that fails its tests, is removed, and the active one stays the active one."],
"options": {
  "state": {"description": "Whether there is an image; absent removes all that this module made", "type": "str", "choices": ["present", "absent"], "default": "present"},
  "socket": {"description": "Socket of the Docker daemon", "type": "path", "default": "/var/run/docker.sock"},
  "base": {"description": "The base image on this host", "type": "str", "default": ""},
  "repository": {"description": "The image's name without its tag", "type": "str", "default": "deeplearning-engine"},
  "stack": {"description": "Name of the stack; the tag begins with it", "type": "str", "default": ""},
  "python": {"description": "The engine's Python, such as 3.6", "type": "str", "default": ""},
  "glibc": {"description": "The oldest glibc for the stack; empty for any", "type": "str", "default": ""},
  "digest": {"description": "sha256 of what the image is made from besides its base", "type": "str", "default": ""},
  "files": {"description": "Names and contents (base64) of the files of the build", "type": "dict", "default": {}},
  "questions": {"description": "What the probe asks in the image", "type": "dict", "default": {}},
  "probe": {"description": "The probe, a program for Python 2.7 and 3", "type": "str", "default": ""},
  "megabytes": {"description": "Size of the packages", "type": "int", "default": 0},
  "mirror_url": {"description": "Address of the mirror", "type": "str", "default": ""},
  "mirror_ca": {"description": "CA bundle on this host for a mirror with https; empty for the system's", "type": "str", "default": ""},
  "wheels": {"description": "What the mirror has of the stack: project, file, sha256 and size of each", "type": "list", "elements": "dict", "default": []},
  "install": {"description": "The command that installs these wheels in the image", "type": "str", "default": ""},
  "network": {"description": "Network of the build; the installation of the wheels has none", "type": "str", "default": "host"},
  "archives": {"description": "Directory for archives of images; empty for none", "type": "str", "default": ""},
  "keep": {"description": "How many earlier images stay", "type": "int", "default": 2},
  "record": {"description": "Which image is active", "type": "path", "default": "/opt/deeplearning/etc/cdsw_engine.json"},
  "timeout": {"description": "Seconds for the build, and for the archive", "type": "int", "default": 3600}
}}"""

RETURN = r"""
image: {description: The active image as repository and tag, type: str, returned: always}
built: {description: Whether this run built it, type: bool, returned: always}
archive: {description: Its archive; empty for none, type: str, returned: always}
driver: {description: Whether it needs the driver of a host before it can be imported, type: bool, returned: always}
earlier: {description: Images that stay for the way back, type: list, elements: str, returned: always}
removed: {description: Images that were removed, type: list, elements: str, returned: always}
held: {description: Images that Docker did not remove and why, type: list, elements: str, returned: always}
"""

import base64
import hashlib
import json
import os
import shutil

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import (
    atomic_files,
    disk_space,
    documented,
    engine_docker,
    environment_packages,
    mirror_source,
    source_wheels,
)
from ansible.module_utils.hadoop_dl_host.engine_docker import Docker, Refused, answered
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock, HostLocked, unless_checking
from ansible.module_utils.hadoop_dl_host.host_system import version_key

LABEL = "hadoop-deeplearning.stack"
ROOM = 4  # times the packages' size, for the files that they become
GB, LARGEST = 10**9, 10  # gigabytes that an image may have
PROGRAMS = ("gpu-check",)  # files that run
CONTAINER, WHEELS = "cdsw-engine-installation", "/opt/deeplearning/wheels"  # as in `install`


def read(path):
    """The record: {"active": ..., "images": [newest first]}."""
    try:
        with open(path) as handle:
            record = json.load(handle)
    except (IOError, OSError):
        record = {}
    except ValueError as error:
        raise Refused("%s must be JSON, but is not: %s. Remove it: images that exist are found again" % (path, error))
    return {"active": record.get("active", ""), "images": list(record.get("images", []))}


def write(path, content):
    atomic_files.make_directory(os.path.dirname(path))
    atomic_files.write_json(path, content)


class Images(object):
    """What one run does; `docker` changes nothing in check mode."""

    def __init__(self, params, docker, checks):
        self.wanted, self.docker, self.checks = params, docker, checks
        self.record = read(params["record"])
        self.before = self.record["active"]
        self.place = os.path.join(os.path.dirname(os.path.dirname(params["record"])), "engine-build")

    def target(self):
        """The image that must be active: base and content decide its tag."""
        base = self.docker.image(self.wanted["base"])
        if base is None:
            raise Refused(
                "The base image %s must be on this host, but is not. Load it (docker pull, or docker load --input FILE), and run this again"
                % self.wanted["base"]
            )
        self.base = base
        digest = hashlib.sha256((self.wanted["digest"] + base["id"]).encode("utf-8")).hexdigest()[:12]
        return "%s:%s-%s" % (self.wanted["repository"], self.wanted["stack"], digest)

    def ensure(self):
        root, target = self.docker.check(), self.target()
        image = self.docker.image(target)
        if image is not None and LABEL not in image["labels"]:
            raise Refused(
                "%s must be an image of this project, but another has its name. Give cdsw_engine_repository another name"
                % target
            )
        old_entry = self.entry(target)
        whole = image is not None and old_entry is not None and old_entry["id"] == image["id"]
        self.built = image is None
        self.changed = not (whole and self.before == target and self.archived(old_entry))
        if not self.changed:
            return old_entry
        if self.checks:
            return old_entry or {"image": target, "driver": False, "archive": ""}
        driver = bool(old_entry and old_entry["driver"])
        if self.built or not whole:  # an image without a record was not tested by its run to the end
            self.require_room(root)
            driver = self.make(target)
        image = self.docker.image(target)
        archive = self.archive(target, old_entry)
        entry = dict(archive, image=target, id=image["id"], size=image["size"], base=self.wanted["base"], driver=driver)
        other_entries = [row for row in self.record["images"] if row["image"] != target]
        self.record = {"active": target, "images": [entry] + other_entries}
        write(self.wanted["record"], self.record)
        return entry

    def entry(self, image):
        return ([row for row in self.record["images"] if row["image"] == image] or [None])[0]

    def require_room(self, root):
        size = self.wanted["megabytes"] * disk_space.MB * ROOM
        problem = disk_space.shortage(root, size, 1000) or disk_space.shortage(
            os.path.dirname(self.place), size // ROOM, 1000
        )
        if not problem and self.wanted["archives"]:
            problem = disk_space.shortage(self.wanted["archives"], size + self.base["size"], 10)
        if problem:
            raise Refused("%s Free some space, and run this again" % problem)

    def make(self, target):
        """Build under another name, test, and only then name it. Whether it needs a driver."""
        draft = target + "-draft"
        try:
            if self.docker.image(target) is None:
                self.test_base()
                self.build(draft)
            else:
                self.docker.tag(target, draft)
            driver = self.test(draft)
            self.docker.tag(draft, target)
        except Refused as problem:
            reason = self.docker.remove(draft) if self.docker.image(draft) else ""
            reason = reason or "; ".join(self.docker.remove_steps(LABEL))
            note = " What is left of it could not be removed: %s." % reason if reason else " Nothing of it is left."
            raise Refused("%s was not made: %s.%s" % (target, str(problem).rstrip("."), note))
        self.docker.remove(draft)  # the name alone: the image has its own by now
        return driver

    def test_base(self):
        python = "python" + self.wanted["python"]
        answer = self.docker.ask(self.wanted["base"], "cdsw-engine-probe", python, ["-s", "-c", self.wanted["probe"]])
        try:
            answers = answered(answer)
        except Refused as problem:
            raise Refused(
                "%s must have %s for uid 8536, but: %s" % (self.wanted["base"], python, str(problem).rstrip("."))
            )
        text = "%s is %s with Python %s and glibc %s" % (
            self.wanted["base"],
            answers["system"],
            answers["python"],
            answers["glibc"],
        )
        if not answers["pip"]:
            raise Refused("%s, but it has no pip" % text)
        if not answers["wide"]:
            raise Refused("%s, but that Python has narrow characters (cp27m), and the packages are cp27mu" % text)
        if self.wanted["glibc"] and version_key(answers["glibc"]) < version_key(self.wanted["glibc"]):
            raise Refused("%s, but %s requires glibc %s" % (text, self.wanted["stack"], self.wanted["glibc"]))

    def build(self, draft):
        """The image without packages, and then with them: what is fetched is verified before anything is built."""
        shutil.rmtree(self.place, ignore_errors=True)  # of a run that was killed
        wheels, context = os.path.join(self.place, "wheels"), os.path.join(self.place, "context")
        try:
            self.fetch(wheels)
            os.mkdir(context, 0o700)
            for name, content in self.wanted["files"].items():
                path = os.path.join(context, name)
                with open(path, "wb") as handle:
                    handle.write(base64.b64decode(content))
                os.chmod(path, 0o755 if name in PROGRAMS else 0o644)
            self.docker.build(context, draft, self.wanted["network"], self.wanted["timeout"])
            self.docker.install(draft, CONTAINER, wheels, WHEELS, self.wanted["install"], self.wanted["timeout"])
        finally:
            shutil.rmtree(self.place, ignore_errors=True)

    def fetch(self, directory):
        """Every wheel of the stack; a source distribution becomes one by its recipe."""
        os.makedirs(directory, 0o700)
        ca = self.wanted["mirror_ca"] or None
        try:
            source = mirror_source.source(self.wanted["mirror_url"], ca, self.wanted["timeout"])
            for entry in self.wanted["wheels"]:
                path = source.fetch(entry, directory)
                if not source_wheels.is_wheel(path):
                    source_wheels.make(entry["file"], entry["sha256"], path, directory)
                    os.unlink(path)
        except (environment_packages.Refused, source_wheels.NoWheel) as problem:
            raise Refused(str(problem))

    def test(self, draft):
        """Size, imports, libraries, a product, gpu-check: as the engine's user. Whether it needs a driver."""
        size = self.docker.image(draft)["size"]
        if size > LARGEST * GB:
            raise Refused("it has %.1f GB, and CDSW takes images of at most %d GB" % (size / GB, LARGEST))
        arguments = ["-s", "-c", self.wanted["probe"], json.dumps(self.wanted["questions"])]
        name, python = "cdsw-engine-probe", "python" + self.wanted["python"]
        answers = answered(self.docker.ask(draft, name, python, arguments))
        if answers["problems"]:
            count = len(answers["problems"]) - 3
            raise Refused("; ".join(answers["problems"][:3]) + ("; and %d more" % count if count > 0 else ""))
        if not answers["driver"]:
            self.ask_gpu_check(draft, name)
        return answers["driver"]

    def ask_gpu_check(self, draft, name):
        question = "tensorflow_computes_on_cpu"
        answer = self.docker.ask(draft, name, "gpu-check", ["--json", question])
        try:
            outcome = json.loads(answer.output)[0]
        except (ValueError, LookupError):
            raise Refused("gpu-check must answer, but: %s" % engine_docker.reason(answer.error or answer.output))
        if outcome["outcome"] == "FAIL":  # without a GPU the question is skipped, and the probe has multiplied
            raise Refused("gpu-check %s: %s" % (question, outcome["message"]))

    # Archives, for sites without a registry.

    def archived(self, entry):
        if not self.wanted["archives"]:
            return True
        path = entry["archive"]
        if os.path.dirname(path) != self.wanted["archives"] or not os.path.isfile(path + ".sha256"):
            return False
        return os.path.isfile(path) and os.path.getsize(path) == entry["archive_size"]

    def archive(self, image, entry):
        if not self.wanted["archives"]:
            return {"archive": ""}
        if entry is not None and self.archived(entry):
            return dict((key, entry[key]) for key in ("archive", "archive_size", "archive_sha256"))
        directory = self.wanted["archives"]
        atomic_files.make_directory(directory)
        path = os.path.join(directory, image.rpartition("/")[2].replace(":", "-") + ".tar")
        draft = path + ".draft"
        try:
            self.docker.save(image, draft, self.wanted["timeout"])
            digest = atomic_files.sha256_of(draft)
            os.chmod(draft, 0o644)
            atomic_files.write_whole(path + ".sha256", ("%s  %s\n" % (digest, os.path.basename(path))).encode("utf-8"))
            os.rename(draft, path)
        finally:
            if os.path.exists(draft):
                os.unlink(draft)
        return {"archive": path, "archive_size": os.path.getsize(path), "archive_sha256": digest}

    # What goes.

    def prune(self, keep):
        """Remove all but the active image and so many earlier ones; what a container uses stays, and its entry."""
        active = [row for row in self.record["images"] if row["image"] == self.record["active"]]
        earlier_entries = [row for row in self.record["images"] if row["image"] != self.record["active"]]
        stay, go = active + earlier_entries[:keep], earlier_entries[keep:]
        removed, stuck_images = [], []
        for row in go:
            reason = "" if self.checks else self.docker.remove(row["image"])
            if reason:
                stuck_images.append("%s: %s" % (row["image"], reason))
                stay.append(row)
                continue
            removed.append(row["image"])
            for path in (row["archive"], row["archive"] + ".sha256") if row["archive"] and not self.checks else ():
                if os.path.exists(path):
                    os.unlink(path)
        if removed and not self.checks:
            self.record["images"] = stay
            write(self.wanted["record"], self.record)
        return removed, stuck_images, [row["image"] for row in stay if row["image"] != self.record["active"]]


def present(images, params):
    entry = images.ensure()
    removed, stuck_images, earlier = images.prune(params["keep"])
    answer = {"image": entry["image"], "archive": entry["archive"], "driver": entry["driver"], "earlier": earlier}
    return dict(answer, changed=images.changed or bool(removed), built=images.built, removed=removed, held=stuck_images)


def absent(images, params):
    images.record["active"] = ""
    changed = bool(images.record["images"])
    if changed:
        images.docker.check()
    removed, stuck_images, earlier = images.prune(0)
    if not images.checks:
        shutil.rmtree(images.place, ignore_errors=True)  # of a run that was killed
    if os.path.exists(params["record"]) and not images.checks and not stuck_images:
        os.unlink(params["record"])
    answer = {"image": "", "archive": "", "driver": False, "earlier": earlier}
    return dict(answer, changed=changed, built=False, removed=removed, held=stuck_images)


def run(module, params, lock):
    images = Images(params, Docker(params["socket"], lock), module.check_mode)
    try:
        answer = (present if params["state"] == "present" else absent)(images, params)
    except (Refused, IOError, OSError) as problem:
        stays = "%s is still active" % images.before if images.before else "No image of this project is active"
        module.fail_json(
            msg="%s. %s." % (disk_space.explained(problem, os.path.dirname(images.place)).rstrip("."), stays)
        )
    difference = {"before": images.before + "\n", "after": answer["image"] + "\n"}
    module.exit_json(
        diff=dict(difference, before_header="active engine image", after_header="active engine image"), **answer
    )


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    params = module.params
    try:
        lock = HostLock("engine image", root=os.path.dirname(os.path.dirname(params["record"])))
        with unless_checking(module, lock) as held_lock:
            run(module, params, held_lock)
    except (Refused, HostLocked) as problem:
        module.fail_json(msg=str(problem))


if __name__ == "__main__":
    main()
