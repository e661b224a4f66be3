#!/usr/bin/python3
"""cases_key.py - keys are bytes: C032, C033, C035, C037, C038, C041."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from lab import MIB, MODES, Bench, cases, check, run, same  # noqa: E402

SLASHES = ["/1.txt", "//x", "a//b", "a/b", "a//", "a/b/", "2026/1//1d8c", "/", "//"]
DOTS = [".", "..", "d/./e", "d/../e", "e", "d/e", "./e", "../e", "d/..", "d/.", "...", ".a/..b"]
SIGNS = ["c++", "100%", "a b", "a%2Fb", "x?v=1", "x#y", "Pose®.jpg", "22:24:03+0000.jpg", "a&b=c", "k?versionId=abc", "~-_.!*'()", "a;b,c@d$e", "back\\slash", "{x}|^`"]


def whole_bucket(name, keys, prefixes=("",)):
    """Bucket `name` below each prefix, in both modes, to a place of its own; every body tells its key."""
    with Bench(name, one=["--bucket", name]) as b:
        for key in keys:
            b.one.put(name, key, f"the body of {key!r}")
        jobs = []
        for mode in MODES:
            for i, prefix in enumerate(prefixes):
                jobs.append((mode, prefix, f"{mode}{i}/", b.begin("", mode, to=f"{mode}{i}/", source=f"{name}/{prefix}")))
        for mode, prefix, to, job in jobs:
            st = b.ended(job)
            n = len([k for k in keys if k.startswith(prefix)])
            check(st["objects"]["listed"] == n, f"{mode} {prefix!r}: {json.dumps(st['objects'])}")
            server = b.to(mode)
            got = server.keys("dst", to)
            names = sorted((to + k[len(prefix) :]).encode() for k in keys if k.startswith(prefix))
            check(got == names, f"{mode} {prefix!r}: {got} is not {names}")
            check(st["objects"]["copied"] == n, f"{mode} {prefix!r}: {json.dumps(st['objects'])}")
            same(b.one.diff(f"{name}/{prefix}", f"dst/{to}", other=None if mode == "server" else b.two))
            check(mode != "server" or st["bytes"]["through_agents"] == 0, f"{prefix!r} went by relay: {json.dumps(st['bytes'])}")
        check(len(b.one.keys(name)) == len(keys), "the source changed")


def c032_slashes_at_any_place_are_copied_byte_for_byte():
    whole_bucket("c032", SLASHES, ("", "/", "a/", "a//", "2026/1/"))


def c032_a_whole_bucket_arrives_with_the_same_keys():
    with Bench("c032w", one=["--bucket", "c032"]) as b:
        for key in SLASHES + DOTS:
            b.one.put("c032", key, f"the body of {key!r}")
        for mode in MODES:
            b.work("", mode, source="c032/")
            check(b.to(mode).keys("dst") == b.one.keys("c032"), f"{mode}: {b.to(mode).keys('dst')}")
            b.same("", mode, source="c032/")


def c033_dot_segments_are_no_path():
    whole_bucket("c033", DOTS, ("", "d/", "d/.", "."))


def c035_any_character_in_a_copy_source_is_found():
    whole_bucket("c035", SIGNS)


def c035_large_objects_too():
    with Bench("c035p") as b:
        for key in SIGNS:
            b.one.put("src", f"c035/{key}", size=11 * MIB, seed=len(key))
        for mode in MODES:
            st = b.work("c035/", mode, '[copy]\npart_size = "5MiB"\n')
            b.same("c035/", mode)
            check(mode != "server" or st["bytes"]["through_agents"] == 0, f"went by relay: {json.dumps(st['bytes'])}")


def c035_a_server_that_takes_the_copy_source_literally_is_worked_around():
    with Bench("c035l") as b:
        for key in SIGNS + ["plain"]:
            b.one.put("src", f"c035/{key}", f"the body of {key!r}")
            b.one.put("src", f"c035/{key}.big", size=11 * MIB, seed=len(key))
        b.one.faults({"op": ["CopyObject", "UploadPartCopy"], "action": {"literal_copy_source": True}})
        st = b.work("c035/", text='[copy]\npart_size = "5MiB"\n')
        b.same("c035/")
        check(st["objects"]["copied"] == 2 * len(SIGNS) + 2 and st["objects"]["vanished"] == 0, json.dumps(st["objects"]))
        check(b.show(st["id"])["notices"], "nothing tells what the server cannot do")


WILD = ["junk*star/1", "junkXstar/1", "q?.wav", "q1.wav", "[8-0]x", "8x", "{a,b}", "a", "back\\slash", "back/slash"]


def c037_wildcards_in_a_prefix_are_literal():
    whole_bucket("c037", WILD, ("", "junk*star/", "q?", "[8-0]", "{a", "back\\"))


def c037_a_pattern_reaches_a_wildcard_by_an_escape():
    with Bench("c037e", one=["--bucket", "c037"]) as b:
        for key in WILD:
            b.one.put("c037", key, f"the body of {key!r}")
        for i, (pattern, keys) in enumerate((("q?.wav", ["q1.wav", "q?.wav"]), ("q\\?.wav", ["q?.wav"]), ("junk\\*star/*", ["junk*star/1"]), ("\\[8-0\\]x", ["[8-0]x"]))):
            b.work("", source="c037/", to=f"e{i}/", text=f"[select]\ninclude = [{json.dumps(pattern)}]\n")
            got = b.one.keys("dst", f"e{i}/")
            check(got == sorted(f"e{i}/{k}".encode() for k in keys), f"{pattern}: {got}")


def c038_a_prefix_is_a_string_and_no_slash_is_added():
    keys = ["path/a", "path2/b", "path", "path-x", "pat"]
    with Bench("c038", one=["--bucket", "c038"]) as b:
        for key in keys:
            b.one.put("c038", key, f"the body of {key!r}")
        for i, (src, dst) in enumerate((s, d) for s in ("path", "path/") for d in ("out", "out/")):
            path = b.toml(b.one, b.one, f"s3://c038/{src}", f"s3://dst/{i}/{dst}")
            code, out, err = b.ctl("submit", path)
            check(code == 0, f"{src} to {dst}: exit {code}: {err}{out}")
            check(f"begins with '{src}'" in err and err.count("for example") == 2, f"submit does not tell what it takes: {err}")
            check(("warning" in err) == (src == "path"), f"{src}: a warning, or none: {err}")
            st = b.ended(out.split()[-1])
            taken = [k for k in keys if k.startswith(src)]
            check(st["objects"]["listed"] == st["listing"]["keys"] == len(taken), f"{src}: {json.dumps(st)}")
            got = b.one.keys("dst", f"{i}/")
            check(got == sorted(f"{i}/{dst}{k[len(src):]}".encode() for k in taken), f"{src} to {dst}: {got}")


def c041_directory_keys_are_objects_with_all_they_carry():
    kept = {"Content-Type": "application/x-directory", "x-amz-meta-mode": "040755"}
    with Bench("c041") as b:
        b.one.put("src", "c041/images/", "", headers=kept)
        b.one.put("src", "c041/path/to/dir/", "1", headers=kept)
        b.one.put("src", "c041/path/to/dir/400.html", "a page")
        b.one.put("src", "c041/img_$folder$", "")
        b.one.put("src", "c041/", "", headers=kept)  # the prefix itself
        b.one.put("src", "c041/large/", size=12 * MIB, seed=41, headers=kept)
        for mode in MODES:
            st = b.work("c041/", mode, '[copy]\npart_size = "5MiB"\n')
            check(st["objects"]["copied"] == 6, f"{mode}: {json.dumps(st['objects'])}")
            b.same("c041/", mode)
            s3 = b.to(mode).boto()
            for key in ("images/", "path/to/dir/", "large/", ""):
                head = s3.head_object(Bucket="dst", Key=f"c041/{key}")
                check(head["ContentType"] == kept["Content-Type"] and head["Metadata"] == {"mode": "040755"}, f"{mode} {key!r}: {head}")


if __name__ == "__main__":
    run(cases(globals()))
