"""Questions about CUDA, cuDNN and NCCL: as installed, and as a program's loader finds them."""

import os
import re

from ansible.module_utils.hadoop_dl_host import processes

from gpu_check.questions import Fail, Skip, check, host_check, version
from gpu_check.sentences import TIMEOUT, how_to_install


@host_check
def nvcc_version(host):
    """nvcc is the version of its directory"""
    homes = [path for path in host.glob("/usr/local/cuda-*") if re.match(r"/usr/local/cuda-\d+\.\d+$", path)]
    required = ["/usr/local/cuda-" + cuda_version for cuda_version in host.expected.get("cuda", [])]
    missing = [home for home in required if home not in homes]
    if missing:
        raise Fail("%s is required but missing. Run playbooks/gpu.yml." % ", ".join(missing))
    if not homes:
        raise Skip("no CUDA is installed; TensorFlow's own packages may contain it")
    for home in homes:
        output = host.run(host.root + home + "/bin/nvcc", "--version")[1]
        match = re.search(r"release (\d+\.\d+)", output)
        if not match or "/usr/local/cuda-" + match.group(1) != home:
            raise Fail(
                "%s/bin/nvcc must be release %s but reports %s. Install the toolkit again: playbooks/gpu.yml"
                % (home, home.split("-")[1], match.group(1) if match else "nothing")
            )
    return ", ".join(home.split("-")[1] for home in homes)


@host_check
def cuda_link(host):
    """/usr/local/cuda points to an installed toolkit"""
    link = host.root + "/usr/local/cuda"
    if not os.path.islink(link):
        raise Skip("there is no /usr/local/cuda")
    required = host.expected.get("cuda_default")
    target = os.path.basename(os.path.realpath(link))
    if not os.path.isdir(link) or (required and target != "cuda-" + required):
        raise Fail(
            "/usr/local/cuda must point to cuda-%s but points to %s. Run playbooks/gpu.yml."
            % (required or "X.Y", os.readlink(link))
        )
    return target


def runtime(number):
    """The soname of a toolkit's runtime: exact before 11, with .0 in 11, of the major number from 12 on."""
    if version(number) < [11]:
        return "libcudart.so." + number
    major = number.split(".")[0]
    return "libcudart.so." + (major + ".0" if version(number) < [12] else major)


@check
def linker_finds_cuda(host):
    """The loader finds every required toolkit's runtime"""
    required = host.expected.get("cuda", [])
    if not required:
        raise Skip("no CUDA toolkit is required here")
    for cuda_version in required:
        path = host.reached(runtime(cuda_version)) or host.reached("libcudart.so." + cuda_version)
        if path is None or not host.exists(path):
            remedy = "look at /etc/ld.so.conf.d/deeplearning-cuda-%s.conf and run ldconfig." % cuda_version
            raise Fail(
                "The linker must find %s of CUDA %s but its cache has none: %s"
                % (runtime(cuda_version), cuda_version, how_to_install(host, remedy))
            )
    return ", ".join(required)


def cudnn_header(host, home, major):
    """The version in cudnn's header, of this toolkit or of the system; None if no header has this major number."""
    for name in ("cudnn_version.h", "cudnn.h"):
        for directory in (
            home + "/include",
            home + "/targets/x86_64-linux/include",
            "/usr/include",
            "/usr/include/x86_64-linux-gnu",
        ):
            text = host.text(directory + "/" + name) or ""
            fields = dict(re.findall(r"^#define CUDNN_(MAJOR|MINOR|PATCHLEVEL)\s+(\d+)", text, re.M))
            if len(fields) == 3 and fields["MAJOR"] == major:
                return "%(MAJOR)s.%(MINOR)s.%(PATCHLEVEL)s" % fields
    return None


@check
def cudnn_version(host):
    """cuDNN: header version = library version = required"""
    required = host.expected.get("cudnn", {})
    if not required:
        raise Skip("no cuDNN is required here")
    for number, home in sorted(required.items()):
        soname = "libcudnn.so." + number.split(".")[0]
        path = host.reached(soname)
        if path is None:
            raise Fail(
                "TensorFlow loads %s, but the linker cache has none: %s"
                % (soname, how_to_install(host, "run playbooks/gpu.yml, or ldconfig."))
            )
        code = cudnn_code(host, path)
        short = ".".join(number.split(".")[:3])
        major, minor, patch = version(short)
        codes = (major * 1000 + minor * 100 + patch, major * 10000 + minor * 100 + patch)  # the second form from 9.0 on
        header = cudnn_header(host, home, number.split(".")[0])
        if code not in codes or header not in (None, short):
            raise Fail(
                "cuDNN %s is required; %s answers %s, the header says %s. Remove the other version, and run playbooks/gpu.yml."
                % (short, path, code, header or "nothing")
            )
    return ", ".join(sorted(required))


def cudnn_code(host, path):
    """The number that the library itself gives for its version; asked in a child, because loading it runs its code."""
    try:
        return processes.limited(lambda: host.load(host.root + path).cudnnGetVersion(), TIMEOUT)
    except processes.Late:
        raise Fail("%s must answer within %d seconds but did not. Install cuDNN again." % (path, TIMEOUT))
    except RuntimeError as error:
        line = str(error).strip().splitlines()[-1]
        raise Fail("%s must load but does not: %s. Install cuDNN again." % (path, line))


@check
def nccl_loads(host):
    """NCCL loads"""
    required = host.expected.get("nccl", {})
    if not required:
        raise Skip("no NCCL is required here")
    path = host.reached("libnccl.so.2")
    version = os.path.realpath(host.root + path).split("libnccl.so.")[-1] if path else "none"
    if version not in required:
        raise Fail(
            "NCCL %s is required, and the linker finds %s: %s"
            % (" or ".join(sorted(required)), version, how_to_install(host, "run playbooks/gpu.yml, or ldconfig."))
        )
    return version
