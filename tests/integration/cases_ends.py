#!/usr/bin/python3
"""cases_ends.py - where requests go: regions and redirects (C064)."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from lab import MIB, Lab, cases, check, run, same  # noqa: E402

PARTS = '[copy]\npart_size = "5MiB"\nmultipart_threshold = "5MiB"\n'


def side(name, url, server, more=""):
    who = {"source": "SRC", "destination": "DST"}[name]
    return f'[{name}]\nurl = "{url}"\nendpoint = "{server}"\naccess_key_env = "{who}_ID"\nsecret_key_env = "{who}_SECRET"\n{more}\n'


def job_file(lab, source, destination, text=""):
    path = os.path.join(lab.dir, f"job{lab.jobs}.toml")
    lab.jobs += 1
    with open(path, "w", encoding="utf-8") as f:
        f.write(source + destination + text)
    return path


def load(server):
    server.post("load", {"bucket": "src", "count": 30, "size": "1KiB", "pattern": "utf-8", "prefix": "k/"})
    server.put("src", "k/big", size=11 * MIB, seed=2)


def moved(lab, path, n=31):
    st = lab.wait_job(lab.submit(path), 60)
    check(st["state"] == "completed" and st["objects"]["copied"] == n, json.dumps(st))
    return st


def c064_a_bucket_in_another_region_is_found():
    with Lab("c064") as lab:
        one = lab.s3d("s3", "--bucket", "src", "--bucket", "dst", "--region", "eu-central-1")
        two = lab.s3d("s3b", "--bucket", "dst", "--region", "ap-northeast-1")
        load(one)
        lab.coordinator()
        lab.agent("one")
        for mode, to in (("server", one), ("relay", two)):
            text = PARTS.replace("[copy]", f'[copy]\nmode = "{mode}"')
            st = moved(lab, job_file(lab, side("source", "s3://src/k/", one.url), side("destination", f"s3://dst/{mode}/", to.url), text))
            same(one.diff("src/k/", f"dst/{mode}/", other=None if to is one else to))
            check(st["retries"] == 0, f"a region costs tries: {json.dumps(st)}")
        # One that is given is meant.
        for name in ("source", "destination"):
            more = {"source": "", "destination": "", name: 'region = "us-west-2"\n'}
            path = job_file(lab, side("source", "s3://src/k/", one.url, more["source"]), side("destination", "s3://dst/", two.url, more["destination"]))
            code, _, err = lab.ctl("submit", path)
            where = {"source": "eu-central-1", "destination": "ap-northeast-1"}[name]
            check(code == 2 and where in err and "us-west-2" in err and f"[{name}]" in err, f"exit {code}: {err}")


if __name__ == "__main__":
    run(cases(globals()))
