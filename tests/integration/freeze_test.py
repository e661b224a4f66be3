#!/usr/bin/python3
"""freeze_test.py - an agent frozen past its lease and woken again (C092).

While it sleeps the source changes and another agent gets its leases. What the frozen agent's writes leave at the
destination, even those that the service applies late, is seen and repaired before the job ends.
"""

import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from lab import Lab, cases, check, invariant_1, run, same, wait_for  # noqa: E402

LATE_S = 35  # well after the other agent's copies: a lease, its margin, and time for them


def copied(lab, job):
    return (lab.status(job) or {"objects": {"copied": 0}})["objects"]["copied"]


def c092_a_frozen_agent_leaves_no_older_version():
    with Lab("freeze") as lab:
        s3 = lab.s3d("s3", "--synth", "src:3000:1KiB:flat", "--object", "src/big:64MiB:part=8MiB", "--bucket", "dst", "--latency", "copy=300")
        lab.coordinator()
        a = lab.agent("frozen")
        job = lab.submit(lab.toml(s3, s3, "s3://src/", "s3://dst/", '[copy]\npart_size = "8MiB"\nmultipart_threshold = "8MiB"\n[limits]\nin_flight = 64\n'))
        wait_for("a first copy", lambda: copied(lab, job) > 0, 60)
        a.popen.send_signal(signal.SIGSTOP)
        before = {line.split(" ")[0] for line in s3.admin("dump?bucket=dst&prefix=").splitlines()}
        for i in range(0, 3000, 7):
            s3.put("src", f"obj-{i:012d}", f"newer {i}")
        lab.agent("awake")
        wait_for("most objects by the other agent", lambda: copied(lab, job) > 2900, 180)
        lab.check_store()
        a.popen.send_signal(signal.SIGCONT)
        st = lab.wait_job(job, 120, tick=invariant_1)
        check(st["state"] == "completed", json.dumps(st))
        # What was there before the change was copied as it was then; all else must be what the source has now.
        d = s3.diff("src/", "dst/")
        old = set(d["different"]["keys"]) - before
        check(d["missing"]["count"] == 0 and d["extra"]["count"] == 0, json.dumps(d)[:2000])
        check(not old, f"older versions stayed: {sorted(old)[:5]}")
        check(s3.admin("uploads")["count"] == 0, "an upload was left open")
        lab.check_store()


def c092_a_write_that_lands_late_is_seen_and_repaired():
    with Lab("late") as lab:
        src = lab.s3d("s3", "--bucket", "src")
        dst = lab.s3d("s3b", "--bucket", "dst")
        for i in range(12):
            src.put("src", f"late-{i:02d}", f"older {i}")
        src.put("src", "slow", "keeps the job going")
        # The service takes the frozen agent's bodies and stores them long after its lease ended.
        dst.faults(
            {"id": "late", "op": "PutObject", "key_prefix": "late-", "count": 12, "action": {"delay_ms": LATE_S * 1000}},
            {"id": "slow", "op": "PutObject", "key": "slow", "count": 2, "action": {"delay_ms": LATE_S * 1000}},
        )
        lab.coordinator()
        a = lab.agent("frozen")
        job = lab.submit(lab.toml(src, dst, "s3://src/", "s3://dst/"))
        wait_for("every write under way", lambda: dst.admin("counters")["in_flight"] >= 13, 30)
        a.popen.send_signal(signal.SIGSTOP)
        frozen_at = time.monotonic()
        for i in range(12):
            src.put("src", f"late-{i:02d}", f"newer {i}")
        lab.agent("awake")
        wait_for("the copies by the other agent", lambda: copied(lab, job) >= 12, 60)
        check(time.monotonic() - frozen_at < LATE_S, "the second copies came too late for this test")
        wait_for("the late writes", lambda: time.monotonic() - frozen_at > LATE_S + 1, LATE_S + 10)
        check(src.diff("src/", "dst/", other=dst)["different"]["count"] >= 12, "no older write landed late: the test proves nothing")
        a.popen.send_signal(signal.SIGCONT)
        st = lab.wait_job(job, 120, tick=invariant_1)
        check(st["state"] == "completed", json.dumps(st))
        same(src.diff("src/", "dst/", other=dst))
        lab.check_store()


if __name__ == "__main__":
    run(cases(globals()))
