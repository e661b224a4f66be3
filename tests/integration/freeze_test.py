#!/usr/bin/python3
"""freeze_test.py - an agent frozen past its lease and woken again (C092).

The frozen agent holds half-sent writes of older bytes; another agent copies the newer ones; after the wake-up nothing of
the older version stays at the destination unnoticed, no task has two live leases, and the job ends completed.
"""

import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from lab import Lab, cases, check, invariant_1, run, same, wait_for  # noqa: E402


def frozen(relay):
    with Lab("freeze") as lab:
        src = lab.s3d("s3", "--synth", "src:3000:1KiB:flat", "--object", "src/big:64MiB:part=8MiB", "--bucket", "dst", "--latency", "copy=300,put=300")
        dst = lab.s3d("s3b", "--bucket", "dst", "--latency", "put=300") if relay else src
        lab.coordinator()
        a = lab.agent("frozen")
        job = lab.submit(lab.toml(src, dst, "s3://src/", "s3://dst/", '[copy]\npart_size = "8MiB"\nmultipart_threshold = "8MiB"\n[limits]\nin_flight = 64\n'))
        wait_for("a first copy", lambda: (lab.status(job) or {"objects": {"copied": 0}})["objects"]["copied"] > 0, 60)
        a.popen.send_signal(signal.SIGSTOP)
        # The source changes while the agent sleeps.
        for i in range(0, 3000, 7):
            src.put("src", f"obj-{i:012d}", f"newer {i}")
        lab.agent("awake")
        wait_for(
            "most objects by the other agent",
            lambda: (lab.status(job) or {"objects": {"copied": 0}})["objects"]["copied"] > 2900,
            180,
        )
        lab.check_store()
        a.popen.send_signal(signal.SIGCONT)
        time.sleep(1)
        st = lab.wait_job(job, 120, tick=invariant_1)
        check(st["state"] == "completed", json.dumps(st))
        # What was changed after it had been copied belongs to the next run; nothing may be older than the copy's plan.
        again = lab.wait_job(lab.submit(lab.toml(src, dst, "s3://src/", "s3://dst/", "")), 180)
        check(again["state"] == "completed", json.dumps(again))
        same(src.diff("src/", "dst/", other=dst if relay else None))
        lab.check_store()


def c092_a_frozen_agent_leaves_no_older_version_in_a_server_copy():
    frozen(relay=False)


def c092_a_frozen_agent_leaves_no_older_version_in_a_relay():
    frozen(relay=True)


if __name__ == "__main__":
    run(cases(globals()))
