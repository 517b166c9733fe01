"""What a session of CDSW must find: a GPU's devices, the driver's library, TensorFlow; and what gpu-check answers if no GPU computes."""

from hadoop_dl_dev.demo.workbench import PRODUCT, Host


def assert_a_session_computes(host: Host) -> None:
    assert host.python(PRODUCT) == "(8536, '1.15.0', array([[6.]], dtype=float32))"


def assert_a_container_has_the_driver(host: Host, library: str, driver: str) -> None:
    """Devices and the library of the driver that runs, found by the loader of the engine's user under the name that TensorFlow asks for."""
    devices = host.inside("stat -c '%F %t %n' /dev/nvidia0 /dev/nvidiactl /dev/nvidia-uvm").splitlines()
    assert [line.split("/")[0] for line in devices] == ["character special file c3 "] * 2 + [
        "character special file 1ff "
    ]
    assert host.inside(f"readlink {library}/libcuda.so.1").strip() == f"libcuda.so.{driver}"
    inode = host.inside(f"stat -L -c %i {library}/libcuda.so.1").strip()
    assert inode == host.on_host(f"stat -c %i /usr/lib64/libcuda.so.{driver}").strip(), "the host's file, no copy"
    assert host.python('import ctypes; print(ctypes.CDLL("libcuda.so.1").cuInit(0))') == "100"


def assert_a_session_gets_the_driver(host: Host, library: str, driver: str) -> None:
    """The same, and what gpu-check tells the user: all is there, and no GPU computes."""
    assert_a_container_has_the_driver(host, library, driver)
    assert f"{library.removeprefix('/usr')}/libcuda.so.1" in host.inside(
        "gpu-check linker_finds_the_driver", check=False
    )
    answers = host.gpu_check()
    for question, answer in {
        "device_nodes": "1 GPUs, open for uid 8536",
        "driver_runs": "it answers",
        "gpus_by_driver_as_declared": "1 GPUs",
        "versions_agree": driver,
    }.items():
        assert answers[question] == ("PASS", answer), answers
    assert answers["cuda_computes"][0] == "FAIL"
    assert answers["cuda_computes"][1].startswith(
        "CUDA must start but does not: cuInit returned 100 (no GPU is visible"
    )
