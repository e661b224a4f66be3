#!/usr/bin/python3
"""cases_data.py - whole bodies, unchanged, and proof of it: C044-C046, C048-C050, C052."""

import gzip
import hashlib
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from lab import MIB, MODES, Bench, Lab, cases, certificate, check, run, same  # noqa: E402
from proxy import Wire  # noqa: E402

LONG_AGO = 1577836800
PARTS = '[copy]\npart_size = "5MiB"\nmultipart_threshold = "5MiB"\n'

# What a GET may do to a body of 1 MiB.
SHORT = {
    "fin": {"cut_after": 1000000, "end": "fin"},
    "rst": {"cut_after": 1000000, "end": "rst"},
    "chunked": {"cut_after": 1000000, "chunked": True},
    "extra": {"extra": 100},
    "more": {"content_length": MIB + 100},
    "less": {"content_length": 1000000},
    "nothing": {"cut_after": 0, "chunked": True},
}


def c044_a_short_body_is_never_stored():
    with Bench("c044") as b:
        for name, action in SHORT.items():
            b.one.put("src", f"c044/{name}", size=MIB, seed=len(name))
            b.one.put("src", f"c044/{name}.big", size=11 * MIB, seed=len(name))
            b.one.faults({"op": "GetObject", "key": f"c044/{name}", "id": name, "count": 1, "action": action})
            b.one.faults({"op": "GetObject", "key": f"c044/{name}.big", "id": name, "nth": 2, "count": 1, "action": action})
        wrong = {"headers": {"Content-Range": f"bytes 5242880-10485759/{12 * MIB}"}}
        b.one.put("src", "c044/range.big", size=11 * MIB, seed=77)
        b.one.faults({"op": "GetObject", "key": "c044/range.big", "id": "range", "nth": 2, "count": 1, "action": wrong})
        st = b.work("c044/", "relay", PARTS)
        b.same("c044/", "relay")
        check(st["objects"]["copied"] == 2 * len(SHORT) + 1 and st["retries"] > 0, json.dumps(st))
        for r in b.one.admin("faults"):
            check(r["fired"] == 1, f"a fault did not fire: {r}")


def c044_a_body_that_stays_short_is_a_failure_and_no_object():
    with Bench("c044f") as b:
        names = ("fin", "chunked", "nothing")
        for name in names:
            b.one.put("src", f"c044/{name}", size=MIB, seed=len(name))
            b.one.put("src", f"c044/{name}.big", size=11 * MIB, seed=len(name))
            b.two.put("dst", f"c044/{name}.big", "the old one")
            b.one.faults({"op": "GetObject", "key_prefix": f"c044/{name}", "action": SHORT[name]})
        b.one.put("src", "c044/good", "x")
        st = b.work("c044/", "relay", PARTS + 'if_exists = "overwrite"\n[retry]\nattempts = 2\n', want="completed_with_failures")
        check(st["objects"]["copied"] == 1 and st["objects"]["failed"] == 6, json.dumps(st["objects"]))
        sizes = {k.decode(): v[0] for k, v in b.two.dump("dst", "c044/").items()}
        check(sizes == {"c044/good": 1, **{f"c044/{n}.big": 11 for n in names}}, f"destination: {sizes}")
        row = ",".join(b.failures(st["id"])["c044/fin"])
        check("1000000" in row and str(MIB) in row, f"the report does not tell how short: {row}")


