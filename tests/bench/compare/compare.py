#!/usr/bin/python3
"""xfer beside its peers on the same work: wall time, CPU, memory, requests.

Each case is a bucket of our own S3 server and a way to move it; xfer (a coordinator and one agent at their defaults) and each
peer that is on PATH do it by turns, RUNS times, and medians are printed. CPU is that of the client's processes, without the server's.
The results go to build/bench: compare.json, and a picture for each measure.

    compare.py [--quick] [--runs N] [--case REGEX] [--tool REGEX] [--list]
"""

import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.join(ROOT, "tests", "lab"))
from lab import BIN, DST_KEY, DST_SECRET, SRC_KEY, SRC_SECRET, Lab, check  # noqa: E402

OUT = os.path.join(ROOT, "build", "bench")
LATENCY = "get=20,put=40,copy=40"
FAR = "get=20,put=40,copy=670"


class Case:
    """A bucket and a way: objects x size, by server copy or relay, with a modelled latency. rate: bytes/s of one copy request."""

    def __init__(self, name, count, quick, size, mode, latency="", peers=True, rate=""):
        self.name, self.count, self.quick, self.size, self.mode = name, count, quick, size, mode
        self.latency, self.peers, self.rate = latency, peers, rate


CASES = [
    Case("copy-1k", 200_000, 20_000, "1KiB", "server"),
    Case("copy-1k-40ms", 200_000, 50_000, "1KiB", "server", LATENCY),
    Case("copy-256k", 4_000, 2_000, "256KiB", "server"),
    Case("copy-256k-40ms", 4_000, 2_000, "256KiB", "server", LATENCY),
    Case("copy-256k-far", 4_000, 2_000, "256KiB", "server", FAR),
    Case("copy-32m-40ms", 200, 50, "32MiB", "server", LATENCY),
    Case("copy-1g-40ms", 20, 5, "1GiB", "server", LATENCY),
    Case("copy-5g-40ms", 4, 1, "5GiB", "server", LATENCY),
    Case("copy-100g", 1, 1, "100GiB", "server", LATENCY, False, "4928307"),
    Case("relay-256k", 4_000, 1_000, "256KiB", "relay"),
    Case("relay-256k-40ms", 4_000, 1_000, "256KiB", "relay", LATENCY),
    Case("relay-32m", 100, 20, "32MiB", "relay"),
    Case("relay-1g", 4, 1, "1GiB", "relay"),
    Case("relay-5g", 1, 0, "5GiB", "relay"),
]


def cpu_of_children():
    u = resource.getrusage(resource.RUSAGE_CHILDREN)
    return u.ru_utime + u.ru_stime


def servers(lab, case, count):
    """Source and destination; one server for a server copy."""
    delay = ["--latency", case.latency] if case.latency else []
    rate = ["--copy-rate", case.rate] if case.rate else []
    if count == 1:
        data = ["--object", f"src/obj-000000000000:{case.size}"]
    else:
        data = ["--synth", f"src:{count}:{case.size}:flat"]
    # A real service does not read the bytes of a copy again: above 1 MiB made-up objects have digests for ETags.
    etags = ["--true-etag-max", "1MiB"] if case.mode == "server" else []
    src = lab.s3d("source", *data, *etags, "--bucket", "dst", "--bucket", "floor", *delay, *rate, "--key", "AK:SK")
    dst = src if case.mode == "server" else lab.s3d("destination", "--bucket", "dst", *delay)
    return src, dst


class Xfer:
    name = "xfer"

    @staticmethod
    def is_there():
        return True

    @staticmethod
    def run(lab, case, src, dst):
        daemons = [lab.coordinator(), lab.agent("one")]
        began = [p.cpu_s() for p in daemons]
        start = time.monotonic()
        job = lab.submit(lab.toml(src, dst, "s3://src/", "s3://dst/", f'[copy]\nmode = "{case.mode}"\n'))
        st = lab.wait_job(job, 3600, every=0.02)
        wall = time.monotonic() - start
        check(st["state"] == "completed", json.dumps(st))
        cpu = sum(p.cpu_s() - b for p, b in zip(daemons, began))
        return wall, cpu, sum(p.peak_kib() for p in daemons)


