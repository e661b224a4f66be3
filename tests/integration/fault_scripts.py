#!/usr/bin/python3
"""fault_scripts.py - 24 scripts of a misbehaving server: each kind of fault alone, and all together.

Every script runs in both modes, on small objects and on some in parts. It ends with the same objects and attributes at the
destination, or with exactly the failures that its `never` plans, each in the report; and nothing stays open.

Environment: XF_SEED replays a run, XF_SCRIPTS names the scripts to run, XF_SCRIPT_OBJECTS and XF_SCRIPT_LARGE are the
small objects and those in parts of each script and mode (200 and 2; the full size is 5000 and 20).
"""

import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from lab import ENDS, MIB, MODES, Bench, cases, check, run, seed, wait_for  # noqa: E402

SMALL = int(os.environ.get("XF_SCRIPT_OBJECTS") or 200)
LARGE = int(os.environ.get("XF_SCRIPT_LARGE") or 2)
AT_A_TIME = 6  # jobs: on two cores more of them would stall each other
ATTEMPTS = 8
CONF = '[s3]\nconnect = "5s"\nfirst_byte = "4s"\nstall = "4s"\n'
TEXT = '[copy]\npart_size = "5MiB"\nmultipart_threshold = "5MiB"\n[retry]\nattempts = %d\n[verify]\nmode = "%s"\n'
LARGE_SIZE = 11 * MIB

COPY = ["CopyObject", "UploadPartCopy"]
WRITE = ["PutObject", "UploadPart"]
READ = ["GetObject", "HeadObject"]
UPLOAD = ["CreateMultipartUpload", "CompleteMultipartUpload", "AbortMultipartUpload", "ListParts", "ListMultipartUploads"]
DATA = [*COPY, *WRITE, *READ]
ALL = [*DATA, *UPLOAD]
LIST = "ListObjectsV2"


def rule(op, percent, action, **more):
    return dict({"op": op, "percent": percent, "action": action}, **more)