def c044_a_tls_connection_that_ends_without_notice_is_no_end_of_a_body():
    with Lab("c044t") as lab:
        pem, key = certificate(lab, "127.0.0.1")
        lab.env["AWS_CA_BUNDLE"] = pem
        one, two = lab.s3d("s3", "--bucket", "src"), lab.s3d("s3b", "--bucket", "dst")
        names = ("length", "length.big", "none", "none.big")
        for name in names:
            one.put("src", f"c044/{name}", size=11 * MIB if "big" in name else MIB, seed=len(name))
        # Two bodies have no length: the end of the connection is their end.
        for name, size in (("none", MIB), ("none.big", 5 * MIB)):
            one.faults({"op": "GetObject", "key": f"c044/{name}", "count": 1, "action": {"headers": {"Content-Length": None}, "cut_after": size}})
        wire = Wire(one, tls=(pem, key))
        wire.cuts = {f"/src/c044/{name}": 1 for name in names}
        lab.coordinator()
        lab.agent("a0")
        st = lab.wait_job(lab.submit(lab.toml(wire, two, "s3://src/c044/", "s3://dst/c044/", PARTS + "[limits]\nin_flight = 1\n")), 60)
        check(st["state"] == "completed" and st["objects"]["copied"] == len(names) and st["retries"] >= len(names), json.dumps(st))
        check(not any(wire.cuts.values()), f"answers that were not cut: {wire.cuts}")
        same(one.diff("src/c044/", "dst/c044/", other=two))
        wire.close()


def c045_encoded_bodies_pass_as_they_are():
    with Bench("c045") as b:
        packed = gzip.compress(b"hello " * 5000, mtime=0)
        s3 = b.one.boto()
        s3.put_object(Bucket="src", Key="c045/a.gz", Body=packed, ContentEncoding="gzip", ContentType="text/plain")
        s3.put_object(Bucket="src", Key="c045/b.gz", Body=packed)
        # This server packs whatever it may: only `identity` is served as stored.
        plain = "x" * 3893
        b.one.put("src", "c045/plain", plain)
        b.one.faults(
            {"op": "GetObject", "key": "c045/plain", "header": "accept-encoding: identity", "id": "asked", "action": {"delay_ms": 0}},
            {"op": "GetObject", "key": "c045/plain", "action": {"headers": {"Content-Encoding": "gzip", "Content-Length": None}, "body": "packed", "chunked": True}},
        )
        for mode in MODES:
            b.work("c045/", mode)
            b.same("c045/", mode)
            for key, coding in (("c045/a.gz", "gzip"), ("c045/b.gz", None)):
                got = b.to(mode).boto().get_object(Bucket="dst", Key=key)
                check(got.get("ContentEncoding") == coding, f"{mode} {key}: Content-Encoding {got.get('ContentEncoding')}")
                check(got["Body"].read() == packed, f"{mode} {key}: other bytes")


def c045_a_body_that_a_proxy_packed_is_refused():
    with Bench("c045p") as b:
        b.one.put("src", "c045/plain", "x" * 3893)
        b.one.put("src", "c045/once", "y" * 3893)
        packed = {"headers": {"Content-Encoding": "gzip", "Content-Length": None}, "body": "packed", "chunked": True}
        b.one.faults(
            {"op": "GetObject", "key": "c045/plain", "action": packed}, {"op": "GetObject", "key": "c045/once", "count": 1, "action": packed}
        )
        st = b.work("c045/", "relay", "[retry]\nattempts = 2\n", want="completed_with_failures")
        check(st["objects"]["copied"] == 1 and st["objects"]["failed"] == 1, json.dumps(st["objects"]))
        b.absent("c045/plain", "relay")
        b.same("c045/once", "relay")


def encodings(server, keys):
    """Content-Encoding of objects in dst, as an independent client reads them; None: no such header."""
    return {k: server.boto().head_object(Bucket="dst", Key=k).get("ContentEncoding") for k in keys}


