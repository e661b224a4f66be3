#!/usr/bin/python3
"""fidelity_test.py - what of an object arrives beside its bytes, by size and mode, on our own strict server.

Makes a table of every attribute, way and size; it is docs/FIDELITY.md's part of s3d (XF_BLESS=1 writes it there).
"""

import base64
import hashlib
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from fidelity import COPY, LOCK, OWN, SSE, UNTIL, Server, Table, compare, customer, groups, put_sources, report  # noqa: E402
from lab import DST_KEY, DST_SECRET, MIB, MODES, Bench, cases, check, run  # noqa: E402

PARTS = '[copy]\npart_size = "5MiB"\nmultipart_threshold = "5MiB"\n'
TRIES = "[retry]\nattempts = 2\n"

KMS_KEY = "arn:aws:kms:us-east-1:123456789012:key/of-the-destination"
PUBLIC = [("FULL_CONTROL", "s3d"), ("READ", "http://acs.amazonaws.com/groups/global/AllUsers")]


def servers(b):
    return {m: Server(b.to(m).url, "us-east-1", DST_KEY, DST_SECRET, b.to(m).boto()) for m in MODES}


def bench(name):
    b = Bench(name, one=("--bucket", "paid"))
    b.secrets += OWN.values()
    b.env.update(OWN)
    return b


def prepare(b):
    b.one.post("bucket", {"bucket": "src", "object_lock": True})
    for s in (b.one, b.two):
        s.post("bucket", {"bucket": "dst", "object_lock": True})
    # Redirects exist where a bucket serves a website.
    b.one.faults({"op": "Other", "query": "website", "action": {"status": 200, "body": "<WebsiteConfiguration/>"}})


def test_every_attribute_at_every_size_in_both_modes():
    table = Table("s3d", "s3d, the server of the tests", {})
    with bench("fidelity") as b:
        prepare(b)
        at = servers(b)
        kinds = groups(KMS_KEY, PUBLIC)
        put_sources(at["server"], lambda g: "paid" if g.name == "payer" else "src", kinds)
        b.one.post("bucket", {"bucket": "paid", "requester_pays": True})
        for mode in MODES:
            for g in kinds:
                source = f"paid/{g.name}/" if g.name == "payer" else None
                st = b.work(f"{g.name}/", mode, COPY + g.copy, source=source, src_more=g.src, dst_more=g.dst)
                relayed = mode == "relay" or g.mode == "auto"
                check((st["bytes"]["through_agents"] > 0) == relayed, f"{g.name}: {json.dumps(st['bytes'])}")
                compare(table, g, mode, at[mode], "dst", f"{g.name}/", report(b, st["id"]))
    table.settle()


def fill(b, prefix, **put):
    for name, size in (("small", 1000), ("large", 12 * MIB)):
        b.one.put("src", f"{prefix}{name}", size=size, seed=5, **put)
    return {f"{prefix}small", f"{prefix}large"}


def refuse(key_glob, header, code, status=400):
    return {"header": header, "key_glob": key_glob, "action": {"status": status, "code": code, "message": "not here"}}


def test_an_attribute_that_the_destination_does_not_take_is_counted_and_listed():
    with bench("dropped") as b:
        for mode in MODES:
            for kind, header, code, word in (
                ("storage_class", "x-amz-storage-class", "InvalidStorageClass", "storage class"),
                ("tags", "x-amz-tagging", "NotImplemented", "tags may"),
            ):
                if (mode, kind) == ("server", "tags"):
                    continue  # a server's own copy says nothing of them
                prefix = f"{kind}-{mode}/"
                keys = fill(b, prefix, **({"tags": "a=b"} if kind == "tags" else {"storage_class": "STANDARD_IA"}))
                b.to(mode).faults(refuse(prefix + "*", header, code), {"op": "PutObjectTagging", "action": {"status": 501, "code": "NotImplemented", "message": "no"}})
                st = b.work(prefix, mode, PARTS)
                check(st["attributes_dropped"] == 2 and st["objects"]["copied"] == 2, json.dumps(st))
                rows = report(b, st["id"])
                check(set(rows) == keys and all(r["dropped"] == [kind] for r in rows.values()), json.dumps(rows))
                said = [n["text"] for n in b.show(st["id"])["notices"]]
                check(len([t for t in said if word in t]) == 1, f"notices: {said}")
                check(len(said) == 1, f"nothing else was refused: {said}")