# What each script does: `rules` to some requests for any of its objects, `never` to each request for one small object and
# one in parts, which then have to fail (or, with `gone`, to vanish). The shares are those of a script alone.
SCRIPTS = {
    # What fails its proof is tried again only in the next pass: this script lasts longest.
    "flip": {"rules": [rule([*COPY, *WRITE], 2, {"corrupt": True})], "never": {"corrupt": True}, "verify": "full", "attempts": 5},
    "delay": {"rules": [rule([*ALL, LIST], 20, {"delay_ms": 150})]},
    "error": {
        "rules": [rule([*ALL, LIST], 6, {"status": 500, "code": "InternalError"}), rule(ALL, 2, {"status": 500, "code": "InternalError", "work": True})],
        "never": {"status": 500, "code": "InternalError", "message": "not this one"},
    },
    "throttled": {
        "rules": [
            rule([*ALL, LIST], 6, {"status": 503, "code": "SlowDown"}),
            rule(ALL, 2, {"status": 503, "body": ""}),
            rule(DATA, 1, {"status": 429, "code": "TooManyRequests", "headers": {"Retry-After": "1"}}),
        ]
    },
    "gateway": {"rules": [rule([*ALL, LIST], 3, {"status": s, "body": "<html>no luck</html>"}) for s in (502, 504)]},
    "denied": {"never": {"status": 403, "code": "AccessDenied"}},
    "copy200err": {
        "rules": [
            rule([*COPY, "CompleteMultipartUpload"], 6, {"status": 200, "code": "InternalError"}),
            rule(COPY, 4, {"status": 200, "code": "SlowDown"}),
            rule(COPY, 3, {"status": 200, "code": "InternalError", "work": True, "pad": 40}),
        ]
    },
    "empty200": {"rules": [rule(COPY, 5, {"body": "", "work": True}), rule("CompleteMultipartUpload", 30, {"body": "", "work": True})]},
    "lost": {"rules": [rule(ALL, 4, {"reply_lost": True}), rule(ALL, 4, {"reply_lost": True, "end": "rst"}), rule([*ALL, LIST], 2, {"reply_lost": True, "work": False})]},
    "pad": {"rules": [rule(["CompleteMultipartUpload", *COPY], 30, {"pad": 20, "pad_ms": 20})]},
    "cut": {"rules": [rule(["GetObject", *COPY, LIST], 5, {"cut_after": n, "end": e}) for n in (60, -3) for e in ("fin", "rst")]},
    "chunked": {"rules": [rule("GetObject", 6, {"cut_after": 100, "chunked": True}), rule([*COPY, LIST], 6, {"cut_after": 90, "chunked": True})]},
    "length": {"rules": [rule("GetObject", 4, a) for a in ({"content_length": 50}, {"content_length": 90 * MIB}, {"extra": 33})]},
    "stall": {
        "rules": [
            rule([*READ, *WRITE], 100, {"stall_after": -1}, nth=5, every=19, count=6),
            rule("GetObject", 100, {"stall_after": 20}, nth=3, every=17, count=6),
            rule("GetObject", 100, {"drip": 1, "drip_ms": 1000}, nth=11, every=23, count=4),
        ]
    },
    "gzip": {"rules": [rule("GetObject", 6, {"gzip": True, "chunked": c}) for c in (True, False)]},
    "read_cut": {"rules": [rule(WRITE, 8, {"read_cut": 60, "end": e}) for e in ("fin", "rst")]},
    "read_stop": {"rules": [rule(WRITE, 100, {"read_stop": 50}, nth=4, every=21, count=6)]},
    "ignored": {"rules": [rule(COPY, 3, {"ignore_copy_source": True})]},
    "literal": {"rules": [rule(COPY, 100, {"literal_copy_source": True})], "odd": True},
    "half": {
        "rules": [rule([*COPY, *WRITE], 4, {"store_size": 9}), rule("HeadObject", 4, {"head_size": 7}, bucket="dst")],
        "never": {"store_size": 9},
        "verify": "size",
    },
        "opaque": {"rules": [rule([*COPY, *WRITE, "CreateMultipartUpload"], 40, {"kms": True}), rule([*COPY, *WRITE], 10, {"etag": "00112233445566778899aabbccddeeff"})]},
    "changed": {
        "changes": 12,
        "rules": [rule(COPY, 10, {"ignore_conditions": True}), rule("GetObject", 10, {"ignore_conditions": True})],
        "gone": True,
    },
    "aborted": {"rules": [rule(["UploadPart", "UploadPartCopy", "CompleteMultipartUpload"], 12, {"abort_upload": True})]},
}
TOGETHER = 0.15  # of its share alone each rule has among all others


def together():
    """Every rule of every script at once; what is planned to fail, too."""
    rules = [dict(r, percent=r["percent"] * TOGETHER) if r["percent"] < 100 else r for s in SCRIPTS.values() for r in s.get("rules", ())]
    rules = [r for r in rules if "literal_copy_source" not in r["action"]]  # at a share it is no server that reads them so
    return {"rules": rules, "never": {"status": 403, "code": "AccessDenied"}, "changes": 6, "verify": "full", "attempts": 3 * ATTEMPTS}


