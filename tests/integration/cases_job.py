#!/usr/bin/python3
"""cases_job.py - results, exit codes, resuming, stopping: C079, C080, C082, C085, C087."""

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from lab import BIN, MIB, Bench, Lab, cases, check, invariant_1, run, same, wait_for  # noqa: E402
from proxy import Proxy  # noqa: E402

PARTS = '[copy]\npart_size = "5MiB"\nmultipart_threshold = "5MiB"\n'


class Ctl(subprocess.Popen):
    """xferctl as a process of its own; what communicate() gives is searched for secrets."""

    def __init__(self, lab, args, **kw):
        kw = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **kw}
        super().__init__([os.path.join(BIN, "xferctl"), *args], env=lab.env, stdin=subprocess.DEVNULL, cwd=lab.dir, **kw)
        self.lab = lab

    def communicate(self, *args, **kw):
        got = super().communicate(*args, **kw)
        for text in got:
            self.lab.no_secret("what xferctl printed", text or b"")
        return got


def ctl(lab, args, **kw):
    return Ctl(lab, args, **kw)


def c079_exit_codes_follow_what_happened():
    with Bench("c079") as b:
        b.one.post("load", {"bucket": "src", "count": 20, "size": "1KiB", "pattern": "flat", "prefix": "c079/"})
        path = b.toml(b.one, b.one, "s3://src/c079/", "s3://dst/c079/")
        code, out, err = b.ctl("submit", path, "--wait")
        check(code == 0, f"exit {code}: {err}{out}")
        code, out, err = b.ctl("submit", path, "--wait")
        check(code == 0 and b.status(out.split()[0])["objects"]["skipped"] == 20, f"all skipped: exit {code}: {err}{out}")
        # Nothing there, and allowed.
        path = b.toml(b.one, b.one, "s3://src/nothing/", "s3://dst/nothing/", "[job]\nallow_empty = true\n")
        code, out, err = b.ctl("submit", path, "--wait")
        check(code == 0, f"an empty source that is allowed: exit {code}: {err}{out}")
        # A host that does not exist.
        path = b.toml(b.one, b.one, "s3://src/c079/", "s3://dst/c079/")
        with open(path, encoding="utf-8") as f:
            text = f.read().replace("http://127.0.0.1", "http://no-such-host.invalid")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        code, out, err = b.ctl("submit", path)
        check(code == 5 and "no-such-host.invalid" in err, f"an unknown host: exit {code}: {err}{out}")
        # A job that fails says why, in the last line of stderr and in a row.
        b.one.faults({"op": ["CopyObject", "PutObject"], "key": "c079f/obj-000000000007", "action": {"status": 403, "code": "AccessDenied"}})
        path = b.toml(b.one, b.one, "s3://src/c079/", "s3://dst/c079f/", "[retry]\nattempts = 2\n")
        code, out, err = b.ctl("submit", path, "--wait")
        check(code == 3 and "1 failed" in err.strip().splitlines()[-1], f"exit {code}: {err}{out}")
        check(len(b.failures(out.split()[0])) == 1, "no row for the failure")
        check(b.ctl("status", "j-nosuchjob")[0] in (1, 2), "an unknown job is no success")


def c079_a_closed_stdout_is_told_and_ends():
    with Bench("c079p") as b:
        b.one.post("load", {"bucket": "src", "count": 3000, "size": "10", "pattern": "long", "prefix": ""})
        job = b.work("", to="c079p/")["id"]
        p = ctl(b, ["report", job])
        p.stdout.read(1)
        p.stdout.close()
        code = p.wait(20)
        check(code not in (0, None), "a report that nobody could read ended as if all was well")
        with open("/dev/full", "w", encoding="utf-8") as full:
            p = ctl(b, ["report", job], stdout=full)
            err = p.communicate(timeout=20)[1].decode()
            check(p.returncode == 1 and err.strip(), f"stdout on a full disk: exit {p.returncode}: {err}")


