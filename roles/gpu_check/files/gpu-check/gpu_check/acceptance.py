"""The acceptance run (gpu-check --accept): what the GPUs copy, compared with what card and links can. It measures idle GPUs only."""

from __future__ import absolute_import, division, print_function

import json
import re
import sys

from ansible.module_utils.hadoop_dl_host import processes

from gpu_check.bandwidth import address, measure
from gpu_check.causes import devices, last_error
from gpu_check.collective import all_reduce
from gpu_check.compute import required_gpus
from gpu_check.host import Host, become_nobody
from gpu_check.questions import Fail, Skip, results
from gpu_check.sentences import no_library, smi_problem

STEPS = []  # (name, function), as QUESTIONS
SLOW = 600  # seconds for all copies; 16 GPUs whose copies go through the host's memory take five minutes
# A link with half of its lanes, or one generation below, has half of the bandwidth, of which copies reach 70 to 90 %: 12.4 GB/s of 15.8 in
# NVIDIA's own example (github.com/NVIDIA/nvbandwidth, README).
SHARE = 0.5
# MB/s of a lane, by generation: 2.5 and 5 GT/s with 8 of 10 bits for data, 8 to 32 GT/s with 128 of 130, 64 GT/s with 242 of 256.
LANE = {1: 250, 2: 500, 3: 985, 4: 1969, 5: 3938, 6: 7563}
NCCL = "libnccl.so.2"
NCCL_SLOW = 180  # seconds, of which its start takes some
# docs.nvidia.com/cuda/cuda-c-programming-guide, "IOMMU on Linux"; docs.nvidia.com/deeplearning/nccl/user-guide, troubleshooting, "ACS".
IOMMU = "On a host without virtual machines turn off IOMMU and PCIe ACS in the firmware."
APPLICATIONS = ("nvidia-smi", "--query-compute-apps=pid,process_name", "--format=csv,noheader")
NAMED = 5  # processes, or copies, in a sentence


def step(function):
    STEPS.append((function.__name__, function))
    return function


