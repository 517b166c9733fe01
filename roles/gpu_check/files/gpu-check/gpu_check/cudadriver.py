# -*- coding: utf-8 -*-
"""Compute without TensorFlow: the CUDA driver's own library copies a number to each GPU and back.

Runs in a child process with a time limit, because a call that the driver holds in the kernel never returns.
"""

import ctypes

NUMBER = 20260117
# What the usual codes of CUresult mean for an operator (cuda.h).
CODES = {
    2: "out of memory: something fills the GPU",
    3: "the driver is being stopped",
    46: "the GPU is in use and its compute mode is exclusive, a MIG part is missing, or a vGPU has no licence: gpu-check vgpu_licensed",
    100: "no GPU is visible: device nodes, their rights, CUDA_VISIBLE_DEVICES",
    101: "no such GPU",
    802: "the GPUs wait for the fabric of their NVLinks: gpu-check fabric_manager",
    803: "library and module of the driver differ: reboot",
    804: "the library is for a newer driver (forward compatibility)",
    999: "unknown: read dmesg; /dev/nvidia-uvm may be missing or closed",
}


class Refused(Exception):
    """A call that did not return 0."""


def call(library, name, *arguments):
    status = getattr(library, name)(*arguments)
    if status != 0:
        raise Refused("%s returned %d (%s)" % (name, status, CODES.get(status, "see CUresult in cuda.h")))


def copy_and_back(library, number):
    """None, or why this GPU does not give back the number it was given."""
    device, context = ctypes.c_int(), ctypes.c_void_p()
    memory, original, copy = ctypes.c_void_p(), ctypes.c_int(NUMBER), ctypes.c_int()
    size = ctypes.c_size_t(ctypes.sizeof(original))
    try:
        call(library, "cuDeviceGet", ctypes.byref(device), ctypes.c_int(number))
        call(library, "cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        try:
            call(library, "cuCtxSetCurrent", context)
            call(library, "cuMemAlloc_v2", ctypes.byref(memory), size)
            call(library, "cuMemcpyHtoD_v2", memory, ctypes.byref(original), size)
            call(library, "cuMemcpyDtoH_v2", ctypes.byref(copy), memory, size)
            call(library, "cuMemFree_v2", memory)
        finally:
            library.cuDevicePrimaryCtxRelease(device)
    except Refused as problem:
        return str(problem)
    return None if copy.value == original.value else "it returned %d for %d" % (copy.value, original.value)


def ask(library):
    """{"error": …} if no GPU can be used, else {"gpus": [None or a reason for each GPU]}."""
    count = ctypes.c_int()
    try:
        call(library, "cuInit", ctypes.c_uint(0))
        call(library, "cuDeviceGetCount", ctypes.byref(count))
    except Refused as problem:
        return {"error": str(problem)}
    return {"gpus": [copy_and_back(library, number) for number in range(count.value)]}
