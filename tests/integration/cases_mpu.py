#!/usr/bin/python3
"""cases_mpu.py - the life of a multipart upload: C053, C055, C057."""

import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from lab import MIB, MODES, Bench, cases, check, run, wait_for  # noqa: E402

PARTS = '[copy]\npart_size = "5MiB"\nmultipart_threshold = "5MiB"\n'
OVERWRITE = 'if_exists = "overwrite"\n'
PART = {"server": "UploadPartCopy", "relay": "UploadPart"}


def lost_complete(mode):
    with Bench("c053") as b:
        b.one.put("src", "c053/ours", size=12 * MIB, seed=1)
        b.one.put("src", "c053/aborted", size=12 * MIB, seed=2)
        b.to(mode).put("dst", "c053/aborted", size=12 * MIB, seed=3)  # older, of the same size: no proof
        lost = {"op": "CompleteMultipartUpload", "count": 1}
        b.to(mode).faults(
            dict(lost, key="c053/ours", id="ours", action={"reply_lost": True}),
            dict(lost, key="c053/aborted", id="aborted", action={"abort_upload": True, "reply_lost": True}),
        )
        st = b.work("c053/", mode, PARTS + OVERWRITE)
        check(st["objects"]["copied"] == 2 and st["objects"]["failed"] == 0, json.dumps(st["objects"]))
        b.same("c053/", mode)
        made = {k: len(b.to(mode).requests("CreateMultipartUpload", key=f"c053/{k}")) for k in ("ours", "aborted")}
        check(made == {"ours": 1, "aborted": 2}, f"uploads made: {made}")
        check(all(r["fired"] == 1 for r in b.to(mode).admin("faults")), f"{b.to(mode).admin('faults')}")


def c053_a_lost_reply_to_complete_is_cleared_up_in_a_server_copy():
    lost_complete("server")


def c053_a_lost_reply_to_complete_is_cleared_up_in_a_relay():
    lost_complete("relay")


def c055_a_lost_reply_to_create_leaves_nothing_open():
    """Also when the coordinator's clock is an hour off: its intent is older than the upload, whatever its clock says."""
    with Bench("c055", wall=True) as b:
        tries = {f"c055{mode}{hours}/": (mode, hours) for mode in MODES for hours in (0, 1, -1)}
        for prefix, (mode, _) in tries.items():
            b.one.put("src", f"{prefix}a", size=12 * MIB, seed=1)
            # Uploads of other people at the same place, older than the job or of another key, are not ours to abort.
            for key in ("a", "ab"):
                b.to(mode).boto().create_multipart_upload(Bucket="dst", Key=prefix + key)
        time.sleep(3)  # dates have whole seconds: what began within 2 s before is not told apart
        for prefix, (mode, hours) in tries.items():
            s = b.to(mode)
            # One in use began at the same time as ours: it holds a part, which ours cannot.
            used = s.boto().create_multipart_upload(Bucket="dst", Key=f"{prefix}a")["UploadId"]
            s.boto().upload_part(Bucket="dst", Key=f"{prefix}a", UploadId=used, PartNumber=1, Body=b"theirs")
            b.wall.step(3600 * hours)
            s.faults({"op": "CreateMultipartUpload", "key": f"{prefix}a", "count": 1, "action": {"reply_lost": True}})
            b.ended(b.begin(prefix, mode, PARTS))
            b.same(prefix, mode)
            left = [u for u in s.admin("uploads")["uploads"] if u["key"].startswith(prefix)]
            check(sorted(u["key"] for u in left) == [f"{prefix}a"] * 2 + [f"{prefix}ab"], f"{prefix}: open uploads: {left}")
            check(used in [u["upload_id"] for u in left], "somebody else's upload was aborted")
            aborts = len([r for r in s.requests("AbortMultipartUpload") if r["key"].startswith(prefix)])
            check(aborts == 1, f"{aborts} aborts for one upload that nobody knew")


