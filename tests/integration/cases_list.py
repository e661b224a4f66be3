#!/usr/bin/python3
"""cases_list.py - a listing is complete or the job is not: C019, C020, C022, C024."""

import json
import os
import random
import sys
import time
from urllib.parse import unquote_to_bytes

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from lab import Bench, cases, check, run, seed, wait_for  # noqa: E402

KEYS = 2500
PAGE = {"op": "ListObjectsV2", "query": "max-keys=1000"}  # probes ask for fewer keys


def buckets(names):
    return [x for n in names for x in ("--synth", f"{n}:{KEYS}:100:flat")]


def all_there(bench, bucket, st):
    """Every key once, whatever the listing went through."""
    o = st["objects"]
    check(o["listed"] == KEYS and o["copied"] == KEYS, f"{bucket}: {json.dumps(st)}")
    bench.same(f"{bucket}/", source=f"{bucket}/")
    n = len([r for r in bench.one.requests("CopyObject") if r["key"].startswith(f"{bucket}/")])
    check(n == KEYS, f"{bucket}: {n} copies of {KEYS} objects")


# Faults of page 2 that pass, with how often they come.
PASSING = {
    "five500": (5, {"status": 500, "code": "InternalError"}),
    "reset": (2, {"cut_after": 60000, "end": "rst"}),
    "cut": (2, {"cut_after": 60000, "end": "fin"}),
    "short": (2, {"cut_after": 60000, "chunked": True}),
    "tail": (1, {"cut_after": -3, "chunked": True}),
    "error200": (2, {"status": 200, "code": "InternalError"}),
    "empty200": (2, {"body": ""}),
    "notoken": (1, {"list": {"token": "none"}}),
}


def c019_a_page_that_was_cut_or_refused_is_asked_for_again():
    with Bench("c019", one=buckets(PASSING)) as b:
        jobs = {}
        for name, (times, action) in PASSING.items():
            b.one.faults(dict(PAGE, id=name, bucket=name, nth=2, count=times, action=action))
            jobs[name] = b.begin(f"{name}/", source=f"{name}/")
        for name, job in jobs.items():
            all_there(b, name, b.ended(job))
        for r in b.one.admin("faults"):
            check(r["fired"] == PASSING[r["id"]][0], f"a fault did not fire as often as planned: {r}")


# Faults of page 2 that stay.
LASTING = {
    "always500": {"status": 500, "code": "InternalError"},
    "alwayscut": {"cut_after": 60000, "chunked": True},
    "alwaysempty": {"body": ""},
    "always200": {"status": 200, "code": "AccessDenied", "message": "not this page"},
}


def c019_a_listing_that_cannot_be_finished_is_never_completed():
    with Bench("c019f", one=buckets(LASTING), coord_conf="[list]\ntries = 4\n") as b:
        jobs = {}
        for name, action in LASTING.items():
            b.one.faults(dict(PAGE, id=name, bucket=name, nth=2, action=action))
            jobs[name] = b.begin(f"{name}/", source=f"{name}/")
        for name, job in jobs.items():
            st = b.ended(job, want="failed", timeout=90)
            check(not st["listing"]["complete"] and st["exit_code"] not in (0, None), f"{name}: {json.dumps(st)}")
            check(st["objects"]["copied"] == 1000, f"{name}: what was found is copied: {json.dumps(st['objects'])}")
            text = json.dumps(b.show(job))
            check("list" in st["reason"] or "list" in text, f"{name}: nothing tells that the listing failed: {text}")
            check("obj-000000000999" in text, f"{name}: the last key is not named: {text}")


# Tokens and pages that lead nowhere; asking by the last key helps.
LOOPING = {
    "same": {"token": "same"},
    "constant": {"token": "constant"},
    "blank": {"token": "empty"},
    "none": {"token": "none"},
    "again": {"repeat_page": True},
}


def c020_a_listing_that_goes_in_circles_is_left_by_the_last_key():
    with Bench("c020", one=buckets(LOOPING)) as b:
        jobs = {}
        for name, dialect in LOOPING.items():
            b.one.faults(dict(PAGE, id=name, bucket=name, action={"list": dialect}))
            jobs[name] = b.begin(f"{name}/", source=f"{name}/")
        for name, job in jobs.items():
            all_there(b, name, b.ended(job))
            asked = [r for r in b.one.requests("ListObjectsV2") if r["bucket"] == name]
            check(len(asked) < 20, f"{name}: {len(asked)} requests for three pages")


