"""Modules import their utilities as on a host: from ansible.module_utils."""

from pathlib import Path

import ansible.module_utils

ansible.module_utils.__path__.append(str(Path(__file__).resolve().parents[2] / "plugins" / "module_utils"))