class Peer:
    """A program that ends when its work is done."""

    @classmethod
    def is_there(cls):
        return shutil.which(cls.name) is not None

    @classmethod
    def run(cls, lab, case, src, dst):
        argv = cls.argv(case, src, dst)
        env = dict(lab.env, **cls.env(src, dst))
        began, start = cpu_of_children(), time.monotonic()
        log = os.path.join(lab.dir, cls.name + ".log")
        with open(log, "wb") as errors, subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=errors) as p:
            peak = 0
            while p.poll() is None:
                peak = max(peak, peak_of(p.pid))
                time.sleep(0.05)
        wall = time.monotonic() - start
        with open(log, encoding="utf-8", errors="replace") as errors:
            check(p.returncode == 0, f"{cls.name} ended with {p.returncode}: {errors.read()[-2000:]}")
        return wall, cpu_of_children() - began, peak


def peak_of(pid):
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            return int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1))
    except (OSError, AttributeError):
        return 0


class Rclone(Peer):
    name = "rclone"

    @staticmethod
    def env(src, dst):
        env = {}
        for name, url, key, secret in (("SRC", src.url, SRC_KEY, SRC_SECRET), ("DST", dst.url, DST_KEY, DST_SECRET)):
            part = f"RCLONE_CONFIG_{name}_"
            env.update({part + "TYPE": "s3", part + "PROVIDER": "Other", part + "ENDPOINT": url, part + "ACCESS_KEY_ID": key,
                        part + "SECRET_ACCESS_KEY": secret, part + "NO_CHECK_BUCKET": "true", part + "FORCE_PATH_STYLE": "true"})
        return env

    @staticmethod
    def argv(case, src, dst):
        to = "SRC:dst" if case.mode == "server" else "DST:dst"
        return ["rclone", "copy", "--config", "/dev/null", "--transfers", "64", "--checkers", "64", "--fast-list", "SRC:src", to]


class S5cmd(Peer):
    name = "s5cmd"

    @classmethod
    def is_there(cls):
        return shutil.which("s5cmd") is not None

    @staticmethod
    def env(src, dst):
        return {"AWS_ACCESS_KEY_ID": SRC_KEY, "AWS_SECRET_ACCESS_KEY": SRC_SECRET, "AWS_REGION": "us-east-1"}

    @staticmethod
    def argv(case, src, dst):
        return ["s5cmd", "--endpoint-url", src.url, "--log", "error", "cp", "s3://src/*", "s3://dst/"]


def can_do(tool, case):
    """s5cmd copies within one endpoint only."""
    return tool is Xfer or (case.peers and (tool is not S5cmd or case.mode == "server"))


def floor_of(src, count):
    """The bare loop's cost of a copy request, beside the 1 KiB case."""
    program = os.path.join(BIN, "floor")
    out = subprocess.run([program, src.url.removeprefix("http://"), str(count), "64"], capture_output=True, text=True, check=True)
    return json.loads(out.stdout)["cpu_us_each"]


def one_run(tool, case, count):
    with Lab("bench") as lab:
        src, dst = servers(lab, case, count)
        wall, cpu, peak = tool.run(lab, case, src, dst)
        left = src.diff("src/", "dst/", other=None if dst is src else dst)
        check(left["missing"]["count"] == 0 and left["different"]["count"] == 0, f"{tool.name} lost objects: {json.dumps(left)[:500]}")
        counters = [s.admin("counters") for s in {src, dst}]
        row = {
            "wall_s": wall, "cpu_s": cpu, "peak_mib": peak / 1024,
            "requests": sum(c["requests"] for c in counters), "connections": sum(c["connections"] for c in counters),
        }
        if tool is Xfer and case.name == "copy-1k":
            row["floor_us"] = floor_of(src, count)
        return row


