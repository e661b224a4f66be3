#!/usr/bin/python3
"""rgw_test.py - the main job against Ceph's object gateway, a server that is not ours.

Two gateways with separate data: a server copy inside the first, a relay between the two; odd keys, empty objects, large
objects in parts, metadata and tags; compared byte by byte through boto3. XF_RGW_OBJECTS scales it.
"""

import concurrent.futures
import hashlib
import json
import os
import random
import subprocess
import sys
import time

import boto3
from botocore.config import Config

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lab"))
import fidelity  # noqa: E402
from lab import MODES, Lab, cases, check, free_port, invariant_1, run, seed  # noqa: E402

ID, SECRET = "RGWTESTACCESSKEY0001", "SECRETRGWx0123456789abcdefghijklmnopqrst"
OBJECTS = int(os.environ.get("XF_RGW_OBJECTS") or 1500)
MIB = 1 << 20

ODD_KEYS = [
    "a b", "a+b", "a%20b", "a%2Bb", "100%.csv", "a//b", "a/b", "a//", "a/b/", "//x", "/lead", ".", "..", "d/./e", "d/../e", "e", "d/e",
    "c++", "x?v=1", "x?versionId=abc", "x#y", "Pose®.jpg", "22:24:03+0000.jpg", "a&b=c", "q\"<&>'", "back\\slash", "star*", "[8-0]x",
    "{a,b}", "tab\tT", "nl\nN", "cr\rR", "c\x01a", "c\x08b", "c\x1fc", "c\x7fd", "한/x", "emoji😀", "é-nfc", "é-nfd", "trailing/", "empty",
    "k" * 1000, "%41", "~tilde", "semi;colon:at@comma,", "\ufffe-nonchar",
]


class Gateways:
    def __init__(self, lab):
        self.dir = os.path.join(lab.dir, "server-rgw")
        self.ports = [free_port(), free_port()]
        self.env = dict(os.environ, RGW_ID=ID, RGW_SECRET=SECRET)
        self.script("start", *map(str, self.ports))
        self.url = [f"http://127.0.0.1:{p}" for p in self.ports]
        self.s3 = [
            boto3.client(
                "s3", endpoint_url=u, aws_access_key_id=ID, aws_secret_access_key=SECRET, region_name=r,
                config=Config(s3={"addressing_style": "path"}, max_pool_connections=16, retries={"max_attempts": 5}),
            )
            for u, r in zip(self.url, ("us-east-1", "eu-west-1"))
        ]

    def script(self, verb, *more):
        r = subprocess.run([os.path.join(HERE, "rgw.sh"), verb, self.dir, *more], env=self.env, capture_output=True, text=True, check=False)
        check(r.returncode == 0, f"rgw.sh {verb}: {r.stdout}{r.stderr}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.script("stop")


def fill(s3, bucket, rng):
    """Put the source's objects; gives {key: (sha256, size)}."""
    s3.create_bucket(Bucket=bucket)
    want = {}

    def put(key, body):
        kind = {} if len(want) % 3 else {"Metadata": {"who": "xfer", "n": "a b"}, "CacheControl": "max-age=7", "Tagging": "team=x&k=a%20b"}
        s3.put_object(Bucket=bucket, Key=key, Body=body, ContentType="text/x-test", **kind)
        want[key] = (hashlib.sha256(body).hexdigest(), len(body))

    for i, key in enumerate(ODD_KEYS):
        put("odd/" + key, b"" if key == "empty" else f"odd body {i}".encode())
    bodies = [(f"plain/{i % 40:02d}/{i:06d}", rng.randbytes(rng.randrange(0, 4096))) for i in range(OBJECTS)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda kb: put(*kb), bodies))
    for i, size in enumerate((8 * MIB, 8 * MIB + 1, 40 * MIB + 12345)):
        put(f"big/{i}", rng.randbytes(size))
    # One object that was itself uploaded in parts, with another part size than the job's.
    body = rng.randbytes(13 * MIB)
    up = s3.create_multipart_upload(Bucket=bucket, Key="big/mpu", ContentType="video/mp4", Metadata={"k": "v"})["UploadId"]
    parts = []
    for n, at in enumerate(range(0, len(body), 5 * MIB), 1):
        r = s3.upload_part(Bucket=bucket, Key="big/mpu", UploadId=up, PartNumber=n, Body=body[at : at + 5 * MIB])
        parts.append({"PartNumber": n, "ETag": r["ETag"]})
    s3.complete_multipart_upload(Bucket=bucket, Key="big/mpu", UploadId=up, MultipartUpload={"Parts": parts})
    want["big/mpu"] = (hashlib.sha256(body).hexdigest(), len(body))
    return want


def attributes(s3, bucket, key, head):
    names = ("ContentType", "CacheControl", "ContentDisposition", "ContentEncoding", "ContentLanguage")
    tags = s3.get_object_tagging(Bucket=bucket, Key=key).get("TagSet", [])
    return {n: head.get(n) for n in names}, head["Metadata"], sorted((t["Key"], t["Value"]) for t in tags)


