#!/usr/bin/python3
"""kill_matrix.py - a job survives 30 SIGKILLs of the coordinator and the agents.

100,000 objects of 1 KiB and 20 of 100 MiB, three agents, 20 ms of modelled latency. XF_KILL_SMALL, XF_KILL_LARGE and
XF_KILLS scale it. Checks: ends completed, equal buckets, no open upload, invariant 1 and one live lease a task from the
store after every kill, and no more repeated copies than 500 outcomes and what was in flight for each killed agent.
"""

import json
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from lab import Lab, check, invariant_1, run, same, seed, cases  # noqa: E402

SMALL = int(os.environ.get("XF_KILL_SMALL") or 100_000)
LARGE = int(os.environ.get("XF_KILL_LARGE") or 20)
KILLS = int(os.environ.get("XF_KILLS") or 30)


def test_thirty_kills_lose_nothing():
    rng = random.Random(seed())
    with Lab("kill") as lab:
        args = ["--synth", f"src:{SMALL}:1KiB:dirs", "--bucket", "dst", "--latency", "default=20"]
        for i in range(LARGE):
            args += ["--object", f"src/big/{i:02d}.bin:100MiB:part=16MiB"]
        src = lab.s3d("s3", *args)
        coordinator = lab.coordinator()
        agents = [lab.agent(f"a{i}") for i in range(3)]
        started = time.monotonic()
        job = lab.submit(lab.toml(src, src, "s3://src/", "s3://dst/copy/", '[copy]\npart_size = "16MiB"\nmultipart_threshold = "16MiB"\n'))
        in_flight_at_kill, agent_kills, log = 0, 0, []
        for n in range(KILLS):
            # The moments follow progress, so that they spread over the job however fast it is.
            target = SMALL * (n + rng.random()) / (KILLS + 1)
            st = None
            while True:
                st = lab.status(job) or st
                if st is None:
                    continue
                invariant_1(st)
                if st["objects"]["copied"] >= target or st["state"] not in ("queued", "running"):
                    break
                time.sleep(0.05)
            victim = rng.choice([coordinator] + agents)
            if victim is not coordinator:
                agent_kills += 1
                in_flight_at_kill += 3000
            victim.kill()
            log.append((round(time.monotonic() - started, 2), victim.name, st["objects"]["copied"]))
            lab.check_store()
            if victim is not coordinator and rng.random() < 0.5:
                time.sleep(rng.random())
            victim.start()
        st = lab.wait_job(job, 900, tick=invariant_1)
        print("kills (s, who, copied):", json.dumps(log))
        lab.check_store()
        check(st["state"] == "completed", f"ended {st['state']}: {json.dumps(st)}")
        check(st["objects"]["copied"] == SMALL + LARGE, f"copied {st['objects']}")
        same(src.diff("src/", "dst/copy/"))
        uploads = src.admin("uploads")
        check(uploads["count"] == 0, f"open uploads: {uploads}")
        writes = src.admin("writes?bucket=dst")
        bound = agent_kills * 500 + in_flight_at_kill
        print(
            f"{SMALL + LARGE} objects, {len(log)} kills ({agent_kills} of agents), {time.monotonic() - started:.0f} s, "
            f"written again {writes['extra_writes']} (bound {bound}), worst {writes['worst'][:3]}"
        )
        check(writes["extra_writes"] <= bound, f"{writes['extra_writes']} objects were copied again, bound {bound}")


if __name__ == "__main__":
    run(cases(globals()))
