#!/usr/bin/python3
"""large_test.py - several agents on one object: it is shared, an agent that dies costs its unfinished parts."""

import json
import os
import re
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from lab import MIB, Bench, cases, check, run, wait_for  # noqa: E402

# 1 GiB in parts of 8 MiB, 4.7 MiB/s for each request: 1.7 s a part, 218 s by one stream.
PARTS = 128
COPY = '[copy]\npart_size = "8MiB"\nmultipart_threshold = "8MiB"\n'
RATE = "4928307"
HTTP = 'http = "127.0.0.1:0"\n'
LEASE = '[lease]\nttl = "5s"\nmargin = "1s"\n'


def parts_sent_by(agent):
    """Part copies of an agent that went well, from its own metrics."""
    with urllib.request.urlopen(f"http://{agent.words['http']}/metrics", timeout=10) as r:
        text = r.read().decode()
    return sum(int(n) for n in re.findall(r'^xfer_s3_requests_total\{op="part_copy",code="ok"\} (\d+)', text, re.M))


def shared(victim):
    """One object and three agents; `victim` is told of the job once parts are under way."""
    with Bench("large", one=("--copy-rate", RATE), agents=3, agent_conf=HTTP, coord_conf=LEASE) as b:
        b.one.put("src", "large/one", size=PARTS * 8 * MIB, seed=1, etag="1" * 32)
        # Few requests for each agent, so that there is work for all of them.
        job = b.begin("large/", text=COPY + "[limits]\nin_flight = 8\n")
        wait_for("each agent to have copied parts", lambda: all(parts_sent_by(a) > 0 for a in b.agents), 60)
        lost = victim(b)
        st = b.ended(job, timeout=200)
        b.same("large/")
        check(st["objects"]["copied"] == 1, json.dumps(st["objects"]))
        check(b.one.count("CreateMultipartUpload") == 1, f"{b.one.count('CreateMultipartUpload')} uploads for one object")
        sent = b.one.count("UploadPartCopy")
        check(PARTS <= sent <= PARTS + lost, f"{sent} part copies for {PARTS} parts; at most {lost} were lost with an agent")
        check(b.one.admin("uploads")["count"] == 0, f"open uploads: {b.one.admin('uploads')}")
        return {a.name: parts_sent_by(a) for a in b.agents if a.alive()}


def test_three_agents_share_one_object():
    share = shared(lambda b: 0)
    check(sum(share.values()) == PARTS, f"parts by agent: {share}")
    check(min(share.values()) >= PARTS // 8, f"not shared: {share}")


def test_a_killed_agent_costs_at_most_its_unfinished_parts():
    def kill(b):
        dead = b.agents.pop()
        before = parts_sent_by(dead)
        dead.kill()
        print(f"killed after {before} parts")
        # In flight at its death, and what was finished since its last checkpoint (2 s at 1.7 s a part).
        return 8 + 16

    share = shared(kill)
    check(len(share) == 2, f"{share}")


def test_small_objects_do_not_wait_behind_a_large_relayed_one():
    """Its 32 parts take 16 s each; what is listed once they are under way is copied before any of them has ended."""
    with Bench("share") as b:
        b.one.put("src", "large/a", size=32 * 64 * MIB, seed=1, etag="1" * 32)
        b.one.post("load", {"bucket": "src", "prefix": "small/", "count": 500, "size": "1KiB", "pattern": "flat", "seed": 1})
        b.one.faults(
            {"op": "GetObject", "key": "large/a", "action": {"drip": MIB, "drip_ms": 250}},
            {"op": "ListObjectsV2", "query": "prefix=small", "action": {"delay_ms": 2500}},
        )
        path = b.toml(b.one, b.two, "s3://src/large/", "s3://dst/large/", '[copy]\npart_size = "64MiB"\n')
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for bucket in ("src", "dst"):
            text = text.replace(f'url = "s3://{bucket}/large/"', f'urls = ["s3://{bucket}/large/", "s3://{bucket}/small/"]')
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        job = b.submit(path)
        wait_for("small objects", lambda: b.status(job)["objects"]["copied"] == 500, 60)
        sent = b.two.count("UploadPart")
        check(sent == 0, f"{sent} parts had ended before the small objects had")
        check(b.two.admin("counters")["in_flight"] > 0, "no part was under way: this test proves nothing")
        b.ctl("cancel", job)
        b.ended(job, "cancelled")


if __name__ == "__main__":
    run(cases(globals()))