class Job:
    """One script in one mode, below a prefix of its own."""

    def __init__(self, bench, name, script, mode):
        self.b, self.name, self.script, self.mode = bench, name, script, mode
        self.fault_id = f"{name}-{mode}"
        self.prefix = self.fault_id + "/"
        self.to = bench.to(mode)
        self.planned = [self.prefix + k for k in ("never", "never.big")] if "never" in script else []
        self.gone = [self.prefix + k for k in ("gone", "gone.big")] if script.get("gone") else []
        self.id = None

    def fill(self):
        pattern = "utf-8" if self.script.get("odd") else "hex"
        self.b.one.post("load", {"bucket": "src", "count": SMALL, "size": "0-8KiB", "pattern": pattern, "seed": 7, "prefix": self.prefix})
        for i in range(LARGE):
            self.b.one.put("src", f"{self.prefix}large/{i}", size=LARGE_SIZE, seed=i, headers={"x-amz-meta-n": str(i)})
        for i, key in enumerate(self.planned + self.gone):
            self.b.one.put("src", key, size=LARGE_SIZE if key.endswith(".big") else 3000, seed=40 + i)

    def changes(self):
        """Sources that others write, or delete, while they are read: the first request for each is too early for the new one."""
        read = COPY if self.mode == "server" else ["GetObject"]
        rules = []
        for i in range(self.script.get("changes", 0)):
            large = i % 4 == 3
            key = f"{self.prefix}changing/{i}"
            size = LARGE_SIZE if large else 3000 + i
            self.b.one.put("src", key, size=size, seed=90 + i)
            new = {"bucket": "src", "key": key, "size": size + (i % 2), "seed": 190 + i}
            rules.append({"op": read, "key": key, "nth": 2 if large else 1, "count": 1, "action": {"put": new}})
        for key in self.gone:
            rules.append({"op": read, "key": key, "nth": 2 if key.endswith(".big") else 1, "count": 1, "action": {"delete": {"bucket": "src", "key": key}}})
        return rules

    def rules(self):
        never = [{"op": [*COPY, *WRITE], "bucket": "dst", "key": k, "id": self.fault_id, "action": self.script["never"]} for k in self.planned]
        some = []
        for r in self.script.get("rules", ()):
            ops = [r["op"]] if isinstance(r["op"], str) else r["op"]
            data = [o for o in ops if o != LIST]
            if data:
                some.append(dict(r, op=data, key_prefix=self.prefix, id=self.fault_id))
            if LIST in ops:
                some.append(dict(r, op=LIST, query=f"prefix={self.fault_id}", id=self.fault_id))
        return [*never, *self.changes(), *some]

    def begin(self):
        self.fill()
        for s in {self.b.one, self.to}:
            s.faults(*self.rules())
        self.started = time.monotonic()
        self.id = self.b.begin(self.prefix, self.mode, TEXT % (self.script.get("attempts", ATTEMPTS), self.script.get("verify", "etag")))

    def ended(self):
        want = "completed_with_failures" if self.planned else "completed"
        st = self.b.ended(self.id, want, timeout=60 + SMALL / 20 + 5 * LARGE)
        print(f"{self.name} {self.mode}: {time.monotonic() - self.started:.1f} s, retries {st['retries']}, throttled {st['throttled']}, {json.dumps(st['objects'])}", flush=True)
        failed = set(self.b.failures(self.id))
        check(failed == set(self.planned), f"{self.prefix}: failures reported: {failed}, planned: {self.planned}")
        check(st["objects"]["vanished"] == len(self.gone), f"{self.prefix}: {json.dumps(st['objects'])}")
        diff = self.b.one.diff(f"src/{self.prefix}", f"dst/{self.prefix}", other=None if self.mode == "server" else self.to)
        wrong = {k: v["keys"] for k, v in diff.items() if isinstance(v, dict) and v.get("count")}
        stray = [k for keys in wrong.values() for k in keys if self.prefix + k not in self.planned]
        check(not stray, f"{self.prefix}: the destination differs: {json.dumps(wrong)[:2000]}")
        left = [u for u in self.to.admin("uploads")["uploads"] if u["key"].startswith(self.prefix)]
        check(not left, f"{self.prefix}: open uploads: {left}")


def take_turns(jobs):
    """All of them, so many at a time; what one of them leaves stalled or to be refused goes with it. Gives what fired."""
    running, counts = [], {}
    while jobs or running:
        while jobs and len(running) < AT_A_TIME:
            running.append(jobs.pop(0))
            running[-1].begin()
        job = wait_for("the end of a job", lambda: next((j for j in running if j.b.status(j.id)["state"] in ENDS), None), 300 + SMALL / 4)
        job.ended()
        for s in {job.b.one, job.to}:
            counts[job.name] = counts.get(job.name, 0) + sum(r["fired"] for r in s.admin("faults") if r["id"] == job.fault_id)
            s.admin(f"faults?id={job.fault_id}", "DELETE")
        running.remove(job)
    return counts


def test_24_fault_scripts():
    scripts = dict(SCRIPTS, together=together())
    check(len(scripts) == 24, f"{len(scripts)} scripts")
    names = (os.environ.get("XF_SCRIPTS") or " ".join(scripts)).split()
    args = ["--seed", str(seed())]
    with Bench("scripts", one=args, two=args, agents=2, agent_conf=CONF) as b:
        counts = take_turns([Job(b, n, scripts[n], mode) for n in names for mode in MODES])
        idle = [n for n in names if scripts[n].get("rules") and counts[n] == 0]
        check(not idle, f"scripts of which no rule fired prove nothing: {idle}")


if __name__ == "__main__":
    run(cases(globals()))
