"""docker for tests of modules: images are a file; what programs in images answer, and what fails, is in its first argument.

The words of its refusals are those of Docker 20.10. The real daemon is asked by molecule's scenario cdsw_engine.
A module asks it 25 times for an image, so it starts without pathlib and the site's packages.
"""

import hashlib
import json
import os
import sys


def read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def digest(content: str) -> str:
    return "sha256:" + hashlib.sha256(content.encode()).hexdigest()


def main(path: str, argv: list[str]) -> int:
    state = json.loads(read(path))
    assert argv[0] == "--host"
    socket, command, arguments = argv[1], argv[2], argv[3:]
    state["calls"].append([command, *[word for word in arguments if len(word) < 200]])
    if socket != "unix:///run/docker.sock":
        status = refuse(f"Cannot connect to the Docker daemon at {socket}. Is the docker daemon running?")
    else:
        status = COMMANDS[command](state, arguments)
    write(path, json.dumps(state))
    return status


def refuse(text: str, status: int = 1) -> int:
    print(text, file=sys.stderr)
    return status


def info(state: dict, rest: list[str]) -> int:
    print(json.dumps(state["root"]))
    return 0


def version(state: dict, rest: list[str]) -> int:
    print("20.10.24")
    return 0


def images(state: dict, rest: list[str]) -> int:
    """Only the steps of builds that failed: they have no name."""
    assert rest[2:4] == ["--filter", "dangling=true"]
    print("\n".join(name for name in state["images"] if name.startswith("sha256:")))
    return 0


def inspect(state: dict, rest: list[str]) -> int:
    image = state["images"].get(rest[-1])
    if image is None:
        print("[]")
        return refuse(f"Error: No such image: {rest[-1]}")
    print(
        json.dumps([{"Id": image["id"], "Size": image["size"], "Config": {"Labels": image["labels"], "Cmd": ["bash"]}}])
    )
    return 0


def build(state: dict, rest: list[str]) -> int:
    tag, directory = rest[rest.index("--tag") + 1], rest[-1]
    first, *instructions = read(f"{directory}/Dockerfile").splitlines()
    if first == f"FROM {tag}":  # after the installation
        assert rest[:2] == ["--network", "none"]
        state["begins"] = instructions
        return 0
    state["built"] = {entry.name: read(entry.path) for entry in os.scandir(directory)}
    state["modes"] = {entry.name: entry.stat().st_mode & 0o777 for entry in os.scandir(directory)}
    if state["fail"] == "build":
        state["images"]["sha256:" + "5" * 64] = {"id": "5", "size": 1, "labels": {}}
        print("Step 5/9 : RUN apt-get install\nE: Failed to fetch http://me:s3cret@mirror/cuda.deb.")
        return refuse("The command '/bin/sh -c apt-get install' returned a non-zero code: 100")
    content = json.dumps(state["built"], sort_keys=True)
    labels = {"hadoop-deeplearning.stack": "x"}
    state["images"][tag] = {"id": digest(content), "size": state["size"], "labels": labels}
    return 0


def create(state: dict, rest: list[str]) -> int:
    assert rest[2:6] == ["--network", "none", "--entrypoint", "/bin/sh"]
    state["container"] = {"name": rest[1], "image": rest[6], "command": rest[8]}
    return 0


def cp(state: dict, rest: list[str]) -> int:
    assert rest[1].startswith(state["container"]["name"] + ":")
    state["wheels"] = {entry.name: read(entry.path) for entry in os.scandir(rest[0])}
    return 0


def start(state: dict, rest: list[str]) -> int:
    if state["fail"] == "install":
        print("Processing ./six.whl\nERROR: Hash mismatch for http://me:s3cret@mirror/wheels/six.whl.")
        return 1
    return 0


def commit(state: dict, rest: list[str]) -> int:
    old, layer = state["images"][rest[-1]], json.dumps([state["container"], state["wheels"]], sort_keys=True)
    state["images"][rest[-1]] = {**old, "id": digest(old["id"] + layer)}
    return 0


def run(state: dict, rest: list[str]) -> int:
    at = rest.index("--entrypoint")
    program, arguments = rest[at + 1], rest[at + 3 :]
    if program == "gpu-check":
        print(json.dumps([{"name": arguments[-1], "outcome": state["gpu_check"], "message": "TF 1: 134.0"}]))
        return 0
    if program not in state["programs"]:
        message = 'docker: Error response from daemon: OCI runtime create failed: exec: "%s": executable file not found in $PATH.'
        return refuse(message % program, 127)
    print("WARNING: something of TensorFlow's\n" + json.dumps(state["base" if len(arguments) == 3 else "image"]))
    return 0


def tag(state: dict, rest: list[str]) -> int:
    state["images"][rest[1]] = state["images"][rest[0]]
    return 0


def rmi(state: dict, rest: list[str]) -> int:
    if rest[0] in state["held"]:
        return refuse(f'Error response from daemon: conflict: unable to remove repository reference "{rest[0]}"')
    state["images"].pop(rest[0])
    return 0


def save(state: dict, rest: list[str]) -> int:
    path = rest[rest.index("--output") + 1]
    write(path, "a part of " + rest[-1])
    if state["fail"] == "save":
        return refuse(f"write {path}: no space left on device")
    write(path, "all of " + rest[-1])
    return 0


COMMANDS = {
    function.__name__: function
    for function in (version, info, images, inspect, build, run, tag, rmi, save, create, cp, start, commit)
}
COMMANDS["rm"] = lambda state, rest: 0