def c020_a_listing_without_progress_fails_and_ends():
    stuck = {k: dict(v, ignore_start_after=True) for k, v in LOOPING.items() if k != "again"}
    with Bench("c020f", one=buckets(stuck)) as b:
        jobs = {}
        for name, dialect in stuck.items():
            b.one.faults(dict(PAGE, id=name, bucket=name, action={"list": dialect}))
            jobs[name] = b.begin(f"{name}/", source=f"{name}/")
        for name, job in jobs.items():
            st = b.ended(job, want="failed", timeout=60)
            check(not st["listing"]["complete"] and st["exit_code"] != 0, f"{name}: {json.dumps(st)}")
            asked = [r for r in b.one.requests("ListObjectsV2") if r["bucket"] == name]
            check(len(asked) < 20, f"{name}: {len(asked)} requests without progress")
            copies = [r["key"] for r in b.one.requests("CopyObject") if r["key"].startswith(f"{name}/")]
            check(len(copies) == len(set(copies)) and copies, f"{name}: {len(copies)} copies of {len(set(copies))} keys")
            said = " ".join(n["text"] for n in b.show(job)["notices"])
            check("obj-00000000" in said, f"{name}: no last key in {said!r}")


CONTROL = ["c\x01a", "c\x08b", "c\x1fc", "c\x0bd", "c\tT", "c\rR", "c\nN", "c\x7fD", "c\x1b[31mred", "normal", "\uffff", "a&<>\"'b"]


def c022_control_characters_in_keys_survive_every_form_of_listing():
    with Bench("c022") as b:
        jobs = {}
        for form in ("url", "raw", "charref"):
            for i, key in enumerate(CONTROL):
                b.one.put("src", f"{form}/{key}", f"{form} {i}")
            if form != "url":
                b.one.faults({"op": "ListObjectsV2", "query": f"prefix={form}", "action": {"list": {"encoding": form}}})
            for mode in ("server", "relay"):
                jobs[form, mode] = b.begin(f"{form}/", mode)
        for (form, mode), job in jobs.items():
            st = b.ended(job)
            check(st["objects"]["copied"] == len(CONTROL), f"{form} {mode}: {json.dumps(st['objects'])}")
            b.same(f"{form}/", mode)
        # A server that is asked for it never has to write what XML cannot hold.
        for s in (b.one, b.two):
            bare = [r for r in s.requests("ListObjectsV2") if "encoding-type=url" not in r["query"]]
            check(not bare, f"listings without encoding-type: {bare[:3]}")


def c022_control_characters_are_shown_escaped():
    with Bench("c022e") as b:
        for i, key in enumerate(CONTROL):
            b.one.put("src", f"c022/{key}", f"{i}")
        b.one.faults({"op": "CopyObject", "action": {"status": 403, "code": "AccessDenied", "message": "no"}})
        b.one.faults({"op": "PutObject", "action": {"status": 403, "code": "AccessDenied", "message": "no"}})
        st = b.work("c022/", text="[retry]\nattempts = 1\n", want="completed_with_failures")
        check(set(b.failures(st["id"])) == {f"c022/{k}" for k in CONTROL}, f"report: {b.failures(st['id']).keys()}")
        for args in (["report", st["id"]], ["report", st["id"], "--format", "json"], ["show", st["id"]], ["show", st["id"], "--json"]):
            out = b.ctl(*args)[1]
            raw = [c for c in out if (ord(c) < 32 and c not in "\r\n") or ord(c) == 127]
            check(not raw, f"{args} prints control characters: {raw}")
        for p in [b.coord, *b.agents]:
            check("\x08" not in p.tail(1 << 20) and "\x1b[31m" not in p.tail(1 << 20), f"{p.name} logs raw control characters")


SPACES = ["a b", "a+b", "a%20b", "a%2Bb", "100%.csv", "한/x", "한/y z+%2B"]