def c046_the_framing_of_an_upload_is_no_encoding():
    """What other clients left in Content-Encoding is not copied on, at both sizes and in both modes."""
    stored = {"framed": "aws-chunked", "both": "aws-chunked,gzip", "packed": "gzip", "plain": None}
    want = {"framed": None, "both": "gzip", "packed": "gzip", "plain": None}
    with Bench("c046") as b:
        for name, encoding in stored.items():
            for big, size in (("", 1 << 16), (".big", 12 * MIB)):
                headers = {"headers": {"Content-Encoding": encoding}} if encoding else {}
                b.one.put("src", f"c046/{name}{big}", size=size, seed=46, **headers)
        # Some servers answer with an empty header where there is none.
        b.one.faults({"op": ["HeadObject", "GetObject"], "bucket": "src", "key_prefix": "c046/plain", "action": {"headers": {"Content-Encoding": ""}}})
        for mode in MODES:
            st = b.work("c046/", mode, PARTS)
            check(st["objects"]["copied"] == 2 * len(stored), f"{mode}: {json.dumps(st['objects'])}")
            got = encodings(b.to(mode), [f"c046/{n}{big}" for n in stored for big in ("", ".big")])
            expected = {f"c046/{n}{big}": want[n] for n in stored for big in ("", ".big")}
            if mode == "server":  # a small copy takes the source's headers as they are: nobody has read them
                expected.update({f"c046/{n}": stored[n] for n in stored})
            check(got == expected, f"{mode}: {got}")


def c048_a_half_sent_body_is_sent_again_with_its_own_sum():
    with Bench("c048") as b:
        b.one.put("src", "c048/k", size=600000, seed=5)
        b.one.put("src", "c048/stream", size=20 * MIB, seed=6)
        b.one.put("src", "c048/big", size=11 * MIB, seed=7)
        b.two.faults(
            {"op": "PutObject", "key": "c048/k", "id": "k", "count": 1, "action": {"read_cut": 100000}},
            {"op": "PutObject", "key": "c048/stream", "id": "stream", "count": 1, "action": {"read_cut": 7 * MIB}},
            {"op": "UploadPart", "key": "c048/big", "id": "big", "count": 2, "action": {"read_cut": 100000, "end": "rst"}},
        )
        for text in (PARTS, '[copy]\nmultipart_threshold = "64MiB"\n'):
            st = b.work("c048/", "relay", text + 'if_exists = "overwrite"\n')
            check(st["objects"]["copied"] == 3 and st["objects"]["failed"] == 0, json.dumps(st))
            b.same("c048/", "relay")
        check(all(r["fired"] >= 1 for r in b.two.admin("faults")), f"{b.two.admin('faults')}")


def c048_a_digest_that_is_refused_again_and_again_is_a_failure_with_its_reason():
    with Bench("c048d") as b:
        b.one.put("src", "c048/k", size=600000, seed=5)
        b.one.put("src", "c048/big", size=11 * MIB, seed=7)
        b.one.put("src", "c048/good", size=100, seed=8)
        bad = {"status": 400, "code": "BadDigest", "message": "The Content-MD5 you specified did not match what we received."}
        b.two.faults({"op": "PutObject", "key": "c048/k", "action": bad}, {"op": "UploadPart", "key": "c048/big", "action": bad})
        st = b.work("c048/", "relay", PARTS + "[retry]\nattempts = 2\n", want="completed_with_failures")
        check(st["objects"]["copied"] == 1 and st["objects"]["failed"] == 2, json.dumps(st["objects"]))
        rows = b.failures(st["id"])
        check(all("BadDigest" in ",".join(r) and "checksum" in ",".join(r) for r in rows.values()), f"report: {rows}")
        asked = b.two.count("PutObject", "UploadPart")
        check(asked < 60, f"{asked} tries to send what does not arrive")
        check(b.two.keys("dst", "c048/") == [b"c048/good"], f"{b.two.keys('dst')}")


