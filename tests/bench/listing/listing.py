#!/usr/bin/python3
"""listing.py - how fast a source is listed into the store, by the shape of its keys; a table and build/bench/listing.json.

A coordinator without agents lists a made-up bucket of tests/s3d. `serial` is what one request after the other takes at least.
"""

import argparse
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "lab"))
from lab import ROOT, Lab, check  # noqa: E402

SHAPES = ("flat", "hex", "dirs", "dates", "skew")
# Shape, part of --keys, latency in ms: long and utf-8 keys are a tenth, the last line is what the programs cost.
CASES = [*((s, 1.0, 60) for s in SHAPES), ("long", 0.1, 60), ("utf-8", 0.1, 60), ("flat", 1.0, 0)]
HEAD = ("keys", "shape", "latency", "wall", "serial", "keys/s", "requests", "a page", "CPU us/key", "peak MiB")


def listed(shape, keys, latency):
    args = ["--latency", f"list={latency}"] if latency else []
    with Lab("listbench") as lab:
        s3 = lab.s3d("s3", "--synth", f"src:{keys}:1KiB:{shape}", "--bucket", "dst", *args)
        coord = lab.coordinator()
        cpu, begin = coord.cpu_s(), time.monotonic()
        job = lab.submit(lab.toml(s3, s3, "s3://src/", "s3://dst/"))
        while not (st := lab.status(job))["listing"]["complete"]:
            check(st["state"] in ("queued", "running"), json.dumps(st))
            time.sleep(0.02)
        wall, cpu = time.monotonic() - begin, coord.cpu_s() - cpu
        check(st["objects"]["listed"] == keys, f"{shape}: {st['objects']['listed']} of {keys} keys")
        lab.ctl("cancel", job)
        pages, requests = keys / 1000, st["listing"]["requests"]
        return {
            "shape": shape, "keys": keys, "latency_ms": latency, "wall_s": wall, "serial_s": pages * latency / 1000, "keys_s": keys / wall,
            "requests": requests, "requests_a_page": requests / pages, "cpu_us_a_key": cpu / keys * 1e6, "peak_mib": coord.peak_kib() / 1024,
        }  # fmt: skip


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--keys", type=int, default=1000000)
    p.add_argument("--shape", action="append", help="only this shape; may be given again")
    p.add_argument("--quick", action="store_true", help="a tenth of the keys")
    o = p.parse_args()
    print("".join(f"{h:>12}" for h in HEAD))
    rows = []
    for shape, part, latency in CASES:
        if o.shape and shape not in o.shape:
            continue
        r = listed(shape, int(o.keys * part * (0.1 if o.quick else 1)), latency)
        rows.append(r)
        cells = (
            r["keys"], shape, f"{latency} ms", f"{r['wall_s']:.2f} s", f"{r['serial_s']:.0f} s", f"{r['keys_s']:.0f}", r["requests"],
            f"{r['requests_a_page']:.2f}", f"{r['cpu_us_a_key']:.2f}", f"{r['peak_mib']:.0f}",
        )  # fmt: skip
        print("".join(f"{c:>12}" for c in cells), flush=True)
    out = os.path.join(ROOT, "build", "bench")
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "listing.json"), "w", encoding="utf-8") as f:
        json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()
