#!/usr/bin/python3
"""cases_net.py - servers that ask for less or say nothing, and secrets: C060, C061, C070."""

import json
import os
import re
import resource
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from lab import DST_KEY, DST_SECRET, MIB, MODES, SRC_KEY, SRC_SECRET, Bench, cases, check, run, wait_for  # noqa: E402
from proxy import Proxy, Wire  # noqa: E402

PARTS = '[copy]\npart_size = "5MiB"\nmultipart_threshold = "5MiB"\n'


def c060_a_fleet_finds_the_rate_that_a_prefix_allows():
    with Bench("c060", one=["--latency", "copy=10"], agents=3) as b:
        n = 3000
        b.one.post("load", {"bucket": "src", "count": n, "size": "1KiB", "pattern": "flat", "prefix": "c060/"})
        b.one.post("limits", {"prefix_rps": "600:write=300"})
        started = time.monotonic()
        st = b.work("c060/", timeout=120)
        took = time.monotonic() - started
        b.one.post("limits", {"prefix_rps": ""})
        b.same("c060/")
        check(st["objects"]["copied"] == n and st["objects"]["failed"] == 0, json.dumps(st["objects"]))
        check(st["throttled"] > 0, f"nothing tells of throttling: {json.dumps(st)}")
        asked = b.one.count("CopyObject")
        print(f"{n} objects in {took:.1f} s, {asked} requests, throttled {st['throttled']}")
        check(asked < 2.5 * n, f"{asked} requests for {n} objects: nobody slowed down")
        check(took < 60, f"{took:.0f} s for {n} objects at 300 a second: the rate never came back")


def c060_any_form_of_asking_for_less_is_understood():
    forms = {
        "slowdown": {"status": 503, "code": "SlowDown"},
        "no_body": {"status": 503, "body": ""},
        "too_many": {"status": 429, "code": "TooManyRequests"},
        "internal": {"status": 500, "code": "InternalError"},
    }
    with Bench("c060f") as b:
        for name, action in forms.items():
            for mode in MODES:
                b.one.put("src", f"c060/{name}{mode}", "x" * 100)
                b.one.put("src", f"c060/{name}{mode}.big", size=11 * MIB, seed=6)
            for s in (b.one, b.two):
                s.faults({"op": ["CopyObject", "PutObject"], "key_prefix": f"c060/{name}", "count": 2, "action": action})
                s.faults({"op": ["UploadPart", "UploadPartCopy"], "key_prefix": f"c060/{name}", "count": 2, "action": action})
        jobs = [(m, b.begin("c060/", m, PARTS)) for m in MODES]
        for mode, job in jobs:
            st = b.ended(job, timeout=200)  # refusals in a row are waited for longer and longer
            check(st["objects"]["failed"] == 0 and st["retries"] > 0, f"{mode}: {json.dumps(st)}")
            b.same("c060/", mode)


def c060_retry_after_is_obeyed():
    with Bench("c060r") as b:
        b.one.put("src", "c060/k", "x")
        b.one.faults({"op": "CopyObject", "count": 1, "action": {"status": 503, "code": "SlowDown", "headers": {"Retry-After": "3"}}})
        started = time.monotonic()
        b.work("c060/")
        check(time.monotonic() - started >= 3, f"asked again before the 3 s of Retry-After ({time.monotonic() - started:.1f} s)")
        check(b.one.count("CopyObject") == 2, f"{b.one.count('CopyObject')} requests")


def c060_a_long_outage_spends_nobodys_attempts():
    with Bench("c060o") as b:
        b.one.post("load", {"bucket": "src", "count": 300, "size": "1KiB", "pattern": "flat", "prefix": "c060/"})
        b.two.faults({"op": "PutObject", "action": {"status": 503, "code": "SlowDown"}})
        job = b.begin("c060/", "relay", "[retry]\nattempts = 1\n")
        end = time.monotonic() + 6

        def outage():
            st = b.status(job)
            check(st["state"] in ("queued", "running") and st["objects"]["failed"] == 0, f"attempts were burnt: {json.dumps(st)}")
            return time.monotonic() > end

        wait_for("the end of the outage", outage, 30)
        asked = b.two.count("PutObject")
        b.two.admin("faults", "DELETE")
        st = b.ended(job, timeout=60)
        check(st["objects"]["copied"] == 300, json.dumps(st["objects"]))
        check(asked < 1500, f"{asked} requests in 6 s to a service that refuses all")
        b.same("c060/", "relay")


