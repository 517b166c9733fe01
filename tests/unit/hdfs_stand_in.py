"""A file system in a directory, behind a command that looks like `hdfs dfs` of Hadoop 3.3.6, whose answers and statuses it gives.

It goes on after a path that it cannot copy or move, and its status is 1 then; a file is never replaced without -f, and none has its name before it is
complete. What is made has the modes of a site with the umask 077, unless a property has another one.
"""

from pathlib import Path

from python_files import write_script

COMMAND = r"""shift; umask 077
while [ "$1" = -D ]; do
    case $2 in fs.permissions.umask-mode=*) umask "${2#*=}" ;; *) echo "$2" >> @TMP@/hdfs.properties ;; esac; shift 2
done
action=$1; shift; echo "$HADOOP_USER_NAME $action" >> @TMP@/hdfs.log
prefix=; case " $*" in *" hdfs:///"*) prefix=hdfs://; set -- $(printf '%s\n' "$@" | sed 's,^hdfs://,,') ;; esac
[ "$action" = @BROKEN@ ] && { echo "WARN noise"; echo "$action: Permission denied"; exit 1; }
[ -e @TMP@/hangs ] && exec sleep 60
[ -e @TMP@/down ] && { echo "WARN noise"; echo "$action: Call From data1 to master1:8020 failed on connection exception"; exit 1; }
root=@ROOT@ status=0
copy() { # FROM TO NAME
    target=$2; [ -d "$2" ] && target=$2/${1##*/}
    [ -e "$1" ] || [ "$1" = - ] || { echo "${action#-}: \`$3': No such file or directory"; status=1; return; }
    [ -e "$target" ] && [ -z "$force" ] && { echo "${action#-}: \`$3': File exists"; status=1; return; }
    $4 "$1" "$target"
}
upload() { rm -f "$2._COPYING_"; cat "$1" > "$2._COPYING_" && mv "$2._COPYING_" "$2"; }
case $action in
    -test) test "$1" "$root$2" ;;
    -ls) [ "$1" = -d ] && { plain=1; shift; }
        for path in "$@"; do
            [ -e "$root$path" ] || { echo "ls: \`$path': No such file or directory"; status=1; continue; }
            list=; [ -d "$root$path" ] && [ -z "$plain" ] && list=1
            [ "$list" ] && names=$(ls -A "$root$path") || names=
            [ "$list" ] && echo "Found $(echo "$names" | wc -l) items"
            for one in $([ "$list" ] && for name in $names; do echo "$path/$name"; done || echo "$path"); do
                echo "$(stat -c %A "$root$one")   3 $(cat "$root$one.owner" 2>/dev/null || echo hdfs) supergroup $(stat -c %s "$root$one") 2026-11-25 03:12 $prefix$one"
            done
        done; exit $status ;;
    -mkdir) mkdir -p "$root$2" ;;
    -put) [ "$1" = -f ] && { force=1; shift; }
        while [ $# -gt 1 ]; do from="$from $1"; shift; done
        [ -d "$root$1" ] || [ -d "$root${1%/*}" ] || { echo "put: \`$1': No such file or directory"; exit 1; }
        for path in $from; do copy "$path" "$root$1" "$path" upload; done; exit $status ;;
    -get) while [ $# -gt 1 ]; do from="$from $1"; shift; done
        for path in $from; do copy "$root$path" "$1" "$path" cp; done; exit $status ;;
    -cat) cat "$root$1" ;;
    -chmod) mode=$1; shift; for path in "$@"; do chmod "$mode" "$root"$path; done ;;
    -mv) for path in "$root"$1; do copy "$path" "$root$2" "${path#$root}" mv; done; exit $status ;;
    -stat) test -f "$root$2" && echo "WARN noise" && echo "$(cat "$root$2.owner" 2>/dev/null || echo hdfs) $(stat -c %s "$root$2")" ;;
    -rm) recursive=; for path in "$@"; do case $path in -r) recursive=-r ;; /*) rm $recursive -f "$root"$path ;; esac; done ;;
    -rmdir) test -d "$root$1" || { echo "rmdir: $1: No such file or directory"; exit 1; }
        rmdir "$root$1" 2> /dev/null || { echo "rmdir: $1: Directory is not empty"; exit 1; } ;;
esac
"""


class Hdfs:
    """root: what is in it. The files `down` and `hangs` beside it make it so."""

    def __init__(self, tmp_path: Path, broken: str = "nothing") -> None:
        self.tmp_path, self.root = tmp_path, tmp_path / "hdfs"
        self.root.mkdir()
        text = COMMAND.replace("@TMP@", str(tmp_path)).replace("@ROOT@", str(self.root)).replace("@BROKEN@", broken)
        write_script(tmp_path / "hadoop/bin/hdfs", text)
        self.environment_file = str(tmp_path / "hadoop-env.sh")
        Path(self.environment_file).write_text(f"export HADOOP_HOME={tmp_path}/hadoop\n")

    @property
    def actions(self) -> list[str]:
        """The commands so far."""
        log = self.tmp_path / "hdfs.log"
        return [line.split()[1] for line in log.read_text().splitlines()] if log.exists() else []
