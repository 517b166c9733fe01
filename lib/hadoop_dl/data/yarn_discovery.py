"""What a NodeManager finds with nvidia-smi -x -q, which its GPU plugin runs as its own account."""

import re
from collections.abc import Mapping
from typing import Any

# Seconds. The plugin's limit is 10 and cannot be set: MAX_EXEC_TIMEOUT_MS of GpuDiscoverer, in the classes of 2.10.2 to 3.4.1. At the next boot a
# driver answers more slowly than now.
LONGEST = 8


def discovered(result: Mapping[str, Any], devices: str, expected: int = 0) -> dict[str, Any]:
    """result: of limited_command. count of the GPUs, and the problem of a NodeManager with these devices.

    expected: how many the host has, by its PCI bus.
    """
    cards = str(result["stdout"]).split("<gpu id=")[1:] if result.get("rc") == 0 else []
    minors = [re.search(r"<minor_number>\s*(\d{1,4})\s*</minor_number>", card) for card in cards]
    pairs = ",".join(f"{index}:{minor[1]}" for index, minor in enumerate(minors) if minor)
    seconds = float(result.get("seconds") or 0)
    problem = ""
    if devices == "auto" and seconds > LONGEST:
        problem = (
            f"nvidia-smi -x -q must end within {LONGEST} s, because the NodeManager gives it 10, but needed {seconds:g}. Set yarn_gpu_devices to the "
            f"GPUs as index:minor ({pairs or 'such as 0:0,1:1'}) for this host: then the NodeManager does not run it."
        )
    elif devices == "auto" and None in minors:
        problem = (
            f"nvidia-smi -x -q must report a minor_number of each GPU, but of {len(cards)} GPUs only {len(cards) - minors.count(None)} have one. "
            "Set yarn_gpu_devices to those that YARN may use, as index:minor (/dev/nvidiaMINOR)."
        )
    elif devices == "auto" and cards and len(cards) != int(expected or len(cards)):
        problem = (
            f"nvidia-smi -x -q must list the {expected} GPUs of the host, but lists {len(cards)} ({pairs}). Run gpu-check for the others, or set "
            "yarn_gpu_devices to those that YARN may use, as index:minor."
        )
    elif devices != "auto" and cards and None not in minors:
        there = {minor[1] for minor in minors if minor}
        absent = [device for device in devices.split(",") if device.partition(":")[2] not in there]
        if absent:
            problem = f"yarn_gpu_devices must name GPUs that nvidia-smi -x -q lists ({pairs}), but has {', '.join(absent)}. Correct it."
    return {"count": len(cards), "problem": problem}


def drop_in(command: str, name: str) -> list[str]:
    """The drop-in of this name of the systemd unit that the site's command restarts; none if the command is another one."""
    match = re.fullmatch(
        r"(?:sudo )?(?:/usr/s?bin/|/s?bin/)?(?:systemctl restart ([A-Za-z0-9_.@:-]+)|service ([A-Za-z0-9_.@:-]+) restart)",
        command.strip(),
    )
    unit = (match[1] or match[2]).removesuffix(".service") if match else ""
    return [f"/etc/systemd/system/{unit}.service.d/{name}"] if match else []
