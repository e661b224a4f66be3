#!/usr/bin/python3
"""e2e_basic.py - the whole on its good days: submit, two agents, status, pause, cancel, drain, the page's interface."""

import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from lab import MIB, Bench, Lab, cases, check, invariant_1, run, wait_for  # noqa: E402

PARTS = '[copy]\npart_size = "8MiB"\nmultipart_threshold = "8MiB"\n'


def load(b, prefix, count, large=0, large_size=20 * MIB):
    b.one.post("load", {"bucket": "src", "count": count, "size": "0-4KiB", "pattern": "utf-8", "prefix": prefix})
    for i in range(large):
        b.one.put("src", f"{prefix}big/{i}", size=large_size + i, seed=i)


def dump(server, bucket, prefix):
    """Key, size and digest of every object below a prefix, as the server's plain list has them."""
    rows = [line.split() for line in server.admin(f"dump?bucket={bucket}&prefix={prefix}").splitlines()]
    return {r[0][len(prefix) :]: (r[1], r[2]) for r in rows}


def test_two_agents_copy_everything_by_both_ways():
    with Bench("basic", agents=2) as b:
        load(b, "basic/", 5000, large=3)
        for mode in ("server", "relay"):
            b.work("basic/", mode, PARTS, tick=invariant_1, timeout=120)
            b.same("basic/", mode)
            check(dump(b.one, "src", "basic/") == dump(b.to(mode), "dst", "basic/"), f"{mode}: the lists differ")
        st = json.loads(b.ctl("status", "--json")[1])
        check([a["state"] for a in st["agents"]] == ["up", "up"], json.dumps(st["agents"]))
        served = json.loads(b.http("api/v1/jobs"))
        check([j["id"] for j in served["jobs"]] == [j["id"] for j in st["jobs"]], "HTTP and xferctl name other jobs")
        metrics = b.http("metrics")
        for j in st["jobs"]:
            check(f'xfer_objects_total{{job="{j["id"]}",outcome="copied"}} 5003' in metrics, metrics)
        check("<script>" in b.http(""), "no page")


def slow(b, prefix, count=2000):
    load(b, prefix, count, large=3, large_size=200 * MIB)
    b.one.post("limits", {"latency": "copy=100"})
    job = b.begin(prefix, text=PARTS + "[limits]\nin_flight = 8\n")
    wait_for("copies", lambda: b.status(job)["objects"]["copied"] > 20, 30)
    return job


def requests(b):
    """S3's own, without those to the admin interface."""
    return sum(op["count"] for name, op in b.one.admin("counters")["ops"].items() if name != "Other")


def test_a_paused_job_asks_nothing_after_two_seconds_and_goes_on():
    with Bench("pause") as b:
        job = slow(b, "pause/", 400)
        check(b.ctl("pause", job)[0] == 0, "pause was refused")
        check(b.ctl("pause", job)[0] == 0, "a second pause is no error")
        time.sleep(2)  # the time within which it must hold
        before = requests(b)
        check(b.status(job)["state"] == "paused", json.dumps(b.status(job)))
        time.sleep(1)  # nothing may be seen in it
        now = requests(b)
        check(now == before, f"{now - before} requests of a paused job: {b.one.requests()[-4:]}")
        b.one.post("limits", {"latency": ""})
        check(b.ctl("resume", job)[0] == 0, "resume was refused")
        b.ended(job)
        b.same("pause/")


def test_a_cancelled_job_leaves_nothing_open():
    with Bench("cancel", agents=2) as b:
        job = slow(b, "cancel/")
        wait_for("an open upload", lambda: b.one.admin("uploads")["count"] > 0, 30)
        check(b.ctl("cancel", job)[0] == 0, "cancel was refused")
        st = b.ended(job, want="cancelled")
        check(b.one.admin("uploads")["count"] == 0, f"left open: {b.one.admin('uploads')}")
        check(st["exit_code"] == 1 and st["objects"]["pending"] > 0, json.dumps(st))
        before = requests(b)
        time.sleep(1)  # nothing may be seen in it
        check(requests(b) == before, f"{requests(b) - before} requests of a cancelled job")
        check(b.ctl("cancel", job)[0] == 0, "a second cancel is no error")
        check(b.ctl("resume", job)[0] != 0, "a cancelled job was resumed")


def test_a_drained_agent_ends_its_work_and_gets_no_more():
    with Bench("drain", agents=2) as b:
        job = slow(b, "drain/", 800)
        check(b.ctl("agents", "drain", "a0")[0] == 0, "drain was refused")

        def rows():
            return {a["id"]: a for a in json.loads(b.ctl("agents", "--json")[1])["agents"]}

        wait_for("a0 to be empty", lambda: rows()["a0"]["leases"] == 0 and rows()["a0"]["in_flight"] == 0, 30)
        check(rows()["a0"]["state"] == "draining", json.dumps(rows()))
        b.one.post("limits", {"latency": ""})
        b.ended(job)
        check(rows()["a0"]["leases"] == 0, "a drained agent was given work")
        b.coord.kill()
        b.coord.start()
        wait_for("a0 to be back", lambda: rows().get("a0", {}).get("state") not in (None, "lost"), 30)
        wait_for("the drain to be known again", lambda: rows()["a0"]["state"] == "draining", 10)
        check(b.ctl("agents", "undrain", "a0")[0] == 0 and rows()["a0"]["state"] == "up", json.dumps(rows()))
        b.same("drain/")


