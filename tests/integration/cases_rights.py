#!/usr/bin/python3
"""cases_rights.py - objects that may not be read, or not wholly, and what may not be set: C006, C011, C012, C014."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from lab import MIB, MODES, Bench, cases, check, run  # noqa: E402

PARTS = '[copy]\npart_size = "5MiB"\nmultipart_threshold = "5MiB"\n'
REQUIRED = 'tags = "required"\n'
ONE_TRY = "[retry]\nattempts = 1\n"
DENIED = {"status": 403, "code": "AccessDenied"}


def fired(server):
    """How often each rule of faults answered."""
    return {r["id"]: r["fired"] for r in server.admin("faults")}


def c006_tags_that_may_not_be_read_are_told_once_for_all_objects():
    sizes = {**{f"small{i}": 1024 for i in range(20)}, "large": 12 * MIB}
    for mode in MODES:
        with Bench("c006") as b:
            for key, size in sizes.items():
                b.one.put("src", f"c006/{key}", size=size, seed=6, tags="team=x")
            b.one.faults(
                {"op": "GetObjectTagging", "bucket": "src", "action": DENIED},
                # A copy that takes the source's tags along has to read them too.
                {"op": "CopyObject", "header": "x-amz-tagging-directive: REPLACE", "action": {}},
                {"op": "CopyObject", "action": DENIED},
            )
            st = b.work("c006/", mode, PARTS + 'tags = "best-effort"\n')
            check(st["objects"]["copied"] == len(sizes), f"{mode}: {json.dumps(st['objects'])}")
            s3 = b.to(mode).boto()
            tagged = [k for k in sizes if s3.get_object_tagging(Bucket="dst", Key=f"c006/{k}")["TagSet"]]
            check(not tagged, f"{mode}: these have tags that nobody could read: {tagged}")
            said = [n["text"] for n in b.show(st["id"])["notices"] if "tag" in n["text"]]
            check(len(said) == 1 and "GetObjectTagging" in said[0], f"{mode}: notices: {said}")

            st = b.work("c006/", mode, PARTS + REQUIRED + ONE_TRY, to="c006r/", want="completed_with_failures")
            check(st["objects"]["failed"] == len(sizes), f"{mode}: {json.dumps(st['objects'])}")
            check(not b.to(mode).keys("dst", "c006r/"), f"{mode}: half handled: {b.to(mode).keys('dst', 'c006r/')}")
            kinds = b.show(st["id"])["errors"]
            check(len(kinds) == 1 and kinds[0]["count"] == len(sizes), f"{mode}: not one grouped line: {json.dumps(kinds)}")


def c011_a_bucket_that_encrypts_by_kms_has_etags_that_prove_nothing():
    for mode in MODES:
        with Bench("c011") as b:
            for key, size in (("small", 1024), ("large", 12 * MIB)):
                b.one.put("src", f"c011/{key}", size=size, seed=4)
            writes = ["PutObject", "CopyObject", "UploadPart", "UploadPartCopy", "CompleteMultipartUpload"]
            b.to(mode).faults({"op": writes, "action": {"kms": True}})
            st = b.work("c011/", mode, PARTS)
            check(st["objects"]["copied"] == 2 and st["retries"] == 0, f"{mode}: {json.dumps(st)}")
            b.same("c011/", mode)


def c011_a_key_that_is_lacking_fails_its_object_alone():
    with Bench("c011k") as b:
        for key in ("good", "customer", "kms"):
            b.one.put("src", f"c011/{key}", size=1024, seed=4)
            b.one.put("src", f"c011/{key}.big", size=12 * MIB, seed=4)
        no_key = {"status": 400, "code": "InvalidRequest", "message": "The object was stored using a form of Server Side Encryption. The correct parameters must be provided to retrieve the object."}
        no_kms = dict(DENIED, message="User is not authorized to perform: kms:Decrypt on the resource")
        b.one.faults(
            {"op": "HeadObject", "key_prefix": "c011/customer", "action": {"status": 400, "body": ""}},
            {"op": ["GetObject", "CopyObject", "UploadPartCopy"], "key_prefix": "c011/customer", "id": "customer", "action": no_key},
            {"op": ["GetObject", "CopyObject", "UploadPartCopy"], "key_prefix": "c011/kms", "id": "kms", "action": no_kms},
        )
        for mode in MODES:
            st = b.work("c011/", mode, PARTS, want="completed_with_failures")
            check(st["objects"]["copied"] == 2 and st["objects"]["failed"] == 4, f"{mode}: {json.dumps(st['objects'])}")
            rows = {k: ",".join(r).lower() for k, r in b.failures(st["id"]).items()}
            check("customer" in rows["c011/customer"], f"{mode}: {rows}")
            check("kms" in rows["c011/kms"], f"{mode}: {rows}")
            check(b.to(mode).keys("dst", "c011/") == [b"c011/good", b"c011/good.big"], f"{mode}: {b.to(mode).keys('dst')}")


ARCHIVED = ("GLACIER", "DEEP_ARCHIVE")
READABLE = ("GLACIER_IR", "STANDARD_IA")


def c012_archived_objects_are_told_without_a_doomed_read():
    """Also those that only their tier makes unreadable; a restored copy is read, and its class is kept by no accident."""
    with Bench("c012") as b:
        for c in ARCHIVED + READABLE + ("INTELLIGENT_TIERING",):
            b.one.put("src", f"c012/{c}", size=1024, seed=12, storage_class=c)
            b.one.put("src", f"c012/{c}.big", size=12 * MIB, seed=12, storage_class=c)
        b.one.put("src", "c012/restored", size=1024, seed=12, storage_class="GLACIER", restored=True)
        b.one.put("src", "c012/restored.big", size=12 * MIB, seed=12, storage_class="DEEP_ARCHIVE", restored=True)
        cold = {"status": 403, "code": "InvalidObjectState", "message": "The operation is not valid for the object's storage class"}
        reads = ["GetObject", "CopyObject", "UploadPartCopy"]
        b.one.faults(
            *({"op": reads, "key_prefix": f"c012/{c}", "id": c, "action": cold} for c in ("INTELLIGENT_TIERING", "DEEP_ARCHIVE")),
            {"op": reads, "key": "c012/GLACIER", "id": "GLACIER", "action": dict(cold, code="ObjectNotInActiveTierError")},
            {"op": reads, "key": "c012/GLACIER.big", "id": "GLACIER.big", "action": cold},
        )
        # Where storage classes are kept by name, an archive class is written as asked, never by default.
        cooler = 'storage_class = "STANDARD_IA"\n'
        for mode in MODES:
            b.one.post("counters/reset")
            st = b.work("c012/", mode, PARTS, want="completed_with_failures", dst_more=cooler)
            o = st["objects"]
            check(o["archived"] == 6 and o["failed"] == 0 and o["copied"] == 6, f"{mode}: {json.dumps(o)}")
            check(st["exit_code"] == 3 and st["retries"] == 0, f"{mode}: {json.dumps(st)}")
            got = b.to(mode).keys("dst", "c012/")
            want = sorted(f"c012/{k}{x}".encode() for k in READABLE + ("restored",) for x in ("", ".big"))
            check(got == want, f"{mode}: {got}")
            classes = {b.to(mode).boto().head_object(Bucket="dst", Key=k.decode()).get("StorageClass") for k in got}
            check(classes == {"STANDARD_IA"}, f"{mode}: classes {classes}")
            asked = fired(b.one)
            check(all(asked[c] == 0 for c in ("GLACIER", "GLACIER.big", "DEEP_ARCHIVE")), f"{mode}: doomed reads: {asked}")
            check(asked["INTELLIGENT_TIERING"] <= 4 * (1 + MODES.index(mode)), f"{mode}: an archived object was tried again: {asked}")
            check(b.to(mode).admin("uploads")["count"] == 0, f"{mode}: open uploads")
            rows = b.failures(st["id"])
            check(len(rows) == 6 and all("archived" in ",".join(r).lower() for r in rows.values()), f"{mode}: report: {rows}")


def c014_no_acl_is_asked_for_or_set():
    """A bucket that knows no ACL refuses any: the default sends none, at both sizes and in both modes."""
    with Bench("c014") as b:
        b.one.put("src", "c014/small", size=1024, seed=1)
        b.one.put("src", "c014/large", size=12 * MIB, seed=1)
        no_acl = {"status": 400, "code": "AccessControlListNotSupported", "message": "The bucket does not allow ACLs"}
        for s in (b.one, b.two):
            s.faults(*({"header": h, "id": h, "action": no_acl} for h in ("x-amz-acl", "x-amz-grant-full-control", "x-amz-grant-read")))
            s.faults({"query": "acl", "id": "acl", "action": no_acl})
        for mode in MODES:
            st = b.work("c014/", mode, PARTS)
            check(st["objects"]["copied"] == 2, f"{mode}: {json.dumps(st['objects'])}")
            b.same("c014/", mode)
        for s in (b.one, b.two):
            check(not any(fired(s).values()), f"an ACL was sent or read: {fired(s)}")


if __name__ == "__main__":
    run(cases(globals()))
