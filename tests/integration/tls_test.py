#!/usr/bin/python3
"""tls_test.py - coordinator, agent and xferctl over TLS with certificates and tokens; who is kept out, and how it is told."""

import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from lab import Lab, cases, check, run, same  # noqa: E402

AGENT_TOKEN = "AGENTTOKENAGENTTOKEN"
OPERATOR_TOKEN = "OPERATORTOKENOPERATORTOKEN"


class TlsLab(Lab):
    """A lab whose bus is tls+tcp://, with two certificate authorities: `ca` and `other`."""

    @property
    def bus_url(self):
        return f"tls+tcp://localhost:{self.bus_port}"

    def __enter__(self):
        super().__enter__()
        self.secrets += [AGENT_TOKEN, OPERATOR_TOKEN]
        for ca in ("ca", "other"):
            self.openssl("req", "-x509", *self.new_key(ca), "-days", "2", "-subj", "/CN=test CA", "-out", self.file(ca, "pem"))
        for name, ca in (("server", "ca"), ("agent", "ca"), ("operator", "ca"), ("stranger", "other")):
            self.openssl("req", *self.new_key(name), "-subj", "/CN=localhost", "-out", self.file(name, "csr"))
            signed = ("-CA", self.file(ca, "pem"), "-CAkey", self.file(ca, "key"), "-CAcreateserial")
            self.openssl("x509", "-req", "-in", self.file(name, "csr"), *signed, "-days", "2", "-out", self.file(name, "pem"))
        self.agent_token = self.secret("agent", AGENT_TOKEN)
        self.operator_token = self.secret("operator", OPERATOR_TOKEN)
        return self

    def openssl(self, *args):
        r = subprocess.run(["openssl", *args], capture_output=True, check=False)
        check(r.returncode == 0, f"openssl {args[0]}: {r.stderr.decode(errors='replace')}")

    def new_key(self, name):
        return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", self.file(name, "key"))

    def file(self, name, ext):
        return os.path.join(self.dir, f"{name}.{ext}")

    def secret(self, name, text):
        path = os.path.join(self.dir, f"secret-{name}")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text + "\n")
        os.chmod(path, 0o600)
        return path

    def tls(self, name):
        return ("--tls-ca", self.file("ca", "pem"), "--tls-cert", self.file(name, "pem"), "--tls-key", self.file(name, "key"))

    def start(self):
        text = f'require_token = true\n[token]\nagent_file = "{self.agent_token}"\noperator_file = "{self.operator_token}"\n'
        self.coordinator(*self.config("coordinator", text), *self.tls("server"))

    def operator(self, *args, cert="operator", token=None):
        return self.ctl(*self.tls(cert), "--token-file", token or self.operator_token, *args)


def test_job_over_tls_with_certificates_and_tokens_completes():
    with TlsLab("tls") as b:
        s3 = b.s3d("s3", "--bucket", "src", "--bucket", "dst")
        s3.post("load", {"bucket": "src", "count": 2500, "size": "100", "pattern": "flat", "prefix": "k/"})
        b.start()
        agent = b.agent("a0", *b.tls("agent"), "--token-file", b.agent_token)
        path = b.toml(s3, s3, "s3://src/k/", "s3://dst/k/")
        code, out, err = b.operator("submit", path, "--wait")
        check(code == 0, f"submit ended with {code}: {out}{err}")
        same(s3.diff("src/k/", "dst/k/"))
        check(agent.stop() == 0, "the agent did not stop cleanly")


def test_agent_token_gives_no_right_to_an_operator():
    with TlsLab("tlsrole") as b:
        b.start()
        code, out, err = b.operator("list")
        check(code == 0, f"list ended with {code}: {out}{err}")
        for args in (("list",), ("agents",), ("cancel", "j-none")):
            code, out, err = b.operator(*args, token=b.agent_token)
            check(code == 1 and "token" in err, f"{args} with an agent's token: {code} {out}{err}")
        code, out, err = b.ctl(*b.tls("operator"), "list")
        check(code == 1 and "--token-file" in err, f"list without a token: {code} {out}{err}")


def test_agent_with_the_wrong_token_ends_and_says_why():
    with TlsLab("tlswrong") as b:
        b.start()
        agent = b.agent("a0", *b.tls("agent"), "--token-file", b.operator_token, ready=False)
        code = agent.popen.wait(timeout=30)
        check(code != 0 and "--token-file" in agent.tail(), f"the agent ended with {code}: {agent.tail()}")


def test_stranger_is_kept_out_and_stops_nobody():
    with TlsLab("tlsout") as b:
        b.start()
        started = time.monotonic()
        code, out, err = b.operator("list", cert="stranger")
        check(code == 5, f"a stranger's list ended with {code}: {out}{err}")
        check(time.monotonic() - started < 20, "the stranger waited too long")
        code, out, err = b.operator("list")
        check(code == 0, f"list after a stranger ended with {code}: {out}{err}")


if __name__ == "__main__":
    run(cases(globals()))
