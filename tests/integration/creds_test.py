#!/usr/bin/python3
"""creds_test.py - keys that are asked for: metadata services, processes, roles; they end, and are renewed, while a job runs."""

import http.server
import json
import os
import re
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from lab import Lab, cases, check, run, same, wait_for  # noqa: E402

SECRET = "SECRETaskedForkW3vT9qLmZ2xYb7NcR5"
ROLE = "arn:aws:iam::123456789012:role/mover"


def when(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


class Services(http.server.ThreadingHTTPServer):
    """Instance metadata (v2 only), a container's credentials, and STS, in one."""

    daemon_threads = True

    def __init__(self, key, life=3600):
        super().__init__(("127.0.0.1", 0), Handler)
        self.key, self.life, self.asked = key, life, []
        self.moods = []  # what becomes of the next requests for the role's keys
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def count(self, path):
        return sum(1 for p, _, _ in self.asked if p.startswith(path))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass

    def answer(self, status, text):
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        try:
            self.wfile.write(data)
        except BrokenPipeError:
            pass  # who asked has given up

    def keys(self, token="Token"):
        return {"Code": "Success", "AccessKeyId": self.server.key, "SecretAccessKey": SECRET, token: "tok-" + self.server.key,
                "Expiration": when(self.server.life)}

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()

    def note(self, body=""):
        self.server.asked.append((self.path, dict(self.headers), body))

    def do_PUT(self):  # pylint: disable=invalid-name
        self.note()
        good = self.path == "/latest/api/token" and self.headers.get("X-aws-ec2-metadata-token-ttl-seconds")
        self.answer(200 if good else 400, "session-token" if good else "")

    def do_GET(self):  # pylint: disable=invalid-name
        self.note()
        base = "/latest/meta-data/iam/security-credentials/"
        if self.path == "/container":
            good = self.headers.get("Authorization") == "let-me-in"
            self.answer(200 if good else 401, json.dumps(self.keys()) if good else "")
        elif self.headers.get("X-aws-ec2-metadata-token") != "session-token":
            self.answer(401, "")
        elif self.path == base:
            self.answer(200, "the-role")
        elif self.path == base + "the-role":
            text = json.dumps(self.keys())
            mood = self.server.moods.pop(0) if self.server.moods else None
            if mood == "hang":
                time.sleep(3)
            self.answer(mood if isinstance(mood, int) else 200, {"cut": text[: len(text) // 2], "empty": ""}.get(mood, text))
        else:
            self.answer(404, "")

    def do_POST(self):  # pylint: disable=invalid-name
        body = self.body()
        self.note(body)
        form = dict(urllib.parse.parse_qsl(body))
        action = form.get("Action")
        signed = "/sts/aws4_request" in (self.headers.get("Authorization") or "")
        good = form.get("RoleArn") == ROLE and (
            (action == "AssumeRole" and signed) or (action == "AssumeRoleWithWebIdentity" and form.get("WebIdentityToken") == "web-token"))
        if not good:
            self.answer(403, "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not you</Message></Error></ErrorResponse>")
            return
        self.answer(200, f'<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{action}Result><Credentials>'
                         f"<AccessKeyId>{self.server.key}</AccessKeyId><SecretAccessKey>{SECRET}</SecretAccessKey>"
                         f"<SessionToken>tok-{self.server.key}</SessionToken><Expiration>{when(self.server.life)}</Expiration>"
                         f"</Credentials></{action}Result></{action}Response>")


def key_of(name):
    return f"{name}:{SECRET}:tok-{name}"


def job_file(lab, s3, more="", text="", destination=None):
    """A job within s3 whose sides name their keys by nothing but `more` (the destination: its own)."""
    path = os.path.join(lab.dir, "job.toml")
    side = f'endpoint = "{s3.url}"\nregion = "us-east-1"\n'
    with open(path, "w", encoding="utf-8") as f:
        f.write(f'[source]\nurl = "s3://src/"\n{side}{more}\n[destination]\nurl = "s3://dst/"\n{side}{destination or more}\n{text}')
    return path


def move(lab, s3, more="", env=None):
    lab.coordinator(env=env)
    lab.agent("one", env=env)
    st = lab.wait_job(lab.submit(job_file(lab, s3, more)), 120)
    check(st["state"] == "completed" and st["objects"]["copied"] == 200, json.dumps(st))
    same(s3.diff("src/", "dst/"))


def config(lab, text, name="config"):
    path = os.path.join(lab.dir, "secret-" + name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, 0o600)
    return path


def bucket(lab, key, count=200, *more):
    lab.secrets.append(SECRET)
    return lab.s3d("s3", "--synth", f"src:{count}:1KiB:flat", "--bucket", "dst", "--key", key, *more)


def test_an_instance_role_is_asked_once_a_process():
    with Lab("imds") as lab, Services("AKIAROLE1") as sv:
        s3 = bucket(lab, key_of("AKIAROLE1"))
        move(lab, s3, env={"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": sv.url})
        # c063: the coordinator and the agent, whatever the number of lanes and sides.
        check(sv.count("/latest/api/token") <= 4, f"the metadata service was asked {sv.count('/latest/api/token')} times")


def c063_a_metadata_service_that_stumbles_is_asked_again():
    with Lab("c063") as lab, Services("AKIAROLE1") as sv:
        s3 = bucket(lab, key_of("AKIAROLE1"))
        sv.moods = ["cut", "empty", "hang", 429, 500]  # the coordinator's
        move(lab, s3, env={"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": sv.url})
        check(s3.admin("counters")["auth_failures"] == 0, "something went out unsigned")


def c063_a_metadata_service_that_says_no_is_asked_once():
    with Lab("c063n") as lab, Services("AKIAROLE1") as sv:
        s3 = bucket(lab, key_of("AKIAROLE1"))
        sv.moods = [404] * 9
        lab.coordinator(env={"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": sv.url})
        code, _, err = lab.ctl("submit", job_file(lab, s3))
        check(code == 2 and "status 404" in err, f"exit {code}: {err}")
        asked = sv.count("/latest/meta-data/iam/security-credentials/the-role")
        check(asked == 1, f"{asked} requests for what is not there")


def test_keys_that_end_amid_a_job_are_renewed_before():
    with Lab("rotate") as lab, Services("AKIAROLE1", life=24) as sv:
        s3 = bucket(lab, key_of("AKIAROLE1"), 1500, "--latency", "copy=150")
        env = {"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": sv.url}

        def rotate():
            time.sleep(6)
            s3.post("keys", {"add": [key_of("AKIAROLE2")]})
            sv.key, sv.life = "AKIAROLE2", 3600
            wait_for("both to ask again", lambda: sv.count("/latest/meta-data/iam/security-credentials/the-role") >= 4, 60)
            time.sleep(1)
            s3.post("keys", {"remove": ["AKIAROLE1"]})

        t = threading.Thread(target=rotate, daemon=True)
        lab.coordinator(env=env)
        lab.agent("one", env=env)
        t.start()
        st = lab.wait_job(lab.submit(job_file(lab, s3, text="[limits]\nin_flight = 8\n")), 180)
        t.join(60)
        check(st["state"] == "completed" and st["objects"]["copied"] == 1500, json.dumps(st))
        same(s3.diff("src/", "dst/"))


def printed(key):
    return json.dumps({"Version": 1, "AccessKeyId": key, "SecretAccessKey": SECRET, "SessionToken": "tok-" + key, "Expiration": when(3600)})


def c059_keys_that_end_before_their_time_are_renewed_amid_parts():
    names = [(f"AKIASRC{n}", f"AKIADST{n}") for n in range(3)]
    with Lab("c059") as lab, Services(names[0][1]) as sv:
        lab.secrets.append(SECRET)
        keys = [[a for n in names for a in ("--key", key_of(n[side]))] for side in (0, 1)]
        one = lab.s3d("s3", "--object", "src/big:60MiB", *keys[0])
        two = lab.s3d("s3b", "--bucket", "dst", *keys[1])
        out = config(lab, printed(names[0][0]), "keys")
        path = config(lab, f'[profile from]\ncredential_process = /bin/cat "{out}"\n')
        env = {"AWS_CONFIG_FILE": path, "AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": sv.url}
        lab.coordinator(env=env)
        lab.agent("one", env=env)
        # Parts that fit a buffer are sent again by the client, streamed ones by the agent.
        for n, part in enumerate(("5MiB", "20MiB")):
            job = os.path.join(lab.dir, f"job{n}.toml")
            with open(job, "w", encoding="utf-8") as f:
                f.write(f'[source]\nurl = "s3://src/"\nendpoint = "{one.url}"\nprofile = "from"\n'
                        f'[destination]\nurl = "s3://dst/{n}/"\nendpoint = "{two.url}"\n'
                        f'[copy]\nmode = "relay"\npart_size = "{part}"\n[limits]\nbandwidth = "100Mbit/s"\n')
            began = two.count("UploadPart")
            job = lab.submit(job)
            wait_for("a part", lambda b=began: two.count("UploadPart") > b, 60)
            asked = sv.count("/latest/api/token")
            sv.key = names[n + 1][1]
            with open(out, "w", encoding="utf-8") as f:
                f.write(printed(names[n + 1][0]))
            for side, server in enumerate((one, two)):
                old = f"x-amz-security-token: tok-{names[n][side]}"
                empty = {"status": 400, "body": "", "headers": {"x-amz-error-code": "ExpiredToken"}}
                server.faults({"op": ["HeadObject", "HeadBucket"], "header": old, "action": empty, "id": "head"},
                              {"header": old, "action": {"status": 400, "code": "ExpiredToken"}, "id": f"old{n}"})
            st = lab.wait_job(job, 120)
            check(st["state"] == "completed" and st["objects"]["copied"] == 1, json.dumps(st))
            same(one.diff("src/", f"dst/{n}/", other=two))
            check(two.count("CreateMultipartUpload") == n + 1, "the upload was begun anew")
            for server in (one, two):
                check(any(r["id"] == f"old{n}" and r["fired"] > 0 for r in server.admin("faults")), f"nothing was refused: {server.admin('faults')}")
            check(sv.count("/latest/api/token") - asked == 1, f"{sv.count('/latest/api/token') - asked} refreshes of the agent")


def test_a_containers_keys_need_its_token():
    with Lab("container") as lab, Services("AKIACONT") as sv:
        s3 = bucket(lab, key_of("AKIACONT"))
        token = config(lab, "let-me-in\n", "token")
        move(lab, s3, env={"AWS_CONTAINER_CREDENTIALS_FULL_URI": sv.url + "/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": token})


def test_a_process_prints_keys():
    with Lab("process") as lab:
        s3 = bucket(lab, key_of("AKIAPROC"))
        out = config(lab, json.dumps({"Version": 1, "AccessKeyId": "AKIAPROC", "SecretAccessKey": SECRET, "SessionToken": "tok-AKIAPROC"}), "keys")
        path = config(lab, f'[profile mover]\ncredential_process = /bin/cat "{out}"\n')
        move(lab, s3, 'profile = "mover"', {"AWS_CONFIG_FILE": path})


def test_a_role_is_assumed_by_another_profile_or_a_web_identity():
    with Lab("role") as lab, Services("AKIAASSUMED") as sv:
        s3 = bucket(lab, key_of("AKIAASSUMED"))
        web = config(lab, "web-token\n", "web")
        path = config(lab, f"[profile mover]\nrole_arn = {ROLE}\nsource_profile = base\nexternal_id = 12345\n"
                           f"[profile base]\naws_access_key_id = AKIABASE\naws_secret_access_key = {SECRET}\n"
                           f"[profile web]\nrole_arn = {ROLE}\nweb_identity_token_file = {web}\n")
        env = {"AWS_CONFIG_FILE": path, "AWS_ENDPOINT_URL_STS": sv.url}
        move(lab, s3, 'profile = "mover"', env)
        forms = [dict(urllib.parse.parse_qsl(b)) for _, _, b in sv.asked]
        check(forms and all(f["ExternalId"] == "12345" and re.fullmatch(r"[\w+=,.@-]{2,64}", f["RoleSessionName"]) for f in forms), str(forms))
        for more in ('profile = "web"', f'profile = "base"\nrole_arn = "{ROLE}"\nexternal_id = "of-the-job"'):
            st = lab.wait_job(lab.submit(job_file(lab, s3, more)), 60)
            check(st["state"] == "completed" and st["objects"]["skipped"] == 200, f"{more}: {json.dumps(st)}")
        check(any("of-the-job" in b for _, _, b in sv.asked), "the job's external id was not sent")


def test_two_external_ids_of_one_role_are_two_sets_of_keys():
    with Lab("twoids") as lab, Services("AKIAASSUMED") as sv:
        s3 = bucket(lab, key_of("AKIAASSUMED"))
        # A job's role is assumed with what comes first, whatever else stands in the files.
        path = config(lab, "[default]\nsso_session = none\n")
        env = {"AWS_CONFIG_FILE": path, "AWS_ENDPOINT_URL_STS": sv.url, "AWS_ACCESS_KEY_ID": "AKIABASE", "AWS_SECRET_ACCESS_KEY": SECRET}
        lab.coordinator(env=env)
        lab.agent("one", env=env)
        side = f'role_arn = "{ROLE}"\nexternal_id = '
        st = lab.wait_job(lab.submit(job_file(lab, s3, side + '"first"', destination=side + '"second"')), 60)
        check(st["state"] == "completed" and st["objects"]["copied"] == 200, json.dumps(st))
        ids = [dict(urllib.parse.parse_qsl(b))["ExternalId"] for _, _, b in sv.asked]
        # The coordinator and the agent each ask for both.
        check(set(ids) == {"first", "second"} and min(ids.count(i) for i in set(ids)) >= 2, f"external ids that were sent: {ids}")


def test_a_way_that_is_configured_and_broken_is_an_error():
    with Lab("brokenway") as lab, Services("AKIANOBODY") as sv:
        s3 = bucket(lab, key_of("AKIAELSE"))
        empty = config(lab, " \n", "empty")
        path = config(lab, f"[profile blank]\nrole_arn = {ROLE}\nweb_identity_token_file = {empty}\n[profile fails]\ncredential_process = /bin/false\n"
                           f"[profile denied]\nrole_arn = arn:aws:iam::1:role/other\nsource_profile = base\n"
                           f"[profile base]\naws_access_key_id = AKIABASE\naws_secret_access_key = {SECRET}\n"
                           "[profile round]\nrole_arn = x\nsource_profile = round2\n[profile round2]\nrole_arn = x\nsource_profile = round\n")
        lab.coordinator(env={"AWS_CONFIG_FILE": path, "AWS_ENDPOINT_URL_STS": sv.url})
        for profile, words in (("blank", (":2", "is empty")), ("fails", (":5", "/bin/false", "exit status 1")), ("denied", ("AccessDenied", "not you")), ("round", ("goes round",))):
            code, _, err = lab.ctl("submit", job_file(lab, s3, f'profile = "{profile}"'))
            check(code == 2 and all(w in err for w in words), f"{profile}: exit {code}: {err}")


if __name__ == "__main__":
    run(cases(globals()))
