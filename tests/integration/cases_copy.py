#!/usr/bin/python3
"""cases_copy.py - a copy is a copy only when bytes and attributes arrived: C001-C005, C007-C009, C016, C017."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from lab import MIB, MODES, Bench, Lab, cases, check, run  # noqa: E402

PARTS = '[copy]\npart_size = "5MiB"\nmultipart_threshold = "5MiB"\n'
SERVER = 'mode = "server"\n'
OVERWRITE = 'if_exists = "overwrite"\n'
FEW = '[limits]\nin_flight = 8\n'
COPY = {"server": "CopyObject", "relay": "PutObject"}
PART = {"server": "UploadPartCopy", "relay": "UploadPart"}


def tries(n):
    return f"[retry]\nattempts = {n}\n"


def notices(bench, job):
    return [n["text"] for n in bench.show(job)["notices"]]


def refused(lab, path, code, *texts):
    got, out, err = lab.ctl("submit", path)
    check(got == code, f"submit: exit {got}, not {code}: {err}{out}")
    for t in texts:
        check(t.lower() in err.lower(), f"submit: the error does not say {t!r}: {err}")


def c001_an_ignored_copy_source_is_found_and_the_bytes_are_relayed():
    with Bench("c001") as b:
        b.one.put("src", "c001/hello", "hello")
        b.one.put("src", "c001/empty", "")
        b.one.put("src", "c001/big", size=12 * MIB, seed=3)
        b.one.post("load", {"bucket": "src", "count": 300, "size": "1-4KiB", "pattern": "flat", "seed": 7, "prefix": "c001/"})
        b.one.faults({"op": ["CopyObject", "UploadPartCopy"], "action": {"ignore_copy_source": True}})
        st = b.work("c001/", text=PARTS + FEW)
        b.same("c001/")
        check(st["objects"]["copied"] == 303, json.dumps(st["objects"]))
        check(st["bytes"]["through_agents"] >= st["bytes"]["listed"], f"bytes that nobody relayed: {json.dumps(st['bytes'])}")
        # The endpoint is marked once: not every object pays for the same lesson.
        copies = b.one.count("CopyObject", "UploadPartCopy")
        check(copies < 60, f"{copies} copies were tried on a server that ignores them")
        said = notices(b, st["id"])
        check(said and len(said) == len(set(said)), f"notices: {said}")


def c001_an_ignored_copy_source_with_a_forced_server_copy_is_a_failure():
    with Bench("c001f") as b:
        b.one.put("src", "c001/hello", "hello")
        b.one.put("src", "c001/big", size=12 * MIB, seed=3)
        b.one.faults({"op": ["CopyObject", "UploadPartCopy"], "action": {"ignore_copy_source": True}})
        st = b.work("c001/", text=PARTS + SERVER + tries(2), want="completed_with_failures")
        check(st["objects"]["failed"] == 2 and st["objects"]["copied"] == 0, json.dumps(st["objects"]))
        check(set(b.failures(st["id"])) == {"c001/hello", "c001/big"}, f"report: {b.failures(st['id'])}")
        check(len(b.one.keys("src", "c001/")) == 2, "the source lost an object")


def copies_fail_once(once):
    """Each fault once for a small object and for the second part of a large one."""
    with Bench("c002") as b:
        rules = []
        for name, action in once.items():
            key = f"c002/{name}"
            b.one.put("src", key, size=3000, seed=len(name))
            b.one.put("dst", key, size=3000, seed=99)  # an older version of the same size is no proof
            rules.append({"op": "CopyObject", "key": key, "id": name, "count": 1, "action": action})
            b.one.put("src", key + ".big", size=11 * MIB, seed=len(name))
            rules.append({"op": "UploadPartCopy", "key": key + ".big", "id": name, "query": "partNumber=2", "count": 1, "action": action})
        b.one.faults(*rules)
        st = b.work("c002/", text=PARTS + OVERWRITE)
        b.same("c002/")
        check(st["objects"]["copied"] == 2 * len(once), json.dumps(st))
        for r in b.one.admin("faults"):
            check(r["fired"] == 1, f"a fault did not fire: {r}")
        st["copies"] = {name: len(b.one.requests("CopyObject", key=f"c002/{name}")) for name in once}
        return st


def c002_an_error_inside_a_200_is_an_error():
    st = copies_fail_once(
        {
            "slow": {"status": 200, "code": "SlowDown", "message": "m"},
            "internal": {"status": 200, "code": "InternalError", "message": "m"},
            "blanks": {"status": 200, "code": "InternalError", "message": "m", "pad": 40},
            "cut": {"chunked": True, "cut_after": 60},
            "closed": {"cut_after": 60, "end": "fin"},
        }
    )
    check(st["retries"] > 0 and st["bytes"]["through_agents"] == 0, json.dumps(st))


def c002_an_empty_200_is_looked_into_when_the_copy_was_made():
    st = copies_fail_once({"empty": {"work": True, "body": ""}})
    check(st["copies"] == {"empty": 1} and st["bytes"]["through_agents"] <= 5 * MIB, f"a small copy that was made is made again: {json.dumps(st)}")


def c002_an_empty_200_is_looked_into_when_no_copy_was_made():
    copies_fail_once({"empty": {"body": ""}})


def c002_after_the_last_try_the_inner_error_is_reported():
    with Bench("c002r") as b:
        for key in ("good", "never", "never.big"):
            b.one.put("src", f"c002/{key}", size=11 * MIB if "big" in key else 3000, seed=5)
        b.one.faults(
            {"op": ["CopyObject", "UploadPartCopy"], "key_prefix": "c002/never", "action": {"status": 200, "code": "InternalError", "message": "no luck"}}
        )
        st = b.work("c002/", text=PARTS + SERVER + tries(2), want="completed_with_failures")
        check(st["objects"]["failed"] == 2 and st["objects"]["copied"] == 1, json.dumps(st["objects"]))
        for key, row in b.failures(st["id"]).items():
            text = ",".join(row)
            check("InternalError" in text and "no luck" in text, f"{key}: {row}")
        b.absent("c002/never")
        b.absent("c002/never.big")


def part_is_missing(mode):
    with Bench("c003") as b:
        size = 15 * MIB + 10
        for key in ("never", "fourth", "plain"):
            b.one.put("src", f"c003/{key}", size=size, seed=31)
            b.to(mode).put("dst", f"c003/{key}", "the old one")
        broken = {"status": 500, "code": "InternalError", "message": "part trouble"}
        b.to(mode).faults(
            {"op": PART[mode], "key": "c003/never", "query": "partNumber=2", "action": broken},
            {"op": PART[mode], "key": "c003/fourth", "query": "partNumber=2", "count": 3, "action": broken},
        )
        # Size and time may speak for the old one, so overwrite is asked for.
        st = b.work("c003/", mode, PARTS + OVERWRITE + tries(2), want="completed_with_failures")
        check(st["objects"]["copied"] == 2 and st["objects"]["failed"] == 1, json.dumps(st["objects"]))
        done = {r["key"] for r in b.to(mode).requests("CompleteMultipartUpload")}
        check(not any("never" in k for k in done), f"completed without part 2: {done}")
        old = b.to(mode).boto().get_object(Bucket="dst", Key="c003/never")["Body"].read()
        check(old == b"the old one", f"the old version was touched: {old[:100]!r}")
        b.same("c003/fourth", mode)
        b.same("c003/plain", mode)
        row = b.failures(st["id"])["c003/never"]
        check("part 2" in ",".join(row) and "part trouble" in ",".join(row), f"report: {row}")


def c003_an_upload_with_a_missing_part_is_never_completed_in_a_server_copy():
    part_is_missing("server")


def c003_an_upload_with_a_missing_part_is_never_completed_in_a_relay():
    part_is_missing("relay")


def source_changes(mode):
    """30 MiB are replaced by others of the same size while their fourth part is read."""
    with Bench("c004") as b:
        size = 30 * MIB
        read = {"server": "UploadPartCopy", "relay": "GetObject"}[mode]
        keys = {"honours": {}, "ignores": {"ignore_conditions": True}}
        for name, more in keys.items():
            key = f"c004/{name}"
            b.one.put("src", key, size=size, seed=1)
            action = {"put": {"bucket": "src", "key": key, "size": size, "seed": 2}}
            b.one.faults({"op": read, "key": key, "nth": 4, "count": 1, "action": dict(action, **more)})
            if more:  # and from then on the server looks at no condition
                b.one.faults({"op": read, "key": key, "nth": 4, "action": more})
        st = b.work("c004/", mode, PARTS + FEW)
        b.same("c004/", mode)
        check(st["objects"]["copied"] == len(keys), json.dumps(st["objects"]))
        now = {k: v[1] for k, v in b.to(mode).dump("dst", "c004/").items()}
        check(len(set(now.values())) == 1, f"not the new bytes, all of them: {now}")
        # The mixture was not made visible for a moment either.
        check(b.to(mode).count("CompleteMultipartUpload") == len(keys), f"{b.to(mode).count('CompleteMultipartUpload')} uploads were completed")


def c004_a_source_that_changes_is_never_mixed_in_a_server_copy():
    source_changes("server")


def c004_a_source_that_changes_is_never_mixed_in_a_relay():
    source_changes("relay")


def never_settles(mode):
    with Bench("c004n") as b:
        size = 12 * MIB
        b.one.put("src", "c004/k", size=size, seed=1)
        read = {"server": "UploadPartCopy", "relay": "GetObject"}[mode]
        other = [{"put": {"bucket": "src", "key": "c004/k", "size": size, "seed": s}} for s in (2, 3)]
        b.one.faults({"op": read, "every": 2, "action": other[0]}, {"op": read, "action": other[1]})
        st = b.work("c004/", mode, PARTS + FEW + tries(2), want="completed_with_failures")
        check(st["objects"]["failed"] == 1, json.dumps(st["objects"]))
        row = ",".join(b.failures(st["id"])["c004/k"])
        check("changed" in row.lower(), f"report: {row}")
        b.absent("c004/k", mode)
        check(b.one.count(read) < 100, f"{b.one.count(read)} reads of an object that never settles")


def c004_a_source_that_never_settles_fails_and_leaves_nothing_in_a_server_copy():
    never_settles("server")


def c004_a_source_that_never_settles_fails_and_leaves_nothing_in_a_relay():
    never_settles("relay")


def c004_a_small_source_that_changes_is_copied_as_it_is_now():
    with Bench("c004s") as b:
        for mode in MODES:
            for name, more in {"honours": {}, "ignores": {"ignore_conditions": True}}.items():
                key = f"c004{mode}/{name}"
                b.one.put("src", key, "version one")
                put = {"put": {"bucket": "src", "key": key, "body": "VERSION TWO"}}
                op = {"op": "GetObject", "key": key} if mode == "relay" else {"op": "CopyObject", "key": key}
                b.one.faults(dict(op, count=1, action=dict(put, **more)))
            b.work(f"c004{mode}/", mode)
            b.same(f"c004{mode}/", mode)


ATTRIBUTES = {
    "Content-Type": "video/mp4",
    "Cache-Control": "max-age=123456",
    "Content-Disposition": 'attachment; filename="a b.mp4"',
    "Content-Language": "de, en",
    "Content-Encoding": "x-none",
    "Expires": "Thu, 01 Dec 2033 16:00:00 GMT",
    "x-amz-meta-k": "v",
    "x-amz-meta-long": "w" * 300,
}
HEADS = ("ContentType", "CacheControl", "ContentDisposition", "ContentLanguage", "ContentEncoding", "Expires", "Metadata", "WebsiteRedirectLocation")


def attributes(server, bucket, key):
    s3 = server.boto()
    head = s3.head_object(Bucket=bucket, Key=key)
    tags = s3.get_object_tagging(Bucket=bucket, Key=key)["TagSet"]
    return {h: head.get(h) for h in HEADS}, sorted((t["Key"], t["Value"]) for t in tags)


def c005_every_attribute_arrives_at_both_sizes_in_both_modes():
    with Bench("c005") as b:
        for name, size in (("small", 1024), ("large", 12 * MIB), ("empty", 0)):
            b.one.put("src", f"c005/{name}", size=size, seed=5, headers=ATTRIBUTES, redirect="/z", tags="team=x&a%20b=c%2Bd")
        # Redirects exist where a bucket serves a website.
        b.one.faults({"op": "Other", "query": "website", "action": {"status": 200, "body": "<WebsiteConfiguration/>"}})
        for mode in MODES:
            b.work("c005/", mode, PARTS)
            b.same("c005/", mode)
            for name in ("small", "large", "empty"):
                want, got = attributes(b.one, "src", f"c005/{name}"), attributes(b.to(mode), "dst", f"c005/{name}")
                check(want == got, f"{mode} {name}: {got} is not {want}")
                check(all(want[0].values()) and len(want[1]) == 2, f"the source lacks attributes: {want}")
            check(b.to(mode).count("PutObjectTagging") == 0, "an object was there for a moment without its tags")


def c005_tags_that_the_target_refuses_are_counted_not_silent():
    with Bench("c005t") as b:
        for name, size in (("small", 1024), ("large", 12 * MIB)):
            b.one.put("src", f"c005/{name}", size=size, seed=5, tags="team=x")
        b.two.faults({"header": "x-amz-tagging", "action": {"status": 501, "code": "NotImplemented", "message": "no tags here"}})
        st = b.work("c005/", "relay", PARTS)
        check(st["objects"]["copied"] == 2, json.dumps(st["objects"]))
        check(any("tag" in n.lower() for n in notices(b, st["id"])), f"nothing tells that tags were dropped: {notices(b, st['id'])}")
        st = b.work("c005/", "relay", PARTS + 'tags = "required"\n' + tries(2), want="completed_with_failures", to="c005r/")
        check(st["objects"]["failed"] == 2, json.dumps(st["objects"]))


def c007_sizes_around_5_gib_and_beyond():
    gib = 1 << 30
    sizes = {"under": 5 * gib - 1, "exact": 5 * gib, "over": 5 * gib + 1, "most": 5 << 40, "lower": 3 * gib, "beyond": 50000 * gib + 1}
    one = [x for k, s in sizes.items() for x in ("--object", f"src/c007/{k}:{s}")]
    with Bench("c007", one=one) as b:
        # A server with a lower limit of its own says InvalidRequest: parts, once.
        b.one.faults({"op": "CopyObject", "key": "c007/lower", "action": {"status": 400, "code": "InvalidRequest", "message": "too large for one copy"}})
        text = '[copy]\npart_size = "512MiB"\nmultipart_threshold = "5GiB"\n' + tries(2)
        st = b.work("c007/", text=text, want="completed_with_failures", timeout=120)
        check(st["objects"]["copied"] == 5 and st["objects"]["failed"] == 1, json.dumps(st["objects"]))
        for k in ("under", "exact", "over", "most", "lower"):
            b.same(f"c007/{k}")
        big = [r for r in b.one.requests("CopyObject") if r["key"] in ("c007/over", "c007/most", "c007/beyond")]
        check(not big, f"a single copy above the limit: {big}")
        check(len([r for r in b.one.requests("CopyObject") if r["key"] == "c007/under"]) == 1, "5 GiB - 1 did not go by one CopyObject")
        check(not b.one.requests("CreateMultipartUpload", key="c007/beyond"), "an upload that cannot end was begun")
        row = ",".join(b.failures(st["id"])["c007/beyond"])
        check(str(50000 * gib + 1) in row, f"the report does not tell size and limit: {row}")


def c008_a_target_without_part_copies_gets_large_objects_by_relay():
    with Bench("c008") as b:
        b.one.post("load", {"bucket": "src", "count": 100, "size": "1KiB", "pattern": "flat", "prefix": "c008/"})
        for i in range(3):
            b.one.put("src", f"c008/big{i}", size=12 * MIB, seed=i)
        b.one.faults({"op": "UploadPartCopy", "action": {"status": 501, "code": "NotImplemented", "message": "not here"}})
        st = b.work("c008/", text=PARTS + "[limits]\nin_flight = 2\n")
        b.same("c008/")
        check(st["objects"]["copied"] == 103 and st["objects"]["failed"] == 0, json.dumps(st["objects"]))
        check(36 * MIB <= st["bytes"]["through_agents"] < 37 * MIB, f"small ones need no relay: {json.dumps(st['bytes'])}")
        check(b.one.count("CopyObject") == 100, f"{b.one.count('CopyObject')} CopyObject for 100 small objects")
        check(b.one.count("UploadPartCopy") <= 6, f"9 parts, and what one has learnt is not known to the others: {b.one.count('UploadPartCopy')}")
        check(len(notices(b, st["id"])) == 1, f"notices: {notices(b, st['id'])}")


def c009_a_source_that_the_destinations_keys_cannot_read_is_relayed():
    with Bench("c009") as b:
        b.one.put("src", "c009/a", "right")
        b.one.put("src", "c009/big", size=12 * MIB, seed=9)
        b.one.faults({"op": ["CopyObject", "UploadPartCopy"], "action": {"status": 403, "code": "AccessDenied", "message": "not your bucket"}})
        st = b.work("c009/", text=PARTS)
        b.same("c009/")
        check(st["bytes"]["through_agents"] >= 12 * MIB, json.dumps(st["bytes"]))


class Alias:
    """Another address of the same server."""

    def __init__(self, server, url):
        self.url = url
        self.port = server.port


def c016_the_same_bucket_by_another_name_is_refused():
    with Lab("c016") as lab:
        s3 = lab.s3d("s3", "--bucket", "box", "--domain", "localhost", "--listen", "0.0.0.0:0")
        s3.put("box", "x/1", "1")
        lab.coordinator()
        local = Alias(s3, f"http://localhost:{s3.port}")
        other = Alias(s3, f"http://0.0.0.0:{s3.port}")  # nothing but its objects tells that it is the same
        for dst, more in ((local, ""), (local, "path_style = false\n"), (other, "")):
            refused(lab, lab.toml(s3, dst, "s3://box/x/", "s3://box/x/copy/", dst_more=more), 2, "overlap")
            refused(lab, lab.toml(s3, dst, "s3://box/x/", "s3://box/x/", dst_more=more), 2, "overlap")
        check(s3.keys("box") == [b"x/1"], f"something was written: {s3.keys('box')}")
        check(json.loads(lab.ctl("list", "--json")[1]) in ([], {"jobs": []}), "a refused job was kept")


def c016_neighbours_in_one_bucket_are_no_overlap():
    with Bench("c016n") as b:
        b.one.put("src", "x/1", "1")
        same_bucket = b.toml(b.one, b.one, "s3://src/x/", "s3://src/xy/")
        b.ended(b.submit(same_bucket))
        check(b.one.keys("src") == [b"x/1", b"xy/1"], f"keys: {b.one.keys('src')}")


def vanishing(mode):
    with Bench("c017") as b:
        read = {"server": "CopyObject", "relay": "GetObject"}[mode]
        part = {"server": "UploadPartCopy", "relay": "GetObject"}[mode]
        for i in range(1, 6):
            b.one.put("src", f"c017/k{i}", f"body {i}")
        b.one.put("src", "c017/kept", "newer")
        b.to(mode).put("dst", "c017/kept", "old")
        b.one.put("src", "c017/big", size=20 * MIB, seed=8)
        gone = [{"delete": {"bucket": "src", "key": f"c017/{k}"}} for k in ("k3", "kept", "big")]
        b.one.faults(
            {"op": read, "key": "c017/k3", "action": gone[0]},
            {"op": read, "key": "c017/kept", "action": gone[1]},
            {"op": part, "key": "c017/big", "nth": 2, "action": gone[2]},
        )
        st = b.work("c017/", mode, PARTS + FEW)
        check(st["exit_code"] == 0 and st["objects"]["vanished"] == 3 and st["objects"]["copied"] == 4, json.dumps(st))
        b.absent("c017/k3", mode)
        b.absent("c017/big", mode)
        check(b.to(mode).boto().get_object(Bucket="dst", Key="c017/kept")["Body"].read() == b"old", "an older object was touched")
        for key in ("c017/k3", "c017/kept"):
            asked = b.one.requests(read, key=key)
            check(len(asked) <= 2, f"{len(asked)} requests for an object that is gone")
        check(not b.failures(st["id"]), f"vanished objects are no failures: {b.failures(st['id'])}")


def c017_a_vanished_object_is_no_failure_in_a_server_copy():
    vanishing("server")


def c017_a_vanished_object_is_no_failure_in_a_relay():
    vanishing("relay")


def c017_a_job_may_say_that_vanished_objects_fail_it():
    with Bench("c017f") as b:
        b.one.put("src", "c017/a", "1")
        b.one.put("src", "c017/b", "2")
        b.one.faults({"op": "CopyObject", "key": "c017/b", "action": {"delete": {"bucket": "src", "key": "c017/b"}}})
        st = b.work("c017/", text='[job]\nvanished = "fail"\n', want="completed_with_failures")
        check(st["exit_code"] == 3 and st["objects"]["vanished"] == 1, json.dumps(st))


if __name__ == "__main__":
    run(cases(globals()))
