#!/usr/bin/python3
"""memory_test.py - memory is bounded by settings, not by the number of keys or the size of objects.

A job of 1 million made-up objects, then one of 3 million, against a server that keeps no bodies: the coordinator stays below
200 MiB and within 10 MiB of its first peak, the agent below 300 MiB at its defaults. XF_MEMORY_MILLIONS="1 3" scales it.
"""

import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from lab import Lab, cases, check, invariant_1, run  # noqa: E402

MILLIONS = [float(x) for x in (os.environ.get("XF_MEMORY_MILLIONS") or "1 3").split()]
MIB = 1024  # KiB


def peaks(millions):
    count = int(millions * 1_000_000)
    with Lab("memory") as lab:
        s3 = lab.s3d("s3", "--synth", f"src:{count}:1KiB:dirs", "--bucket", "dst", "--discard")
        coordinator, agent = lab.coordinator(), lab.agent("a1")
        started = time.monotonic()
        job = lab.submit(lab.toml(s3, s3, "s3://src/", "s3://dst/"))
        st = lab.wait_job(job, 3000, tick=invariant_1)
        check(st["state"] == "completed" and st["objects"]["copied"] == count, json.dumps(st))
        data = os.path.join(lab.dir, "data")
        disk = sum(os.path.getsize(os.path.join(data, f)) for f in os.listdir(data))
        took = time.monotonic() - started
        c, a = coordinator.peak_kib(), agent.peak_kib()
        print(
            f"{count} objects in {took:.0f} s ({count / took:.0f}/s): peak coordinator {c / MIB:.1f} MiB, agent {a / MIB:.1f} MiB, "
            f"store {disk / count:.1f} bytes a key",
            flush=True,
        )
        return c, a


def test_peaks_do_not_grow_with_the_keys():
    first = None
    for m in MILLIONS:
        c, a = peaks(m)
        check(c < 200 * MIB, f"coordinator peaked at {c / MIB:.1f} MiB")
        check(a < 300 * MIB, f"agent peaked at {a / MIB:.1f} MiB")
        first = first or c
        check(c <= first + 10 * MIB, f"coordinator grew from {first / MIB:.1f} to {c / MIB:.1f} MiB")


if __name__ == "__main__":
    run(cases(globals()))
