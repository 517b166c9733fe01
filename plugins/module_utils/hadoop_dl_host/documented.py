"""What a module accepts, from its documentation: JSON, which Ansible reads as YAML and hosts without PyYAML."""

import json

from ansible.module_utils.common.text.converters import container_to_bytes


def options(documentation):
    """The argument spec: the documented options without what they mean."""
    spec = json.loads(documentation)["options"]
    for option in spec.values():
        del option["description"]
    return container_to_bytes(spec) if str is bytes else spec  # as Ansible passes parameters to Python 2.7
