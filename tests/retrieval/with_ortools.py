"""Runs a Python script in an environment that has OR-tools.

    python3 with_ortools.py FOLDER SCRIPT [ARGUMENT]...

FOLDER is where the environment lies. It is made when it is missing, with OR-tools of the version below from PyPI. Where it cannot
be made (no venv, no network), the first line of the output is "skipped: " and the reason, and the exit status is 77.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

VERSION = "9.15.6755"
SKIPPED = 77
# So much is shown of what a program complained of, in characters.
REASON_MAX = 400


def main():
    folder, script = Path(sys.argv[1]), sys.argv[2:]
    # Written last: an environment without it is half made.
    mark = folder / f"ortools-{VERSION}"
    python = folder / "bin" / "python"
    if not mark.exists():
        make(folder, python)
        mark.touch()
    os.execv(python, [python, *script])


def make(folder, python):
    shutil.rmtree(folder, ignore_errors=True)
    run("cannot make a Python environment", [sys.executable, "-m", "venv", folder])
    install = [python, "-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--only-binary", ":all:"]
    limits = ["--retries", "2", "--timeout", "20"]
    run("cannot install OR-tools", [*install, *limits, f"ortools=={VERSION}"])


def run(complaint, command):
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ended.returncode != 0:
        lines = ended.stdout.splitlines()
        said = " ".join([line for line in lines if line.startswith("ERROR")] or lines)
        print(f"skipped: {complaint}: {said[:REASON_MAX]}", flush=True)
        sys.exit(SKIPPED)


main()
