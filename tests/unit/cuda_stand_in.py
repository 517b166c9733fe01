"""A stand-in for libcuda.so.1 as gpu-check calls it. It refuses what the driver refuses, and what C would misread.

Signatures and codes: cuda.h of CUDA 12.4 (the wheel nvidia-cuda-runtime-cu12 12.4.127). ctypes hands a bare number over as an
int of 32 bits, so every argument must have the type of its parameter. Time passes only by copies, at the speeds of its GPUs.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED, INVALID_DEVICE, INVALID_CONTEXT, INVALID_HANDLE = 1, 2, 3, 101, 201, 400
PEER_UNSUPPORTED, PEER_TWICE, PEER_CLOSED = 217, 704, 705
Pointer, Size, Int, Unsigned = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_uint
OUT = type(ctypes.byref(Int()))  # a reference to anything
PARAMETERS: dict[str, tuple[Any, ...]] = {
    "cuInit": (Unsigned,),
    "cuDeviceGetCount": (OUT,),
    "cuDeviceGet": (OUT, Int),
    "cuDeviceGetAttribute": (OUT, Int, Int),
    "cuDeviceGetPCIBusId": (ctypes.Array, Int, Int),
    "cuDevicePrimaryCtxRetain": (OUT, Int),
    "cuDevicePrimaryCtxRelease": (Int,),
    "cuCtxSetCurrent": (Pointer,),
    "cuCtxSynchronize": (),
    "cuMemAlloc_v2": (OUT, Size),
    "cuMemFree_v2": (Pointer,),
    "cuMemHostAlloc": (OUT, Size, Unsigned),
    "cuMemFreeHost": (Pointer,),
    "cuMemsetD8_v2": (Pointer, ctypes.c_ubyte, Size),
    "cuMemcpyHtoD_v2": (Pointer, (Pointer, OUT), Size),
    "cuMemcpyDtoH_v2": ((Pointer, OUT), Pointer, Size),
    "cuMemcpyHtoDAsync_v2": (Pointer, Pointer, Size, Pointer),
    "cuMemcpyDtoHAsync_v2": (Pointer, Pointer, Size, Pointer),
    "cuMemcpyDtoDAsync_v2": (Pointer, Pointer, Size, Pointer),
    "cuMemcpyPeerAsync": (Pointer, Pointer, Pointer, Pointer, Size, Pointer),
    "cuDeviceCanAccessPeer": (OUT, Int, Int),
    "cuCtxEnablePeerAccess": (Pointer, Unsigned),
    "cuCtxDisablePeerAccess": (Pointer,),
    "cuStreamCreate": (OUT, Unsigned),
    "cuStreamSynchronize": (Pointer,),
    "cuStreamDestroy_v2": (Pointer,),
    "cuEventCreate": (OUT, Unsigned),
    "cuEventRecord": (Pointer, Pointer),
    "cuEventSynchronize": (Pointer,),
    "cuEventElapsedTime": (OUT, Pointer, Pointer),
    "cuEventDestroy_v2": (Pointer,),
}


class Refusal(Exception):
    """The status that a call returns."""


class Library:
    """What ctypes makes of a library: an attribute for each of its calls. `refused`: calls that return another status."""

    parameters: ClassVar[dict[str, tuple[Any, ...]]]
    initialized = True

    def __init__(self, refused: dict[str, int] | None) -> None:
        self.refused = refused or {}

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name not in self.parameters:
            raise AttributeError(name)  # as ctypes, if the library has no such symbol

        def call(*arguments: Any) -> int:
            kinds = self.parameters[name]
            assert len(arguments) == len(kinds), f"{name} takes {len(kinds)} arguments"
            for argument, kind in zip(arguments, kinds, strict=True):
                assert isinstance(argument, kind), f"{name} got {argument!r}"
            if name in self.refused:
                return self.refused[name]
            try:
                if name != "cuInit" and not self.initialized:
                    raise Refusal(NOT_INITIALIZED)
                getattr(self, "_" + name.removesuffix("_v2"))(*arguments)
            except Refusal as status:
                return int(status.args[0])
            return 0

        return call


@dataclass
class Gpu:
    """A card: MB/s of its copies, memory, clock in kHz and width of its bus (of a Tesla T4)."""

    speeds: dict[str, float] = field(default_factory=lambda: {"in": 12_300, "out": 13_100, "memory": 120_000})
    memory: int = 2 << 30
    clock: int = 5_001_000
    width: int = 256
    address: str = "0000:3B:00.0"
    loses: frozenset[str] = frozenset()  # kinds of copies whose last byte does not arrive


def cards(number: int, **values: Any) -> list[Gpu]:
    return [Gpu(address=f"0000:{0x3B + at:02X}:00.0", **values) for at in range(number)]


class Cuda(Library):
    """The driver's library. `peers`: MB/s between two GPUs that reach each other, by their numbers."""

    parameters = PARAMETERS

    def __init__(
        self, gpus: list[Gpu], refused: dict[str, int] | None = None, peers: dict[tuple[int, int], float] | None = None
    ) -> None:
        super().__init__(refused)
        self.gpus, self.peers = gpus, peers or {}
        self.through_the_host = 5_000.0
        self.lost: set[tuple[int, int]] = set()  # pairs whose copies do not arrive
        self.initialized, self.current = False, 0
        self.buffers: dict[int, tuple[int, Any]] = {}  # address -> GPU (-1: the host's) and memory
        self.retained: dict[int, int] = {}
        self.opened: set[tuple[int, int]] = set()
        self.events: dict[int, tuple[int, float | None]] = {}
        self.streams: dict[int, int] = {}
        self.time = 0.0  # ms
        self.handles = 0

    def left(self) -> dict[str, Any]:
        """What was taken and not given back."""
        return {
            "memory": [gpu for gpu, _ in self.buffers.values()],
            "contexts": [number for number, times in self.retained.items() if times],
            "events": list(self.events),
            "streams": list(self.streams),
            "peers": sorted(self.opened),
        }

    # Devices and contexts. A context's handle is 1000 and the number of its GPU.

    def _device(self, number: Any) -> int:
        value: int = number.value
        if not 0 <= value < len(self.gpus):
            raise Refusal(INVALID_DEVICE)
        return value

    def _context(self, handle: Any) -> int:
        number = (handle.value or 0) - 1000
        if not self.retained.get(number):
            raise Refusal(INVALID_CONTEXT)
        return int(number)

    def _here(self) -> int:
        return self._context(Pointer(self.current))

    def _cuInit(self, flags: Any) -> None:
        if flags.value != 0:
            raise Refusal(INVALID_VALUE)
        self.initialized = True

    def _cuDeviceGetCount(self, count: Any) -> None:
        count._obj.value = len(self.gpus)

    def _cuDeviceGet(self, device: Any, ordinal: Any) -> None:
        device._obj.value = self._device(ordinal)

    def _cuDeviceGetAttribute(self, value: Any, attribute: Any, device: Any) -> None:
        gpu = self.gpus[self._device(device)]
        attributes = {36: gpu.clock, 37: gpu.width}
        if attribute.value not in attributes:
            raise Refusal(INVALID_VALUE)
        value._obj.value = attributes[attribute.value]

    def _cuDeviceGetPCIBusId(self, text: Any, length: Any, device: Any) -> None:
        address = self.gpus[self._device(device)].address.encode() + b"\0"
        if length.value > len(text) or length.value < len(address):
            raise Refusal(INVALID_VALUE)
        text.value = address[:-1]

    def _cuDevicePrimaryCtxRetain(self, context: Any, device: Any) -> None:
        number = self._device(device)
        self.retained[number] = self.retained.get(number, 0) + 1
        context._obj.value = 1000 + number

    def _cuDevicePrimaryCtxRelease(self, device: Any) -> None:
        number = self._device(device)
        if not self.retained.get(number):
            raise Refusal(INVALID_CONTEXT)
        self.retained[number] -= 1
        if not self.retained[number]:  # the driver resets the context, and frees what is in it
            self.buffers = {at: entry for at, entry in self.buffers.items() if entry[0] != number}
            self.events = {at: entry for at, entry in self.events.items() if entry[0] != number}

    def _cuCtxSetCurrent(self, context: Any) -> None:
        self._context(context)
        self.current = context.value

    def _cuCtxSynchronize(self) -> None:
        self._here()

    # Memory.

    def _new(self, owner: int, pointer: Any, size: int) -> None:
        if size < 1:
            raise Refusal(INVALID_VALUE)
        used_bytes = sum(len(memory) for gpu, memory in self.buffers.values() if gpu == owner)
        if owner >= 0 and used_bytes + size > self.gpus[owner].memory:
            raise Refusal(OUT_OF_MEMORY)
        memory = (ctypes.c_ubyte * size)()
        self.buffers[ctypes.addressof(memory)] = (owner, memory)
        pointer._obj.value = ctypes.addressof(memory)

    def _owner(self, pointer: Any, size: Any, of_host: bool = False) -> int:
        """Whose memory this is: the number of a GPU, or -1 for what is pinned on the host."""
        start = pointer.value or 0
        for address, (owner, memory) in self.buffers.items():
            if address <= start and start + size.value <= address + len(memory) and (owner == -1) == of_host:
                return owner
        raise Refusal(INVALID_VALUE)

    def _cuMemAlloc(self, pointer: Any, size: Any) -> None:
        self._new(self._here(), pointer, size.value)

    def _cuMemHostAlloc(self, pointer: Any, size: Any, flags: Any) -> None:
        self._here()
        self._new(-1, pointer, size.value)

    def _free(self, pointer: Any, of_host: bool) -> None:
        self._here()
        if pointer.value not in self.buffers or (self.buffers[pointer.value][0] == -1) != of_host:
            raise Refusal(INVALID_VALUE)
        del self.buffers[pointer.value]

    def _cuMemFree(self, pointer: Any) -> None:
        self._free(pointer, of_host=False)

    def _cuMemFreeHost(self, pointer: Any) -> None:
        self._free(pointer, of_host=True)

    def _cuMemsetD8(self, pointer: Any, value: Any, size: Any) -> None:
        self._here()
        self._owner(pointer, size)
        ctypes.memset(pointer, value.value, size.value)

    # Copies.

    def _copy(self, target: Any, source: Any, size: Any, speed: float, loses: bool = False) -> None:
        self.time += size.value / speed / 1000  # MB/s are 1000 bytes in a millisecond
        ctypes.memmove(target, source, size.value - loses)

    def _cuMemcpyHtoD(self, target: Any, source: Any, size: Any) -> None:
        self._here()
        self._copy(target, source, size, self.gpus[self._owner(target, size)].speeds["in"])

    def _cuMemcpyDtoH(self, target: Any, source: Any, size: Any) -> None:
        self._here()
        self._copy(target, source, size, self.gpus[self._owner(source, size)].speeds["out"])

    def _own(self, kind: str, target: Any, source: Any, size: Any) -> None:
        gpu = self.gpus[self._here()]
        self._copy(target, source, size, gpu.speeds[kind], kind in gpu.loses)

    def _cuMemcpyHtoDAsync(self, target: Any, source: Any, size: Any, stream: Any) -> None:
        self._owner(source, size, of_host=True)
        self._owner(target, size)
        self._own("in", target, source, size)

    def _cuMemcpyDtoHAsync(self, target: Any, source: Any, size: Any, stream: Any) -> None:
        self._owner(target, size, of_host=True)
        self._owner(source, size)
        self._own("out", target, source, size)

    def _cuMemcpyDtoDAsync(self, target: Any, source: Any, size: Any, stream: Any) -> None:
        self._owner(source, size)
        self._owner(target, size)
        self._own("memory", target, source, size)

    def _cuMemcpyPeerAsync(self, target: Any, there: Any, source: Any, here: Any, size: Any, stream: Any) -> None:
        to, of = self._context(there), self._context(here)
        if self._owner(target, size) != to or self._owner(source, size) != of:
            raise Refusal(INVALID_VALUE)
        self._here()
        direct = {(to, of), (of, to)} <= self.opened
        speed = self.peers[of, to] if direct else self.through_the_host
        self._copy(target, source, size, speed, (of, to) in self.lost)

    # Peers.

    def _cuDeviceCanAccessPeer(self, answer: Any, device: Any, peer: Any) -> None:
        answer._obj.value = int((self._device(device), self._device(peer)) in self.peers)

    def _pair(self, context: Any) -> tuple[int, int]:
        return self._here(), self._context(context)

    def _cuCtxEnablePeerAccess(self, context: Any, flags: Any) -> None:
        pair = self._pair(context)
        if pair not in self.peers:
            raise Refusal(PEER_UNSUPPORTED)
        if pair in self.opened:
            raise Refusal(PEER_TWICE)
        self.opened.add(pair)

    def _cuCtxDisablePeerAccess(self, context: Any) -> None:
        pair = self._pair(context)
        if pair not in self.opened:
            raise Refusal(PEER_CLOSED)
        self.opened.remove(pair)

    # Streams.

    def _stream(self, stream: Any) -> int:
        if stream.value not in self.streams:
            raise Refusal(INVALID_HANDLE)
        return self.streams[stream.value]

    def _cuStreamCreate(self, stream: Any, flags: Any) -> None:
        if flags.value not in (0, 1):
            raise Refusal(INVALID_VALUE)
        self.handles += 1
        self.streams[self.handles] = self._here()
        stream._obj.value = self.handles

    def _cuStreamSynchronize(self, stream: Any) -> None:
        self._stream(stream)

    def _cuStreamDestroy(self, stream: Any) -> None:
        self._stream(stream)
        del self.streams[stream.value]

    # Events.

    def _event(self, event: Any) -> int:
        if event.value not in self.events:
            raise Refusal(INVALID_HANDLE)
        return int(event.value)

    def _cuEventCreate(self, event: Any, flags: Any) -> None:
        self.handles += 1
        self.events[self.handles] = (self._here(), None)
        event._obj.value = self.handles

    def _cuEventRecord(self, event: Any, stream: Any) -> None:
        handle = self._event(event)
        owner = self._stream(stream) if stream.value else self._here()
        if not self.events[handle][0] == owner == self._here():  # of one context
            raise Refusal(INVALID_HANDLE)
        self.events[handle] = (self.events[handle][0], self.time)

    def _cuEventSynchronize(self, event: Any) -> None:
        self._event(event)

    def _cuEventElapsedTime(self, milliseconds: Any, start: Any, end: Any) -> None:
        times = [self.events[self._event(event)][1] for event in (start, end)]
        if times[0] is None or times[1] is None:
            raise Refusal(INVALID_HANDLE)
        milliseconds._obj.value = times[1] - times[0]

    def _cuEventDestroy(self, event: Any) -> None:
        del self.events[self._event(event)]


