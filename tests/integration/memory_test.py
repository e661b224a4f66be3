#!/usr/bin/python3
"""memory_test.py - memory is bounded by settings, not by the number of keys or the size of objects.

A job of 1 million made-up objects, then one of 3 million, against a server that keeps no bodies: the coordinator stays below
200 MiB and within 10 MiB of its first peak, the agent below 300 MiB at its defaults. XF_MEMORY_MILLIONS="1 3" scales it.
Meanwhile `status` answers within 100 ms. A relay of large objects among small ones keeps the agent below the same 300 MiB.
"""

import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from lab import Lab, cases, check, invariant_1, run  # noqa: E402

MILLIONS = [float(x) for x in (os.environ.get("XF_MEMORY_MILLIONS") or "1 3").split()]
MIB = 1024  # KiB
COORDINATOR_MIB, GROWTH_MIB, AGENT_MIB = 200, 10, 300
STATUS_S = 0.1


def figures(lab, what, count, took, coordinator, agent):
    """Prints what a job cost; gives the peaks of coordinator and agent in KiB."""
    c, a = coordinator.peak_kib(), agent.peak_kib()
    data = os.path.join(lab.dir, "data")
    disk = sum(os.path.getsize(os.path.join(data, f)) for f in os.listdir(data))
    print(
        f"{what} in {took:.1f} s ({count / took:.0f}/s): peak coordinator {c / MIB:.1f} MiB, agent {a / MIB:.1f} MiB; "
        f"processor coordinator {coordinator.cpu_s():.1f} s, agent {agent.cpu_s():.1f} s; store {disk / count:.1f} bytes a key",
        flush=True,
    )
    return c, a


def peaks(millions):
    count = int(millions * 1_000_000)
    with Lab("memory") as lab:
        s3 = lab.s3d("s3", "--synth", f"src:{count}:1KiB:dirs", "--bucket", "dst", "--discard")
        coordinator, agent = lab.coordinator(), lab.agent("a1")
        waits = []

        def look(st):
            invariant_1(st)
            before = time.monotonic()
            lab.http(f"api/v1/jobs/{job}")
            waits.append(time.monotonic() - before)

        started = time.monotonic()
        job = lab.submit(lab.toml(s3, s3, "s3://src/", "s3://dst/"))
        st = lab.wait_job(job, 3000, tick=look, every=0.25)
        took = time.monotonic() - started
        check(st["state"] == "completed" and st["objects"]["copied"] == count, json.dumps(st))
        waits.sort()
        print(f"{len(waits)} times status: median {waits[len(waits) // 2] * 1e3:.1f} ms, longest {waits[-1] * 1e3:.1f} ms", flush=True)
        # The longest is the machine's as well: others run on it.
        check(waits[len(waits) * 9 // 10] < STATUS_S, f"status answered only after {waits[-10:]} s")
        return figures(lab, f"{count} objects", count, took, coordinator, agent)


def test_peaks_do_not_grow_with_the_keys():
    first = None
    for m in MILLIONS:
        c, a = peaks(m)
        check(c < COORDINATOR_MIB * MIB, f"coordinator peaked at {c / MIB:.1f} MiB")
        check(a < AGENT_MIB * MIB, f"agent peaked at {a / MIB:.1f} MiB")
        first = first or c
        check(c <= first + GROWTH_MIB * MIB, f"coordinator grew from {first / MIB:.1f} to {c / MIB:.1f} MiB")


def test_a_relay_of_large_objects_stays_within_the_pool():
    large, small = 20, 20_000
    with Lab("memory-relay") as lab:
        src = lab.s3d(
            "s3",
            *("--synth", f"src:{large}:100MiB:flat:part=64MiB:prefix=large/"),
            *("--synth", f"src:{small}:1KiB:dirs:prefix=small/"),
        )
        dst = lab.s3d("s3b", "--bucket", "dst")
        coordinator, agent = lab.coordinator(), lab.agent("a1")
        started = time.monotonic()
        job = lab.submit(lab.toml(src, dst, "s3://src/", "s3://dst/", '[copy]\nmode = "relay"\n'))
        st = lab.wait_job(job, 600, tick=invariant_1)
        took = time.monotonic() - started
        check(st["state"] == "completed" and st["objects"]["copied"] == large + small, json.dumps(st))
        check(st["bytes"]["through_agents"] >= large * 100 << 20, json.dumps(st))
        _, a = figures(lab, f"relay of {large} x 100 MiB and {small} small", large + small, took, coordinator, agent)
        check(a < AGENT_MIB * MIB, f"agent peaked at {a / MIB:.1f} MiB")


if __name__ == "__main__":
    run(cases(globals()))