def c080_only_what_failed_is_tried_again():
    with Bench("c080") as b:
        b.one.post("load", {"bucket": "src", "count": 100, "size": "1KiB", "pattern": "flat", "prefix": "c080/"})
        bad = [f"c080/obj-{i:012d}" for i in (7, 50, 99)]
        denied = {"status": 403, "code": "AccessDenied", "message": "not now"}
        b.one.faults(*[{"op": ["CopyObject", "PutObject"], "key": k, "action": denied} for k in bad])
        st = b.work("c080/", text="[retry]\nattempts = 2\n", want="completed_with_failures")
        job = st["id"]
        check(st["objects"]["failed"] == 3 and st["objects"]["copied"] == 97, json.dumps(st["objects"]))
        check(sorted(b.failures(job)) == bad, f"report: {sorted(b.failures(job))}")
        listed = [j for j in json.loads(b.ctl("list", "--json")[1])["jobs"] if j["id"] == job]
        check(listed and listed[0]["state"] == "completed_with_failures", f"list: {listed}")
        check("completed with failures" in b.ctl("list")[1].replace("_", " "), f"list: {b.ctl('list')[1]}")
        check(b.show(job)["state"] == "completed_with_failures", "show says something else")
        check(b.ctl("status", job)[0] in (0, 3), "status")
        # A class that nothing failed with has nothing to try again.
        b.one.post("counters/reset")
        b.ctl("retry", job, "--class", "throttled")
        check(b.status(job)["objects"]["failed"] == 3 or b.ended(job, "completed_with_failures"), "retry of another class")
        check(b.one.count("CopyObject") == 0, "objects of another class were tried again")
        b.one.admin("faults", "DELETE")
        code, out, err = b.ctl("retry", job)
        check(code == 0, f"retry ended with {code}: {err}{out}")
        st = b.ended(job)
        check(st["objects"]["copied"] == 100 and st["objects"]["failed"] == 0, json.dumps(st["objects"]))
        check(b.one.count("CopyObject") == 3, f"{b.one.count('CopyObject')} copies to try 3 again")
        b.same("c080/")
        code, out, err = b.ctl("retry", job)
        check(code == 2 and "has ended (completed)" in err, f"retry of a completed job: {code}: {err}{out}")
        check(b.one.count("CopyObject") == 3, "a job without failures was tried again")


def c082_no_checkpoint_moves_past_an_unfinished_object():
    with Bench("c082") as b:
        n = 1000
        b.one.post("load", {"bucket": "src", "count": n, "size": "1KiB", "pattern": "flat", "prefix": "c082/"})
        b.one.faults({"op": "CopyObject", "key": "c082/obj-000000000500", "action": {"status": 503, "code": "SlowDown"}})
        b.one.post("limits", {"latency": "copy=15"})
        job = b.begin("c082/", text="[limits]\nin_flight = 8\n")
        wait_for("most objects", lambda: len(b.one.keys("dst", "c082/")) > 600, 60)
        (a,) = b.agents
        a.kill()
        b.coord.kill()
        there = len(b.one.keys("dst", "c082/"))
        b.check_store()
        b.one.admin("faults", "DELETE")
        b.coord.start()
        a.start()
        st = b.ended(job)
        check(st["objects"]["copied"] == n and there < n, json.dumps(st["objects"]))
        b.same("c082/")
        writes = b.one.admin("writes?bucket=dst&prefix=c082/")
        check(writes["extra_writes"] <= 8, f"written twice, though only 8 were in flight: {writes}")
        check(all(w["writes"] <= 2 for w in writes["worst"]), f"written more than twice: {writes}")


def slow_job(b, n=400, more=""):
    b.one.post("load", {"bucket": "src", "count": n, "size": "1KiB", "pattern": "flat", "prefix": "c087/"})
    b.one.post("limits", {"latency": "copy=100,put=100"})
    return b.toml(b.one, b.one, "s3://src/c087/", "s3://dst/c087/", "[limits]\nin_flight = 16\n" + more)


ODD_KEYS = ['a,b"c', "nl\nx", "\x1b[31mred", "tab\there", "c\x08b", "k" * 1019, "sp ace+plus%20", "'quote'", "\u202eright to left", "\U0001f600"]
REFUSALS = [("AccessDenied", 403), ("InvalidRequest", 400), ("KeyTooLongError", 400), ("MetadataTooLarge", 400), ("KMS.DisabledException", 400), ("InvalidTag", 400)]


