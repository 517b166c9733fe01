"""Options that the inventory plugins cloudera_manager and ambari share. Each of them adds the environment variables, its examples and what differs."""


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  plugin:
    description: Name of this plugin.
    type: str
    required: true
  url:
    description: Address of the server, without user and password.
    type: str
    required: true
  user:
    description: User who may read the server; a read-only one is enough.
    type: str
  password:
    description: Its password, encrypted with ansible-vault, or in the environment. A readable one in the file is refused.
    type: str
  token:
    description: In place of user and password, a token that a gateway in front of the server takes (a bearer token); handled as the password.
    type: str
  ca:
    description: File with the CA certificates, in PEM format, that https is checked against. Unset, those of the system.
    type: path
  plain_http:
    description: Whether C(url) may be http to another machine. User and password can then be read on the network.
    type: bool
    default: false
  cluster:
    type: str
  timeout:
    description: Seconds for everything that is asked of the server.
    type: int
    default: 300
  role_groups:
    type: dict
    default: {}
  decommissioned_hosts:
    type: str
    choices: [leave_out, include]
    default: leave_out
  maintenance_hosts:
    description: Whether hosts in maintenance mode are in their groups and in C(maintenance), or left out.
    type: str
    choices: [include, leave_out]
    default: include
"""
