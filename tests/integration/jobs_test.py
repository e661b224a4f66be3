#!/usr/bin/python3
"""jobs_test.py - what an operator does with many jobs: a live one is always seen, ended ones are listed by pages."""

import json
import os
import sqlite3
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from lab import Bench, cases, check, run  # noqa: E402

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
        check(b.ctl("cancel", job)[0] == 0, "not cancelled")
        b.ended(job, "cancelled")
        with store(b) as db:  # every job is looked at when the programs have stopped
            db.execute("DELETE FROM job_spec WHERE job IN (SELECT id FROM job WHERE public_id LIKE 'j-old%')")
            db.execute("DELETE FROM job WHERE public_id LIKE 'j-old%'")


if __name__ == "__main__":
    run(cases(globals()))
