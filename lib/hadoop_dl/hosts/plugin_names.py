"""Names by which Ansible finds this project's plugins: short ones in a checkout, complete ones in the installed collection."""

PACKAGE = "ansible_collections."
COLLECTION = __name__.removeprefix(PACKAGE).partition(".lib.")[0] if __name__.startswith(PACKAGE) else ""


def full_name(plugin: str) -> str:
    """The name of a plugin of this project; a name with a dot is another's."""
    return f"{COLLECTION}.{plugin}" if COLLECTION and "." not in plugin else plugin
