# -*- coding: utf-8 -*-
"""One sum over all GPUs of the host (all-reduce), as a training makes them: NCCL's library and the driver's. What arrives is compared.

Runs in a child process with a limit, as cudadriver.py does: a NCCL whose GPUs do not reach each other waits for ever.
"""

from __future__ import absolute_import, division, print_function

import ctypes

from gpu_check.bandwidth import BLOCK, COPIES, LOST, PASSES, Gpu, made
from gpu_check.cudadriver import Refused, call

# nccl.h: ncclFloat32, ncclSum, and what ncclResult_t means. cudaStream_t is CUstream.
FLOAT, SUM = 7, 0
CODES = {
    1: "a call of CUDA failed",
    2: "a call of the system failed: /dev/shm, locked memory",
    3: "NCCL itself failed",
    5: "wrong use, such as two versions of NCCL or CUDA in one process",
}
NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING
PERIOD = 10007  # numbers, of which none is as its neighbour. Their sums are whole numbers, which a float has exactly.


def asked(nccl, name, *arguments):
    status = getattr(nccl, name)(*arguments)
    if status != 0:
        meaning = CODES.get(status, "see ncclResult_t in nccl.h")
        raise Refused("%s returned %d (%s); NCCL_DEBUG=INFO shows more" % (name, status, meaning))


def numbers(first, step, size):
    """Bytes of floats: first, first + step, … again and again."""
    period = (ctypes.c_float * PERIOD)(*[first + step * at for at in range(PERIOD)])
    raw = bytes(bytearray(period))
    return (raw * (size // len(raw) + 1))[:size]


class Ring(object):
    """The host's GPUs with a stream and a communicator each."""

    def __init__(self, library, nccl, gpus):
        self.library, self.nccl, self.gpus, self.streams = library, nccl, gpus, []
        for rank, gpu in enumerate(gpus):
            gpu.take_blocks(library)
            self.streams.append(made(ctypes.c_void_p, library, "cuStreamCreate", ctypes.c_uint(NON_BLOCKING)))
            content = ctypes.create_string_buffer(numbers(rank, 1, BLOCK), BLOCK)
            call(library, "cuMemcpyHtoD_v2", gpu.block, ctypes.byref(content), ctypes.c_size_t(BLOCK))
        self.comms, count = (ctypes.c_void_p * len(gpus))(), len(gpus)
        asked(nccl, "ncclCommInitAll", self.comms, ctypes.c_int(count), (ctypes.c_int * count)(*range(count)))

    def add_up(self):
        asked(self.nccl, "ncclGroupStart")
        for gpu, comm, stream in zip(self.gpus, self.comms, self.streams):
            args = (ctypes.c_size_t(BLOCK // 4), ctypes.c_int(FLOAT), ctypes.c_int(SUM), ctypes.c_void_p(comm), stream)
            asked(self.nccl, "ncclAllReduce", gpu.block, gpu.landing, *args)
        asked(self.nccl, "ncclGroupEnd")

    def milliseconds(self):
        """Of the fastest pass, by the first GPU's clock. The first pass connects the GPUs, and does not count."""
        library, passes = self.library, []
        call(library, "cuCtxSetCurrent", self.gpus[0].context)
        start, end = [made(ctypes.c_void_p, library, "cuEventCreate", ctypes.c_uint(0)) for _ in range(2)]
        for _ in range(1 + PASSES):
            call(library, "cuEventRecord", start, self.streams[0])
            for _ in range(COPIES):
                self.add_up()
            call(library, "cuEventRecord", end, self.streams[0])
            call(library, "cuEventSynchronize", end)
            passes.append(made(ctypes.c_float, library, "cuEventElapsedTime", start, end).value)
        return min(passes[1:])

    def arrived(self):
        """Whether every GPU has the sums."""
        count, sums = len(self.gpus), ctypes.create_string_buffer(BLOCK)
        expected = numbers(count * (count - 1) // 2, count, BLOCK)
        for gpu, stream in zip(self.gpus, self.streams):
            call(self.library, "cuCtxSetCurrent", gpu.context)
            call(self.library, "cuStreamSynchronize", stream)
            call(self.library, "cuMemcpyDtoH_v2", ctypes.byref(sums), gpu.landing, ctypes.c_size_t(BLOCK))
            if sums.raw != expected:
                return False
        return True

    def leave(self):
        for gpu, comm, stream in zip(self.gpus, self.comms, self.streams):
            call(self.library, "cuCtxSetCurrent", gpu.context)
            asked(self.nccl, "ncclCommDestroy", ctypes.c_void_p(comm))
            call(self.library, "cuStreamDestroy_v2", stream)
            call(self.library, "cuDevicePrimaryCtxRelease", gpu.device)


def all_reduce(library, nccl):
    """{"error": …}, or the MB/s that each GPU's links carry: 2 (n - 1) / n of what is added up (github.com/NVIDIA/nccl-tests, PERFORMANCE.md)."""
    try:
        call(library, "cuInit", ctypes.c_uint(0))
        count = made(ctypes.c_int, library, "cuDeviceGetCount").value
        ring = Ring(library, nccl, [Gpu(library, number) for number in range(count)])
        speed = BLOCK * COPIES / (1000 * ring.milliseconds()) * 2 * (count - 1) / count
        if not ring.arrived():
            raise Refused(LOST)
        ring.leave()
    except Refused as problem:
        return {"error": str(problem)}
    return {"gpu": ring.gpus[0].address, "speed": int(speed)}
