"""fidelity.py - what arrives of an object beside its bytes: objects with every attribute, jobs that copy them, and the table.

Objects are put and read back by requests of our own (signed by botocore) and by boto3, never by xfer. A table has a row
an attribute and a column a way of copying; a cell that is not `kept` must be expected, with its reason, and be reported where something got lost.
"""

import base64
import datetime
import hashlib
import http.client
import json
import os
import re
import urllib.parse

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from lab import BIN, MIB, MODES, ROOT, check

DOC = os.path.join(ROOT, "docs", "FIDELITY.md")
SIZES = {"one request": 1000, "streamed": 17 * MIB, "parts": 24 * MIB}
COLUMNS = [(mode, size) for mode in MODES for size in SIZES]
COPY = '[copy]\npart_size = "8MiB"\nmultipart_threshold = "24MiB"\n'
SSE = "x-amz-server-side-encryption"
LOCK = "x-amz-object-lock-"
KEYS = {"SRC_OWN": bytes(range(32)), "DST_OWN": bytes(range(100, 132))}
OWN = {n: base64.b64encode(k).decode() for n, k in KEYS.items()}  # as in an agent's environment
UNTIL = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=30)).strftime("%Y-%m-%dT%H:%M:%S.000Z")

SYSTEM = {
    "Content-Type": "video/mp4; x=y",
    "Content-Encoding": "gzip",
    "Content-Language": "de, en-GB",
    "Content-Disposition": 'attachment; filename="a b.mp4"',
    "Cache-Control": "max-age=123456, private",
    "Expires": "Thu, 01 Dec 2033 16:00:00 GMT",
}
USER = {
    "User metadata": {"x-amz-meta-k": "v", "x-amz-meta-two": "a  b, c; d=e"},
    "User metadata, not ASCII": {"x-amz-meta-name": "Grüße 한글 😀"},
    "User metadata, odd names": {"x-amz-meta-a.b-0": "odd", "x-amz-meta-x-amz-meta-": "twice"},
    "User metadata, names of all characters": {"x-amz-meta-a_b!#$%&'*+^`|~": "very odd"},
    "User metadata, RFC 2047 text": {"x-amz-meta-word": "=?UTF-8?B?R3LDvMOfZQ==?="},
}
TAGS = "team=x&a%20b=c%2Bd&empty="


def customer(name, prefix=SSE):
    """The headers of a customer's own key."""
    md5 = base64.b64encode(hashlib.md5(KEYS[name]).digest()).decode()
    head = f"{prefix}-customer-"
    return {head + "algorithm": "AES256", head + "key": OWN[name], head + "key-MD5": md5}


class Server:
    """One endpoint, with its user's keys."""

    def __init__(self, url, region, key, secret, boto):
        self.url, self.region, self.boto = url, region, boto
        self.creds = Credentials(key, secret)

    def ask(self, method, path, headers=None, body=b""):
        """(status, headers with bytes as values, body); names in lower case."""
        req = AWSRequest(method, self.url + urllib.parse.quote(path), headers=headers or {}, data=body)
        S3SigV4Auth(self.creds, "s3", self.region).add_auth(req)
        conn = http.client.HTTPConnection(urllib.parse.urlparse(self.url).netloc, timeout=60)
        try:
            conn.putrequest(method, urllib.parse.quote(path), skip_accept_encoding=True)
            for k, v in req.headers.items():
                conn.putheader(k, str(v).encode())
            conn.putheader("Content-Length", str(len(body)))
            conn.endheaders(body)
            r = conn.getresponse()
            text = r.read()
            return r.status, {k.lower(): v.encode("latin-1") for k, v in r.getheaders()}, text
        finally:
            conn.close()

    def put(self, bucket, key, body, headers):
        status, _, text = self.ask("PUT", f"/{bucket}/{key}", headers, body)
        check(status == 200, f"PUT {bucket}/{key}: {status} {text[:500]!r}")

    def look(self, bucket, key, own=None, payer=False):
        """Everything that the service tells of an object; values are bytes, tags and grants lists."""
        more = dict(customer(own) if own else {}, **({"x-amz-request-payer": "requester"} if payer else {}))
        status, got, _ = self.ask("HEAD", f"/{bucket}/{key}", more)
        check(status == 200, f"HEAD {bucket}/{key}: {status}")
        got["tags"] = sorted((t["Key"], t["Value"]) for t in self.boto.get_object_tagging(Bucket=bucket, Key=key)["TagSet"])
        acl = self.boto.get_object_acl(Bucket=bucket, Key=key)
        got["acl"] = sorted((g["Permission"], g["Grantee"].get("ID") or g["Grantee"].get("URI", "")) for g in acl["Grants"])
        return got


def picked(names):
    """Reads these headers: what is there."""
    return lambda got: {n.lower(): got[n.lower()] for n in names if n.lower() in got}