def c050_a_change_that_keeps_the_size_is_copied():
    """Also when the destination's time is the newer one, as it always is after a copy."""
    with Bench("c050") as b:
        for mode in MODES:
            for key, body in (("k", {"body": "+3 hours"}), ("same", {"body": "+1 hours"}), ("big", {"size": 12 * MIB, "seed": 50})):
                b.one.put("src", f"c050{mode}/{key}", **body)
            st = b.work(f"c050{mode}/", mode, PARTS)
            check(st["objects"]["copied"] == 3, f"{mode}: {json.dumps(st['objects'])}")
            b.one.put("src", f"c050{mode}/k", "+2 hours", last_modified=LONG_AGO)
            b.one.put("src", f"c050{mode}/big", size=12 * MIB, seed=51)
            st = b.work(f"c050{mode}/", mode, PARTS)
            check(st["objects"]["copied"] == 2 and st["objects"]["skipped"] == 1, f"{mode}: {json.dumps(st['objects'])}")
            b.same(f"c050{mode}/", mode)
            code, out, err = b.ctl("report", st["id"], "--format", "json")
            check(code == 0 and "same" in [x for x in out.splitlines() if f"c050{mode}/same" in x][0], f"no reason of a skip: {err}{out}")


def etags(server, bucket, prefix):
    return {k: v[3] for k, v in server.dump(bucket, prefix).items()}


def c049_another_part_layout_is_no_corruption_and_no_change():
    layouts = ["--object", "src/c049/a:12MiB:part=5MiB", "--object", "src/c049/b:12MiB", "--object", "src/c049/c:3MiB:part=5MiB"]
    with Bench("c049", one=layouts) as b:
        for mode in MODES:
            for text in ("", '[copy]\npart_size = "8MiB"\n'):
                to = f"c049-{mode}-{len(text)}/"
                st = b.work("c049/", mode, text, to=to)
                check(st["objects"]["copied"] == 3 and st["retries"] == 0, f"{mode}: {json.dumps(st)}")
                b.same("c049/", mode, to=to)
                b.to(mode).post("counters/reset")
                st = b.work("c049/", mode, text, to=to)
                check(st["objects"]["skipped"] == 3 and st["objects"]["copied"] == 0, f"{mode} again: {json.dumps(st['objects'])}")
                n = b.to(mode).count("CopyObject", "UploadPartCopy", "PutObject", "UploadPart", "CreateMultipartUpload")
                check(n == 0, f"{mode}: {n} writes of what was there")


def c049_the_form_of_an_etag_does_not_matter():
    with Bench("c049f") as b:
        forms = {"weak": 'W/"%s"', "bare": "%s", "upper": '"%s"', "plain": '"%s"', "quot": "&quot;%s&quot;"}
        for name, form in forms.items():
            body = f"the body {name}"
            md5 = hashlib.md5(body.encode()).hexdigest()
            etag = form % (md5.upper() if name == "upper" else md5)
            b.one.put("src", f"c049/{name}", body)
            # Whatever is asked about these keys, the etag comes in that form.
            for s in (b.one, b.two):
                s.faults({"op": ["GetObject", "HeadObject", "PutObject"], "key": f"c049/{name}", "action": {"headers": {"ETag": etag}}})
        for mode in MODES:
            st = b.work("c049/", mode)
            check(st["objects"]["copied"] == len(forms) and st["retries"] == 0, f"{mode}: {json.dumps(st)}")
            b.same("c049/", mode)
            st = b.work("c049/", mode)
            check(st["objects"]["skipped"] == len(forms), f"{mode} again: {json.dumps(st['objects'])}")


def c049_an_etag_of_a_kms_bucket_is_no_md5():
    with Bench("c049k") as b:
        b.one.put("src", "c049/a", "some bytes")
        b.one.put("src", "c049/big", size=11 * MIB, seed=4)
        for s in (b.one, b.two):
            s.faults({"op": ["PutObject", "UploadPart", "CopyObject", "CreateMultipartUpload"], "bucket": "dst", "action": {"kms": True}})
        for mode in MODES:
            st = b.work("c049/", mode, PARTS)
            check(st["objects"]["copied"] == 2, f"{mode}: {json.dumps(st['objects'])}")
            b.same("c049/", mode)


