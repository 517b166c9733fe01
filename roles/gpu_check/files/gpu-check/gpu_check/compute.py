"""Questions that compute: through the driver's own library, and through TensorFlow.

They take memory on the GPUs, so they are skipped if other processes compute there, unless they are requested by name.
"""

import json
import os
import pkgutil
import re

from ansible.module_utils.hadoop_dl_host import processes

from gpu_check.causes import causes, devices, last_error
from gpu_check.cudadriver import ask as ask_cuda
from gpu_check.host import ETC
from gpu_check.product import ANSWER
from gpu_check.questions import Fail, Skip, check
from gpu_check.sentences import no_library

SLOW = 240  # seconds; the first import of TensorFlow from a cold disk, the first start of old wheels on a new GPU
PRODUCT = [[22.0, 28.0], [49.0, 64.0]]
CONVOLUTION = [[[[12.0], [16.0]], [[24.0], [28.0]]]]
MISSING = "Run gpu-check gpus_by_driver_as_declared; if it passes, look at dmesg | grep -i -e nvrm -e xid for the missing GPU."


def leaves_alone(host, name):
    """Skip if processes compute on the GPUs and this question was not requested by name."""
    host.requires_gpu()
    users = [] if name in host.named else host.users()
    if users:
        raise Skip(
            "%d processes compute on the GPUs (%s%s), and this takes memory there; request it by name: gpu-check %s"
            % (len(users), "; ".join(users[:3]), "; ..." if len(users) > 3 else "", name)
        )


@check
def cuda_computes(host):
    """CUDA's driver library copies a number to every GPU and back"""
    leaves_alone(host, "cuda_computes")
    if not host.reached("libcuda.so.1"):
        raise Fail(no_library(host, "libcuda.so.1"))
    try:
        answer = processes.limited(lambda: ask_cuda(host.load("libcuda.so.1")), SLOW)
    except processes.Late:
        raise Fail(
            "CUDA must answer within %d seconds but did not: a GPU is sick. Look at dmesg for Xid, and reboot the host."
            % SLOW
        )
    except RuntimeError as error:
        raise Fail(
            "libcuda.so.1 must load but does not: %s. Run ldconfig, or playbooks/gpu.yml." % last_error(str(error))
        )
    if "error" in answer:
        raise Fail("CUDA must start but does not: %s. %s" % (answer["error"], " ".join(devices(host))))
    sick = ["GPU %d: %s" % pair for pair in enumerate(answer["gpus"]) if pair[1]]
    if sick:
        raise Fail("Every GPU must return the number it was given; %s. Look at dmesg | grep -i xid" % "; ".join(sick))
    required_gpus(host, len(answer["gpus"]), "CUDA", "")
    return "%d GPUs" % len(answer["gpus"])


def required_gpus(host, count, program, reason):
    """Fail unless a process sees the GPUs that are here; of those that MIG divides it sees one part."""
    if host.mig() and not host.undivided() and 1 <= count <= max(1, host.count()):
        return
    if count != host.count():
        reason = reason or " ".join(devices(host)) or MISSING
        raise Fail("%s must list %d GPUs but lists %d. %s" % (program, host.count(), count, reason))


def base_python(host):
    """The Python that the environment was made with: the link's end, or what virtualenv wrote beside its copy."""
    for path in host.glob(os.path.dirname(os.path.dirname(host.python)) + "/lib/python*/orig-prefix.txt"):
        return "%s%s/bin/%s" % (host.root, host.text(path), os.path.basename(os.path.dirname(path)))
    return os.path.realpath(host.root + host.python)


def python_problem(host):
    """Why the environment's Python cannot work here: the one that it was made with is of another system."""
    required = base_python(host)
    number = re.search(r"python(\d[\d.]*)$", required)
    pythons = [path for prefix in ("/usr/bin", "/usr/local/bin") for path in host.glob(prefix + "/python[23]*")]
    pythons = [path for path in pythons if re.search(r"/python\d\.\d+$", path)]
    return (
        "TensorFlow's environment was made with Python%s and requires it, with its library, at %s; it is not here, found %s: this is another system "
        "than the host's. Use an image that has this Python there, or a stack whose Python this %s has (%s)."
        % (
            " " + number.group(1) if number else "",
            required[len(host.root) :] if required.startswith(host.root) else required,
            ", ".join(pythons) or "no other Python either",
            host.place(),
            "engine images: Project Settings > Engine" if host.engine() else "deeplearning_request",
        )
    )