def retention(got):
    """Mode and date; services write fractions of a second in their own ways."""
    return got.get(LOCK + "mode"), got.get(LOCK + "retain-until-date", b"")[:19]


def same_as_put(headers):
    return picked(headers), {k.lower(): v.encode() for k, v in headers.items()}


class Group:
    """Objects of one kind: how they are put, the job that copies them, and rows: name to (what is read, what it must be)."""

    def __init__(self, name, put, rows, dst="", copy="", src="", after="", own=(None, None), mode=None):
        self.name, self.put, self.rows = name, put, rows
        self.dst, self.copy, self.src, self.after, self.own, self.mode = dst, copy, src, after, own, mode


def groups(kms_key, public):
    """Every attribute. public: the grants that public-read gives on that server."""
    plain = {n: same_as_put({n: v}) for n, v in SYSTEM.items()}
    plain.update({n: same_as_put(h) for n, h in USER.items()})
    plain["Website redirect"] = same_as_put({"x-amz-website-redirect-location": "/elsewhere"})
    plain["Tags"] = (lambda got: got["tags"], [("a b", "c+d"), ("empty", ""), ("team", "x")])
    headers = dict(SYSTEM, **{"x-amz-website-redirect-location": "/elsewhere", "x-amz-tagging": TAGS})
    for h in USER.values():
        headers.update(h)
    kept = lambda name, want: {name: (picked(["x-amz-storage-class"]), {"x-amz-storage-class": want} if want else {})}  # noqa: E731
    lock = {LOCK + "mode": "GOVERNANCE", LOCK + "retain-until-date": UNTIL}
    return [
        Group("plain", headers, plain),
        Group("none", headers, {
            "metadata = false, tags = \"none\": nothing but the bytes": (
                lambda got: sorted(n for n in got if n.startswith("x-amz-meta-") or n in ("cache-control", "expires")) + got["tags"], []),
        }, copy='metadata = false\ntags = "none"\n'),
        Group("required", {"x-amz-tagging": TAGS}, {"Tags, required": plain["Tags"]}, copy='tags = "required"\n'),
        Group("class", {"x-amz-storage-class": "STANDARD_IA"}, kept("Storage class, kept", b"STANDARD_IA")),
        Group("cold", {"x-amz-storage-class": "GLACIER_IR"}, kept("Storage class GLACIER_IR, kept", b"GLACIER_IR")),
        Group("mapped", {"x-amz-storage-class": "REDUCED_REDUNDANCY"}, kept("Storage class, mapped", b"ONEZONE_IA"),
              dst='storage_class = "STANDARD_IA"\nstorage_class_map = ["REDUCED_REDUNDANCY=ONEZONE_IA"]\n'),
        Group("set", {}, kept("Storage class, set", b"STANDARD_IA"), dst='storage_class = "STANDARD_IA"\n'),
        Group("acl", {}, {"ACL, canned": (lambda got: got["acl"], public)}, dst='acl = "public-read"\n'),
        Group("sse", {}, {"SSE-S3": (picked([SSE]), {SSE: b"AES256"})}, dst='sse = "AES256"\n'),
        Group("kms", {}, {"SSE-KMS with the destination's key": (
            picked([SSE, SSE + "-aws-kms-key-id"]), {SSE: b"aws:kms", SSE + "-aws-kms-key-id": kms_key.encode()})},
              dst=f'sse = "aws:kms"\nkms_key = "{kms_key}"\n'),
        Group("own", dict(customer("SRC_OWN"), **USER["User metadata"]), {
            "SSE-C, another key at the destination": (
                picked([SSE + "-customer-algorithm", "x-amz-meta-k"]), {SSE + "-customer-algorithm": b"AES256", "x-amz-meta-k": b"v"})},
              src='customer_key_env = "SRC_OWN"\n', dst='customer_key_env = "DST_OWN"\n', own=("SRC_OWN", "DST_OWN"), mode="auto"),
        Group("opened", customer("SRC_OWN"), {"SSE-C source, none at the destination": (picked([SSE + "-customer-algorithm"]), {})},
              src='customer_key_env = "SRC_OWN"\n', own=("SRC_OWN", None), mode="auto"),
        Group("lock", dict(lock, **{LOCK + "legal-hold": "ON"}), {
            "Object lock: retention": (retention, (b"GOVERNANCE", UNTIL[:19].encode())), "Object lock: legal hold": same_as_put({LOCK + "legal-hold": "ON"})},
              copy="object_lock = true\n"),
        Group("unlocked", lock, {"Object lock, not asked for": (picked([LOCK + "mode"]), {})}),
        Group("mtime", USER["User metadata"], {"Source's last-modified as metadata": (lambda got: bool(re.fullmatch(rb"\d{10}(\.\d+)?", got.get("x-amz-meta-mtime", b""))) and "x-amz-meta-k" in got, True)},
              copy="source_mtime = true\n"),
        Group("payer", {}, {"Requester pays, at the source": (lambda got: True, True)}, src="requester_pays = true\n"),
    ]


