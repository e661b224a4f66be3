#!/usr/bin/python3
"""tests/s3d as python3-boto3 and rclone from Debian see it: signatures, listings, copies, multipart, checksums, faults."""
import base64
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

BIN = os.path.join(os.environ.get("XF_BIN_DIR", "build/dev/bin"), "s3d")
ODD_KEYS = ["/lead", "a//b", "a//", "a/b", ".", "..", "d/./e", "d/../e", "e", "a b", "a+b", "a%20b", "100%", "c++", "x?v=1", "x#y",
            "Pose®.jpg", "a&b=c", "k?versionId=abc", "ключ/日本語.txt", "emoji😀", "é-nfc", "é-nfd", "tab\tx", "back\\slash",
            "it's(1)!*", "[8-0]x{a,b}", "~t", "c\x08b", "\x1fc", "cr\rx", "k" * 1024]


class Server:
    """One s3d with its ready line; a context manager."""

    def __init__(self, *args):
        read, write = os.pipe()
        argv = [BIN, "--ready-fd", str(write), "--quiet", *args]
        self.process = subprocess.Popen(argv, pass_fds=(write,))
        os.close(write)
        with os.fdopen(read) as ready:
            line = ready.readline()
        assert line.startswith("ready "), line
        self.url = f"http://127.0.0.1:{line.split()[1]}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        assert self.process.wait(30) == 0

    def admin(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/-/{path}", data=data, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def client(self, key="AK", secret="SK", **config):
        s3 = {"addressing_style": config.pop("style", "path")}
        options = Config(signature_version="s3v4", s3=s3, retries={"max_attempts": 0}, **config)
        return boto3.client("s3", endpoint_url=self.url, aws_access_key_id=key, aws_secret_access_key=secret,
                            region_name="us-east-1", config=options)


def code(call, **args):
    try:
        call(**args)
    except ClientError as error:
        return error.response.get("Error", {}).get("Code", "unknown")
    return None


def md5(data):
    return hashlib.md5(data).hexdigest()


def listing(s3, bucket, **args):
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, **args)
    return [(o["Key"], o["Size"], o["ETag"]) for page in pages for o in page.get("Contents", [])]


def odd_keys_are_stored_listed_and_copied(server, s3):
    for n, key in enumerate(ODD_KEYS):
        s3.put_object(Bucket="odd", Key=key, Body=f"body {n}".encode(), Metadata={"n": str(n)})
    keys = [k for k, _, _ in listing(s3, "odd", PaginationConfig={"PageSize": 3})]
    assert keys == sorted(ODD_KEYS, key=lambda k: k.encode()), keys
    for n, key in enumerate(ODD_KEYS):
        got = s3.get_object(Bucket="odd", Key=key)
        assert got["Body"].read() == f"body {n}".encode() and got["Metadata"] == {"n": str(n)}, key
        s3.copy_object(Bucket="dst", Key=key, CopySource={"Bucket": "odd", "Key": key})
    assert server.admin("GET", "diff?a=odd&b=dst")["equal"]


def made_up_objects_have_true_etags(_, s3):
    objects = listing(s3, "src")
    assert len(objects) == 1203, len(objects)
    for key, size, etag in objects[::100]:
        data = s3.get_object(Bucket="src", Key=key)["Body"].read()
        assert len(data) == size and etag == f'"{md5(data)}"', key


