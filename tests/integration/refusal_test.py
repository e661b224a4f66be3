#!/usr/bin/python3
"""refusal_test.py - what is wrong is refused with its place, a remedy and the right exit code; nothing is lost."""

import json
import os
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from lab import BIN, ENDS, Lab, cases, check, run, same, wait_for  # noqa: E402


def refused(lab, args, code, *texts, env=None):
    got, out, err = lab.ctl(*args, env=env)
    check(got == code, f"xferctl {args}: exit {got}, not {code}: {err}{out}")
    for t in texts:
        check(t.lower() in err.lower(), f"xferctl {args}: the error does not say {t!r}: {err}")
    return err


def daemon(lab, argv, *texts):
    r = subprocess.run(argv, env=lab.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    lab.no_secret(f"what {argv[0]} printed", r.stdout + r.stderr)
    check(r.returncode == 2, f"{argv}: exit {r.returncode}, not 2: {r.stderr}")
    for t in texts:
        check(t.lower() in r.stderr.lower(), f"{argv}: the error does not say {t!r}: {r.stderr}")


def test_bad_jobs_are_refused_with_their_place():
    with Lab("badjob") as lab:
        s3 = lab.s3d("s3", "--synth", "src:10:1KiB:flat", "--bucket", "dst")
        lab.coordinator()
        path = lab.toml(s3, s3, "s3://src/", "s3://dst/", "[copy]\nmood = \"auto\"\n")
        refused(lab, ["submit", path], 2, os.path.basename(path), "mood")
        path = lab.toml(s3, s3, "s3://src/", "s3://dst/", "[copy]\npart_size = \"1MiB\"\n")
        refused(lab, ["submit", path], 2, os.path.basename(path), "part_size", "5MiB")
        path = lab.toml(s3, s3, "s3://src/", "s3://dst/", "[sync]\ndelete = \"always\"\n")
        refused(lab, ["submit", path], 2, "not supported")
        with open(path, "w", encoding="utf-8") as f:
            f.write("[source\n")
        refused(lab, ["submit", path], 2, os.path.basename(path) + ":1")
        refused(lab, ["submit", os.path.join(lab.dir, "absent.toml")], 2, "absent.toml")
        refused(lab, ["submitt", path], 2, "submit")
        refused(lab, ["submit", "--no-such", path], 2, "no-such")
        check(json.loads(lab.ctl("list", "--json")[1]) in ([], {"jobs": []}), "a refused job was kept")


def c079_wrong_buckets_keys_and_endpoints_have_their_exit_codes():
    with Lab("wrong") as lab:
        s3 = lab.s3d("s3", "--synth", "src:10:1KiB:flat", "--bucket", "dst", "--bucket", "nothing")
        lab.coordinator()
        refused(lab, ["submit", lab.toml(s3, s3, "s3://absent/", "s3://dst/")], 2, "absent", "bucket")
        refused(lab, ["submit", lab.toml(s3, s3, "s3://src/", "s3://missing/")], 2, "missing", "bucket")
        refused(lab, ["submit", lab.toml(s3, s3, "s3://nothing/", "s3://dst/")], 2, "nothing", "allow_empty")
        refused(lab, ["submit", lab.toml(s3, s3, "s3://src/none/", "s3://dst/")], 2, "none/", "allow_empty")
        path = lab.toml(s3, s3, "s3://src/", "s3://dst/")
        with open(path, encoding="utf-8") as f:
            text = f.read()
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.replace('"SRC_ID"', '"DST_WRONG"'))
        refused(lab, ["submit", path], 2, "DST_WRONG")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.replace(f":{s3.port}", ":1"))
        refused(lab, ["submit", path], 5, "127.0.0.1:1")
        check(json.loads(lab.ctl("list", "--json")[1]) in ([], {"jobs": []}), "a refused job was kept")


def test_wrong_keys_are_refused():
    with Lab("keys") as lab:
        s3 = lab.s3d("s3", "--synth", "src:10:1KiB:flat", "--bucket", "dst", keys=(("OTHER", "OTHERSECRET"),))
        lab.coordinator()
        refused(lab, ["submit", lab.toml(s3, s3, "s3://src/", "s3://dst/")], 2, "s3://src")


def c016_a_job_into_itself_is_refused():
    with Lab("self") as lab:
        s3 = lab.s3d("s3", "--bucket", "box")
        s3.put("box", "x/1", "1")
        lab.coordinator()
        refused(lab, ["submit", lab.toml(s3, s3, "s3://box/x/", "s3://box/x/copy/")], 2, "overlap")
        refused(lab, ["submit", lab.toml(s3, s3, "s3://box/x/", "s3://box/x/")], 2, "overlap")
        refused(lab, ["submit", lab.toml(s3, s3, "s3://box/", "s3://box/y/")], 2, "overlap")


