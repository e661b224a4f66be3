#!/usr/bin/python3
"""break_test.py - what broke the programs once: two at the same time, copied folders, closed descriptors, lost keys."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from lab import BIN, Lab, cases, check, run, same, wait_for  # noqa: E402


def test_two_runs_of_one_job_never_share_its_state():
    with Lab("tworuns") as lab:
        s3 = lab.s3d("s3", "--synth", "src:20:1KiB:flat", "--bucket", "dst")
        for n in range(8):
            argv = [os.path.join(BIN, "xferctl"), "run", lab.toml(s3, s3, "s3://src/", f"s3://dst/{n}/", "")]
            both = [
                subprocess.Popen(argv, env=lab.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(3)
            ]
            ends = [(p.communicate(timeout=60)[1].decode(), p.returncode) for p in both]
            check(any(c == 0 for _, c in ends), json.dumps(ends))
            for text, code in ends:
                check(code == 0 or (code == 2 and "runs already in" in text), json.dumps(ends))


def test_a_copied_state_directory_is_another_instance():
    with Lab("copied") as lab:
        lab.coordinator()
        first = lab.agent("one")
        wait_for("the first agent", lambda: "one" in lab.ctl("agents")[1], 30)
        shutil.copytree(os.path.join(lab.dir, "agent-one"), os.path.join(lab.dir, "agent-two"))
        second = lab.agent("two")
        wait_for("both agents", lambda: lab.ctl("agents", "--json")[1].count('"up"') == 2, 30)
        check("superseded" not in lab.procs[0].tail(), lab.procs[0].tail())
        check(first.tail().count("session.began") == 1, first.tail())
        # The same directory is the same instance after a restart.
        before = os.path.join(lab.dir, "agent-two", "instance")
        with open(before, encoding="ascii") as f:
            was = f.read()
        second.stop()
        second.start()
        with open(before, encoding="ascii") as f:
            check(f.read() == was, "a restart made another instance")


def test_closed_descriptors_are_nobody_elses():
    with Lab("closed") as lab:
        s3 = lab.s3d("s3", "--synth", "src:20:1KiB:flat", "--bucket", "dst")
        job = lab.toml(s3, s3, "s3://src/", "s3://dst/", "")

        def begin(closed, *argv):
            line = f'exec "$@" {closed}'
            return subprocess.Popen(["/bin/sh", "-c", line, "sh", *argv], env=lab.env)

        ctl = begin(">&- 2>&- <&-", os.path.join(BIN, "xferctl"), "run", job)
        check(ctl.wait(60) == 0, f"run ended with {ctl.returncode}")
        lab.check_store(os.path.relpath(wait_queue(lab), lab.dir))
        argv = [os.path.join(BIN, "xfer-coordinator"), "--data-dir", os.path.join(lab.dir, "data")]
        p = begin("2>&- >&- <&-", *argv, "--listen", lab.bus_url, "--http", "off")
        try:
            wait_for("the coordinator", lambda: lab.ctl("list")[0] == 0, 30)
            links = {n: os.readlink(f"/proc/{p.pid}/fd/{n}") for n in "012"}
            check(set(links.values()) == {"/dev/null"}, json.dumps(links))
        finally:
            p.terminate()
            check(p.wait(30) == 0, "the coordinator did not stop")
        lab.check_store()


def wait_queue(lab):
    """Folder of the queue of the only run."""
    for folder, _, files in os.walk(os.path.join(lab.dir, "state")):
        if "xfer.db" in files:
            return folder
    check(False, "no queue was made")
    return None


def test_a_bare_refusal_of_a_head_is_tried_again():
    """It may mean that the keys no longer hold: a HEAD has no body to say so. One that lasts is a failure."""
    with Lab("head403") as lab:
        s3 = lab.s3d("s3", "--object", "src/a:20MiB", "--object", "src/b:20MiB", "--bucket", "dst")
        s3.faults(
            {"op": "HeadObject", "bucket": "src", "key": "a", "count": 1, "action": {"status": 403, "body": ""}},
            {"op": "HeadObject", "bucket": "src", "key": "b", "action": {"status": 403, "body": ""}},
        )
        lab.coordinator()
        lab.agent("one")
        job = lab.submit(lab.toml(s3, s3, "s3://src/", "s3://dst/", '[copy]\nmultipart_threshold = "5MiB"\n'))
        st = lab.wait_job(job, 120)
        check(st["exit_code"] == 3 and st["objects"]["copied"] == 1 and st["objects"]["failed"] == 1, json.dumps(st))
        check(lab.show(job)["errors"][0]["http_status"] == 403, json.dumps(lab.show(job)["errors"]))


def test_a_source_that_changes_while_complete_is_under_way_is_copied_again():
    """The destination is then newer and of the same size: no later run could tell."""
    with Lab("late") as lab:
        src = lab.s3d("s3", "--object", "src/big:20MiB", "--bucket", "dst")
        dst = lab.s3d("s3b", "--bucket", "dst", "--latency", "CompleteMultipartUpload=2500")
        lab.coordinator()
        lab.agent("one")
        job = lab.submit(lab.toml(src, dst, "s3://src/", "s3://dst/", '[copy]\npart_size = "5MiB"\n'))
        wait_for("Complete", lambda: dst.count("UploadPart") == 4 and src.count("HeadObject") >= 2, 60)
        time.sleep(0.5)  # the source was looked at; Complete takes its time
        src.put("src", "big", size=20 << 20, seed=77)
        st = lab.wait_job(job, 120)
        check(st["state"] == "completed", json.dumps(st))
        same(src.diff("src/", "dst/", other=dst))


def relay_of_a_changing_source(more):
    """A small source whose etag is no MD5, put anew while the PUT of its old bytes takes its time."""
    kms = {"x-amz-server-side-encryption": "aws:kms"}
    with Lab("latesmall") as lab:
        src = lab.s3d("s3", "--bucket", "src")
        dst = lab.s3d("s3b", "--bucket", "dst", "--latency", "PutObject=2500")
        src.put("src", "small", size=5000, seed=1, headers=kms, etag="1" * 32)
        lab.coordinator()
        lab.agent("one")
        job = lab.submit(lab.toml(src, dst, "s3://src/", "s3://dst/", more))
        wait_for("the read", lambda: src.count("GetObject") >= 1, 60)
        time.sleep(0.5)  # it was read; the PUT is under way
        src.put("src", "small", size=5000, seed=2, headers=kms, etag="2" * 32)
        st = lab.wait_job(job, 120)
        check(st["state"] == "completed" and st["objects"]["copied"] == 1, json.dumps(st))
        diff = src.diff("src/", "dst/", other=dst)
        check(diff["different"]["count"] == 0, json.dumps(diff))  # how it is encrypted is the destination's matter


def test_a_small_source_that_changes_while_it_is_put_is_copied_again():
    relay_of_a_changing_source("")


def test_our_own_older_write_does_not_stop_the_newer_one():
    relay_of_a_changing_source('[copy]\nif_exists = "fail"\n')


def broken_for_a_while(name, fault, meanwhile):
    """A job in which each object has one attempt, and all is refused until meanwhile(lab) comes back: none may be spent."""
    with Lab(name) as lab:
        s3 = lab.s3d("s3", "--synth", "src:3000:1KiB:flat", "--bucket", "dst", "--latency", "copy=20")
        lab.coordinator()
        lab.agent("one")
        job = lab.submit(lab.toml(s3, s3, "s3://src/", "s3://dst/", "[limits]\nin_flight = 32\n[retry]\nattempts = 1\n"))
        wait_for("copies", lambda: lab.status(job)["objects"]["copied"] > 100, 60)
        s3.faults(fault)
        meanwhile(lab)
        st = lab.status(job)
        check(st["objects"]["failed"] == 0 and st["objects"]["copied"] < 3000, json.dumps(st))
        s3.admin("faults", "DELETE")
        st = lab.wait_job(job, 120)
        check(st["state"] == "completed" and st["objects"]["copied"] == 3000, json.dumps(st))
        same(s3.diff("src/", "dst/"))


def test_an_endpoint_that_resets_all_is_waited_for():
    # 15 s: longer than all the tries of an object take.
    broken_for_a_while("resets", {"bucket": "dst", "action": {"reply_lost": True, "end": "rst"}}, lambda _: time.sleep(15))


def test_a_secret_key_that_stops_working_fails_nothing():
    def until_unfit(lab):
        wait_for("the agent to be unfit", lambda: "agent.unfit" in lab.procs[-1].tail(), 60)
        job = json.loads(lab.ctl("list", "--json")[1])["jobs"][0]["id"]
        told = wait_for("the job to tell why", lambda: lab.status(job)["detail"], 30)
        check("agent 'one'" in told and "SignatureDoesNotMatch" in told, told)
        code, out, err = lab.ctl("explain", job)
        check(code == 0 and "SignatureDoesNotMatch" in out, f"explain: {code} {out} {err}")

    broken_for_a_while("badsecret", {"action": {"status": 403, "code": "SignatureDoesNotMatch"}}, until_unfit)


def test_one_refused_signature_of_a_large_object_is_tried_again():
    with Lab("bigsign") as lab:
        s3 = lab.s3d("s3", "--synth", "src:3:20MiB:flat", "--bucket", "dst")
        s3.faults({"op": "CreateMultipartUpload", "count": 3, "action": {"status": 403, "code": "SignatureDoesNotMatch"}})
        lab.coordinator()
        lab.agent("one")
        text = '[copy]\npart_size = "5MiB"\nmultipart_threshold = "5MiB"\n[retry]\nattempts = 1\n'
        st = lab.wait_job(lab.submit(lab.toml(s3, s3, "s3://src/", "s3://dst/", text)), 60)
        check(st["state"] == "completed" and st["objects"]["copied"] == 3, json.dumps(st))


def test_objects_whose_signature_is_never_taken_fail_where_others_are():
    with Lab("badsign") as lab:
        s3 = lab.s3d("s3", "--synth", "src:300:1KiB:flat", "--bucket", "dst")
        s3.faults({"op": ["CopyObject", "PutObject"], "key_prefix": "obj-00000000028", "action": {"status": 403, "code": "SignatureDoesNotMatch"}})
        lab.coordinator()
        lab.agent("one")
        job = lab.submit(lab.toml(s3, s3, "s3://src/", "s3://dst/", "[retry]\nattempts = 1\n"))
        st = lab.wait_job(job, 240)
        check(st["exit_code"] == 3 and st["objects"]["copied"] == 290 and st["objects"]["failed"] == 10, json.dumps(st))


def test_objects_that_are_never_answered_fail_where_others_are():
    with Lab("mute") as lab:
        s3 = lab.s3d("s3", "--synth", "src:300:1KiB:flat", "--bucket", "dst")
        s3.faults(*({"op": "CopyObject", "key": f"obj-{n:012d}", "action": {"work": False, "reply_lost": True, "end": "rst"}} for n in range(280, 300)))
        lab.coordinator()
        lab.agent("one")
        job = lab.submit(lab.toml(s3, s3, "s3://src/", "s3://dst/", "[retry]\nattempts = 1\n"))
        st = lab.wait_job(job, 240)
        check(st["exit_code"] == 3 and st["objects"]["copied"] == 280 and st["objects"]["failed"] == 20, json.dumps(st))


def test_idle_connections_do_not_keep_the_page_from_others():
    with Lab("idle") as lab:
        lab.coordinator()
        idle = []
        try:
            for _ in range(400):
                c = socket.create_connection(("127.0.0.1", lab.http_port), 5)
                c.sendall(b"GET /healthz HTTP/1.1\r\nHost:")  # and never the rest
                idle.append(c)
            began = time.monotonic()
            wait_for("an answer beside them", lambda: answers(lab), 60)
            check(time.monotonic() - began < 30, f"healthz took {time.monotonic() - began:.0f} s")
        finally:
            for c in idle:
                c.close()


def answers(lab):
    try:
        return lab.http("healthz")
    except OSError:
        return None


def test_a_run_that_is_killed_at_once_again_and_again_fails_nothing():
    with Lab("killrun") as lab:
        s3 = lab.s3d("s3", "--synth", "src:2:70MiB:flat", "--bucket", "dst")
        s3.faults({"id": "slow", "op": "CreateMultipartUpload", "action": {"delay_ms": 60000, "status": 503}})
        argv = [os.path.join(BIN, "xferctl"), "run", lab.toml(s3, s3, "s3://src/", "s3://dst/", "")]
        for n in range(8):  # three more than the deaths that fail what is to blame
            p = subprocess.Popen(argv, env=lab.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                wait_for("both opens", lambda n=n: s3.admin("faults")[0]["fired"] >= 2 * n + 2, 60)
            finally:
                p.kill()
                p.wait()
        s3.admin("faults", "DELETE")
        done = subprocess.run(argv, env=lab.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300)
        check(done.returncode == 0, done.stderr.decode()[-2000:])
        same(s3.diff("src/", "dst/"))


if __name__ == "__main__":
    run(cases(globals()))