def multipart_is_that_of_s3(_, s3):
    data = os.urandom(5 << 20) + os.urandom(5 << 20) + os.urandom(3 << 20)
    parts = [data[at:at + (5 << 20)] for at in range(0, len(data), 5 << 20)]
    upload = s3.create_multipart_upload(Bucket="dst", Key="mp", ContentType="video/mp4", Metadata={"a": "b"}, Tagging="x=y%20z")
    done = []
    for n, part in enumerate(parts, 1):
        answer = s3.upload_part(Bucket="dst", Key="mp", UploadId=upload["UploadId"], PartNumber=n, Body=part,
                                ContentMD5=base64.b64encode(hashlib.md5(part).digest()).decode())
        done.append({"PartNumber": n, "ETag": answer["ETag"]})
    shown = s3.list_parts(Bucket="dst", Key="mp", UploadId=upload["UploadId"])["Parts"]
    assert [(p["PartNumber"], p["Size"]) for p in shown] == [(1, 5 << 20), (2, 5 << 20), (3, 3 << 20)]
    answer = s3.complete_multipart_upload(Bucket="dst", Key="mp", UploadId=upload["UploadId"], MultipartUpload={"Parts": done})
    want = md5(b"".join(hashlib.md5(p).digest() for p in parts)) + "-3"
    assert answer["ETag"] == f'"{want}"'
    assert s3.get_object(Bucket="dst", Key="mp")["Body"].read() == data
    assert s3.get_object_tagging(Bucket="dst", Key="mp")["TagSet"] == [{"Key": "x", "Value": "y z"}]
    assert s3.head_object(Bucket="dst", Key="mp", PartNumber=2)["ContentLength"] == 5 << 20
    assert s3.copy_object(Bucket="dst", Key="flat", CopySource="dst/mp")["CopyObjectResult"]["ETag"] == f'"{md5(data)}"'


def part_copies_relays_and_the_managed_copy_agree(server, s3):
    size = 100 << 20
    upload = s3.create_multipart_upload(Bucket="dst", Key="big")
    etags = []
    for n in (1, 2):
        first, last = (n - 1) * (64 << 20), min(n * (64 << 20), size) - 1
        answer = s3.upload_part_copy(Bucket="dst", Key="big", UploadId=upload["UploadId"], PartNumber=n, CopySource="src/big",
                                     CopySourceRange=f"bytes={first}-{last}")
        etags.append({"PartNumber": n, "ETag": answer["CopyPartResult"]["ETag"]})
    s3.complete_multipart_upload(Bucket="dst", Key="big", UploadId=upload["UploadId"], MultipartUpload={"Parts": etags})
    s3.upload_fileobj(io.BytesIO(s3.get_object(Bucket="src", Key="big")["Body"].read()), "dst", "big-relayed")
    s3.copy({"Bucket": "src", "Key": "big"}, "dst", "big-managed")
    for key in ("big", "big-relayed", "big-managed"):
        answer = server.admin("GET", f"diff?a=src/big&b=dst/{key}&sum=md5")
        assert answer["different"]["count"] == 0 and answer["a_count"] == 1, answer
    assert memory_mib(server) < 150, "made-up bytes that came back were stored"


