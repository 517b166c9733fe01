# -*- coding: utf-8 -*-
"""A login to a cluster with Kerberos that lasts as long as one step, in a ticket cache of its own. Python 2.7 and 3, standard library only.

The keytab stays where it is. kinit, klist and curl are MIT's and the distribution's, which RHEL 7 to 9 have.
"""

from __future__ import absolute_import, division, print_function

import contextlib
import os
import pwd
import re
import shutil
import stat
import tempfile
import uuid

from . import processes

TIMEOUT = 60  # seconds for one program; a KDC that does not answer takes kinit half of it
LIFETIME = "1h"  # of a ticket that a killed step leaves behind
CACHE = "KRB5CCNAME"  # the variable that MIT's programs and Java read
SECURE, WEB = "hadoop.security.authentication", "hadoop.http.authentication.type"
REFUSED = re.compile(r"Client cannot authenticate via|GSS initiate failed|SIMPLE authentication is not enabled")


class NoLogin(Exception):
    """Why there is no login; the text is a sentence without its period."""


def is_secure(configuration):
    """Whether Hadoop's configuration asks for Kerberos."""
    return configuration.get(SECURE, "simple").lower() == "kerberos"


def check_keytab(path):
    """A keytab is a password: nobody but its owner may read it."""
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


def log_in(principal, keytab, cache, lifetime=None):
    """Put a ticket into the cache, in place of the one that is there."""
    check_keytab(keytab)
    command = ["kinit", "-k", "-t", keytab, "-c", cache] + (["-F", "-l", lifetime] if lifetime else [])
    answer = processes.run(command + [principal], TIMEOUT, dict(os.environ, **{CACHE: cache}))
    if answer.status == 127:
        raise NoLogin("kinit is required to log in as %s, but is missing. Install krb5-workstation" % principal)
    if answer.problem:
        cause = answer.problem if answer.late else (answer.error or answer.output or "nothing").splitlines()[-1]
        raise NoLogin("the login to Kerberos as %s with %s must work, but: %s" % (principal, keytab, cause))


@contextlib.contextmanager
def logged_in(principal, keytab, user=None, directory="/run"):
    """With a ticket in a directory of root's with a random name, to which KRB5CCNAME points meanwhile. Without a principal nothing happens.

    user: the account that runs what needs the ticket: it owns the file, and cannot list the directory.
    """
    if not principal:
        yield None
        return
    previous_cache = os.environ.get(CACHE)
    place = tempfile.mkdtemp(prefix="deeplearning-login-", dir=directory if os.path.isdir(directory) else None)
    try:
        # Java takes the name as a path: no FILE: before it.
        cache = os.path.join(place, uuid.uuid4().hex)
        log_in(principal, keytab, cache, LIFETIME)
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
        shutil.rmtree(place, ignore_errors=True)