def c009_a_forced_server_copy_across_endpoints_is_refused():
    with Lab("forced") as lab:
        a = lab.s3d("s3", "--bucket", "data")
        b = lab.s3d("s3b", "--bucket", "data")
        a.put("data", "k", "right")
        b.put("data", "k", "WRONG")
        lab.coordinator()
        lab.agent("a1")
        path = lab.toml(a, b, "s3://data/", "s3://data/out/", "[copy]\nmode = \"server\"\n")
        refused(lab, ["submit", path], 2, a.url, b.url)
        st = lab.wait_job(lab.submit(lab.toml(a, b, "s3://data/", "s3://data/out/")), 60)
        check(st["state"] == "completed" and st["bytes"]["through_agents"] == 5, json.dumps(st))
        same(a.diff("data/", "data/out/", other=b))


def test_no_coordinator_is_exit_5():
    with Lab("nobody") as lab:
        refused(lab, ["status"], 5, lab.bus_url)


def test_daemons_that_cannot_start_say_why():
    with Lab("daemons") as lab:
        c = lab.coordinator()
        prog = os.path.join(BIN, "xfer-coordinator")
        other = os.path.join(lab.dir, "other")
        daemon(lab, [prog, "--data-dir", os.path.join(lab.dir, "data"), "--listen", "tcp://127.0.0.1:0", "--http", "127.0.0.1:0"], "data", "another")
        daemon(lab, [prog, "--data-dir", other, "--listen", lab.bus_url, "--http", "127.0.0.1:0"], str(lab.bus_port), "in use")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            port = s.getsockname()[1]
            daemon(lab, [prog, "--data-dir", other, "--listen", "tcp://127.0.0.1:0", "--http", f"127.0.0.1:{port}"], str(port), "in use")
        daemon(lab, [prog, "--data-dir", other, "--listen", "tcp://0.0.0.0:7999"], "tls+tcp")
        daemon(lab, [prog, "--data-dir", "/proc/no/such", "--listen", "tcp://127.0.0.1:0"], "/proc/no")
        daemon(lab, [prog, "--data-dir", os.path.join(lab.dir, "job"), "--config", os.path.join(lab.dir, "no.toml")], "no.toml")
        daemon(lab, [prog, "--bogus"], "bogus")
        daemon(lab, [prog, "--data-dir", other, "--ready-fd", "77"], "--ready-fd 77", "not open")
        with open(os.path.join(lab.dir, "c.toml"), "w", encoding="utf-8") as f:
            f.write("[lease]\nttl = \"1ms\"\n")
        daemon(lab, [prog, "--data-dir", other, "--config", os.path.join(lab.dir, "c.toml")], "c.toml:2", "ttl")
        lab.agent("a1")
        agent = os.path.join(BIN, "xfer-agent")
        daemon(lab, [agent, "--coordinator", lab.bus_url, "--id", "a2", "--state-dir", os.path.join(lab.dir, "agent-a1")], "agent-a1", "another")
        daemon(lab, [agent, "--coordinator", lab.bus_url, "--id", "a1", "--state-dir", os.path.join(lab.dir, "twin")], "a1")
        daemon(lab, [agent, "--coordinator", lab.bus_url, "--id", "a3", "--state-dir", os.path.join(lab.dir, "a3"), "--ready-fd", "77"], "--ready-fd 77")
        for bad in ("a b", "a\n", "a/b", "\u00e9", "x" * 129):
            daemon(lab, [agent, "--coordinator", lab.bus_url, "--id", bad, "--state-dir", os.path.join(lab.dir, "bad")], "id")
        check(c.alive(), "the coordinator did not outlive a second one")


def full_disk(config, words):
    """A job whose queue meets the end of a 3 MiB file system, and goes on when there is room."""
    with Lab("full") as lab:
        data = os.path.join(lab.dir, "data")
        os.mkdir(data)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", data], capture_output=True, check=False)
        check(mounted.returncode == 0, f"cannot mount a small tmpfs: {mounted.stderr.decode()}")
        try:
            s3 = lab.s3d("s3", "--synth", "src:40000:1KiB:long", "--bucket", "dst")
            with open(os.path.join(lab.dir, "c.toml"), "w", encoding="utf-8") as f:
                f.write(config)
            c = lab.coordinator("--config", os.path.join(lab.dir, "c.toml"))
            job = lab.submit(lab.toml(s3, s3, "s3://src/", "s3://dst/"))
            wait_for("a word about the disk", lambda: any(w in c.tail(20000) for w in words), 60)
            check(c.alive(), "the coordinator died of a full disk")
            st = lab.status(job)
            check(st and st["state"] not in ENDS and not st["listing"]["complete"], json.dumps(st))
            subprocess.run(["mount", "-o", "remount,size=300m", data], check=True)
            lab.agent("a1")
            st = lab.wait_job(job, 120)
            check(st["state"] == "completed" and st["objects"]["copied"] == 40000, json.dumps(st))
            same(s3.diff("src/", "dst/"))
            check(c.stop() == 0, "the coordinator did not stop cleanly")
            lab.check_store()
        finally:
            for p in lab.procs:
                p.kill()
            subprocess.run(["umount", data], check=False)


def test_a_listing_waits_for_room_and_goes_on():
    full_disk("", ("store.max_bytes",))


def test_a_full_disk_under_the_store_loses_nothing():
    full_disk('[store]\nmax_bytes = "1GiB"\n', ("disk is full", "code=disk", "No space"))


if __name__ == "__main__":
    run(cases(globals()))