def c085_a_report_names_every_failed_key_so_that_it_can_be_read_back():
    with Bench("c085") as b:
        keys = {f"c085/{k}".encode() for k in ODD_KEYS} | {b"c085/", b"c085/last"}
        for i, key in enumerate(sorted(keys)):
            b.one.put("src", key.decode(), "x")
            code, status = REFUSALS[i % len(REFUSALS)]
            b.one.faults({"op": ["CopyObject", "PutObject"], "key": key.decode(), "action": {"status": status, "code": code}})
        job = b.ended(b.begin("c085/", text='[copy]\nmode = "server"\ntags = "none"\n[limits]\nin_flight = 1\n'), "completed_with_failures")["id"]

        code, out, err = b.ctl("report", job, "--only", "failed", "--format", "json")
        check(code == 0, err)
        rows = [json.loads(line) for line in out.splitlines()]
        rows = [r for r in rows if r.get("type", "object") == "object"]
        got = {urllib.parse.unquote_to_bytes(r["key"]) if r.get("key_encoding") == "percent" else r["key"].encode() for r in rows}
        check(got == keys and len(rows) == len(keys), f"JSON: {got ^ keys}")
        for r in rows:
            check(r["error"] in dict(REFUSALS) and r["attempts"] >= 1 and r["http_status"] == dict(REFUSALS)[r["error"]], f"{r}")
            check(all(k in r for k in ("bucket", "size", "message", "retryable")), f"a row lacks something: {r}")

        code, out, err = b.ctl("report", job, "--only", "failed", "--format", "csv")
        got = {urllib.parse.unquote_to_bytes(r[1].replace("+", "%20")) for r in csv.reader(io.StringIO(out)) if r[0] == "src"}
        check(code == 0 and got == keys, f"CSV: {got ^ keys}: {err}")

        # What a person sees: grouped, with counts and examples, and nothing that a terminal would obey.
        for args in (["show", job], ["status", job], ["report", job, "--only", "failed"], ["explain", job]):
            code, out, err = b.ctl(*args)
            check(not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", out + err), f"{args}: control characters: {out!r}")
        errors = b.show(job)["errors"]
        check(sum(e["count"] for e in errors) == len(keys), f"errors: {errors}")


def c087_an_interrupted_wait_detaches_and_the_job_goes_on():
    with Bench("c087") as b:
        p = ctl(b, ["submit", slow_job(b), "--wait"])
        job = p.stdout.readline().decode().strip()
        wait_for("copies", lambda: b.status(job)["objects"]["copied"] > 0, 30)
        p.send_signal(signal.SIGINT)
        err = p.communicate(timeout=5)[1].decode()
        check(p.returncode == 130, f"exit {p.returncode}: {err}")
        check(job in err, f"it does not say that the job goes on: {err}")
        check(b.status(job)["state"] == "running", json.dumps(b.status(job)))
        st = b.ended(job)
        check(st["objects"]["copied"] == 400, json.dumps(st["objects"]))


def c087_a_stopped_agent_gives_back_and_ends_in_time():
    with Bench("c087a") as b:
        for i in range(2):
            b.one.put("src", f"c087/{i}", size=256 * MIB, seed=i)
        b.one.post("load", {"bucket": "src", "count": 100, "size": "1KiB", "pattern": "flat", "prefix": "c087/"})
        b.one.post("limits", {"latency": "copy=500"})
        job = b.begin("c087/", text='[copy]\npart_size = "64MiB"\n[limits]\nin_flight = 8\n')
        wait_for("parts on their way", lambda: b.one.admin("counters")["in_flight"] >= 8, 30)
        (a,) = b.agents
        started = time.monotonic()
        code = a.stop(20)
        took = time.monotonic() - started
        check(code == 0 and took < 15, f"exit {code} after {took:.1f} s")
        st = wait_for("the store to know", lambda: (lambda s: s if s["objects"]["in_flight"] == 0 else None)(b.status(job)), 3)
        invariant_1(st)
        check(st["objects"]["failed"] == 0 and st["objects"]["pending"] > 0, f"interrupted objects are pending: {json.dumps(st)}")
        b.one.post("limits", {"latency": ""})
        a.start()
        st = b.ended(job)
        check(st["objects"]["copied"] == 102, json.dumps(st["objects"]))
        check(b.one.admin("writes?bucket=dst")["extra_writes"] == 0, f"copied twice: {b.one.admin('writes?bucket=dst')}")
        check(b.one.admin("uploads")["count"] == 0, "an upload was left open")


def c087_a_stopped_agent_waits_only_so_long_for_a_slow_copy():
    with Bench("c087s", agent_conf='[drain]\ngrace = "2s"\n') as b:
        path = slow_job(b, 50)
        b.one.post("limits", {"latency": "copy=60000"})
        job = b.submit(path)
        wait_for("copies on their way", lambda: b.one.admin("counters")["in_flight"] >= 8, 30)
        (a,) = b.agents
        started = time.monotonic()
        code = a.stop(40)
        check(code == 0 and time.monotonic() - started < 20, f"exit {code} after {time.monotonic() - started:.1f} s")
        st = wait_for("the store to know", lambda: (lambda s: s if s["objects"]["in_flight"] == 0 else None)(b.status(job)), 10)
        check(st["objects"]["failed"] == 0 and st["objects"]["pending"] == 50, f"interrupted objects are pending: {json.dumps(st)}")
        b.one.post("limits", {"latency": ""})


def c087_work_that_arrives_after_the_stop_goes_back_unbegun():
    with Bench("c087l", agents=0) as b:
        b.one.post("limits", {"latency": "copy=4000"})
        for prefix, n in (("c087/first/", 1), ("c087/second/", 20)):
            for i in range(n):
                b.one.put("src", f"{prefix}{i}", "x")
        proxy = Proxy(b.bus_port)
        b.agents = [b.agent("a0", url=proxy.url)]
        (a,) = b.agents
        first = b.begin("c087/first/")
        wait_for("a copy on its way", lambda: b.one.admin("counters")["in_flight"] >= 2, 30)
        proxy.replies.clear()
        second = b.begin("c087/second/")
        wait_for("a lease of the second job", lambda: b.status(second)["objects"]["in_flight"] > 0, 30)
        a.kill(signal.SIGTERM)
        wait_for("the agent to know", lambda: "agent.draining" in a.tail(), 10)
        proxy.replies.set()
        check(a.popen.wait(30) == 0, f"exit {a.popen.returncode}")
        b.agents = []
        begun = [r["key"] for r in b.one.requests("CopyObject") if "second" in r["key"]]
        check(not begun, f"begun after the stop: {begun}")
        check(b.ended(first)["objects"]["copied"] == 1, json.dumps(b.status(first)))
        st = wait_for("the store to know", lambda: (lambda s: s if s["objects"]["in_flight"] == 0 else None)(b.status(second)), 30)
        check(st["objects"]["pending"] == 20 and st["objects"]["failed"] == 0, json.dumps(st))
        proxy.close()


def c087_a_second_sigterm_ends_an_agent_at_once():
    with Bench("c087t") as b:
        path = slow_job(b, 50)
        b.one.post("limits", {"latency": "copy=60000"})
        b.submit(path)
        wait_for("copies on their way", lambda: b.one.admin("counters")["in_flight"] >= 8, 30)
        (a,) = b.agents
        a.popen.send_signal(signal.SIGTERM)
        time.sleep(0.2)  # two signals at once are one
        started = time.monotonic()
        a.popen.send_signal(signal.SIGTERM)
        a.popen.wait(20)
        check(time.monotonic() - started < 3, f"{time.monotonic() - started:.1f} s after the second SIGTERM")
        b.one.post("limits", {"latency": ""})
        b.agents = []


def c087_a_stopped_coordinator_commits_and_goes_on_at_its_start():
    with Bench("c087c") as b:
        n = 20000
        b.one.post("load", {"bucket": "src", "count": n, "size": "10", "pattern": "flat", "prefix": "c087/"})
        job = b.begin("c087/")
        for share in (0.1, 0.4):
            wait_for("progress", lambda: b.status(job)["objects"]["copied"] > share * n, 60)
            started = time.monotonic()
            code = b.coord.stop(20)
            took = time.monotonic() - started
            check(code == 0 and took < 10, f"exit {code} after {took:.1f} s")
            wal = [f for f in os.listdir(os.path.join(b.dir, "data")) if f.endswith("-wal")]
            left = sum(os.path.getsize(os.path.join(b.dir, "data", f)) for f in wal)
            check(left == 0, f"{left} bytes of WAL were left after a clean stop")
            b.check_store()
            b.coord.start()
        st = b.ended(job, timeout=90)
        check(st["objects"]["copied"] == n and st["objects"]["failed"] == 0, json.dumps(st["objects"]))
        b.same("c087/")
        check(b.one.admin("writes?bucket=dst")["extra_writes"] == 0, f"copied twice: {b.one.admin('writes?bucket=dst')}")


def c087_an_interrupted_run_goes_on_with_the_same_command():
    with Lab("c087r") as lab:
        s3 = lab.s3d("s3", "--synth", "src:400:1KiB:flat", "--bucket", "dst", "--latency", "copy=100")
        path = lab.toml(s3, s3, "s3://src/", "s3://dst/", "[limits]\nin_flight = 8\n")
        p = ctl(lab, ["run", path])
        wait_for("copies", lambda: len(s3.keys("dst")) > 20, 30)
        p.send_signal(signal.SIGINT)
        err = p.communicate(timeout=15)[1].decode()
        check(p.returncode == 130, f"exit {p.returncode}: {err}")
        p = ctl(lab, ["run", path])
        wait_for("more copies", lambda: len(s3.keys("dst")) > 150, 30)
        p.kill()
        p.communicate(timeout=15)
        code, out, err = lab.ctl("run", path)
        check(code == 0, f"exit {code}: {err}{out}")
        same(s3.diff("src/", "dst/"))
        writes = s3.admin("writes?bucket=dst")
        check(writes["extra_writes"] <= 16, f"copied twice: {writes}")


def test_a_refused_run_leaves_its_state_to_the_next_file():
    with Lab("refused") as lab:
        s3 = lab.s3d("s3", "--synth", "src:20:1KiB:flat", "--bucket", "dst")
        good, bad = lab.toml(s3, s3, "s3://src/", "s3://dst/"), lab.toml(s3, s3, "s3://src/", "s3://no-such-bucket/")
        state = os.path.join(lab.dir, "state")
        code, out, err = lab.ctl("run", bad, "--state", state)
        check(code == 2 and "no-such-bucket" in err, f"exit {code}: {err}")
        check(not os.path.exists(state), f"left by a refused run: {os.listdir(state) if os.path.isdir(state) else state}")
        os.mkdir(state)
        check(lab.ctl("run", bad, "--state", state)[0] == 2, "not refused")
        code, out, err = lab.ctl("run", good, "--state", state)
        check(code == 0, f"the state of a refused run is not free: {code} {err}")
        code, out, err = lab.ctl("run", lab.toml(s3, s3, "s3://src/", "s3://dst/again/"), "--state", state)
        check(code == 2 and "another job" in err, f"another job's state was taken: {code} {err}")


def test_a_run_tells_what_failed_and_where_all_of_it_is():
    with Lab("runfails") as lab:
        s3 = lab.s3d("s3", "--synth", "src:20:1KiB:flat", "--bucket", "dst")
        s3.faults({"op": "CopyObject", "key_glob": "*7", "action": {"status": 403, "code": "AccessDenied"}})
        state = os.path.join(lab.dir, "state")
        path = lab.toml(s3, s3, "s3://src/", "s3://dst/", '[copy]\nmode = "server"\n[retry]\nattempts = 1\n')
        code, out, err = lab.ctl("run", path, "--state", state)
        check(code == 3, f"exit {code}: {err}")
        check("2 failed" in err and "AccessDenied" in err and "obj-000000000017" in err, err)
        with open(os.path.join(state, "failed.csv"), encoding="utf-8") as f:
            rows = f.read().splitlines()
        check(len(rows) == 2 and all(",failed," in r for r in rows) and state in err, f"{rows} {err}")


def test_a_file_that_changed_amid_a_run_is_told_to_be_a_new_job():
    with Lab("changed") as lab:
        s3 = lab.s3d("s3", "--synth", "src:400:1KiB:flat", "--bucket", "dst", "--latency", "copy=100")
        path = lab.toml(s3, s3, "s3://src/", "s3://dst/", "[limits]\nin_flight = 4\n")
        p = ctl(lab, ["run", path])
        wait_for("copies", lambda: len(s3.keys("dst")) > 20, 30)
        p.send_signal(signal.SIGINT)
        check(b"Ctrl-C again" in p.communicate(timeout=15)[1], "Ctrl-C does not tell what is waited for")
        with open(path, "a", encoding="utf-8") as f:
            f.write("[retry]\nattempts = 3\n")
        s3.post("limits", {"latency": ""})
        code, out, err = lab.ctl("run", path)
        check(code == 0 and "has changed since it was last run" in err, f"{code} {err}")
        code, out, err = lab.ctl("run", path)
        check(code == 0 and "has changed" in err, f"the unfinished one is forgotten: {code} {err}")


def test_a_report_of_a_job_that_goes_on_tells_pending_from_failed():
    with Bench("pending", agents=0) as b:
        b.one.post("load", {"bucket": "src", "prefix": "pending/", "count": 50, "size": "1KiB", "pattern": "flat", "seed": 1})
        job = b.begin("pending/")
        wait_for("the listing", lambda: b.status(job)["listing"]["complete"], 30)
        rows = b.ctl("report", job)[1].splitlines()
        check(len(rows) == 50 and all(",pending,,,pending" in r for r in rows), f"{rows[:2]}")
        check(b.ctl("report", job, "--only", "failed")[1] == "", "pending objects among the failed ones")
        b.ctl("cancel", job)
        b.ended(job, "cancelled")


def rate_of(b, seconds=3.0):
    """Copies a second, by the server's own count."""
    first, at = b.one.count("CopyObject"), time.monotonic()
    time.sleep(seconds)  # a rate is a count over a time
    return (b.one.count("CopyObject") - first) / (time.monotonic() - at)


def test_limits_change_while_a_job_runs_and_stay_over_a_restart():
    with Bench("tune", agents=2) as b:
        b.one.post("load", {"bucket": "src", "prefix": "tune/", "count": 60000, "size": "1KiB", "pattern": "flat", "seed": 1})
        job = b.begin("tune/", text='[limits]\nrequest_rate = "200/s"\n')
        wait_for("copies", lambda: b.status(job)["objects"]["copied"] > 200, 60)
        slow = rate_of(b)
        check(slow <= 260, f"{slow} copies a second with a limit of 200")
        check(json.loads(b.ctl("explain", job, "--json")[1])["bound_by"] == "limit_request_rate", "explain does not tell the limit")
        code, out, err = b.ctl("tune", job, "request_rate=1000", "--json")
        x = json.loads(out)
        check(code == 0 and x["tuned"]["request_rate"] == "1000" and x["now"]["requests_s"] == 1000, out + err)
        wait_for("the new limit", lambda: rate_of(b, 1.0) > 300, 30)
        fast = rate_of(b)
        check(500 <= fast <= 1200, f"{fast} copies a second with a limit of 1,000")
        # The fleet's is shared by the jobs that have work, and kept over a restart as the job's is.
        check(b.ctl("tune", "request_rate=00:00,100/s 12:00,100/s", "in_flight=64")[0] == 0, "not tuned")
        b.coord.kill()
        b.coord.start()
        now = wait_for("the job", lambda: json.loads(b.ctl("tune", job, "--json")[1] or "{}").get("now"), 30)
        check(now == {"bandwidth_bytes_s": 0, "requests_s": 100, "in_flight": 64}, json.dumps(now))
        wait_for("the fleet's limit", lambda: b.one.count("CopyObject") > 0 and rate_of(b, 2.0) < 150, 30)
        check("100 requests/s" in b.ctl("tune", job)[1] and "64" in b.ctl("tune")[1], b.ctl("tune", job)[1])
        for bad in (["request_rate=0"], ["bandwidth=fast"], ["speed=1"], ["bandwidth"], ["bandwidth="], ["j-none", "in_flight=1"]):
            code, out, err = b.ctl("tune", *bad)
            check(code in (1, 2) and err, f"tune {bad}: {code} {out}{err}")
        for setting in ("request_rate=off", "in_flight=default"):
            check(b.ctl("tune", setting)[0] == 0, setting)
        check(b.ctl("tune", job, "request_rate=off")[0] == 0, "not tuned")
        b.ended(job, timeout=120)
        b.same("tune/")
        code, out, err = b.ctl("tune", job, "in_flight=1")
        check(code == 2 and "has ended" in err, f"{code} {err}")


if __name__ == "__main__":
    run(cases(globals()))
