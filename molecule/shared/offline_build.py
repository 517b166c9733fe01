"""What builds the project of molecule/bazel/files without a network, as the user builder."""

# From 0.29 on bazel fetches its own rules, unless options name directories with them.
OWN_RULES = " ".join(f"--override_repository={name}=/srv/rules/{name}" for name in ("rules_cc", "rules_java"))
# A process with a network of its own has the loopback device alone; bazel's client and server talk over it.
OFFLINE = (
    "systemd-run --quiet --wait --pipe --collect --property=PrivateNetwork=yes --property=User=builder "
    "--setenv=HOME=/home/builder --working-directory=/home/builder/project"
)


def build(host, bazel, python, rules=""):
    """Build the library and the program, and check what both answer."""
    host.check_output(f"{OFFLINE} {bazel} build --spawn_strategy=standalone {rules} //:libanswer.so //:show")
    directory = "/home/builder/project/bazel-bin"
    load = f"import ctypes; print(ctypes.CDLL('{directory}/libanswer.so').answer())"
    assert host.check_output(f'{python} -c "{load}"') == "42"
    assert host.check_output(f"{directory}/show") == "made by a rule"