def measure(case, tools, runs, quick):
    count = case.quick if quick else case.count
    rows = {t.name: [] for t in tools if can_do(t, case)}
    for _ in range(runs):
        for t in tools:  # by turns, so that a slow minute of the machine meets all
            if can_do(t, case):
                rows[t.name].append(one_run(t, case, count))
    out = []
    for name, got in rows.items():
        row = {k: statistics.median(r[k] for r in got) for k in got[0]}
        row.update(case=case.name, tool=name, count=count, size=case.size, us_each=row["cpu_s"] * 1e6 / count)
        out.append(row)
    return out


def show(rows):
    mine = next(r for r in rows if r["tool"] == "xfer")
    for r in rows:
        ratio = "" if r is mine else f"  wall x{r['wall_s'] / mine['wall_s']:.1f}  CPU x{r['cpu_s'] / max(mine['cpu_s'], 0.01):.1f}"
        print(f"{r['case']:16} {r['tool']:7} {r['count']:7} x {r['size']:7} {r['wall_s']:8.2f} s {r['cpu_s']:8.2f} CPU s "
              f"{r['us_each']:10.1f} us each {r['peak_mib']:7.0f} MiB {r['requests']:8.0f} requests {r['connections']:5.0f} conns{ratio}", flush=True)
        if "floor_us" in r:
            print(f"{'':16} a bare libcurl loop: {r['floor_us']:.1f} us each; xfer / loop = {r['us_each'] / r['floor_us']:.2f}", flush=True)


def picture(rows, measure_name, title):
    """A bar for each case and tool; needs gnuplot."""
    if shutil.which("gnuplot") is None:
        print("no gnuplot: no pictures")
        return
    tools = sorted({r["tool"] for r in rows}, key=lambda t: t != "xfer")
    names = list(dict.fromkeys(r["case"] for r in rows))
    data = os.path.join(OUT, measure_name + ".dat")
    with open(data, "w", encoding="utf-8") as f:
        f.write("case " + " ".join(tools) + "\n")
        for n in names:
            value = {r["tool"]: r[measure_name] for r in rows if r["case"] == n}
            f.write(n + " " + " ".join(str(value.get(t, "?")) for t in tools) + "\n")
    plot = ", ".join(f"'{data}' using {i + 2}{':xtic(1)' if i == 0 else ''} title '{t}'" for i, t in enumerate(tools))
    script = (f"set terminal svg size 1100,520 dynamic; set output '{OUT}/{measure_name}.svg'; set style data histogram;"
              "set style fill solid 0.8; set logscale y; set xtics rotate by -35; set grid y; set datafile missing '?';"
              f"set ylabel '{title}'; plot {plot}")
    subprocess.run(["gnuplot", "-e", script], check=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--quick", action="store_true", help="smaller buckets, one run")
    ap.add_argument("--runs", type=int, default=0, help="runs of each tool (3; 1 with --quick)")
    ap.add_argument("--case", default="", help="only cases whose name matches")
    ap.add_argument("--tool", default="", help="only tools whose name matches; xfer always")
    ap.add_argument("--list", action="store_true", help="print the cases and end")
    args = ap.parse_args()
    cases = [c for c in CASES if re.search(args.case, c.name) and not (args.quick and c.quick == 0)]
    if args.list:
        print("\n".join(f"{c.name:16} {c.count} x {c.size} {c.mode} {c.latency}" for c in cases))
        return
    tools = [Xfer] + [t for t in (Rclone, S5cmd) if t.is_there() and re.search(args.tool, t.name)]
    os.makedirs(OUT, exist_ok=True)
    rows = []
    for case in cases:
        got = measure(case, tools, args.runs or (1 if args.quick else 3), args.quick)
        show(got)
        rows += got
        with open(os.path.join(OUT, "compare.json"), "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=1)
    for name, title in (("wall_s", "wall time, s"), ("cpu_s", "CPU time, s"), ("peak_mib", "peak memory, MiB")):
        picture(rows, name, title)


main()
