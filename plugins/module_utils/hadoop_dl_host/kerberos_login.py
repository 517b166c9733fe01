"""A login to a cluster with Kerberos that lasts as long as one step, in a ticket cache of its own. Python 2.7 and 3, standard library only.

The keytab stays where it is. kinit, klist and curl are MIT's and the distribution's, which RHEL 7 to 9 have.
"""

import contextlib
import fcntl
import glob
import os
import pwd
import re
import stat
import tempfile
import uuid

from . import processes

TIMEOUT = 60  # seconds for one program; a KDC that does not answer takes kinit half of it
LIFETIME = "1h"  # of a ticket that a killed step leaves behind
LARGEST = 1024 * 1024  # bytes of one
PREFIX = "deeplearning-login-"
PRINCIPAL = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?(@\w[\w.-]*)?\Z")  # kinit takes what begins with - as an option
CACHE = "KRB5CCNAME"  # the variable that MIT's programs and Java read
SECURE, WEB = "hadoop.security.authentication", "hadoop.http.authentication.type"
REFUSED = re.compile(r"Client cannot authenticate via|GSS initiate failed|SIMPLE authentication is not enabled")


class NoLogin(Exception):
    """Why there is no login; the text is a sentence without its period."""


def is_secure(configuration):
    """Whether Hadoop's configuration asks for Kerberos."""
    return configuration.get(SECURE, "simple").lower() == "kerberos"


def check_keytab(path):
    """The uid of its owner. A keytab is a password: nobody but its owner may read it."""
    try:
        status = os.stat(path)
    except (IOError, OSError) as error:
        raise NoLogin("the keytab %s is required, but: %s" % (path, os.strerror(error.errno)))
    if not stat.S_ISREG(status.st_mode):
        raise NoLogin("the keytab %s must be a file, but is none" % path)
    if status.st_mode & 0o077:
        raise NoLogin(
            "the keytab %s must be readable by its owner alone, but has the mode %04o. Correct it: chmod 600 %s"
            % (path, status.st_mode & 0o7777, path)
        )
    return status.st_uid


def log_in(principal, keytab, cache, lifetime=LIFETIME, owner=None):
    """Put a ticket into the cache, in place of the one that is there.

    Root asks as the owner of the keytab, by its number if the caller has looked: another file may have the name meanwhile. So a name that an account
    wrote for root opens no file that this account cannot read.
    """
    owner = check_keytab(keytab) if owner is None else owner
    if not PRINCIPAL.match(principal):
        raise NoLogin("the principal must be NAME@REALM or NAME/HOST@REALM, but is %s" % principal)
    if os.geteuid() != 0 or owner == 0:
        ask(principal, keytab, cache, lifetime, None)
        return
    parent = os.path.dirname(cache)
    os.chmod(parent, 0o711)  # noqa: S103 (its names are random)
    place = tempfile.mkdtemp(dir=parent)
    try:
        os.chown(place, owner, -1)
        ask(principal, keytab, os.path.join(place, "ticket"), lifetime, owner)
        os.chown(place, 0, -1)
        take(os.path.join(place, "ticket"), owner, cache)
    except (IOError, OSError) as error:
        raise NoLogin("kinit must write a ticket as the owner of %s, but: %s" % (keytab, error))
    finally:
        clear(place)


def ask(principal, keytab, cache, lifetime, user):
    """Run kinit as this user."""
    command = ["kinit", "-k", "-t", keytab, "-c", cache, "-F", "-l", lifetime, principal]
    try:
        answer = processes.run(command, TIMEOUT, dict(os.environ, **{CACHE: cache}), user=user)
    except KeyError:
        raise NoLogin("the keytab %s must belong to an account of this host, but its owner is %s" % (keytab, user))
    if answer.status == 127:
        raise NoLogin("kinit is required to log in as %s, but is missing. Install krb5-workstation" % principal)
    if answer.problem:
        cause = answer.problem if answer.late else (answer.error or answer.output or "nothing").splitlines()[-1]
        raise NoLogin("the login to Kerberos as %s with %s must work, but: %s" % (principal, keytab, cause))


def take(path, owner, cache):
    """Copy the ticket that kinit wrote, and no other file to which a link leads."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as handle:
        status = os.fstat(handle.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid != owner:
            raise IOError("it wrote another file")
        data = handle.read(LARGEST)
    with os.fdopen(os.open(cache, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as handle:
        handle.write(data)


def clear(place):
    """Remove a directory of tickets, also that of a kinit in it. Links in it are removed, never followed."""
    for name in os.listdir(place):
        path = os.path.join(place, name)
        if os.path.isdir(path) and not os.path.islink(path):
            clear(path)
        else:
            os.unlink(path)
    os.rmdir(place)


def held(place):
    """A descriptor by which this process holds its directory until it ends; None if another one does, or it is not this account's."""
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except (IOError, OSError):
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        status = os.fstat(descriptor)
        if status.st_uid == os.geteuid() and status.st_nlink:
            return descriptor
    except (IOError, OSError):
        pass
    os.close(descriptor)
    return None


@contextlib.contextmanager
def private_place(directory):
    """A directory with a random name, which is removed at the end; those of steps that were killed are removed before."""
    for left in glob.glob(os.path.join(directory, PREFIX + "*")):
        descriptor = held(left)
        if descriptor is not None:
            remove(left, descriptor)
    place = descriptor = None
    while descriptor is None:
        place = tempfile.mkdtemp(prefix=PREFIX, dir=directory)
        descriptor = held(place)  # None: another step took it for one that was killed
    try:
        yield place
    finally:
        remove(place, descriptor)


def remove(place, descriptor):
    try:
        clear(place)
    except (IOError, OSError):
        pass  # what is left has a limited lifetime, and the next step tries again
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def logged_in(principal, keytab, user=None, directory="/run", owner=None):
    """With a ticket in a private directory, to which KRB5CCNAME points meanwhile. Without a principal nothing happens.

    user: the account that runs what needs the ticket: it owns the file, and cannot list the directory. owner: of the keytab, if it was looked at.
    """
    if not principal:
        yield None
        return
    previous_cache = os.environ.get(CACHE)
    with private_place(directory if os.path.isdir(directory) else tempfile.gettempdir()) as place:
        try:
            # Java takes the name as a path: no FILE: before it.
            cache = os.path.join(place, uuid.uuid4().hex)
            log_in(principal, keytab, cache, owner=owner)
            if user:
                entry = pwd.getpwnam(user)
                os.chown(cache, entry.pw_uid, entry.pw_gid)
                os.chmod(place, 0o711)  # noqa: S103 (its names are random)
            os.environ[CACHE] = cache
            yield cache
        finally:
            if previous_cache is None:
                os.environ.pop(CACHE, None)
            else:
                os.environ[CACHE] = previous_cache