def test_an_endpoint_that_is_down_is_told_and_costs_no_attempt():
    with Lab("down") as lab:
        s3 = lab.s3d("s3", "--synth", "src:1000:1KiB:flat", "--bucket", "dst", "--latency", "copy=20")
        lab.coordinator()
        lab.agent("a1")
        job = lab.submit(lab.toml(s3, s3, "s3://src/", "s3://dst/", "[limits]\nin_flight = 8\n[retry]\nattempts = 1\n"))
        wait_for("copies", lambda: lab.status(job)["objects"]["copied"] > 20, 30)
        s3.kill()
        wait_for("a reason", lambda: "endpoint_unreachable" in (lab.status(job)["reason"] or ""), 30)
        check(lab.status(job)["objects"]["failed"] == 0, "an endpoint that is down made objects fail")
        s3.argv = [f"127.0.0.1:{s3.port}" if a == "127.0.0.1:0" else a for a in s3.argv]
        s3.start()
        st = lab.wait_job(job, 90, tick=invariant_1)
        check(st["state"] == "completed" and st["objects"]["copied"] == 1000 and not st["reason"], json.dumps(st))


def test_explain_tells_who_cannot_work_for_a_job():
    with Lab("unfit") as lab:
        s3 = lab.s3d("s3", "--synth", "src:3000:1KiB:flat", "--bucket", "dst", "--latency", "copy=50")
        lab.coordinator()
        job = lab.submit(lab.toml(s3, s3, "s3://src/", "s3://dst/", "[limits]\nin_flight = 4\n"))
        wait_for("the job to tell that no agent is there", lambda: "no agent is connected" in (lab.status(job)["detail"] or ""), 30)
        x = json.loads(lab.ctl("explain", job, "--json")[1])
        check(x["bound_by"] == "no_agent" and x["figures"]["agents_up"] == 0, json.dumps(x))
        lab.agent("ill", env={"SRC_SECRET": "wrong", "DST_SECRET": "wrong"})
        told = wait_for("the job to tell what it says", lambda: "agent 'ill'" in (lab.status(job)["detail"] or "") and lab.status(job)["detail"], 30)
        check("none of 1 agents" in told, told)
        x = json.loads(lab.ctl("explain", job, "--json")[1])
        check(x["bound_by"] == "no_fit_agent" and x["figures"]["agents_up"] == 1 and x["figures"]["agents_fit"] == 0, json.dumps(x))
        check('xfer_agents{state="unfit"} 1' in lab.http("metrics").splitlines(), "the metrics tell another state than status")
        lab.agent("well")
        wait_for("copies", lambda: lab.status(job)["objects"]["copied"] > 0, 30)
        st = lab.status(job)
        check(st["detail"] is None and st["agents"]["fit"] == 1 and "agent 'ill'" in st["agents"]["unfit"], json.dumps(st))
        code, out, err = lab.ctl("explain", job)
        check("1 of 2 agents can work for it" in out and "not all agents work for it: agent 'ill'" in out, out + err)
        lab.ctl("cancel", job)
        lab.wait_job(job, 60)


def test_explain_tells_of_an_agent_that_is_not_heard_of():
    with Bench("silent", one=("--latency", "copy=20")) as b:
        b.one.post("load", {"bucket": "src", "prefix": "s/", "count": 6000, "size": "1KiB", "pattern": "flat", "seed": 1})
        job = b.begin("s/", text="[limits]\nin_flight = 4\n")
        wait_for("copies", lambda: b.status(job)["objects"]["copied"] > 0, 60)
        os.kill(b.agents[0].pid, signal.SIGSTOP)
        seen = lambda: json.loads(b.ctl("agents", "--json")[1])["agents"][0]["last_seen_s"]  # noqa: E731
        wait_for("silence", lambda: seen() > 1, 30)
        code, out, err = b.ctl("explain", job, "--json")
        os.kill(b.agents[0].pid, signal.SIGCONT)
        check(code == 0 and json.loads(out)["bound_by"] == "silent_agent", f"{code}: {out}{err}")
        check(b.ctl("cancel", job)[0] == 0, "not cancelled")
        b.ended(job, "cancelled", 60)


def test_explain_says_what_a_job_is_bound_by():
    with Bench("explain") as b:
        b.one.post("load", {"bucket": "src", "prefix": "explain/", "count": 6000, "size": "1KiB", "pattern": "flat", "seed": 1})
        cases_of = (("limit_in_flight", "[limits]\nin_flight = 4\n", {"latency": "copy=20"}), ("throttled", "", {"prefix_rps": "50"}))
        for n, (want, text, limits) in enumerate(cases_of):
            b.one.post("limits", {"latency": "", "prefix_rps": "", **limits})
            job = b.begin("explain/", "server", text, to=f"explain{n}/")
            wait_for("copies", lambda: b.status(job)["objects"]["copied"] > 0, 60)
            code, out, err = b.ctl("explain", job, "--json")
            check(code == 0 and json.loads(out)["bound_by"] == want, f"{want}: {code} {out}{err}")
            code, out, err = b.ctl("explain", job)
            check(code == 0 and out.startswith("bound by: "), out + err)
            b.one.post("limits", {"latency": "", "prefix_rps": ""})
            check(b.ctl("cancel", job)[0] == 0, "not cancelled")
            b.ended(job, "cancelled", 60)
        check(json.loads(b.ctl("explain", job, "--json")[1])["bound_by"] == "ended", "an ended job is bound by nothing")
        check(b.ctl("explain", "j-none")[0] == b.ctl("show", "j-none")[0] != 0, "a job that is not there has no explanation")


if __name__ == "__main__":
    run(cases(globals()))