def cancelled(mode):
    with Bench("c055c") as b:
        for i in range(10):
            b.one.put("src", f"c055/{i}", size=40 * MIB, seed=i)
        s = b.to(mode)
        s.post("limits", {"latency": "put=300,copy=300"})
        s.faults(
            {"op": "AbortMultipartUpload", "nth": 1, "every": 3, "count": 4, "action": {"status": 500, "code": "InternalError"}},
            {"op": "AbortMultipartUpload", "nth": 1, "every": 3, "count": 2, "action": {"reply_lost": True, "end": "rst"}},
            {"op": "AbortMultipartUpload", "nth": 1, "every": 3, "count": 2, "action": {"status": 204, "body": ""}},  # a lie
            # These parts land after the abort.
            {"op": PART[mode], "nth": 10, "every": 5, "action": {"delay_ms": 1500}},
        )
        job = b.begin("c055/", mode, PARTS + "[limits]\nin_flight = 16\n")
        wait_for("parts on their way", lambda: s.count(PART[mode]) > 15, 30)
        code, out, err = b.ctl("cancel", job)
        check(code == 0, f"cancel ended with {code}: {err}{out}")
        open_at_end = []
        st = b.ended(job, "cancelled", 60, lambda st: open_at_end.append(s.admin("uploads")["count"]) if st["state"] == "cancelled" else None)
        check(open_at_end == [0], f"open uploads when it said cancelled: {open_at_end}")
        check(st["objects"]["failed"] == 0, f"interrupted objects are no failures: {json.dumps(st['objects'])}")
        wait_for("the last requests to end", lambda: s.admin("counters")["in_flight"] <= 1, 10)
        check(s.admin("uploads")["count"] == 0, f"open uploads: {s.admin('uploads')}")


def c055_a_cancelled_server_copy_leaves_no_upload_open():
    cancelled("server")


def c055_a_cancelled_relay_leaves_no_upload_open():
    cancelled("relay")


def killed(mode, sig):
    """An agent ends in the middle of a large object and comes back: finished parts are not sent again."""
    with Bench("c055k") as b:
        b.one.put("src", "c055/big", size=200 * MIB, seed=1)
        s = b.to(mode)
        s.post("limits", {"latency": "put=400,copy=400"})
        job = b.begin("c055/", mode, PARTS + "[limits]\nin_flight = 4\n")
        wait_for("parts recorded", lambda: any(u["parts"] >= 30 for u in s.admin("uploads")["uploads"]), 60)
        (a,) = b.agents
        a.kill(sig)
        a.popen.wait(30)
        wait_for("the last requests to end", lambda: s.admin("counters")["in_flight"] <= 1, 30)
        sent = s.count(PART[mode])
        known = b.show(job)["uploads"][0]["parts_done"]
        check(known >= 8 and sent - known <= (4 if sig == signal.SIGTERM else 28), f"{known} parts were recorded of {sent}")
        b.check_store()
        a.start()
        st = b.ended(job, timeout=60)
        b.same("c055/", mode)
        check(st["objects"]["copied"] == 1, json.dumps(st["objects"]))
        check(s.count("CreateMultipartUpload") == 1, f"{s.count('CreateMultipartUpload')} uploads for one object")
        again = s.count(PART[mode]) - 40
        check(again <= sent - known, f"{again} of 40 parts were sent again; {sent} had been sent, {known} were recorded")
        check(s.admin("uploads")["count"] == 0, f"open uploads: {s.admin('uploads')}")


def c055_a_killed_agent_goes_on_with_its_upload():
    killed("server", signal.SIGKILL)


def c055_a_stopped_agent_goes_on_with_its_upload():
    killed("relay", signal.SIGTERM)


def c057_no_object_needs_part_10001():
    sizes = {"exact": 83886080000, "over": 83886080001, "g560": 560 * 10**9, "most": 5 << 40}
    with Bench("c057") as b:
        for i, (k, n) in enumerate(sizes.items()):
            # A plain etag: there is no layout of the source to be kept.
            b.one.put("src", f"c057/{k}", size=n, seed=i, etag=f"{i:032x}")
        st = b.work("c057/", text='[copy]\npart_size = "8MiB"\nmultipart_threshold = "8MiB"\n', timeout=180)
        check(st["objects"]["copied"] == len(sizes), json.dumps(st["objects"]))
        b.same("c057/")
        for k, v in b.one.dump("dst", "c057/").items():
            parts = int(v[3].strip('"').rpartition("-")[2])
            check(1 <= parts <= 10000, f"{k}: {parts} parts")
            check(k != b"c057/exact" or parts == 10000, f"{k}: {parts} parts of 8 MiB would do with 10,000")
        check(b.one.admin("counters")["ops"]["UploadPartCopy"]["status"].keys() == {"200"}, "a part was refused")


if __name__ == "__main__":
    run(cases(globals()))