class Table:
    """Cells as they come, the expected losses, and the part of the document that they make."""

    def __init__(self, server, title, losses):
        self.server, self.title, self.losses = server, title, losses  # losses: {(row, mode or "", size or ""): (reason, what `dropped` says)}
        self.cells, self.rows, self.bad = {}, [], []

    def loss(self, row, mode, size):
        for k in ((row, mode, size), (row, mode, ""), (row, "", size), (row, "", "")):
            if k in self.losses:
                return self.losses[k]
        return None, None

    def put(self, row, mode, size, got, want, dropped):
        if row not in self.rows:
            self.rows.append(row)
        why, told = self.loss(row, mode, size)
        if got == want:
            self.cells[row, mode, size] = "kept"
            if why:
                self.bad.append(f"{row}, {mode}, {size}: kept, though a loss is expected: {why}")
        else:
            self.cells[row, mode, size] = "differs"
            if told and told not in dropped:
                self.bad.append(f"{row}, {mode}, {size}: the report does not say that {told} was dropped: {dropped}")
            if not why:
                self.bad.append(f"{row}, {mode}, {size}: {got!r} is not {want!r}")

    def failed(self, row, mode, size):
        """The service takes no such thing: the object fails, with the reason in the report."""
        if row not in self.rows:
            self.rows.append(row)
        self.cells[row, mode, size] = "fails"
        if not self.loss(row, mode, size)[0]:
            self.bad.append(f"{row}, {mode}, {size}: the object failed")

    def text(self):
        reasons = []
        out = [f"## {self.title}", ""]
        out.append("| attribute | " + " | ".join(f"{m}, {s}" for m, s in COLUMNS) + " |")
        out.append("|---" * (len(COLUMNS) + 1) + "|")
        for row in self.rows:
            line = [row]
            for mode, size in COLUMNS:
                cell = self.cells.get((row, mode, size), "-")
                if cell in ("differs", "fails"):
                    why = self.loss(row, mode, size)[0] or "?"
                    if why not in reasons:
                        reasons.append(why)
                    cell += f" ({reasons.index(why) + 1})"
                line.append(cell)
            out.append("| " + " | ".join(line) + " |")
        out.append("")
        out += [f"{i}. {why}" for i, why in enumerate(reasons, 1)] + [""] * bool(reasons)
        return "\n".join(out)

    def settle(self):
        """Write the part into the build folder; with --bless into the document; fail when the document says otherwise."""
        text = self.text()
        with open(os.path.join(os.path.dirname(BIN), f"fidelity-{self.server}.md"), "w", encoding="utf-8") as f:
            f.write(text)
        check(not self.bad, "cells that are not as expected:\n" + "\n".join(self.bad))
        begin, end = f"<!-- {self.server} -->\n", f"<!-- end of {self.server} -->\n"
        with open(DOC, encoding="utf-8") as f:
            doc = f.read()
        head, _, rest = doc.partition(begin)
        old, _, tail = rest.partition(end)
        check(rest and tail is not None, f"{DOC} has no part for {self.server}")
        if os.environ.get("XF_BLESS"):
            with open(DOC, "w", encoding="utf-8") as f:
                f.write(head + begin + text + end + tail)
        else:
            check(old == text, f"{DOC} says otherwise of {self.server}; look at {self.server}'s table in the build folder, then XF_BLESS=1")


def report(lab, job, *args):
    """Key to row of the report's objects."""
    code, out, err = lab.ctl("report", job, "--format", "json", *args)
    check(code == 0, f"report ended with {code}: {err}")
    rows = [json.loads(x) for x in out.splitlines()]
    return {r["key"]: r for r in rows if r["type"] == "object"}


def body_of(size):
    return (b"%032x" % size) * (size // 32 + 1)


def put_sources(server, bucket, kinds):
    for g in kinds:
        where = bucket(g)
        for name, size in SIZES.items():
            body = body_of(size)[:size]
            digest = {"Content-MD5": base64.b64encode(hashlib.md5(body).digest()).decode()}
            server.put(where, f"{g.name}/{name}", body, dict(g.put, **digest))


def compare(table, group, mode, server, bucket, prefix, rows_of):
    """Read every copy back; rows_of: the report's row of each key that was not copied whole."""
    for name, size in SIZES.items():
        key = f"{prefix}{name}"
        said = rows_of.get(f"{group.name}/{name}", {})
        if said.get("outcome") == "failed":
            check(said["message"], f"{key} failed without a word")
            for row in group.rows:
                table.failed(row, mode, name)
            continue
        status, _, body = server.ask("GET", f"/{bucket}/{key}", customer(group.own[1]) if group.own[1] else {})
        check(status == 200 and body == body_of(size)[:size], f"the bytes of {key} are not the source's ({status})")
        got = server.look(bucket, key, group.own[1])
        for row, (read, want) in group.rows.items():
            table.put(row, mode, name, read(got), want, said.get("dropped", []))