def c049_the_level_of_proof_is_reported():
    with Bench("c049l", one=["--object", "src/c049/parts:12MiB:part=5MiB"]) as b:
        b.one.put("src", "c049/plain", "some bytes")
        st = b.work("c049/")
        code, out, err = b.ctl("report", st["id"], "--format", "json")
        check(code == 0, err)
        lines = {k: [x for x in out.splitlines() if k in x] or [out] for k in ("c049/parts", "c049/plain")}
        check("etag" in lines["c049/plain"][0], f"no level: {lines}")
        check("size" in lines["c049/parts"][0], f"no level: {lines}")


def half_arrives(mode):
    """Complete answers as if all was well; the object has half its size."""
    with Bench("c052") as b:
        for name in ("always", "once"):
            b.one.put("src", f"c052/{name}", size=12 * MIB, seed=5)
        half = {"head_size": 6 * MIB}
        b.to(mode).faults(
            {"op": "HeadObject", "bucket": "dst", "key": "c052/always", "action": half},
            {"op": "HeadObject", "bucket": "dst", "key": "c052/once", "id": "once", "count": 1, "action": half},
        )
        seen = []
        job = b.begin("c052/", mode, PARTS + 'if_exists = "overwrite"\n[retry]\nattempts = 2\n')
        st = b.ended(job, want="completed_with_failures", tick=lambda s: seen.append((s["objects"]["copied"], s["state"])))
        check(st["objects"]["copied"] == 1 and st["objects"]["failed"] == 1, json.dumps(st["objects"]))
        check(all(c <= 1 and s != "completed" for c, s in seen), f"success was told too early: {seen}")
        row = ",".join(b.failures(job)["c052/always"])
        check(str(6 * MIB) in row and str(12 * MIB) in row, f"expected and actual size are not told: {row}")
        made = len(b.to(mode).requests("CreateMultipartUpload", key="c052/once"))
        check(made == 2, f"a half object was not copied again from scratch: {made} uploads")
        b.same("c052/once", mode)
        check(b.to(mode).admin("uploads")["count"] == 0, "an upload was left open")


def c052_nothing_is_done_before_it_was_checked_in_a_server_copy():
    half_arrives("server")


def c052_nothing_is_done_before_it_was_checked_in_a_relay():
    half_arrives("relay")


def c052_a_part_of_which_half_is_kept_is_found():
    with Bench("c052s") as b:
        for mode in MODES:
            part = {"server": "UploadPartCopy", "relay": "UploadPart"}[mode]
            b.one.put("src", f"c052{mode}/big", size=11 * MIB, seed=7)
            # The last part may be of any size: nobody refuses it.
            half = {"op": part, "bucket": "dst", "key_prefix": f"c052{mode}/", "query": "partNumber=3", "count": 1, "action": {"store_size": 1000}}
            b.to(mode).faults(half)
            b.work(f"c052{mode}/", mode, PARTS)
            b.same(f"c052{mode}/", mode)


def c052_a_failed_proof_is_not_kept_where_the_job_keeps_what_is_there():
    """What the job itself left, half an object, is neither skipped nor spared; what somebody else made is."""
    for mode in MODES:
        for policy in ("skip", "fail"):
            with Bench("c052l") as b:
                b.one.put("src", "c052/large", size=12 * MIB, seed=2)
                b.one.put("src", "c052/theirs", size=12 * MIB, seed=3)
                b.to(mode).put("dst", "c052/theirs", "somebody's")
                b.to(mode).faults({"op": "CompleteMultipartUpload", "key": "c052/large", "id": "half", "count": 1, "action": {"store_size": 6 * MIB}})
                want = "completed" if policy == "skip" else "completed_with_failures"
                st = b.work("c052/", mode, PARTS + f'if_exists = "{policy}"\n', want=want)
                o = st["objects"]
                check(o["copied"] == 1 and o["skipped"] + o["failed"] == 1, f"{mode} {policy}: {json.dumps(o)}")
                got = {k: v[0] for k, v in b.to(mode).dump("dst", "c052/").items()}
                check(got == {b"c052/large": 12 * MIB, b"c052/theirs": 10}, f"{mode} {policy}: {got}")
                check(b.to(mode).admin("faults")[0]["fired"] == 1, "nothing was halved")


