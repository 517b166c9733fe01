# -*- coding: utf-8 -*-
"""How fast the GPUs copy: to and from the host's memory, within their own, and to each other. CUDA's driver library alone.

Runs in a child process with a limit, as cudadriver.py does. What arrives is compared with what was sent: an IOMMU or a bridge between
two GPUs may lose it.
"""

from __future__ import absolute_import, division, print_function

import ctypes
import os
import re

from gpu_check.cudadriver import Refused, call

BLOCK = 64 << 20  # bytes of a copy between host and GPU, and between GPUs
MEMORY_BLOCK = 512 << 20  # of one within a GPU: several times the largest cache
COPIES = 16  # in one measurement
PASSES = 3  # the fastest counts
CLOCK, WIDTH = 36, 37  # CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE in kHz, …_GLOBAL_MEMORY_BUS_WIDTH in bits (cuda.h)
PORTABLE = 1  # CU_MEMHOSTALLOC_PORTABLE: pinned for every context
STREAM = ctypes.c_void_p(None)
DEVICES = "/sys/bus/pci/devices"
LOST = "what arrived is not what was sent"


def made(kind, library, name, *arguments):
    """What a call writes into its first parameter, which has this type."""
    value = kind()
    call(library, name, ctypes.byref(value), *arguments)
    return value


class Gpu(object):
    """A GPU of this process: its context, and two blocks of its memory: what is sent, and where others send to."""

    def __init__(self, library, number):
        self.device = made(ctypes.c_int, library, "cuDeviceGet", ctypes.c_int(number))
        text = ctypes.create_string_buffer(32)
        call(library, "cuDeviceGetPCIBusId", text, ctypes.c_int(len(text)), self.device)
        self.address = address(text.value.decode("ascii"))
        # Memory moves data twice in a clock; a bus of 256 bits carries 32 bytes.
        clock, width = [
            made(ctypes.c_int, library, "cuDeviceGetAttribute", ctypes.c_int(attribute), self.device).value
            for attribute in (CLOCK, WIDTH)
        ]
        self.memory_limit = 2 * clock * width // 8 // 1000
        self.context = made(ctypes.c_void_p, library, "cuDevicePrimaryCtxRetain", self.device)

    def take_blocks(self, library):
        call(library, "cuCtxSetCurrent", self.context)
        self.block, self.landing = [
            made(ctypes.c_void_p, library, "cuMemAlloc_v2", ctypes.c_size_t(BLOCK)) for _ in range(2)
        ]


def address(text):
    """A PCI address as sysfs has it: nvidia-smi writes the domain with eight digits."""
    return text.strip().lower()[-12:]


def stay_near(gpu):
    """Run on the processors that this GPU is attached to: other memory is farther. Python 2.7 cannot, and runs where it is."""
    try:
        with open("%s/%s/local_cpulist" % (DEVICES, gpu.address)) as handle:
            spans = re.findall(r"(\d+)(?:-(\d+))?", handle.read())
        near = [cpu for first, last in spans for cpu in range(int(first), int(last or first) + 1)]
        os.sched_setaffinity(0, near)  # novermin
    except (AttributeError, IOError, OSError, ValueError):
        return  # the file is missing, or this process may run on none of them


def rate(library, size, name, *arguments):
    """MB/s of the fastest pass of this copy, by the GPU's own clock. The first pass wakes clocks and links, and does not count."""
    start, end = [made(ctypes.c_void_p, library, "cuEventCreate", ctypes.c_uint(0)) for _ in range(2)]
    passes = []
    for _ in range(1 + PASSES):
        call(library, "cuEventRecord", start, STREAM)
        for _ in range(COPIES):
            call(library, name, *arguments)
        call(library, "cuEventRecord", end, STREAM)
        call(library, "cuEventSynchronize", end)
        passes.append(made(ctypes.c_float, library, "cuEventElapsedTime", start, end).value)
    for event in (start, end):
        call(library, "cuEventDestroy_v2", event)
    return int(size * COPIES / (1000 * min(passes[1:])))


def pinned(library):
    return made(ctypes.c_void_p, library, "cuMemHostAlloc", ctypes.c_size_t(BLOCK), ctypes.c_uint(PORTABLE))


