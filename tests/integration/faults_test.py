#!/usr/bin/python3
"""faults_test.py - a server that misbehaves at random, by seed, and one key that never works.

Against 5 % of 503s, 1 % of resets, 0.5 % of truncated bodies, 0.5 % of 200 with an Error on copies and 0.2 % of stalls a job
ends completed and identical; with one key always failing it ends completed_with_failures, exit 3, the key in the report.
"""

import csv
import io
import json
import os
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from lab import Lab, cases, check, invariant_1, run, same, seed  # noqa: E402

OBJECTS = int(os.environ.get("XF_FAULT_OBJECTS") or 4000)
RATES = "503=5,reset=1,truncate=0.5,copy200err=0.5,stall=0.2"
# A stall costs its request as long as an agent waits for it: most of the time of this test, otherwise.
CONF = '[s3]\nconnect = "5s"\nfirst_byte = "4s"\nstall = "4s"\n'
PARTS = '[copy]\npart_size = "8MiB"\nmultipart_threshold = "8MiB"\n'


def job_under_faults(relay):
    with Lab("faults") as lab:
        big = []
        for i in range(4):
            big += ["--object", f"src/big/{i}:20MiB:part=8MiB"]
        src = lab.s3d("s3", "--synth", f"src:{OBJECTS}:0-8KiB:hex", "--bucket", "dst", "--fault-rate", RATES, "--seed", str(seed()), *big)
        dst = lab.s3d("s3b", "--bucket", "dst", "--fault-rate", RATES, "--seed", str(seed())) if relay else src
        coordinator = lab.coordinator()
        agents = [lab.agent(f"a{i}", *lab.config("agent", CONF)) for i in range(2)]
        started = time.monotonic()
        job = lab.submit(lab.toml(src, dst, "s3://src/", "s3://dst/", PARTS))
        st = lab.wait_job(job, 900, tick=invariant_1)
        print(f"{st['state']} in {time.monotonic() - started:.0f} s, retries {st['retries']}, throttled {st['throttled']}, {json.dumps(st['objects'])}")
        check(st["state"] == "completed", f"{json.dumps(st)}\n{lab.ctl('show', job)[1]}")
        for s in {src, dst}:
            s.post("limits", {"fault_rate": ""})
        same(src.diff("src/", "dst/", other=dst if relay else None))
        check(dst.admin("uploads")["count"] == 0, "an upload was left open")
        for p in agents + [coordinator]:
            check(p.stop() == 0, f"{p.name} did not stop cleanly")
        lab.check_store()


def test_random_faults_on_server_copies():
    job_under_faults(relay=False)


def test_random_faults_on_a_relay():
    job_under_faults(relay=True)


def c079_one_key_that_always_fails_is_exit_3_and_in_the_report():
    with Lab("onekey") as lab:
        s3 = lab.s3d("s3", "--synth", "src:300:1KiB:flat", "--bucket", "dst")
        bad = "odd, \"key\"\n€"
        s3.put("src", bad, "x")
        s3.faults({"op": ["CopyObject", "PutObject"], "key": bad, "action": {"status": 403, "code": "AccessDenied"}})
        lab.coordinator()
        lab.agent("a1")
        path = lab.toml(s3, s3, "s3://src/", "s3://dst/", "[retry]\nattempts = 3\n")
        code, out, err = lab.ctl("submit", path, "--wait", timeout=300)
        check(code == 3, f"exit {code}, not 3: {err}{out}")
        job = [w for w in out.split() if w.startswith("j-")][-1]
        st = lab.status(job)
        check(st["state"] == "completed_with_failures" and st["exit_code"] == 3, json.dumps(st))
        check(st["objects"]["failed"] == 1 and st["objects"]["copied"] == 300, json.dumps(st["objects"]))
        code, out, err = lab.ctl("report", job, "--format", "csv", "--only", "failed")
        rows = [r for r in csv.reader(io.StringIO(out)) if r and r[0] == "src"]
        check(len(rows) == 1 and urllib.parse.unquote_plus(rows[0][1]) == bad, f"report: {out!r} {err}")
        check("AccessDenied" in out, f"the report does not tell the error: {out!r}")
        # What failed can be tried again alone, when it can work now (C080).
        s3.admin("faults", "DELETE")
        s3.post("counters/reset")
        code, out, err = lab.ctl("retry", job)
        check(code == 0, f"retry ended with {code}: {err}")
        st = lab.wait_job(job, 60)
        check(st["state"] == "completed" and st["objects"]["copied"] == 301, json.dumps(st))
        copies = s3.admin("counters")["ops"].get("CopyObject", {}).get("count", 0)
        check(copies <= 3, f"{copies} copies for one key to retry")
        same(s3.diff("src/", "dst/"))


if __name__ == "__main__":
    run(cases(globals()))
