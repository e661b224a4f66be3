#!/usr/bin/python3
"""demo.py - the main job on this machine: ./dev demo.

Two S3 endpoints of our own (tests/s3d), a coordinator and two agents; more than 20,000 objects, odd keys, empty objects and
objects of 200 MiB; one agent and the coordinator are killed and started again on the way; every byte is compared, by
rclone as well. Ends with exit 0 or says what differs. XF_DEMO_OBJECTS scales it.
"""

import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from lab import BIN, DST_KEY, DST_SECRET, ENDS, SRC_KEY, SRC_SECRET, Failed, Lab, check, same  # noqa: E402

OBJECTS = int(os.environ.get("XF_DEMO_OBJECTS") or 20_000)
LARGE = 3

ODD = {
    "prod/ space and + plus": "1", "prod//double//slash": "2", "prod/./dot": "3", "prod/../dotdot": "4", "prod/percent%41%": "5",
    "prod/ключ/日本語.txt": "6", "prod/emoji😀": "7", "prod/quote\"<&>'": "8", "prod/back\\slash": "9", "prod/tab\tnew\nline": "10",
    "prod/control\x01\x08": "11", "prod/q?x=1#f": "12", "prod/folder/": "", "prod/empty": "", "prod/star*[8-0]{a,b}": "13",
    "prod/" + "k" * 1015: "14", "prod/a%20b": "15", "prod/a b": "16", "prod/a+b": "17", "prod/é-nfc": "18", "prod/é-nfd": "19",
}


def say(text):
    print(f"\n==> {text}", flush=True)


def bar(st):
    o = st["objects"]
    known = max(o["listed"], 1)
    full = int(30 * o["copied"] / known)
    return (
        f"    [{'#' * full}{'.' * (30 - full)}] {o['copied']:>6} of {o['listed']:>6} listed"
        f"{'' if st['listing']['complete'] else ' so far'}, in flight {o['in_flight']:>5}, {st['rate']['objects_s']:>7.0f} objects/s"
    )


def follow(lab, job, until, shown):
    """Print progress until the condition holds; gives the last status."""
    while True:
        st = lab.status(job)
        if st:
            now = time.monotonic()
            if now - shown[0] > 1 or until(st):
                print(bar(st), flush=True)
                shown[0] = now
            if until(st):
                return st
        time.sleep(0.1)


def compare_with_rclone(lab, src, dst):
    env = dict(lab.env)
    for name, url, key, secret in (("SRC", src.url, SRC_KEY, SRC_SECRET), ("DST", dst.url, DST_KEY, DST_SECRET)):
        env.update({
            f"RCLONE_CONFIG_{name}_TYPE": "s3", f"RCLONE_CONFIG_{name}_PROVIDER": "Other", f"RCLONE_CONFIG_{name}_ENDPOINT": url,
            f"RCLONE_CONFIG_{name}_ACCESS_KEY_ID": key, f"RCLONE_CONFIG_{name}_SECRET_ACCESS_KEY": secret,
            f"RCLONE_CONFIG_{name}_LIST_URL_ENCODE": "true", f"RCLONE_CONFIG_{name}_FORCE_PATH_STYLE": "true",
        })
    # rclone cleans paths, so it cannot name keys with //, . or ..; those were compared by the servers' own list.
    argv = ["rclone", "check", "--download", "--config", "/dev/null", "--checkers", "8",
            "SRC:prod/plain", "DST:archive/2026/plain"]
    r = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=1800)
    tail = [line for line in r.stderr.splitlines() if "differences found" in line or "matching files" in line or "ERROR" in line]
    check(r.returncode == 0, "rclone found differences:\n" + r.stderr[-3000:])
    return tail


def main():
    started = time.monotonic()
    with Lab("demo") as lab:
        say("two S3 endpoints, a coordinator and two agents")
        large = []
        for i in range(LARGE):
            large += ["--object", f"prod/plain/big/{i}.bin:200MiB"]
        src = lab.s3d("source", "--synth", "prod:1:1KiB:flat", "--latency", "get=5", *large)
        dst = lab.s3d("destination", "--bucket", "archive", "--latency", "put=10")
        src.post("load", {"bucket": "prod", "prefix": "plain/", "count": OBJECTS, "size": "0-8KiB", "pattern": "dirs", "seed": 7})
        for key, body in ODD.items():
            src.put("prod", key.replace("prod/", "odd/", 1), body, headers={"Content-Type": "text/x-odd", "x-amz-meta-who": "demo"}, tags="team=x")
        coordinator = lab.coordinator()
        agents = [lab.agent("agent-1"), lab.agent("agent-2")]
        print(f"    source {src.url}, destination {dst.url}, coordinator {lab.bus_url}, status page {lab.http_url}/")

        path = lab.toml(src, dst, "s3://prod/", "s3://archive/2026/", '[job]\nname = "demo"\n[copy]\npart_size = "16MiB"\nmultipart_threshold = "64MiB"\n')
        say("xferctl submit " + os.path.basename(path))
        with open(path, encoding="utf-8") as f:
            print("    " + f.read().strip().replace("\n", "\n    "))
        job = lab.submit(path)
        print(f"    job {job}")

        shown = [0.0]
        half = OBJECTS // 4
        say("xferctl status " + job)
        follow(lab, job, lambda st: st["objects"]["copied"] >= half or st["state"] in ENDS, shown)
        say("kill -9 of agent-1; it comes back")
        agents[0].kill()
        back = time.monotonic() + 1
        follow(lab, job, lambda st: time.monotonic() > back or st["state"] in ENDS, shown)
        agents[0].start()
        follow(lab, job, lambda st: st["objects"]["copied"] >= 2 * half or st["state"] in ENDS, shown)
        say("kill -9 of the coordinator; it comes back")
        coordinator.kill()
        coordinator.start()
        st = follow(lab, job, lambda st: st["state"] in ENDS, shown)

        total = OBJECTS + LARGE + len(ODD) + 1
        check(st["state"] == "completed", f"the job ended {st['state']}: {st}")
        check(st["objects"]["copied"] == total, f"copied {st['objects']['copied']} of {total}")
        say("comparing every object: content, size, metadata and tags")
        same(src.diff("prod/", "archive/2026/", other=dst))
        print(f"    {total} objects equal by the servers' own list")
        check(dst.admin("uploads")["count"] == 0, "a multipart upload was left open")
        for line in compare_with_rclone(lab, src, dst):
            print("    " + line)
        lab.check_store()
        code, out, err = lab.ctl("show", job)
        check(code == 0, f"show ended with {code}: {err}")
        print(out)
        for p in agents + [coordinator]:
            check(p.stop() == 0, f"{p.name} did not stop cleanly")
        again = writes_again(dst)
        say(f"done in {time.monotonic() - started:.0f} s: {total} objects migrated through two kills, {again} copied twice, 0 lost")
    bin_dir = os.path.relpath(BIN)
    print(f"""
Try next:
    {bin_dir}/xferctl generate > migrate.toml      a commented job to fill in
    {bin_dir}/xferctl run migrate.toml             the whole engine in one process, resumable
    {bin_dir}/xfer-coordinator --data-dir DATA     and, on each host: {bin_dir}/xfer-agent --state-dir STATE
    {bin_dir}/xferctl submit migrate.toml --wait   then: {bin_dir}/xferctl status --watch
    README.md                                            the rest
""")


def writes_again(dst):
    return dst.admin("writes?bucket=archive")["extra_writes"]


if __name__ == "__main__":
    try:
        main()
    except Failed as e:
        print(f"demo: {e}", file=sys.stderr)
        sys.exit(1)