def memory_mib(server):
    with open(f"/proc/{server.process.pid}/status") as status:
        line = next(x for x in status if x.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def errors_have_their_codes(server, s3):
    assert code(s3.get_object, Bucket="dst", Key="none") == "NoSuchKey"
    assert code(s3.list_objects_v2, Bucket="none") == "NoSuchBucket"
    assert code(s3.head_object, Bucket="dst", Key="none") == "404"
    assert code(s3.copy_object, Bucket="dst", Key="huge", CopySource="src/huge") == "InvalidRequest"
    assert code(s3.get_object, Bucket="src", Key="big", IfMatch='"0"') == "PreconditionFailed"
    assert code(s3.abort_multipart_upload, Bucket="dst", Key="x", UploadId="y") == "NoSuchUpload"
    assert code(server.client(secret="BAD").list_buckets) == "SignatureDoesNotMatch"
    assert code(server.client(key="BAD").list_buckets) == "InvalidAccessKeyId"
    assert code(server.client("READ", "RS").put_object, Bucket="dst", Key="x", Body=b"") == "AccessDenied"
    assert server.client("READ", "RS").get_object(Bucket="src", Key="big", Range="bytes=0-9")["ContentLength"] == 10


def presigned_and_virtual_host_requests_work(server, s3):
    s3.put_object(Bucket="dst", Key="a b", Body=b"hello")
    url = s3.generate_presigned_url("get_object", Params={"Bucket": "dst", "Key": "a b"})
    assert urllib.request.urlopen(url, timeout=30).read() == b"hello"
    host = server.url.replace("127.0.0.1", "s3.localhost")
    virtual = boto3.client("s3", endpoint_url=host, aws_access_key_id="AK", aws_secret_access_key="SK", region_name="us-east-1",
                           config=Config(signature_version="s3v4", s3={"addressing_style": "virtual"}))
    try:
        assert virtual.get_object(Bucket="dst", Key="a b")["Body"].read() == b"hello"
    except Exception as error:  # a resolver that knows no names under localhost
        if "Could not connect" not in str(error):
            raise


def faults_reach_the_client(server, s3):
    server.admin("POST", "faults", [{"id": "f", "op": "CopyObject", "count": 1, "action": {"status": 200, "code": "InternalError"}}])
    assert code(s3.copy_object, Bucket="dst", Key="c", CopySource="dst/a b") in ("InternalError", "unknown")
    assert code(s3.copy_object, Bucket="dst", Key="c", CopySource="dst/a b") is None
    assert server.admin("GET", "faults") == [{"id": "f", "matched": 2, "fired": 1}]
    server.admin("DELETE", "faults")


def deletes_leave_nothing(server, s3):
    keys = [k for k, _, _ in listing(s3, "odd") if not any(ord(c) < 32 for c in k)]
    s3.delete_objects(Bucket="odd", Delete={"Objects": [{"Key": k} for k in keys]})
    for key, _, _ in listing(s3, "odd"):
        s3.delete_object(Bucket="odd", Key=key)
    s3.delete_bucket(Bucket="odd")
    assert "odd" not in [b["Name"] for b in s3.list_buckets()["Buckets"]]
    assert server.admin("GET", "uploads")["count"] == 0


def rclone_copies_and_checks(server, _):
    rclone = shutil.which("rclone")
    if rclone is None:
        print("rclone is not installed: its part is left out")
        return
    env = dict(PATH=os.environ["PATH"], RCLONE_CONFIG="/nonexistent", RCLONE_CONFIG_X_TYPE="s3", RCLONE_CONFIG_X_PROVIDER="Other",
               RCLONE_CONFIG_X_ENDPOINT=server.url, RCLONE_CONFIG_X_ACCESS_KEY_ID="AK", RCLONE_CONFIG_X_SECRET_ACCESS_KEY="SK")
    with tempfile.TemporaryDirectory() as home:
        env["HOME"] = home
        for source, target in (("x:utf", "x:dst/rclone"), ("x:utf", f"{home}/local"), (f"{home}/local", "x:dst/back")):
            subprocess.run([rclone, "copy", "--no-check-dest", source, target], env=env, check=True, timeout=100)
        subprocess.run([rclone, "check", "--download", "x:utf", "x:dst/back"], env=env, check=True, timeout=100)
    assert server.admin("GET", "diff?a=utf&b=dst/rclone/")["missing"]["count"] == 0


TESTS = [odd_keys_are_stored_listed_and_copied, made_up_objects_have_true_etags, multipart_is_that_of_s3,
         part_copies_relays_and_the_managed_copy_agree, errors_have_their_codes, presigned_and_virtual_host_requests_work,
         faults_reach_the_client, rclone_copies_and_checks, deletes_leave_nothing]


def main():
    args = ["--key", "AK:SK", "--key", "READ:RS:ro", "--domain", "s3.localhost", "--bucket", "dst", "--bucket", "odd",
            "--synth", "src:1200:0-5KiB:dates", "--synth", "utf:300:100:utf-8", "--object", "src/big:100MiB",
            "--object", "src/huge:5TiB", "--object", "src/colon:1:100"]
    with Server(*args) as server:
        s3 = server.client()
        for test in TESTS:
            if test is made_up_objects_have_true_etags:
                s3.head_object(Bucket="src", Key="colon:1")
            test(server, s3)
            print("ok", test.__name__, flush=True)


if __name__ == "__main__":
    sys.exit(main())