class Run(object):
    """One acceptance run. measures: a mapping for each copy that was measured: gpu, peer, kind, link, speed and limit in MB/s (0: not known)."""

    def __init__(self, host):
        self.host = host
        self.cards = {}  # PCI address -> name, link, limit of the link
        self.lost = []  # (way, why) of copies between GPUs that could not be measured or did not arrive
        self.measures = []

    def users(self):
        """Processes that compute on the GPUs now."""
        self.host.answers.pop(APPLICATIONS, None)  # those of before
        status, output = self.host.run(*APPLICATIONS)
        if status != 0:
            raise Fail(smi_problem(self.host, status, output))
        return [line.strip() for line in output.splitlines() if re.match(r"\s*\d+\s*,", line)]

    def idle(self, when):
        users = self.users()
        if users:
            more = "; ..." if len(users) > NAMED else ""
            raise Fail(
                "The GPUs must be idle but %d processes compute there%s: %s%s. Drain the host, wait until they have ended, and run again."
                % (len(users), when, "; ".join(users[:NAMED]), more)
            )

    def read_cards(self):
        host, fields = self.host, ("pci.bus_id", "name", "pcie.link.gen.max", "pcie.link.width.max")
        for bus, name, generation, width in host.query(*fields):
            link_known = generation.isdigit() and width.isdigit()
            self.cards[address(bus)] = {
                "name": name,
                "link": "PCIe %s x%s" % (generation, width) if link_known else "PCIe",
                "limit": LANE.get(int(generation), 0) * int(width) if link_known else 0,
            }

    def links(self):
        """{(address, address): (word of nvidia-smi topo -m, MB/s of its NVLinks or 0)}."""
        order = [address(row[1]) for row in self.host.query("index", "pci.bus_id")]
        status, matrix = self.host.run("nvidia-smi", "topo", "-m")
        rows = [line.split()[1:] for line in matrix.splitlines() if re.match(r"GPU\d", line)] if status == 0 else []
        speeds = self.nvlink_speeds()
        links = {}
        for at, row in enumerate(rows[: len(order)]):
            for to, word in enumerate(row[: len(order)]):
                number = re.match(r"NV(\d+)$", word)
                limit = int(number.group(1)) * speeds.get(at, 0) if number else 0
                links[order[at], order[to]] = (word, limit)
        return links

    def nvlink_speeds(self):
        """MB/s of one NVLink of each GPU in one direction, by the GPU's index. Links that are down have no number."""
        status, output = self.host.run("nvidia-smi", "nvlink", "-s")
        speeds, gpu = {}, None
        for line in output.splitlines() if status == 0 else ():
            title, link = re.match(r"GPU (\d+):", line), re.match(r"\s+Link \d+: ([\d.]+) GB/s", line)
            if title:
                gpu = int(title.group(1))
            elif link and gpu is not None:
                speeds[gpu] = max(speeds.get(gpu, 0), int(1000 * float(link.group(1))))
        return speeds

    def child(self, function, names, seconds, late):
        """What the function answers about these libraries. Root's child is nobody, with the groups that may open the GPUs."""
        host = self.host
        groups = sorted(set(status.st_gid for _, status in host.nodes()) - set([0]))

        def measured():
            if host.gives_up_root():
                become_nobody(groups)()
            return function(*[host.load(name) for name in names])

        try:
            return processes.limited(measured, seconds)
        except processes.Late:
            raise Fail("The GPUs must be measured within %d seconds but were not: %s" % (seconds, late))
        except RuntimeError as error:
            raise Fail("The GPUs must be measured but: %s. Run gpu-check." % last_error(str(error)))

    def measure(self):
        """What bandwidth.py answers."""
        host, late = self.host, "a GPU is sick. Look at dmesg for Xid, and reboot the host."
        if not host.reached("libcuda.so.1"):
            raise Fail(no_library(host, "libcuda.so.1"))
        answer = self.child(measure, ("libcuda.so.1",), SLOW, late)
        if "error" in answer:
            raise Fail("CUDA must start but does not: %s. %s" % (answer["error"], " ".join(devices(host))))
        return answer

    def keep(self, answer):
        links = self.links()
        for entry in answer["gpus"]:
            card = self.cards.get(entry["gpu"], {"link": "PCIe", "limit": 0})
            for kind, speed in sorted(entry["copies"].items()):
                link, limit = ("", entry["memory_limit"]) if kind == "memory" else (card["link"], card["limit"])
                self.add(entry["gpu"], "", kind, link, speed, limit)
        for entry in answer["peers"]:
            word, limit = links.get((entry["gpu"], entry["peer"]), ("unknown", 0))
            if entry["problem"]:
                self.lost.append(("GPU %s to %s" % (entry["gpu"], entry["peer"]), entry["problem"]))
                continue
            link = word if entry["direct"] else word + " through the host"
            self.add(entry["gpu"], entry["peer"], "GPU to GPU", link, entry["speed"], limit)

    def add(self, gpu, peer, kind, link, speed, limit):
        names = {"gpu": gpu, "peer": peer, "kind": kind, "link": link}
        self.measures.append(dict(names, speed=speed, limit=limit))

    def of(self, *kinds):
        if not self.measures:
            raise Skip("nothing was measured: idle_gpus_measured has the reason")
        return [row for row in self.measures if row["kind"] in kinds]

    def compared(self, kinds, required, remedy):
        """A summary of what was measured; Fail if less than a share of the limit was reached."""
        rows = self.of(*kinds)
        slow = [words(row) for row in rows if row["speed"] < SHARE * row["limit"]]
        if slow:
            raise Fail("%s must reach half of what is possible, but: %s. %s" % (required, some(slow), remedy))
        alike = {}
        for row in rows:
            alike.setdefault((row["kind"], row["link"], row["limit"]), []).append(row["speed"])
        return "; ".join(span(key, speeds) for key, speeds in sorted(alike.items()))


def words(row):
    """A measure as people read it."""
    way = "GPU %s to %s" % (row["gpu"], row["peer"]) if row["peer"] else "GPU %s %s" % (row["gpu"], row["kind"])
    return "%s %.1f%s" % (way, row["speed"] / 1000, unit(row["link"], row["limit"]))