def test_tags_of_which_no_number_is_told_are_asked_for():
    """A service that tells none, and AWS where tags may not be read."""
    silent = {"op": ["HeadObject", "GetObject"], "bucket": "src", "action": {"headers": {"x-amz-tagging-count": None}}}
    with bench("untold") as b:
        keys = fill(b, "untold/", tags="team=x")
        b.one.faults(silent)
        for mode in MODES:
            st = b.work("untold/", mode, PARTS)
            check(st["attributes_dropped"] == 0, json.dumps(st))
            b.same("untold/", mode)
        b.one.faults({"op": "GetObjectTagging", "bucket": "src", "action": {"status": 403, "code": "AccessDenied"}})
        st = b.work("untold/", "relay", PARTS, to="denied/")
        rows = report(b, st["id"])
        check(st["attributes_dropped"] == 2 and all(rows[k]["dropped"] == ["tags"] for k in keys), json.dumps(rows))


def test_untagged_objects_cost_no_question_each():
    with bench("untagged") as b:
        b.one.post("load", {"bucket": "src", "count": 3000, "size": "1KiB", "pattern": "flat", "prefix": "many/"})
        b.work("many/", "relay")
        asked = b.one.count("GetObjectTagging")
        check(0 < asked < 1500, f"{asked} questions for the tags of objects without")


def test_a_lock_that_the_destination_does_not_take_is_a_failure():
    with bench("nolock") as b:
        b.one.post("bucket", {"bucket": "src", "object_lock": True})
        at = servers(b)
        at["server"].put("src", "locked/k", b"x", {LOCK + "legal-hold": "ON", "Content-MD5": "ndTkYSaMgDT1yFZOFVxnpg=="})
        for mode in MODES:
            text = PARTS + "object_lock = true\n" + TRIES
            code, _, err = b.ctl("submit", b.toml(b.one, b.to(mode), "s3://src/locked/", "s3://dst/locked/", text))
            check(code == 2 and "has no object lock" in err, f"exit {code}: {err}")
            b.to(mode).faults({"op": "GetObjectLockConfiguration", "action": {"status": 403, "code": "AccessDenied"}})
            st = b.work("locked/", mode, text, want="completed_with_failures")
            rows = report(b, st["id"], "--only", "failed")
            check(rows["locked/k"]["error"] == "InvalidRequest" and "Lock" in rows["locked/k"]["message"], json.dumps(rows))
            b.absent("locked/k", mode)
            st = b.work("locked/", mode, PARTS)
            check(st["objects"]["copied"] == 1, json.dumps(st))


def test_a_copy_that_is_not_encrypted_as_asked_is_a_failure():
    with bench("nosse") as b:
        keys = fill(b, "plain/")
        for s in (b.one, b.two):  # as Ceph 16 does: it takes the header, and says nothing of it
            s.faults({"op": ["HeadObject", "PutObject", "CopyObject", "CreateMultipartUpload"], "action": {"headers": {SSE: None}}})
        for mode in MODES:
            st = b.work("plain/", mode, PARTS + TRIES, want="completed_with_failures", dst_more='sse = "AES256"\n')
            rows = report(b, st["id"], "--only", "failed")
            check(set(rows) == keys and all("without the encryption" in r["message"] for r in rows.values()), json.dumps(rows))
            check(not any(r["retryable"] for r in rows.values()), json.dumps(rows))


def test_a_lock_that_an_upload_forgets_is_put_or_the_object_fails():
    with bench("forgets") as b:
        prepare(b)
        at = servers(b)
        body = b"x" * 6 * MIB
        md5 = {"Content-MD5": base64.b64encode(hashlib.md5(body).digest()).decode()}
        lock = {LOCK + "mode": "GOVERNANCE", LOCK + "retain-until-date": UNTIL}
        at["server"].put("src", "held/k", body, dict(md5, **{LOCK + "legal-hold": "ON"}))
        at["server"].put("src", "kept/k", body, dict(md5, **lock))
        for mode in MODES:
            b.to(mode).faults({"op": "HeadObject", "bucket": "dst", "action": {"headers": {LOCK + "legal-hold": None, LOCK + "mode": None}}})
            for prefix, query in (("held/", "legal-hold"), ("kept/", "retention")):
                text = PARTS + "object_lock = true\n" + TRIES
                b.work(prefix, mode, text)
                asked = b.to(mode).requests("PutObjectLock", key=prefix + "k")
                check([query] == [r["query"].rstrip("=") for r in asked], f"not one {query} was put: {asked}")
                b.to(mode).faults({"op": "PutObjectLock", "action": {"status": 501, "code": "NotImplemented", "message": "no"}})
                st = b.work(prefix, mode, text, want="completed_with_failures", to="no/" + prefix)
                row = report(b, st["id"], "--only", "failed")[prefix + "k"]
                check("put_lock" in row["message"] and row["error"] == "NotImplemented", f"{query}: {row}")
                b.to(mode).admin("faults", "DELETE")
                got = at[mode].look("dst", prefix + "k")
                check(LOCK + ("legal-hold" if prefix == "held/" else "mode") in got, f"no lock: {got}")
                b.to(mode).faults({"op": "HeadObject", "bucket": "dst", "action": {"headers": {LOCK + "legal-hold": None, LOCK + "mode": None}}})


