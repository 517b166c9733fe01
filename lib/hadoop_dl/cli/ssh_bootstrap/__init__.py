"""Make hosts reachable for Ansible, many at once: host keys, the operator's public key, Python and sudo.

Three rounds. First every host shows its host key; what known_hosts does not know is shown and recorded when the operator
agrees, and a key that differs from the recorded one is refused, always. Then the public key is installed, with an existing
key or a password. Then a new connection verifies the key. Passwords come from a prompt or a vault, never from arguments.
"""