class Nccl(Library):
    """A stand-in for libnccl.so.2 on this library's GPUs: signatures and codes of nccl.h (github.com/NVIDIA/nccl, 2.18), whose cudaStream_t
    is the driver's CUstream. `wrong`: the rank that gets a wrong sum. `speed`: MB/s of the bus."""

    parameters: ClassVar[dict[str, tuple[Any, ...]]] = {
        "ncclCommInitAll": (ctypes.Array, Int, ctypes.Array),
        "ncclCommDestroy": (Pointer,),
        "ncclGroupStart": (),
        "ncclGroupEnd": (),
        "ncclAllReduce": (Pointer, Pointer, Size, Int, Int, Pointer, Pointer),
    }
    INVALID_ARGUMENT, INVALID_USAGE = 4, 5

    def __init__(
        self, cuda: Cuda, speed: float = 90_000, wrong: int = -1, refused: dict[str, int] | None = None
    ) -> None:
        super().__init__(refused)
        self.cuda, self.speed, self.wrong = cuda, speed, wrong
        self.comms: dict[int, int] = {}
        self.group: dict[int, Any] | None = None

    def _ncclCommInitAll(self, comms: Any, count: Any, devices: Any) -> None:
        if sorted(devices) != list(range(count.value)) or count.value > len(self.cuda.gpus):
            raise Refusal(self.INVALID_ARGUMENT)
        for at, device in enumerate(devices):
            comms[at] = 5000 + device
            self.comms[5000 + device] = device

    def _ncclCommDestroy(self, comm: Any) -> None:
        if self.comms.pop(comm.value, None) is None:
            raise Refusal(self.INVALID_ARGUMENT)

    def _ncclGroupStart(self) -> None:
        self.group = {}

    def _ncclAllReduce(self, send: Any, to: Any, count: Any, kind: Any, operation: Any, comm: Any, stream: Any) -> None:
        rank, size = self.comms.get(comm.value, -1), Size(count.value * 4)
        owners = {self.cuda._owner(send, size), self.cuda._owner(to, size), self.cuda._stream(stream)}
        if (kind.value, operation.value, owners) != (7, 0, {rank}):
            raise Refusal(self.INVALID_ARGUMENT)
        if self.group is None:
            raise Refusal(self.INVALID_USAGE)  # the real one would wait here for the other GPUs
        self.group[rank] = (send.value, to.value, count.value)

    def _ncclGroupEnd(self) -> None:
        group, self.group = self.group, None
        if group is None or set(group) != set(self.comms.values()) or len({call[2] for call in group.values()}) != 1:
            raise Refusal(self.INVALID_USAGE)
        count = next(iter(group.values()))[2]
        buffers = [(ctypes.c_float * count).from_address(call[0]) for call in group.values()]
        sums = (ctypes.c_float * count)(*map(sum, zip(*buffers, strict=True)))
        for rank, (_, to, _) in group.items():
            ctypes.memmove(to, sums, count * 4 - (4 if rank == self.wrong else 0))
        self.cuda.time += count * 4 * 2 * (len(group) - 1) / len(group) / self.speed / 1000