def c024_every_dialect_of_url_encoding_gives_the_same_keys():
    dialects = ("aws", "percent20", "raw_fields", "raw")
    with Bench("c024") as b:
        jobs = {}
        for d in dialects:
            for i, key in enumerate(SPACES):
                b.one.put("src", f"{d}/p+ %2F/{key}", f"{d} {i}")
            if d != "aws":
                b.one.faults({"op": "ListObjectsV2", "query": f"prefix={d}", "action": {"list": {"encoding": d}}})
            for mode in ("server", "relay"):
                jobs[d, mode] = b.begin(f"{d}/p+ %2F/", mode)
        for (d, mode), job in jobs.items():
            st = b.ended(job)
            check(st["objects"]["copied"] == len(SPACES), f"{d} {mode}: {json.dumps(st['objects'])}")
            b.same(f"{d}/", mode)


def c024_an_encoding_that_is_not_announced_is_found_out():
    with Bench("c024u") as b:
        for i, key in enumerate(SPACES):
            b.one.put("src", f"c024/{key}", f"{i}")
        b.one.put("src", "c024b/a b", "alone: no other key tells")
        b.one.faults({"op": "ListObjectsV2", "bucket": "src", "action": {"list": {"encoding": "unannounced"}}})
        jobs = {p: b.begin(p) for p in ("c024/", "c024b/")}
        for prefix, job in jobs.items():
            st = b.ended(job)
            check(st["objects"]["vanished"] == 0, f"keys were misread: {json.dumps(st['objects'])}")
            b.same(prefix)


SHAPES = ("flat", "hex", "dirs", "dates", "skew", "long", "utf-8")


def reported(bench, job):
    """Every key of a job, as often as it is queued."""
    rows = [json.loads(line) for line in bench.ctl("report", job, "--format", "json")[1].splitlines()]
    return sorted(unquote_to_bytes(r["key"]) if r.get("key_encoding") else r["key"].encode() for r in rows)


def test_each_shape_of_keys_is_listed_once_by_many_requests():
    synth = [x for s in SHAPES for x in ("--synth", f"{s}:20000:1KiB:{s}")]
    with Bench("shapes", one=(*synth, "--latency", "list=20"), agents=0) as b:
        done = 0
        for shape in SHAPES:
            job = b.begin("", source=f"{shape}/", to=f"{shape}/")
            wait_for(f"the listing of {shape}", lambda job=job: b.status(job)["listing"]["complete"], 60)
            check(reported(b, job) == b.one.keys(shape), f"{shape}: not each key once")
            requests = b.status(job)["listing"]["requests"]
            check(requests <= 20 * 3, f"{shape}: {requests} requests for 20 pages")
            shards = b.coord.tail(1 << 20).count("event=listing.done")
            check(shards > done + 1, f"{shape}: one page after the other")
            done = shards
            b.ctl("cancel", job)
            b.ended(job, "cancelled")


def test_a_listing_that_is_killed_twenty_times_has_each_key_once():
    rng = random.Random(seed())
    with Bench("listkill", one=("--synth", "src:60000:1KiB:skew", "--latency", "list=40"), agents=0) as b:
        job = b.begin("")
        for n in range(20):
            time.sleep(rng.uniform(0.0, 0.15))  # at any moment of it, not when something is seen
            if not b.status(job)["listing"]["complete"]:
                b.coord.kill()
                b.coord.start()
                print(f"killed at {b.status(job)['listing']['keys']} keys, {b.status(job)['listing']['shards_open']} shards")
        wait_for("the listing", lambda: b.status(job)["listing"]["complete"], 60)
        check(reported(b, job) == b.one.keys("src"), "not each key once")
        b.ctl("cancel", job)
        b.ended(job, "cancelled")


def test_a_server_that_ignores_start_after_is_listed_in_one_row():
    with Bench("ignores", one=("--synth", "src:8000:1KiB:flat", "--latency", "list=20")) as b:
        b.one.faults({"op": "ListObjectsV2", "action": {"list": {"ignore_start_after": True}}})
        st = b.work("")
        check(st["objects"]["copied"] == 8000, json.dumps(st))
        check("listing.serial" in b.coord.tail(1 << 20), "it was not found out")
        b.same("")


def test_a_server_that_knows_only_the_first_listing_is_listed():
    with Bench("v1", one=("--synth", "src:8000:1KiB:dirs", "--latency", "list=20")) as b:
        b.one.faults({"op": ["ListObjectsV2", "ListObjects"], "action": {"list": {"v1_only": True}}})
        st = b.work("")
        check(st["objects"]["copied"] == 8000, json.dumps(st))
        check(b.one.count("ListObjects") > 0, "the first listing was not used")
        b.same("")


if __name__ == "__main__":
    run(cases(globals()))