def c060_a_service_that_fails_whatever_it_is_asked_spends_few_attempts():
    """A 500 is an answer, and spends a try of its object; to all objects it is an outage."""
    with Bench("c060s") as b:
        b.one.post("load", {"bucket": "src", "count": 300, "size": "1KiB", "pattern": "flat", "prefix": "c060/"})
        b.two.faults({"op": "PutObject", "action": {"status": 500, "code": "InternalError"}})
        job = b.begin("c060/", "relay", '[copy]\nif_exists = "overwrite"\n[retry]\nattempts = 4\n')
        end = time.monotonic() + 15

        def outage():
            st = b.status(job)
            check(st["state"] in ("queued", "running") and st["objects"]["failed"] == 0, f"attempts were burnt: {json.dumps(st)}")
            return time.monotonic() > end

        wait_for("the end of the outage", outage, 30)
        b.two.admin("faults", "DELETE")
        st = b.ended(job, timeout=60)
        check(st["objects"]["copied"] == 300, json.dumps(st["objects"]))
        b.same("c060/", "relay")
        # An object that alone is refused fails in time, others beside it or not.
        for keys in (("bad", "good"), ("bad",)):
            prefix = f"c060{len(keys)}/"
            for key in keys:
                b.one.put("src", prefix + key, "x")
            b.two.faults({"op": "PutObject", "key": prefix + "bad", "action": {"status": 500, "code": "InternalError"}})
            st = b.work(prefix, "relay", "[retry]\nattempts = 3\n", want="completed_with_failures", timeout=50)
            check(st["objects"]["failed"] == 1, json.dumps(st["objects"]))


STALLS = {
    "silent": ("GetObject", {"stall_after": -1}),
    "middle": ("GetObject", {"stall_after": MIB}),
    "drip": ("GetObject", {"drip": 1, "drip_ms": 20000}),
    "window": ("PutObject", {"read_stop": 100000}),
    "answer": ("PutObject", {"stall_after": -1}),
}
SHORT_LIMITS = '[s3]\nconnect = "2s"\nfirst_byte = "3s"\nstall = "3s"\n'


def c061_a_stalled_socket_is_given_up_in_both_directions():
    with Bench("c061", agent_conf=SHORT_LIMITS) as b:
        for name, (op, action) in STALLS.items():
            b.one.put("src", f"c061/{name}", size=2 * MIB, seed=3)
            b.one.put("src", f"c061/{name}.big", size=11 * MIB, seed=3)
            server = b.one if op == "GetObject" else b.two
            part = {"GetObject": "GetObject", "PutObject": "UploadPart"}[op]
            server.faults(
                {"op": op, "key": f"c061/{name}", "id": name, "count": 1, "action": action},
                {"op": part, "key": f"c061/{name}.big", "id": name, "nth": 2, "count": 1, "action": action},
            )
        started = time.monotonic()
        st = b.work("c061/", "relay", PARTS, timeout=60)
        check(time.monotonic() - started < 45, "the end was not in bounded time")
        check(st["objects"]["copied"] == 2 * len(STALLS) and st["retries"] >= len(STALLS), json.dumps(st))
        b.same("c061/", "relay")
        for s in (b.one, b.two):
            check(all(r["fired"] == 1 for r in s.admin("faults")), f"{s.admin('faults')}")
            s.admin("faults", "DELETE")


def c061_a_stall_that_lasts_is_reported_as_one():
    with Bench("c061f", agent_conf=SHORT_LIMITS) as b:
        b.one.put("src", "c061/k", size=2 * MIB, seed=3)
        b.one.put("src", "c061/good", "x")
        b.one.faults({"op": "GetObject", "key": "c061/k", "action": {"stall_after": MIB}})
        st = b.work("c061/", "relay", "[retry]\nattempts = 1\n", want="completed_with_failures", timeout=60)
        check(st["objects"]["copied"] == 1 and st["objects"]["failed"] == 1, json.dumps(st["objects"]))
        row = ",".join(b.failures(st["id"])["c061/k"]).lower()
        check("stalled" in row or "no data" in row or "bytes" in row, f"report: {row}")
        b.one.admin("faults", "DELETE")


def c061_a_firewall_that_drops_everything_is_given_up():
    """Connections that stand and new ones: nothing is answered, nothing is reset."""
    with Bench("c061w", agent_conf=SHORT_LIMITS, env={"XFER_LOG": "debug"}) as b:
        b.one.post("load", {"bucket": "src", "count": 300, "size": "1KiB", "pattern": "flat", "prefix": "c061/"})
        for i in range(3):
            b.one.put("src", f"c061/big{i}", size=22 * MIB, seed=i)
        b.one.post("limits", {"latency": "get=40"})
        wire = Wire(b.one)
        job = b.submit(b.toml(wire, b.two, "s3://src/c061/", "s3://dst/c061/", PARTS + "[limits]\nin_flight = 8\n"))
        wait_for("objects", lambda: b.status(job)["objects"]["copied"] > 30, 60)
        wire.drop()
        # What stands is given up for its silence, what is new because nothing answers.
        given_up = (f"event=request.retried .*code=(timeout|stalled) .*:{wire.port}", "event=limit.changed side=source .*reason=unreachable")
        wait_for("both to be given up", lambda: all(re.search(r, b.agents[0].tail(1 << 22)) for r in given_up), 60)
        wire.mend()
        st = b.ended(job, timeout=120)
        check(st["objects"]["copied"] == 303 and st["objects"]["failed"] == 0, json.dumps(st))
        b.same("c061/", "relay")
        wire.close()