def compare(src, bucket, dst, dst_bucket, prefix, want):
    """Every object read back and compared with what was put; attributes with the source's."""
    got = set()
    for page in dst.get_paginator("list_objects_v2").paginate(Bucket=dst_bucket, Prefix=prefix):
        got |= {o["Key"] for o in page.get("Contents", [])}
    keys = {prefix + k for k in want}
    check(got == keys, f"missing {sorted(keys - got)[:5]}, extra {sorted(got - keys)[:5]}")

    def one(key):
        r = dst.get_object(Bucket=dst_bucket, Key=prefix + key)
        body = r["Body"].read()
        check((hashlib.sha256(body).hexdigest(), len(body)) == want[key], f"content of {key!r} differs ({len(body)} bytes, want {want[key][1]})")
        if hash(key) % 5 == 0 or key.startswith(("big/", "odd/")):
            a = attributes(src, bucket, key, src.head_object(Bucket=bucket, Key=key))
            b = attributes(dst, dst_bucket, prefix + key, r)
            check(a == b, f"attributes of {key!r}: {a} became {b}")

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(one, want))
    ups = dst.list_multipart_uploads(Bucket=dst_bucket).get("Uploads", [])
    check(not ups, f"open uploads: {ups}")


def job(lab, gw, src_url, dst_url, to, src="", dst="", copy='[copy]\npart_size = "8MiB"\nmultipart_threshold = "8MiB"\ntags = "required"\n', want="completed"):
    lab.jobs += 1
    path = os.path.join(lab.dir, f"rgw{lab.jobs}.toml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(
            f'[source]\nurl = "{src_url}"\nendpoint = "{gw.url[0]}"\nregion = "us-east-1"\naccess_key_env = "RGW_ID"\nsecret_key_env = "RGW_SECRET"\n{src}'
            f'[destination]\nurl = "{dst_url}"\nendpoint = "{gw.url[to]}"\nregion = "{("us-east-1", "eu-west-1")[to]}"\n'
            f'access_key_env = "RGW_ID"\nsecret_key_env = "RGW_SECRET"\n{dst}{copy}'
        )
    started = time.monotonic()
    st = lab.wait_job(lab.submit(path), 300, tick=invariant_1)
    print(f"{src_url} -> {dst_url} at gateway {to}: {st['state']} in {time.monotonic() - started:.1f} s, {json.dumps(st['bytes'])}")
    check(st["state"] in want, f"ended {st['state']}: {json.dumps(st)}")
    return st


def test_server_copy_and_relay_between_ceph_gateways():
    rng = random.Random(seed())
    with Lab("rgw") as lab, Gateways(lab) as gw:
        lab.secrets.append(SECRET)
        lab.env.update(RGW_ID=ID, RGW_SECRET=SECRET)
        want = fill(gw.s3[0], "source", rng)
        gw.s3[0].create_bucket(Bucket="twin")
        gw.s3[1].create_bucket(Bucket="far")
        lab.coordinator()
        for i in range(2):
            lab.agent(f"a{i}")
        inside = job(lab, gw, "s3://source/", "s3://twin/in/", 0)
        check(inside["bytes"]["through_agents"] == 0, "a server copy moved bytes through the agents")
        compare(gw.s3[0], "source", gw.s3[0], "twin", "in/", want)
        job(lab, gw, "s3://source/", "s3://far/", 1)
        compare(gw.s3[0], "source", gw.s3[1], "far", "", want)
        again = job(lab, gw, "s3://source/", "s3://far/", 1)
        check(again["objects"]["skipped"] == len(want), f"a second run copied again: {again['objects']}")
        lab.check_store()


def test_every_attribute_at_every_size_in_both_modes():
    odd = "User metadata, names of all characters"
    ours = "Ceph copies a lock with what it copies by itself, asked or not."
    losses = {
        (odd, "", ""): ("Ceph does not keep such a name: the source itself has none.", None),
        ("SSE-S3", "", ""): ("Ceph 16 takes the request and does not encrypt: the object fails as `stored without the encryption that the job asks for`.", None),
        ("Object lock, not asked for", "server", "one request"): (ours, None),
        ("Object lock, not asked for", "server", "streamed"): (ours, None),
        ("Storage class GLACIER_IR, kept", "relay", ""): ("This destination does not know the class: its default, reported as `storage_class` dropped.", "storage_class"),
    }
    table = fidelity.Table("ceph", "Ceph RGW 16.2, from Debian 12", losses)
    public = [("FULL_CONTROL", "xfer"), ("READ", "http://acs.amazonaws.com/groups/global/AllUsers")]
    with Lab("rgwfid") as lab, Gateways(lab) as gw:
        lab.secrets += [SECRET, *fidelity.OWN.values()]
        lab.env.update(RGW_ID=ID, RGW_SECRET=SECRET, **fidelity.OWN)
        for s3, bucket in ((gw.s3[0], "source"), (gw.s3[0], "twin"), (gw.s3[1], "far")):
            s3.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
        lab.coordinator()
        lab.agent("a0")
        at = [fidelity.Server(u, r, ID, SECRET, s3) for u, r, s3 in zip(gw.url, ("us-east-1", "eu-west-1"), gw.s3)]
        kinds = [g for g in fidelity.groups("of-the-destination", public) if g.name != "payer"]
        fidelity.put_sources(at[0], lambda g: "source", kinds)
        (name, _), = fidelity.USER[odd].items()
        check(name not in at[0].look("source", "plain/one request"), "the source has kept it")
        for mode in MODES:
            to = MODES.index(mode)
            for g in kinds:
                st = job(lab, gw, f"s3://source/{g.name}/", f"s3://{('twin', 'far')[to]}/{g.name}/", to, src=g.src, dst=g.dst,
                         copy=fidelity.COPY + g.copy + "[retry]\nattempts = 2\n", want=("completed", "completed_with_failures"))
                fidelity.compare(table, g, mode, at[to], ("twin", "far")[to], f"{g.name}/", fidelity.report(lab, st["id"]))
    table.settle()


if __name__ == "__main__":
    run(cases(globals()))
