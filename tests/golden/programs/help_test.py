#!/usr/bin/python3
"""help_test.py - the help of every program and command, word by word; README names only what is there.

The texts beside this file are written again by --bless.
"""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
BIN = os.path.abspath(os.environ.get("XF_BIN_DIR") or os.path.join(ROOT, "build", "release", "bin"))


def said(*args):
    r = subprocess.run(args, env={"PATH": "/usr/bin:/bin"}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                       timeout=30, check=False)
    assert r.returncode == 0 and not r.stderr, f"{args}: exit {r.returncode}: {r.stderr}"
    return r.stdout


def helps():
    ctl = os.path.join(BIN, "xferctl")
    top = said(ctl, "--help")
    commands = re.findall(r"^  ([a-z]+)(?: \S.*)?  +\S", top.split("\nOptions:")[0], re.M)
    assert {"submit", "run", "status", "agents", "version"} <= set(commands), commands
    texts = {"xferctl": "\n".join([top] + [said(ctl, c, "--help") for c in commands])}
    for daemon in ("xfer-coordinator", "xfer-agent"):
        path = os.path.join(BIN, daemon)
        texts[daemon] = said(path, "--help") + "\n" + said(path, "--help-config")
    return commands, texts


def check_readme(commands, texts):
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        readme = f.read()
    known = set(re.findall(r"--[a-z][a-z-]*", "".join(texts.values())))
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", readme))
    assert not named - known, f"README names options that no program has: {sorted(named - known)}"
    table = readme.split("| command | what |")[1].split("\n\n")[0]
    missing = [c for c in commands if not re.search(rf"\b{c}\b", table)]
    assert not missing, f"README's table lacks the commands {missing}"


def main():
    commands, texts = helps()
    for name, text in texts.items():
        lines = [line for line in text.split("\n") if len(line) > 80 or line != line.rstrip()]
        assert not lines, f"{name}: wider than 80 columns, or blanks at the end: {lines}"
        path = os.path.join(HERE, name + ".txt")
        if "--bless" in sys.argv[1:]:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        with open(path, encoding="utf-8") as f:
            assert f.read() == text, f"{name}: the help is not that of {path}; look at it, then --bless"
    assert said(os.path.join(BIN, "xferctl"), "man").startswith(".TH ")
    check_readme(commands, texts)
    print(f"help: {len(commands)} commands and 2 daemons")


if __name__ == "__main__":
    main()
