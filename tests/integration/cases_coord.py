#!/usr/bin/python3
"""cases_coord.py - messages that come twice, leases that end, a log that is held back: C089, C090, C092, C093, C095."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from cases_job import ctl  # noqa: E402
from lab import MIB, Bench, cases, check, invariant_1, run, seed, wait_for  # noqa: E402
from proxy import Proxy, replay  # noqa: E402

PARTS = '[copy]\npart_size = "5MiB"\nmultipart_threshold = "5MiB"\n'
SHORT_LEASE = '[lease]\nttl = "5s"\nmargin = "1s"\n'


def c089_every_request_sent_twice_changes_nothing():
    with Bench("c089", agents=0) as b:
        b.one.post("load", {"bucket": "src", "count": 5000, "size": "100", "pattern": "flat", "prefix": "c089/"})
        for i in range(3):
            b.one.put("src", f"c089/big{i}", size=33 * MIB, seed=i)
        proxy = Proxy(b.bus_port, copies=2)
        b.agents = [b.agent(f"a{i}", url=proxy.url) for i in range(2)]
        env = {"XFER_COORDINATOR": proxy.url}
        path = b.toml(b.one, b.one, "s3://src/c089/", "s3://dst/c089/", PARTS)
        code, out, err = b.ctl("submit", path, env=env)
        check(code == 0, f"submit ended with {code}: {err}")
        job = out.split()[-1]
        st = b.ended(job, timeout=90)
        check(st["objects"]["listed"] == 5003 and st["objects"]["copied"] == 5003, json.dumps(st["objects"]))
        check(st["bytes"]["copied"] == st["bytes"]["listed"], f"bytes were counted twice: {json.dumps(st['bytes'])}")
        jobs = json.loads(b.ctl("list", "--json", env=env)[1])["jobs"]
        check(len(jobs) == 1, f"a submit that came twice made {len(jobs)} jobs")
        writes = b.one.admin("writes?bucket=dst")
        check(writes["extra_writes"] == 0, f"copied twice: {writes}")
        check(b.one.count("UploadPartCopy") == 21 and b.one.count("CreateMultipartUpload") == 3, "parts were sent twice")
        b.same("c089/")
        check(not b.show(job)["attempts"], f"work that was leased to nobody: {json.dumps(b.show(job)['attempts'])}")
        expired = [m for m in b.http("metrics").splitlines() if m.startswith("xfer_lease_expired_total")]
        check(all(float(m.split()[-1]) == 0 for m in expired) and expired, f"leases that nobody knew of: {expired}")
        for a in b.agents:
            check(a.stop() == 0, f"{a.name} did not stop cleanly")
        proxy.close()


def c089_old_requests_sent_again_in_any_order_change_nothing():
    s = seed()
    with Bench("c089r", agents=0) as b:
        b.one.post("load", {"bucket": "src", "count": 3000, "size": "100", "pattern": "flat", "prefix": "c089/"})
        b.one.put("src", "c089/big", size=33 * MIB, seed=1)
        proxy = Proxy(b.bus_port, record=True)
        b.agents = [b.agent("a0", url=proxy.url)]
        env = {"XFER_COORDINATOR": proxy.url}
        path = b.toml(b.one, b.one, "s3://src/c089/", "s3://dst/c089/", PARTS)
        code, out, err = b.ctl("submit", path, env=env)
        check(code == 0, f"submit ended with {code}: {err}")
        job = out.split()[-1]
        before = b.ended(job)
        b.one.post("counters/reset")
        messages = list(proxy.recorded)
        check(len(messages) > 10, f"only {len(messages)} requests were recorded")
        replies = replay(b.bus_port, messages, 2, s)
        print(f"{len(messages)} requests sent again twice, {replies} replies")
        check(replies > 0, "the coordinator does not answer any more")
        after = b.status(job)
        for d in (before, after):
            d.pop("rate", None)
        check(after == before, f"before {json.dumps(before)}, after {json.dumps(after)}")
        check(b.one.count("CopyObject", "UploadPartCopy", "CompleteMultipartUpload") == 0, "something was copied again")
        check(len(json.loads(b.ctl("list", "--json")[1])["jobs"]) == 1, "a submit sent again made a job")
        b.check_store()
        # And the agent goes on, or comes back.
        st = b.work("c089/", text='[copy]\nif_exists = "overwrite"\n', to="c089-2/")
        check(st["objects"]["copied"] == 3001, json.dumps(st["objects"]))
        for a in b.agents:
            check(a.stop() == 0, f"{a.name} did not stop cleanly")
        proxy.close()


class Spoiler:
    """Damages the outcomes of so many reports on their way to the coordinator."""

    def __init__(self, times):
        self.left, self.done = times, 0

    def __call__(self, body):
        bad = re.sub(rb"(\x04(?:\xc4.|\xc5..))R\x01", b"\\1X\x01", body, flags=re.DOTALL) if self.left else body
        self.left -= bad != body
        self.done += bad != body
        return bad


def test_a_report_that_cannot_be_taken_ends_and_loses_nothing():
    with Bench("refused", agents=0) as b:
        b.one.post("load", {"bucket": "src", "count": 300, "size": "100", "pattern": "flat", "prefix": "refused/"})
        b.one.put("src", "bad/one", "x")
        proxy = Proxy(b.bus_port)
        b.agents = [b.agent("a0", url=proxy.url)]
        proxy.mangle = Spoiler(2)
        job = b.begin("refused/")
        st = b.ended(job, timeout=60)
        check(proxy.mangle.done == 2 and "report.refused" in b.agents[0].tail(1 << 20), "no report was refused: this test proves nothing")
        check(st["objects"]["copied"] == 300 and st["objects"]["failed"] == 0, json.dumps(st["objects"]))
        check("report_refused" in json.dumps(b.show(job)["notices"]), json.dumps(b.show(job)["notices"]))
        b.same("refused/")
        # What is refused each time ends, too, and says why.
        proxy.mangle = Spoiler(1 << 30)
        job = b.begin("bad/", text="[retry]\nattempts = 1\n")
        st = b.ended(job, want="completed_with_failures", timeout=90)
        check(st["objects"]["failed"] == 1 and st["objects"]["copied"] == 0, json.dumps(st["objects"]))
        row = ",".join(b.failures(job)["bad/one"])
        check("could not be taken" in row, row)
        b.check_store()
        proxy.close()


def cut_off(mode):
    """Agent a loses the coordinator, not S3; the lease runs out and agent b takes over."""
    with Bench("c092", agents=0, coord_conf=SHORT_LEASE) as b:
        op = {"server": "CopyObject", "relay": "PutObject"}[mode]
        n = 600
        b.one.post("load", {"bucket": "src", "count": n, "size": "1KiB", "pattern": "flat", "prefix": "c092/"})
        b.one.put("src", "c092/big", size=60 * MIB, seed=4)
        for s in (b.one, b.two):
            s.post("limits", {"latency": "copy=200,put=200"})
        proxy = Proxy(b.bus_port)
        b.agents = [b.agent("a", url=proxy.url)]
        s = b.to(mode)
        job = b.begin("c092/", mode, PARTS + "[limits]\nin_flight = 16\n")
        wait_for("copies by a", lambda: b.status(job)["objects"]["copied"] > 20, 30)
        proxy.cut()
        cut_at = time.monotonic()
        # a must be quiet by its own deadline, before anybody else may begin.
        wait_for("a to be quiet", lambda: s.admin("counters")["in_flight"] <= 1, 12)
        quiet = time.monotonic() - cut_at
        n_quiet = s.count(op)
        print(f"quiet after {quiet:.1f} s, {n_quiet} copies")
        check(n_quiet < n, "a had ended before its lease did")
        check(quiet < 5.5, f"a wrote on for {quiet:.1f} s after its last word, with leases of 5 s")
        b.agents.append(b.agent("b"))
        st = b.ended(job, timeout=90, tick=lambda st: None)
        check(s.count(op) > n_quiet, "b did nothing")
        check(st["objects"]["copied"] == n + 1 and st["objects"]["failed"] == 0, json.dumps(st["objects"]))
        b.same("c092/", mode)
        check(s.admin("uploads")["count"] == 0, "an upload was left open")
        proxy.mend()
        wait_for("a to come back", lambda: any(x["id"] == "a" and x["state"] == "up" for x in json.loads(b.ctl("agents", "--json")[1])["agents"]), 30)
        after = b.status(job)
        check(after["state"] == "completed" and after["objects"] == st["objects"], f"a late report changed the outcome: {json.dumps(after)}")
        b.check_store()
        writes = s.admin("writes?bucket=dst")
        check(writes["extra_writes"] <= 500 + 32, f"copied twice: {writes}")
        check("xfer_lease_expired_total" in b.http("metrics"), "no metric tells of the lease that ran out")
        how = json.dumps(b.show(job)["attempts"])
        check("expired" in how and '"a"' in how and '"b"' in how, f"the history of attempts does not show both agents: {how}")
        for a in b.agents:
            check(a.stop() == 0, f"{a.name} did not stop cleanly")
        proxy.close()


def c092_an_agent_that_is_cut_off_stops_before_another_begins_in_a_server_copy():
    cut_off("server")


def c092_an_agent_that_is_cut_off_stops_before_another_begins_in_a_relay():
    cut_off("relay")


def c092_a_long_transfer_keeps_its_lease():
    with Bench("c092l", coord_conf=SHORT_LEASE, agents=2) as b:
        b.one.put("src", "c092/big", size=20 * MIB, seed=4)
        b.one.put("src", "c092/small", "x")
        b.one.post("limits", {"latency": "copy=9000"})
        st = b.work("c092/", text=PARTS, timeout=60)
        check(st["objects"]["copied"] == 2 and st["retries"] == 0, json.dumps(st))
        check(b.one.count("UploadPartCopy") == 4 and b.one.count("CopyObject") == 1, "a lease ran out under a live agent")
        b.one.post("limits", {"latency": ""})


def c092_a_step_of_the_wall_clock_ends_no_lease():
    with Bench("c092w", coord_conf=SHORT_LEASE + "[batch]\nobjects = 100\n", agents=2, wall=True) as b:
        n = 600
        b.one.post("load", {"bucket": "src", "count": n, "size": "100", "pattern": "flat", "prefix": "c092/"})
        b.one.post("limits", {"latency": "copy=200"})
        # One object needs a second pass, whose wait is over although the clock was set back meanwhile.
        b.one.faults({"op": "CopyObject", "key": "c092/obj-000000000007", "count": 6, "action": {"status": 500, "code": "InternalError"}})
        job = b.begin("c092/", text="[limits]\nin_flight = 16\n")
        for share, hours in ((0.1, 1), (0.4, -1), (0.7, 0)):
            wait_for("progress", lambda: b.status(job)["objects"]["copied"] > share * n, 60)
            b.wall.step(3600 * hours)
        st = b.ended(job, timeout=90)
        check(st["objects"]["copied"] == n and st["objects"]["failed"] == 0, json.dumps(st))
        b.same("c092/")
        check(not b.show(job)["attempts"], f"leases were lost: {json.dumps(b.show(job)['attempts'])}")
        check(b.one.admin("writes?bucket=dst")["extra_writes"] == 0, f"copied twice: {b.one.admin('writes?bucket=dst')}")
        # And a listing is signed so that S3 takes it.
        b.one.post("limits", {"latency": ""})
        for hours in (1, -1):
            b.wall.step(3600 * hours)
            b.work("c092/", to=f"c092{hours}/")
            b.same("c092/", to=f"c092{hours}/")


def store_files(bench):
    data = os.path.join(bench.dir, "data")
    return {f: os.path.getsize(os.path.join(data, f)) for f in os.listdir(data)}


def c093_a_forgotten_reader_costs_no_update_and_the_log_shrinks_again():
    with Bench("c093", coord_conf='[store]\nwal_warn = "1MiB"\n') as b:
        n = 40000
        b.one.post("load", {"bucket": "src", "count": n, "size": "10", "pattern": "utf-8", "prefix": "c093/"})
        (name,) = [f for f in store_files(b) if f.endswith((".db", ".sqlite", ".sqlite3"))]
        reader = sqlite3.connect(f"file:{os.path.join(b.dir, 'data', name)}?mode=ro", uri=True, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
        reader.execute("SELECT count(*) FROM job").fetchone()
        job = b.begin("c093/")
        slow = []

        def tick(st):
            started = time.monotonic()
            b.status(job)
            slow.append(time.monotonic() - started)

        st = b.ended(job, timeout=120, tick=tick)
        check(st["objects"]["copied"] == n, json.dumps(st["objects"]))
        check(max(slow) < 2, f"a status took {max(slow):.1f} s")
        wal = store_files(b)[name + "-wal"]
        check(wal > MIB, f"the reader held nothing back: {wal} bytes of WAL")
        wait_for("a warning about the log", lambda: "store.log_grown" in b.coord.tail(1 << 20), 10)
        reader.execute("COMMIT")
        reader.close()
        # The next updates let it shrink.
        b.one.put("src", "c093b/k", "x")
        b.work("c093b/")
        wait_for("the log to shrink", lambda: store_files(b)[name + "-wal"] < wal // 2, 20)
        b.same("c093/")


def c093_a_slow_reader_of_a_report_stops_nobody():
    with Bench("c093r") as b:
        n = 8000
        b.one.post("load", {"bucket": "src", "count": n, "size": "10", "pattern": "long", "prefix": "", "seed": 1})
        first = b.work("", to="first/", timeout=120)["id"]
        p = ctl(b, ["report", first])
        head = p.stdout.read(1000)
        second = b.begin("", to="second/")
        st = b.ended(second, timeout=120)
        invariant_1(st)
        wal = sum(v for k, v in store_files(b).items() if k.endswith("-wal"))
        check(wal < 64 * MIB, f"{wal} bytes of WAL while a report was read")
        rows = (head + p.stdout.read()).count(b"\n")
        check(p.wait(30) == 0, f"report ended with {p.returncode}")
        check(rows in (n, n + 1), f"{rows} rows of {n}")


class Busy:
    """Turns so many answers to a status into the word that the coordinator is busy."""

    def __init__(self, times):
        self.left = times

    def __call__(self, body):
        busy = body.replace(b"\x01\x01\x02\x15\x03\x00", b"\x01\x01\x02\x15\x03\x0a", 1) if self.left else body
        self.left -= busy != body
        return busy


def test_a_wait_goes_on_while_the_coordinator_is_busy():
    with Bench("busy") as b:
        b.one.put("src", "busy/k", body="x")
        proxy = Proxy(b.bus_port)
        proxy.mangle_reply = Busy(3)
        path = b.toml(b.one, b.one, "s3://src/busy/", "s3://dst/busy/")
        code, _, err = b.ctl("submit", "--wait", path, env={"XFER_COORDINATOR": proxy.url})
        check(code == 0, f"the wait ended with {code}: {err}")
        check(proxy.mangle_reply.left == 0, "not all answers said busy: this test proves nothing")
        proxy.close()


def test_jobs_by_the_hundreds_survive_a_restart_and_all_end():
    with Bench("hundreds", agents=0) as b:
        n = 300
        b.one.put("src", "one/k", body="x")
        paths = [b.toml(b.one, b.one, "s3://src/one/", f"s3://dst/{i}/", f'[job]\nname = "n{i}"\n') for i in range(n)]
        with ThreadPoolExecutor(4) as pool:
            codes = list(pool.map(lambda path: b.ctl("submit", path)[0], paths))
        check(codes == [0] * n, f"submits ended with {sorted(set(codes))}")
        b.coord.kill()
        b.coord.start()
        b.agents = [b.agent("a0")]
        db = sqlite3.connect(f"file:{b.dir}/data/xfer.db?mode=ro", uri=True)
        done = "SELECT count(*) FROM job WHERE state = 4"
        wait_for(f"{n} jobs to end", lambda: db.execute(done).fetchone()[0] == n, 90, every=0.5)
        db.close()
        check(len(b.one.keys("dst")) == n, f"{len(b.one.keys('dst'))} objects are there")


def c090_an_order_that_an_agent_missed_reaches_it_all_the_same():
    """It stood still when the job was paused; another one begins after it. Both learn of it, and of the end of it."""
    with Bench("c090", one=["--latency", "copy=50"]) as b:
        b.one.post("load", {"bucket": "src", "count": 800, "size": "1KiB", "pattern": "flat", "prefix": "c090/"})
        job = b.begin("c090/", text="[limits]\nin_flight = 4\n")
        wait_for("copies", lambda: b.one.count("CopyObject") > 50, 30)
        (a,) = b.agents
        a.kill(signal.SIGSTOP)
        check(b.ctl("pause", job)[0] == 0, "pause was refused")
        b.agents.append(b.agent("late"))
        a.kill(signal.SIGCONT)

        def at_rest():
            st = b.status(job)
            return st["state"] == "paused" and b.one.admin("counters")["in_flight"] <= 1

        wait_for("both to rest", at_rest, 30)
        asked = b.one.count("CopyObject")
        seen = [p["last_seen_s"] for p in json.loads(b.ctl("agents", "--json")[1])["agents"]]
        check(len(seen) == 2, f"agents: {seen}")
        time.sleep(4)  # two beats of each
        check(b.one.count("CopyObject") == asked, f"{b.one.count('CopyObject') - asked} copies of a paused job")
        check(b.ctl("resume", job)[0] == 0, "resume was refused")
        st = b.ended(job)
        check(st["objects"]["copied"] == 800, json.dumps(st["objects"]))
        a.kill(signal.SIGSTOP)  # and a cancel, with nobody awake but the late one
        job = b.begin("c090/", text="[limits]\nin_flight = 4\n", to="again/")
        check(b.ctl("cancel", job)[0] == 0, "cancel was refused")
        a.kill(signal.SIGCONT)
        b.ended(job, "cancelled", 60)


def c095_a_damaged_store_is_refused_and_left_as_it_is():
    with Bench("c095") as b:
        b.one.post("load", {"bucket": "src", "count": 3000, "size": "1KiB", "pattern": "long", "prefix": "c095/"})
        b.work("c095/")
        check(b.coord.stop() == 0, "the coordinator did not stop cleanly")
        path = os.path.join(b.dir, "data", "xfer.db")
        with open(path, "rb") as f:
            good = f.read()
        page, n = 4096, len(good) // 4096
        bad = good[:page] + b"Z" * ((n // 2 - 1) * page) + good[n // 2 * page :]

        def refused(what, *texts):
            r = subprocess.run(b.coord.argv, env=b.coord.env, capture_output=True, timeout=30, check=False)
            text = r.stderr.decode()
            check(r.returncode == 2 and all(t in text for t in texts), f"{what}: exit {r.returncode}: {text}")

        with open(path, "wb") as f:
            f.write(bad)
        refused("a damaged page", "xfer.db", "backup")
        with open(path, "rb") as f:
            check(f.read() == bad, "a damaged store was written to")
        with open(path, "wb") as f:
            f.write(good)
        b.coord.start()
        check(len(json.loads(b.ctl("list", "--json")[1])["jobs"]) == 1, "the good copy does not hold the job")


if __name__ == "__main__":
    run(cases(globals()))
