"""Which command lines are so simple that "always" can be said to how they begin. Pure.

A shell is not parsed here: whatever it could take for more than words is refused, also where
quotes would have made it harmless.
"""

import re
import shlex
from typing import Final

_PLAIN: Final = re.compile(r"[A-Za-z0-9_ %+,\-./:=@^'\"\]]+\Z")
"""ASCII without what a shell acts upon: `; & | < > $ ( ) { } * ? [ ~ ! #`, backtick, backslash,
newline and other control characters."""
_PROGRAM: Final = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+-]*\Z")
_AT_LEAST: Final = 2

# Shells and what makes a shell run something else than the word in front.
_SHELLS: Final = """
sh bash dash ash zsh ksh mksh fish csh tcsh rbash pwsh powershell cmd nu xonsh elvish osh .
source eval exec command builtin trap alias unalias set export declare typeset readonly
local enable hash cd pushd popd shopt bind fc time coproc if then else elif fi while until
for do done case esac select function
"""
# Interpreters, and programs with a language of their own.
_LANGUAGES: Final = """
python pypy ipython perl ruby irb node nodejs deno bun lua luajit php tclsh wish expect awk
gawk mawk nawk sed gsed ed ex vi vim nvim view emacs emacsclient nano less more most man
java jshell groovy scala kotlin julia r rscript ghc ghci runghc guile racket erl elixir iex
swift osascript jq yq sqlite sqlite3 psql mysql gdb lldb dc bc m4 gnuplot octave
"""
# Programs that start others, or whose rules do.
_STARTERS: Final = """
env xargs find fd parallel sudo su doas pkexec runuser setpriv git hg svn make gmake cmake
ninja just task rake ant gradle gradlew mvn mvnw nice ionice nohup timeout stdbuf setsid
setarch linux32 linux64 taskset chrt chroot unshare nsenter flock strace ltrace perf watch
entr script scriptreplay screen tmux at batch crontab systemd-run systemctl busybox toybox
docker podman kubectl nix nix-shell npx bunx pipx uvx start-stop-daemon run-parts tar bsdtar
zip rpm dpkg apt apt-get ld.so ld-linux-x86-64.so.2
"""
# Programs that carry content away or bring it in.
_CARRIERS: Final = """
ssh scp sftp rsync curl wget nc ncat netcat socat telnet ftp lftp rclone mail sendmail gpg
openssl dd tee install gh glab aws gcloud gsutil az doctl heroku fly flyctl vercel netlify s3cmd
"""
# Programs whose further words are what they act upon, so that two words bound nothing.
_ALL_COMERS: Final = """
rm rmdir unlink shred truncate mv cp ln chmod chown chgrp chattr setfacl kill pkill killall
mount umount shutdown reboot halt poweroff useradd usermod userdel passwd terraform helm ansible
"""
_RUNS_OTHERS: Final = frozenset(
    f"{_SHELLS} {_LANGUAGES} {_STARTERS} {_CARRIERS} {_ALL_COMERS}".split()
)
_VERSION: Final = re.compile(r"[-\d.]+\Z")
_GO_BETWEENS: Final = frozenset(
    ["run", "exec", "x", "dlx", "start", "tool", "rum", "create", "install", "add", "i", "get"]
)
"""Second words that leave what is done to the third."""


def simple_words(line: str) -> tuple[str, ...] | None:
    """Return the words of *line* if it is one simple command, else None."""
    if not _PLAIN.match(line):
        return None
    try:
        words = tuple(shlex.split(line))
    except ValueError:
        return None  # a quote without its end
    # `%1`, `:` and `x=y` mean something of their own where a program is named.
    return words if words and _PROGRAM.match(words[0]) else None


def beginning(line: str) -> tuple[str, ...] | None:
    """Return the words that "always" would be said to, None where it cannot be said."""
    words = simple_words(line)
    if words is None or any(_runs_others(word) for word in words[:1]):
        return None
    needed = _AT_LEAST
    if len(words) > 1 and words[1] in _GO_BETWEENS:
        needed += 1
        if any(_runs_others(word) for word in words[2:3]):
            return None
    # An option says little of what is done: `tool -v rm` would begin like `tool -v`.
    if len(words) < needed or any(word.startswith("-") for word in words[:needed]):
        return None
    return words[:needed]


def begins_with(line: str, allowed: tuple[str, ...]) -> bool:
    """Return whether *line* is one simple command that begins with the *allowed* words."""
    words = beginning(line)
    return words is not None and words == allowed


def _runs_others(word: str) -> bool:
    name = word.rpartition("/")[2].casefold().removesuffix(".exe")
    return name in _RUNS_OTHERS or _VERSION.sub("", name) in _RUNS_OTHERS
