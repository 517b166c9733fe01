"""The operator's keys and passwords: files, ssh-agent, a vault, or a prompt."""

from __future__ import annotations

import argparse
import base64
import getpass
import logging
from collections.abc import Sequence
from pathlib import Path

import paramiko

from hadoop_dl.cli.ssh_bootstrap.model import Misuse

KEY_FILES = ("id_ed25519", "id_ecdsa", "id_rsa")


def read_public_key(path: Path | None, home: Path) -> tuple[str, Path]:
    """The line to install, and where its private half should be."""
    candidates = [path] if path else [home / ".ssh" / f"{name}.pub" for name in KEY_FILES]
    for candidate in candidates:
        if candidate.is_file():
            text = candidate.read_text(errors="replace").strip()
            try:
                kind, blob = text.split()[:2]
                valid = base64.b64decode(blob, validate=True)[4 : 4 + len(kind)] == kind.encode()
            except ValueError:
                valid = False
            if not valid or "\n" in text or "PRIVATE" in text:
                raise Misuse(f"{candidate} must be a public key in one line but is not. Give the .pub file.")
            return text, candidate.with_suffix("")
    raise Misuse(
        f"a public key is required, but there is none at {', '.join(map(str, candidates))}. "
        "Make one with: ssh-keygen -t ed25519, or name it with --public-key."
    )


def load_identities(paths: Sequence[Path], agent: bool = True) -> tuple[paramiko.PKey, ...]:
    """Private keys from files and the agent. A key with a passphrase is used through the agent."""
    keys: list[paramiko.PKey] = []
    for path in paths:
        try:
            keys.append(paramiko.PKey.from_path(path))
        except (paramiko.PasswordRequiredException, TypeError):
            logging.getLogger(__name__).warning("%s has a passphrase; it is used only if ssh-agent holds it.", path)
        except FileNotFoundError:
            continue
        except (paramiko.SSHException, ValueError, OSError) as error:
            raise Misuse(f"{path} must be a private key but cannot be read: {error}.") from error
    if agent:
        keys += paramiko.Agent().get_keys()
    # sshd closes the connection at the sixth try, and the password must be among them.
    return tuple({key.get_base64(): key for key in keys}.values())[:5]


def vault_password(path: Path, secret: str) -> str:
    """The value of ansible_password in an encrypted YAML file."""
    import yaml
    from ansible.errors import AnsibleError
    from ansible.parsing.vault import VaultLib, VaultSecret, is_encrypted

    data = path.read_bytes()
    if not is_encrypted(data):
        raise Misuse(f"{path} must be encrypted but is plain text. Encrypt it with: ansible-vault encrypt {path}")
    try:
        plain = VaultLib([("default", VaultSecret(secret.encode()))]).decrypt(data)
    except AnsibleError as error:
        raise Misuse(f"{path} cannot be decrypted with this vault password.") from error
    try:
        content = yaml.safe_load(plain)
    except yaml.YAMLError:
        content = None  # the parser's message quotes the decrypted text
    if not isinstance(content, dict) or not isinstance(content.get("ansible_password"), str):
        raise Misuse(
            f"{path} must hold a line 'ansible_password: ...' but does not. Edit it with: ansible-vault edit {path}"
        )
    return str(content["ansible_password"])


def vault_secret(path: Path) -> str:
    """The vault's password from a file, or from the program that an executable file is."""
    from ansible.errors import AnsibleError
    from ansible.parsing.dataloader import DataLoader
    from ansible.parsing.vault import get_file_vault_secret

    try:
        secret = get_file_vault_secret(filename=str(path.resolve()), loader=DataLoader())
        secret.load()
    except AnsibleError as error:
        raise Misuse(f"{path} must hold or print the vault's password, but it cannot be used: {error}.") from error
    return bytes(secret.bytes).decode()


def read_password(options: argparse.Namespace) -> str | None:
    if options.password_vault:
        if options.vault_password_file:
            secret = vault_secret(options.vault_password_file)
        else:
            secret = getpass.getpass(f"Vault password of {options.password_vault}: ")
        return vault_password(options.password_vault, secret)
    return getpass.getpass("SSH password: ") if options.ask_password else None
