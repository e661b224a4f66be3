#!/usr/bin/python3
"""jobs_test.py - what an operator does with many jobs: a live one is always seen, ended ones are listed by pages
and forgotten."""

import fcntl
import json
import os
import pty
import select
import signal
import sqlite3
import struct
import subprocess
import sys
import termios

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from lab import BIN, Bench, Failed, cases, check, run, wait_for  # noqa: E402

COMPLETED = 4


def store(bench):
    return sqlite3.connect(os.path.join(bench.dir, "data", "xfer.db"))


def add_ended(bench, n):
    """Rows of n jobs that completed with nothing to do; the coordinator is stopped."""
    rows = [(f"j-old{i}", b"key%d" % i, f"old {i}", 5, COMPLETED, 0, i + 1, i + 1, i + 1) for i in range(n)]
    with store(bench) as db:
        db.executemany(
            "INSERT INTO job(public_id, submit_key, name, priority, state, exit_code, created_ms, started_ms, finished_ms)"
            " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )
        db.execute("INSERT INTO job_spec SELECT id, x'0a' FROM job WHERE public_id LIKE 'j-old%'")
    return [r[0] for r in rows]


def listed(bench):
    code, out, err = bench.ctl("list", "--json")
    check(code == 0, f"list ended with {code}: {err}")
    return [j["id"] for j in json.loads(out)["jobs"]]


def a_watch_fits_the_window(bench, job):
    """The first picture of `status --watch` on a terminal of 80x24."""
    mine, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    argv = [os.path.join(BIN, "xferctl"), "status", "--watch"]
    p = subprocess.Popen(argv, env=dict(bench.env, TERM="xterm"), stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    text = b""
    while b"no room for" not in text:
        check(select.select([mine], [], [], 30)[0], f"no picture: {text[-500:]}")
        try:
            text += os.read(mine, 65536)
        except OSError as e:  # the other end is closed
            raise Failed(f"the watch ended with {p.wait(30)}: {text.decode()}") from e
    p.send_signal(signal.SIGINT)
    check(p.wait(30) == 0, f"a watch ended with {p.returncode}")
    os.close(mine)
    lines = text.decode().split("no room for")[0].splitlines()
    check(len(lines) < 24 and all(len(line) <= 80 + len("\x1b[H\x1b[J") for line in lines), f"{len(lines)} lines:\n{text.decode()}")
    check(job in lines[0], f"the live job is not on top: {lines[0]}")
    check(any(line.startswith("no agents") or line.startswith("agent ") for line in lines), "the agents are not seen")


def a_watch_in_a_pipe_tells_what_is_live(bench, job):
    """Not the many that ended before; the job's end, too."""
    argv = [os.path.join(BIN, "xferctl"), "status", "--watch"]
    with subprocess.Popen(argv, env=bench.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as p:
        line = p.stdout.readline()
        check(job in line and "cancelled" not in line, f"not the live job: {line}")
        check(bench.ctl("cancel", job)[0] == 0, "not cancelled")
        bench.ended(job, "cancelled")
        while f"{job} cancelled" not in line:
            line = p.stdout.readline()
            check(job in line, f"a job that ended before the watch: {line}")
        p.send_signal(signal.SIGINT)
        rest = p.stdout.read()
        check(p.wait(30) == 0 and "j-old" not in rest, f"ended with {p.returncode}: {rest}")


def closed_early(bench, *args):
    p = subprocess.Popen([os.path.join(BIN, "xferctl"), *args], env=bench.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.close()
    said = p.stderr.read()
    check(p.wait(30) == 1 and not said, f"{args} into a closed pipe ended with {p.returncode}: {said}")


def test_a_live_job_is_seen_however_many_ended_since():
    with Bench("manyjobs", agents=0) as b:
        b.one.put("src", "live/k", "x")
        job = b.begin("live/")
        check(b.coord.stop() == 0, "the coordinator did not stop")
        old = add_ended(b, 450)
        b.coord.start()
        code, out, err = b.ctl("status", "--json")
        check(code == 0, f"status ended with {code}: {err}")
        st = json.loads(out)
        check(st["jobs"][0]["id"] == job, f"the live job does not stand first: {[j['id'] for j in st['jobs']][:3]}")
        check([j["id"] for j in st["jobs"][1:]] == old[:-201:-1], "not the newest ended ones")
        check(st["jobs_complete"] is False, "nobody is told of the older ones")
        text = b.ctl("status")[1]
        check("`xferctl list` has all" in text, text[-300:])
        check(listed(b) == old[::-1] + [job], "the list is not every job, newest first")
        lines = b.ctl("list")[1].splitlines()
        check(len(lines) == 451 and lines[-1].startswith(job), f"{len(lines)} lines")
        a_watch_fits_the_window(b, job)
        closed_early(b, "list")
        a_watch_in_a_pipe_tells_what_is_live(b, job)
        gone = b.ctl("prune", "--older-than", "1d")[1].split()
        check(gone == old and listed(b) == [job], f"{len(gone)} forgotten")

ROWS = ("job", "job_spec", "pass", "shard", "task", "manifest", "result", "attempt", "upload", "failure")


def rows(bench):
    with store(bench) as db:
        return {t: db.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in ROWS}


def test_a_prune_goes_on_after_a_restart_and_its_room_is_used_again():
    n = 60000
    with Bench("pruneroom") as b:
        b.one.post("load", {"bucket": "src", "count": n, "size": "1", "pattern": "flat", "prefix": "p/"})
        db_path = os.path.join(b.dir, "data", "xfer.db")

        first = b.begin("p/", to="one/")
        b.ended(first)
        check(b.coord.stop() == 0, "the coordinator did not stop")  # which folds the log into the file
        one = os.path.getsize(db_path)
        with store(b) as db:  # what a kill right after the mark leaves
            db.execute("UPDATE job SET pruned = 1")
        b.coord.start()
        wait_for("the rows to go", lambda: not any(rows(b).values()), 60)
        second = b.begin("p/", to="two/")
        b.ended(second)
        check(b.ctl("prune", second)[0] == 0, "not pruned")
        wait_for("the rows to go", lambda: not any(rows(b).values()), 60)
        check(b.coord.stop() == 0, "the coordinator did not stop")
        two = os.path.getsize(db_path)
        b.coord.start()
        check(two < one * 1.1, f"{one} bytes after the first job, {two} after the second")


def test_prune_forgets_what_has_ended_and_nothing_else():
    with Bench("prune") as b:
        for p in ("a", "b"):
            b.one.put("src", f"{p}/k", "x")
        ended = b.begin("a/")
        b.ended(ended)
        check(b.agents[0].stop() == 0, "the agent did not stop")
        live = b.begin("b/")
        code, _, err = b.ctl("prune")
        check(code == 2 and "--older-than" in err, f"{code}: {err}")
        code, _, err = b.ctl("prune", "--older-than", "soon")
        check(code == 2 and "soon" in err, f"{code}: {err}")
        code, _, err = b.ctl("prune", live)
        check(code == 2 and "only one that has ended" in err, f"{code}: {err}")
        code, out, err = b.ctl("prune", "--older-than", "1h")
        check(code == 0 and out == "" and "0 jobs forgotten" in err, f"{code}: {out}{err}")
        code, out, err = b.ctl("prune", "--older-than", "0s", "--dry-run", "--json")
        check(code == 0 and json.loads(out) == {"jobs": [ended], "dry_run": True}, f"{code}: {out}{err}")
        check(f'job="{ended}"' in b.http("metrics"), "no metrics of the job")
        code, out, err = b.ctl("prune", "--older-than", "0s")
        check(code == 0 and out.split() == [ended], f"{code}: {out}{err}")
        check(listed(b) == [live], f"listed: {listed(b)}")
        for args in (["status"], ["show"], ["report"], ["retry"], ["prune"]):
            code, out, err = b.ctl(args[0], ended)
            check(code == 1 and "no job" in err, f"{args[0]} of a forgotten job ended with {code}: {err}")
        check(ended not in b.http("metrics"), "metrics of a forgotten job")
        b.agents[0].start()
        b.ended(live)


if __name__ == "__main__":
    run(cases(globals()))