def host_copies(library, gpu, pattern):
    """MB/s from and to the host's memory. The GPU's block has the pattern afterwards."""
    call(library, "cuCtxSetCurrent", gpu.context)
    stay_near(gpu)
    source, target, size = pinned(library), pinned(library), ctypes.c_size_t(BLOCK)
    ctypes.memmove(source, pattern, BLOCK)
    ctypes.memset(target, 0, BLOCK)
    into = rate(library, BLOCK, "cuMemcpyHtoDAsync_v2", gpu.block, source, size, STREAM)
    out = rate(library, BLOCK, "cuMemcpyDtoHAsync_v2", target, gpu.block, size, STREAM)
    intact = ctypes.string_at(target, BLOCK) == pattern
    for memory in (source, target):
        call(library, "cuMemFreeHost", memory)
    if not intact:
        raise Refused(LOST)
    return {"host to GPU": into, "GPU to host": out}


def memory_copy(library, gpu):
    """MB/s within the GPU's memory, which reads and writes each byte."""
    call(library, "cuCtxSetCurrent", gpu.context)
    size = ctypes.c_size_t(MEMORY_BLOCK)
    blocks = [made(ctypes.c_void_p, library, "cuMemAlloc_v2", size) for _ in range(2)]
    speed = 2 * rate(library, MEMORY_BLOCK, "cuMemcpyDtoDAsync_v2", blocks[0], blocks[1], size, STREAM)
    for block in blocks:
        call(library, "cuMemFree_v2", block)
    return speed


def alone(library, gpu, pattern):
    """What one GPU does by itself, or why it cannot be measured."""
    answer = {"gpu": gpu.address, "memory_limit": gpu.memory_limit, "copies": {}, "problem": None}
    try:
        gpu.take_blocks(library)
        answer["copies"] = host_copies(library, gpu, pattern)
        answer["copies"]["memory"] = memory_copy(library, gpu)
    except Refused as problem:
        answer["problem"] = str(problem)
    return answer


def one_way(library, source, target, pattern):
    """MB/s from one GPU to another, and whether the data arrived."""
    size = ctypes.c_size_t(BLOCK)
    call(library, "cuCtxSetCurrent", target.context)
    call(library, "cuMemsetD8_v2", target.landing, ctypes.c_ubyte(0), size)
    call(library, "cuCtxSynchronize")
    call(library, "cuCtxSetCurrent", source.context)
    places = (target.landing, target.context, source.block, source.context)
    speed = rate(library, BLOCK, "cuMemcpyPeerAsync", *(places + (size, STREAM)))
    host_block = ctypes.create_string_buffer(BLOCK)
    call(library, "cuCtxSetCurrent", target.context)
    call(library, "cuMemcpyDtoH_v2", ctypes.byref(host_block), target.landing, size)
    return speed, host_block.raw == pattern


def pair(library, first, second, pattern):
    """Both directions between two GPUs; without access to each other the driver copies through the host's memory."""
    ways = ((first, second), (second, first))
    access = [made(ctypes.c_int, library, "cuDeviceCanAccessPeer", src.device, dst.device).value for src, dst in ways]
    direct, rows = all(access), []
    for src, dst in ways if direct else ():
        call(library, "cuCtxSetCurrent", src.context)
        call(library, "cuCtxEnablePeerAccess", dst.context, ctypes.c_uint(0))
    for src, dst in ways:
        speed, intact = one_way(library, src, dst, pattern)
        rows.append({"gpu": src.address, "peer": dst.address, "direct": direct, "speed": speed, "problem": None})
        rows[-1]["problem"] = None if intact else LOST
    for src, dst in ways if direct else ():
        call(library, "cuCtxSetCurrent", src.context)
        call(library, "cuCtxDisablePeerAccess", dst.context)
    return rows


def peers(library, gpus, pattern):
    measurements = []
    for at, first in enumerate(gpus):
        for second in gpus[at + 1 :]:
            try:
                measurements += pair(library, first, second, pattern)
            except Refused as problem:
                names = {"gpu": first.address, "peer": second.address}
                measurements.append(dict(names, direct=False, speed=0, problem=str(problem)))
    return measurements


def measure(library):
    """{"error": …} if no GPU can be measured, else what each does alone and each pair together."""
    try:
        call(library, "cuInit", ctypes.c_uint(0))
        count = made(ctypes.c_int, library, "cuDeviceGetCount").value
        gpus = [Gpu(library, number) for number in range(count)]
    except Refused as problem:
        return {"error": str(problem)}
    pattern = os.urandom(BLOCK).replace(b"\0", b"\1")  # no byte of it lies at its target before it arrives
    rows = [alone(library, gpu, pattern) for gpu in gpus]
    able = [gpu for gpu, row in zip(gpus, rows) if row["problem"] is None]
    answer = {"gpus": rows, "peers": peers(library, able, pattern)}
    for gpu in gpus:
        call(library, "cuDevicePrimaryCtxRelease", gpu.device)
    return answer