def tensorflow(host, hidden=False):
    """What TensorFlow sees and computes (None if it failed before), and what it printed; without GPUs if hidden."""
    if hidden and host.looks.get(False) and not (host.looks[False][0] or {"gpus": [0]})["gpus"]:
        return host.looks[False]  # there was nothing to hide
    if hidden not in host.looks:
        if not host.exists(host.python):
            if not os.path.islink(host.root + host.python):
                mounted = not host.contained() or host.exists(ETC)
                hint = "" if mounted else "; mount /opt/deeplearning of its host"
                raise Skip("no environment is installed here (%s)%s" % (host.python, hint))
            raise Fail(python_problem(host))
        program = host.program or pkgutil.get_data("gpu_check", "product.py").decode("utf-8")
        setting = ["CUDA_VISIBLE_DEVICES="] if hidden else []
        argv = ["env", "TF_CPP_MIN_LOG_LEVEL=1"] + setting + ["/bin/sh", "-c", 'exec "$0" "$@" 2>&1']
        argv += [host.root + host.python, "-E", "-s", "-c", program]
        output = host.execute_foreign(tuple(argv), SLOW)[1]
        answers = re.findall(r"^%s(\{.*\})$" % ANSWER, output, re.M)
        if not answers and not os.path.exists(base_python(host)):
            raise Fail(python_problem(host))  # a copy of the interpreter is here, its library is not
        host.looks[hidden] = (json.loads(answers[-1]) if answers else None, output)
    return host.looks[hidden]


def wrong(answers, right, place):
    """The first way in which a result is wrong or in the wrong place, or None."""
    for name, answer in sorted(answers.items()):
        if answer["error"]:
            return "in the form of %s it ends with: %s" % (name, answer["error"])
        if answer["value"] != right:
            return "in the form of %s it is %s" % (name, answer["value"])
        if not answer["places"] or not all(device.lower().endswith(place) for device in answer["places"]):
            return "in the form of %s it was computed on %s" % (
                name,
                ", ".join(answer["places"]) or "an unknown device",
            )
    return None


def computed(look, place):
    """What is wrong with the product, or with the convolution, or None."""
    return wrong(look["products"], PRODUCT, place) or wrong(look["convolutions"], CONVOLUTION, place)


@check
def tensorflow_lists_gpus(host):
    """TensorFlow lists every GPU"""
    leaves_alone(host, "tensorflow_lists_gpus")
    look, output = tensorflow(host)
    count = len(look["gpus"]) if look else 0
    required_gpus(host, count, "TensorFlow", causes(host, look, output))
    return "%d GPUs" % count


def on_gpu(host, kind, right, words):
    look, output = tensorflow(host)
    if not look or not look["gpus"]:
        raise Fail("%s must be computed on GPU:0, but TensorFlow sees no GPU. %s" % (words, causes(host, look, output)))
    problem = wrong(look[kind], right, "gpu:0")
    if problem:
        raise Fail("%s must be %s on GPU:0; %s. %s" % (words, right, problem, causes(host, look, output)))
    return ", ".join(sorted(look[kind]))


@check
def tensorflow_computes_on_gpu(host):
    """TensorFlow places a 2x3 by 3x2 matrix product on GPU:0, with the right result"""
    leaves_alone(host, "tensorflow_computes_on_gpu")
    return on_gpu(host, "products", PRODUCT, "The product")


@check
def tensorflow_convolves_on_gpu(host):
    """TensorFlow places a 2x2 convolution on GPU:0, with the right result: cuDNN works"""
    leaves_alone(host, "tensorflow_convolves_on_gpu")
    return on_gpu(host, "convolutions", CONVOLUTION, "The convolution")


@check
def tensorflow_computes_on_cpu(host):
    """Product and convolution with CUDA_VISIBLE_DEVICES="" on the CPU"""
    leaves_alone(host, "tensorflow_computes_on_cpu")
    tensorflow(host)
    look, output = tensorflow(host, hidden=True)
    if not look or look["gpus"] or computed(look, "cpu:0"):
        reason = "GPUs are seen all the same" if look and look["gpus"] else look and computed(look, "cpu:0")
        raise Fail(
            "With CUDA_VISIBLE_DEVICES empty, product and convolution must be right on CPU:0; %s. Install the environment again: site.yml -e apply=all."
            % (reason if look else "TensorFlow reports: " + last_error(output))
        )
    return ", ".join(sorted(look["products"]))
