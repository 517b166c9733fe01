"""What a NodeManager finds with nvidia-smi -x -q, which its GPU plugin runs as its own account."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# Seconds. The plugin's limit is 10 and cannot be set: MAX_EXEC_TIMEOUT_MS of GpuDiscoverer, in the classes of 2.10.2 to 3.4.1. At the next boot a
# driver answers more slowly than now.
LONGEST = 8


def discovered(result: Mapping[str, Any], devices: str) -> dict[str, Any]:
    """result: of limited_command. count of the GPUs, numbers of those that MIG divides, and the problem of a NodeManager with these devices."""
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
    divided = [index for index, card in enumerate(cards) if re.search(r"<current_mig>\s*Enabled\s*</", card)]
    return {"count": len(cards), "mig": divided, "problem": problem}


def drop_in(command: str, name: str) -> list[str]:
    """The drop-in of this name of the systemd unit that the site's command restarts; none if the command is another one."""
    match = re.fullmatch(r"(?:sudo )?(?:/usr/bin/|/bin/)?systemctl restart ([A-Za-z0-9_.@:-]+)", command.strip())
    return [f"/etc/systemd/system/{match[1].removesuffix('.service')}.service.d/{name}"] if match else []
