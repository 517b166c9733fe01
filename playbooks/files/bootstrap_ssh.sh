#!/bin/sh
# The remote half: POSIX sh for any login shell, read from standard input. It prints name=value lines.
# public_key, blob and dry_run are set before it.
# shellcheck disable=SC2154
bootstrap() {
    umask 077
    PATH=$PATH:/usr/sbin:/sbin
    directory=$HOME/.ssh file=$HOME/.ssh/authorized_keys
    if [ -f "$file" ] && grep -v '^[[:space:]]*#' "$file" | grep -qF "$blob"; then
        echo key=there
    elif [ "$dry_run" = yes ]; then
        echo 'key=would be added'
    else
        mkdir -p "$directory" || return 1
        # A last line without an end would swallow the new key.
        if [ -s "$file" ] && [ -n "$(tail -c 1 "$file")" ]; then echo >>"$file" || return 1; fi
        printf '%s\n' "$public_key" >>"$file" || return 1
        grep -qF "$blob" "$file" || return 1
        echo key=added
    fi
    if [ "$dry_run" = no ]; then
        # sshd's StrictModes ignores keys that others could have written.
        [ "$(stat -c %a "$directory")" = 700 ] || chmod 700 "$directory" || return 1
        [ "$(stat -L -c %a "$file")" = 600 ] || chmod 600 "$file" || return 1
        if command -v restorecon >/dev/null 2>&1; then restorecon -R "$directory" || return 1; fi
    fi
    echo "home=$(stat -L -c %A "$HOME") $HOME"
    for python in /usr/bin/python3 /usr/libexec/platform-python /usr/bin/python2.7 /usr/bin/python; do
        if version=$("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null </dev/null); then
            echo "python=$version $python"
            break
        fi
    done
    if [ "$(id -u)" = 0 ]; then
        echo sudo=root
    elif ! command -v sudo >/dev/null 2>&1; then
        echo sudo=missing
    elif said=$(LC_ALL=C sudo -n id -u 2>&1 </dev/null) && [ "$said" = 0 ]; then
        echo sudo=yes
    elif [ "$said" = "sudo: a password is required" ]; then
        echo sudo=password
    else
        echo "sudo=no $said" | head -n 1
    fi
    echo end=reached
}
bootstrap