def c061_a_complete_that_nobody_hears_is_given_up():
    """Its answer may take minutes, but not its way to the server."""
    with Bench("c061c", agent_conf=SHORT_LIMITS, env={"XFER_LOG": "debug"}) as b:
        b.one.put("src", "c061/big", size=12 * MIB, seed=1)
        b.one.post("limits", {"latency": "head=1500"})  # the look at the source before Complete
        wire = Wire(b.two)
        job = b.submit(b.toml(b.one, wire, "s3://src/c061/", "s3://dst/c061/", PARTS))
        wait_for("the last part", lambda: any(u["parts"] == 3 for u in b.two.admin("uploads")["uploads"]), 60)
        wire.drop()
        wait_for("Complete to be given up", lambda: re.search("step=complete|side=destination .*reason=unreachable", b.agents[0].tail(1 << 22)), 60)
        check(b.two.count("CompleteMultipartUpload") == 0, "it was heard: this test proves nothing")
        wire.mend()
        b.ended(job, timeout=90)
        b.same("c061/", "relay")
        wire.close()


TOKEN = "TOKENTOKENtokenq7Wz2"


def c070_no_secret_is_in_anything_that_was_written_or_sent():
    keys = [f"{k}:{s}:{TOKEN}" for k, s in ((SRC_KEY, SRC_SECRET), (DST_KEY, DST_SECRET))]
    env = {"XFER_LOG": "debug", "SRC_TOKEN": TOKEN, "DST_TOKEN": TOKEN}
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))  # as on a host where cores are wanted
    with Bench("c070", agents=0, env=env) as b:
        b.secrets.append(TOKEN)
        for s in (b.one, b.two):
            s.post("keys", {"remove": [SRC_KEY, DST_KEY]})
            s.post("keys", {"add": keys})
        proxy = Proxy(b.bus_port, record=True)
        b.agents = [b.agent("a0", env=env, url=proxy.url)]
        token = 'session_token_env = "SRC_TOKEN"', 'session_token_env = "DST_TOKEN"'
        b.one.post("load", {"bucket": "src", "count": 50, "size": "1KiB", "pattern": "flat", "prefix": "c070/"})
        b.one.put("src", "c070/big", size=11 * MIB, seed=2)
        for i, action in enumerate(
            [
                {"status": 403, "code": "AccessDenied"},
                {"status": 403, "code": "SignatureDoesNotMatch"},
                {"status": 400, "code": "ExpiredToken"},
                {"status": 400, "code": "AuthorizationHeaderMalformed"},
                {"reply_lost": True, "end": "rst"},
                {"status": 200, "body": "<broken"},
                {"status": 301, "headers": {"Location": "http://127.0.0.1:1/x?X-Amz-Signature=abc"}},
            ]
        ):
            for s in (b.one, b.two):
                s.faults({"op": ["CopyObject", "PutObject", "GetObject"], "key_glob": f"c070/*{i}", "count": 1 if action.get("code") == "ExpiredToken" else 2, "action": action})
        ctl_env = {**env, "XFER_COORDINATOR": proxy.url}
        for mode in MODES:
            path = b.toml(b.one, b.to(mode), "s3://src/c070/", "s3://dst/c070/", PARTS + "[retry]\nattempts = 2\n", *token)
            code, out, err = b.ctl("submit", path, env=ctl_env)
            check(code == 0, f"submit ended with {code}: {err}")
            job = out.split()[-1]
            st = b.wait_job(job, 90)
            check(st["state"] in ("completed", "completed_with_failures"), json.dumps(st))
            for args in (["report"], ["report", "--format", "json"], ["show", "--json"], ["status"]):
                b.ctl(args[0], job, *args[1:], env=ctl_env)
        # Both halves in one process, which tells all that it does.
        path = b.toml(b.one, b.two, "s3://src/c070/", "s3://dst/c070r/", PARTS, *token)
        code, out, err = b.ctl("run", path, env=env)
        check(code in (0, 3) and "level=debug" in err, f"run ended with {code}: {err[-500:]}")
        check("Signature=" not in err and "Credential=" not in err, "run logs an Authorization header")
        for s in (b.one, b.two):
            check(s.admin("counters")["auth_failures"] == 0, "a request was signed wrongly")
        sent = bytes(proxy.raw)
        check(len(sent) > 1000, "nothing was recorded on the way to the coordinator")
        for secret in (SRC_SECRET, DST_SECRET, TOKEN):
            check(secret.encode() not in sent, "a secret went over the bus")
            for p in [b.coord, *b.agents]:
                with open(f"/proc/{p.pid}/cmdline", "rb") as f:
                    check(secret.encode() not in f.read(), f"a secret is in the command line of {p.name}")
        for p in [b.coord, *b.agents]:
            log = p.tail(1 << 24)
            check("Signature=" not in log and "Credential=" not in log, f"{p.name} logs an Authorization header")
            check(p is b.coord or "level=debug" in log, f"{p.name} did not log at debug level")
            with open(f"/proc/{p.pid}/limits", encoding="ascii") as f:
                core = [line for line in f if "core file size" in line][0].split()[4]
            check(core == "0", f"{p.name} may leave its memory in a core dump")
        proxy.close()


if __name__ == "__main__":
    run(cases(globals()))