def span(key, speeds):
    """Measures of one kind: the slowest and the fastest."""
    kind, link, limit = key
    low, high = ["%.1f" % (speed / 1000) for speed in (min(speeds), max(speeds))]
    return "%s %s%s" % (kind, low if low == high else "%s to %s" % (low, high), unit(link, limit))


def unit(link, limit):
    return "%s GB/s%s" % (" of %.1f" % (limit / 1000) if limit else "", " (%s)" % link if link else "")


def some(sentences):
    return "; ".join(sentences[:NAMED]) + ("; ..." if len(sentences) > NAMED else "")


@step
def idle_gpus_measured(run):
    """Every GPU was measured while nothing else computed"""
    host = run.host
    if host.contained() or host.yarn():
        raise Skip("only its host sees all processes of a GPU; run it there: /opt/deeplearning/bin/gpu-check --accept")
    host.requires_gpu()
    run.read_cards()
    if host.mig():
        raise Skip("MIG divides a GPU; whole GPUs are measured")
    run.idle("")
    answer = run.measure()
    run.idle(", which started meanwhile")
    sick = ["GPU %s: %s" % (entry["gpu"], entry["problem"]) for entry in answer["gpus"] if entry["problem"]]
    run.keep(answer)
    if sick:
        raise Fail("Every GPU must copy what it is given; %s. Look at dmesg | grep -i xid" % some(sick))
    required_gpus(host, len(answer["gpus"]), "CUDA", "")
    return "%d GPUs" % len(answer["gpus"])


@step
def host_copies(run):
    """Copies between host and GPU reach half of the PCIe link's bandwidth"""
    return run.compared(
        ("host to GPU", "GPU to host"),
        "Copies between host and GPU",
        "Ask gpu-check pcie_width while a GPU computes; look at the slot, at risers, and at the firmware's settings for PCIe.",
    )


@step
def memory_copies(run):
    """Copies within a GPU reach half of its memory's bandwidth"""
    return run.compared(("memory",), "Copies within a GPU", "Ask gpu-check throttling ecc_errors retired_pages.")


@step
def peer_copies(run):
    """Copies between GPUs arrive, and reach half of the bandwidth of their NVLinks"""
    if not run.of("GPU to GPU") and not run.lost:
        raise Skip("one GPU")
    if run.lost:
        lost_copies = some(["%s: %s" % pair for pair in run.lost])
        raise Fail("Copies between GPUs must arrive as they were sent, but: %s. %s" % (lost_copies, IOMMU))
    return run.compared(
        ("GPU to GPU",), "Copies between GPUs", "Compare nvidia-smi nvlink -s and nvidia-smi topo -m with other hosts."
    )


@step
def nccl_all_reduce(run):
    """NCCL adds up numbers of all GPUs, and every GPU gets the right sums"""
    count = len(run.of("memory"))
    if count < 2:
        raise Skip("one GPU")
    if not run.host.reached(NCCL):
        raise Skip("NCCL is not installed for the host (no %s); that of a TensorFlow's wheels is not measured" % NCCL)
    answer = run.child(all_reduce, ("libcuda.so.1", NCCL), NCCL_SLOW, "GPUs wait for each other in NCCL. " + IOMMU)
    run.idle(", which started meanwhile")
    if "error" in answer:
        raise Fail("NCCL must add up numbers of %d GPUs but: %s. %s" % (count, answer["error"], IOMMU))
    run.add(answer["gpu"], "", "all-reduce", "%d GPUs" % count, answer["speed"], 0)
    return run.compared(("all-reduce",), "", "")


def report(run, answers):
    """What --json prints, and what the playbook reads."""
    names = dict((bus, card["name"]) for bus, card in run.cards.items())
    return {"results": answers, "cards": names, "measures": run.measures}


def main(gpu_count):
    """Print the report on one line. gpu_count: as promised, or empty."""
    run = Run(Host())
    run.host.expected["gpu_count"] = gpu_count
    sys.stdout.write(json.dumps(report(run, list(results(run, (), STEPS))), sort_keys=True) + "\n")
