import json

import pytest

RECORD = "/opt/deeplearning/etc/cdsw_engine.json"
AS_IN_A_SESSION = "docker run --rm --network none --user 8536:8536 --env CDSW_ENGINE_ID=engine --env HOME=/home/cdsw"


@pytest.fixture(scope="module")
def active(host):
    return json.loads(host.file(RECORD).content_string)["images"][0]


def inside(host, image, program, arguments):
    return host.run(f"{AS_IN_A_SESSION} --entrypoint {program} {image} {arguments}")


def test_the_active_image_is_the_stacks_and_its_name_has_a_digest(host, active):
    image = json.loads(host.check_output(f"docker image inspect {active['image']}"))[0]
    assert image["Id"] == active["id"]
    assert image["Config"]["Labels"]["hadoop-deeplearning.stack"] == "tf1.4-cpu-py27-el7"
    assert active["image"].startswith("deeplearning-engine:tf1.4-cpu-py27-el7-")


def test_a_session_computes_with_the_engines_own_python(host, active):
    program = (
        "import os, tensorflow as tf; print(os.getuid(), tf.__version__, tf.Session().run(tf.matmul([[2.0]], [[3.0]])))"
    )
    answer = inside(host, active["image"], "python2.7", f'-c "{program}"')
    assert answer.rc == 0, answer.stderr
    assert answer.stdout.strip() == "(8536, '1.4.1', array([[6.]], dtype=float32))"


def test_gpu_check_tells_the_engines_user_what_is_missing(host, active):
    """As where a host with GPUs starts a session without them: the image alone expects none."""
    expected = "/srv/gpu-check.json"
    host.check_output(f'echo \'{{"gpu_count": "1"}}\' > {expected} && chmod 0644 {expected}')
    mount = f"--volume {expected}:/opt/deeplearning/etc/gpu-check.json:ro"
    answer = inside(host, f"{mount} {active['image']}", "gpu-check", "--json")
    rows = {row["name"]: (row["outcome"], row["message"]) for row in json.loads(answer.stdout)}
    assert rows["tensorflow_computes_on_cpu"] == ("PASS", "TF 1"), rows
    assert rows["device_nodes"][0] == "FAIL"
    assert rows["device_nodes"][1].startswith("This engine was started without GPUs: no /dev/nvidia0 is here."), rows


def test_gpu_check_of_the_image_alone_expects_no_gpu(host, active):
    answer = inside(host, active["image"], "gpu-check", "--json device_nodes")
    assert answer.rc == 0
    assert "no GPU is on the PCI bus" in answer.stdout


def test_the_archive_is_what_its_sha256_says_and_docker_loads_it(host, active):
    directory, _, name = active["archive"].rpartition("/")
    assert host.run(f"cd {directory} && sha256sum --check {name}.sha256").rc == 0
    answer = host.check_output(f"docker load --input {active['archive']}")
    assert answer == f"Loaded image: {active['image']}"


def test_nothing_of_the_build_is_left(host, active):
    listed = host.check_output("docker images --format '{{.Repository}}:{{.Tag}}'").split()
    assert sorted(listed) == sorted([active["image"], "cdsw/engine:stand-in"])
    assert host.check_output("docker ps --all --quiet") == ""
    assert not host.file("/opt/deeplearning/engine-build").exists


def test_the_image_has_no_wheel_and_starts_as_its_base(host, active):
    assert inside(host, active["image"], "ls", "/opt/deeplearning").stdout.split() == [
        "bin",
        "current",
        "engine",
        "etc",
    ]
    base, own = (
        json.loads(host.check_output(f"docker image inspect {name}"))[0]["Config"]
        for name in ("cdsw/engine:stand-in", active["image"])
    )
    for key in ("Entrypoint", "Cmd"):  # Docker gives none as null or as an empty list
        assert (own[key] or None) == (base[key] or None)