def c014_an_acl_where_the_bucket_has_none_is_refused_before_the_start():
    with bench("noacl") as b:
        keys = fill(b, "k/")
        b.two.post("bucket", {"bucket": "dst", "no_acls": True})
        path = b.toml(b.one, b.two, "s3://src/k/", "s3://dst/k/", PARTS, dst_more='acl = "public-read"\n')
        code, _, err = b.ctl("submit", path)
        check(code == 2 and "BucketOwnerEnforced" in err, f"exit {code}: {err}")
        b.work("k/", "relay", PARTS, dst_more='acl = "bucket-owner-full-control"\n')
        b.work("k/", "relay", PARTS, to="plain/")
        # Where one may not ask, the objects tell.
        b.two.faults({"op": "GetBucketOwnershipControls", "action": {"status": 403, "code": "AccessDenied"}})
        st = b.work("k/", "relay", PARTS + TRIES, want="completed_with_failures", to="late/", dst_more='acl = "public-read"\n')
        rows = report(b, st["id"], "--only", "failed")
        check(set(rows) == keys and all(r["error"] == "AccessControlListNotSupported" for r in rows.values()), json.dumps(rows))


def c011_a_customers_key_that_is_missing_or_another_fails_those_objects_alone():
    with bench("owner") as b:
        at = servers(b)
        at["server"].put("src", "own/theirs", b"secret", customer("SRC_OWN"))
        at["server"].put("src", "own/plain", b"plain", {})
        at["server"].put("src", "large/theirs", b"x" * 6 * MIB, customer("SRC_OWN"))
        for mode in MODES:
            st = b.work("own/", mode, PARTS + TRIES, want="completed_with_failures", timeout=60)
            rows = report(b, st["id"], "--only", "failed")
            check(set(rows) == {"own/theirs"} and not rows["own/theirs"]["retryable"], json.dumps(rows))
            check("Server Side Encryption" in rows["own/theirs"]["message"], f"nothing tells of a key: {rows}")
            st = b.work("large/", mode, PARTS + TRIES, want="completed_with_failures", timeout=60)
            row = report(b, st["id"], "--only", "failed")["large/theirs"]
            check("customer_key_env" in row["message"], f"a HEAD has no words, and neither have we: {row}")
        st = b.work("own/", "relay", PARTS + TRIES, want="completed_with_failures", to="other/", src_more='customer_key_env = "DST_OWN"\n')
        rows = report(b, st["id"], "--only", "failed")
        check(set(rows) == {"own/theirs", "own/plain"}, json.dumps(rows))


def c012_archived_objects_are_told_whatever_they_are_asked():
    with bench("cold") as b:
        keys = fill(b, "cold/", storage_class="GLACIER")
        for mode in MODES:
            st = b.work("cold/", mode, PARTS, want="completed_with_failures")
            check(st["objects"]["archived"] == 2, json.dumps(st["objects"]))
            check({k for k, r in report(b, st["id"], "--only", "failed").items() if r["outcome"] == "archived"} == keys, "not all are listed")


def test_a_bucket_whose_requester_pays_is_refused_without_agreement():
    with bench("payer") as b:
        b.one.put("paid", "k", "x")
        b.one.post("bucket", {"bucket": "paid", "requester_pays": True})
        code, _, err = b.ctl("submit", b.toml(b.one, b.two, "s3://paid/", "s3://dst/paid/"))
        check(code == 2 and "requester" in err, f"exit {code}: {err}")


def test_a_second_run_over_encrypted_copies_copies_nothing():
    with bench("again") as b:
        fill(b, "again/", last_modified=1_700_000_000)
        for mode in MODES:
            more = {"dst_more": 'sse = "aws:kms"\n'}
            st = b.work("again/", mode, PARTS, **more)
            check(st["objects"]["copied"] == 2, json.dumps(st["objects"]))
            st = b.work("again/", mode, PARTS, **more)
            check(st["objects"]["skipped"] == 2, json.dumps(st["objects"]))


if __name__ == "__main__":
    run(cases(globals()))