def c052_a_retry_replaces_what_failed_its_proof():
    """Also a small object, also when a person asks for it, also where the job spares what is there."""
    with Bench("c052r") as b:
        b.one.put("src", "c052/k", size=1000, seed=2)
        b.two.faults({"op": "PutObject", "id": "flip", "count": 2, "action": {"corrupt": True}})
        text = 'if_exists = "fail"\n[verify]\nmode = "full"\n[retry]\nattempts = 2\n'
        st = b.work("c052/", "relay", "[copy]\n" + text, want="completed_with_failures")
        check(b.two.keys("dst") == [b"c052/k"], "nothing was left")
        code, out, err = b.ctl("retry", st["id"])
        check(code == 0, f"retry: exit {code}: {err}{out}")
        st = b.ended(st["id"])
        check(st["objects"]["copied"] == 1, json.dumps(st["objects"]))
        b.same("c052/", "relay")


def c052_full_verification_finds_a_flipped_bit():
    with Bench("c052v") as b:
        for mode in MODES:
            op = {"server": "CopyObject", "relay": "PutObject"}[mode]
            part = {"server": "UploadPartCopy", "relay": "UploadPart"}[mode]
            b.one.put("src", f"c052{mode}/small", size=4000, seed=7, last_modified=LONG_AGO)
            b.one.put("src", f"c052{mode}/big", size=11 * MIB, seed=8, last_modified=LONG_AGO)
            # Every answer says that all went well.
            flip = {"bucket": "dst", "key_prefix": f"c052{mode}/", "count": 1, "action": {"corrupt": True}}
            b.to(mode).faults(dict(flip, op=op), dict(flip, op=part))
            b.work(f"c052{mode}/", mode, PARTS + '[verify]\nmode = "full"\n')
            b.same(f"c052{mode}/", mode)


def c052_what_failed_its_proof_proves_nothing_in_the_next_pass():
    """Newer than the source, of its size, under an etag that tells nothing, written by this job: and wrong."""
    kms = ["PutObject", "UploadPart", "CopyObject", "CreateMultipartUpload"]
    with Bench("c052p") as b:
        for mode in MODES:
            op = {"server": "CopyObject", "relay": "PutObject"}[mode]
            part = {"server": "UploadPartCopy", "relay": "UploadPart"}[mode]
            b.one.put("src", f"c052{mode}/small", size=4000, seed=7, last_modified=LONG_AGO)
            b.one.put("src", f"c052{mode}/big", size=11 * MIB, seed=8, last_modified=LONG_AGO)
            where = {"bucket": "dst", "key_prefix": f"c052{mode}/"}
            wrong = {"kms": True, "corrupt": True}
            b.to(mode).faults(
                dict(where, op=op, count=4, id="flips", action=wrong),  # as often as one pass tries
                dict(where, op=part, count=1, id="flips", action=wrong),
                dict(where, op=kms, action={"kms": True}),
            )
            st = b.work(f"c052{mode}/", mode, PARTS + '[verify]\nmode = "full"\n')
            check(st["objects"]["copied"] == 2 and b.show(st["id"])["pass"] > 1, f"{mode}: {json.dumps(st)}")
            b.same(f"c052{mode}/", mode)
            left = [r for r in b.to(mode).admin("faults") if r["id"] == "flips" and r["fired"] == 0]
            check(not left, f"faults that did not fire: {left}")
            b.to(mode).admin("faults", "DELETE")


if __name__ == "__main__":
    run(cases(globals()))
