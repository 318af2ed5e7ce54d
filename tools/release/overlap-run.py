#!python
"""Run `overlap` or `overlap-run`, whichever is the first argument; the second is the mask of signals that were ignored
before Python started, the third whether SIGINT was blocked. launcher.c starts this file with python -E, and with SIGINT
blocked.

Installed as .overlap-run.py beside the commands; the installer replaces the first line, and launcher.c reads it.
"""

import os
import signal
import sys


def complete_path() -> None:
    """Search PYTHONPATH after everything else, where a module that we need is found nowhere else: modules of clusters,
    and `pip install --target`, lead there only by that variable. Modules for another Python stay hidden otherwise."""
    from importlib.util import find_spec

    if not all(map(find_spec, ("pyshim", "cffi", "yaml", "rich", "psutil"))):
        sys.path += [os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]


def die_of_sigint(was_blocked: bool) -> None:
    """Undo what Python and launcher.c did to SIGINT: imports that it interrupts would print tracebacks."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if not was_blocked:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def main() -> int:
    command, ignored = sys.argv.pop(1), int(sys.argv.pop(1))
    die_of_sigint(bool(sys.argv.pop(1)))
    sys.argv[0] = os.path.join(os.path.dirname(os.path.abspath(__file__)), command)
    del sys.path[0]  # the folder of commands
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    complete_path()
    try:
        from pyshim.start import environment

        environment.ignored_signals = ignored
        if command == "overlap":
            from pyshim.cli import main as run
        else:
            from pyshim.cli.run import main as run
    except (ImportError, SyntaxError) as error:  # a module is missing, or this Python is too old
        print(f"{command}: error: cannot start: {error} ({sys.executable})", file=sys.stderr)
        print(f"{command}: help: install the package again, for a Python that it supports", file=sys.stderr)
        return 125
    return run()


if __name__ == "__main__":
    sys.exit(main())
