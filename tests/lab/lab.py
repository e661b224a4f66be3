"""lab.py - whole programs on loopback for the demo and the integration tests.

A Lab owns a temporary folder and every process that it started: they end with it. Secrets that it
hands to the programs are searched for, at the end, in everything that the programs wrote.

Environment: XF_BIN_DIR (folder of the programs), XF_SEED (printed; replays a run), XF_KEEP_TMP (keep the folder).
"""

import base64
import csv
import io
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.abspath(os.environ.get("XF_BIN_DIR") or os.path.join(ROOT, "build", "release", "bin"))
ENDS = ("completed", "completed_with_failures", "failed", "cancelled")
EXITS = {"completed": (0,), "completed_with_failures": (3, 4), "failed": (1, 2, 5, 8), "cancelled": (1,)}
MIB = 1 << 20

SRC_KEY, SRC_SECRET = "AKIDSOURCE0000000001", "SECRETSOURCEkW3vT9qLmZ2xYb7NcR5d"
DST_KEY, DST_SECRET = "AKIDTARGET0000000002", "SECRETTARGETpQ8sJ4hVgF6wXe1KuM0a"


class Failed(Exception):
    """A check that did not hold."""


def check(cond, text):
    if not cond:
        raise Failed(text)


def seed():
    s = int(os.environ.get("XF_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"XF_SEED={s}", flush=True)
    return s


def free_port():
    """A port below the kernel's own range, so that no outgoing connection takes it meanwhile."""
    rng = random.SystemRandom()
    for _ in range(1000):
        port = rng.randrange(20000, 32000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise Failed("no free port")


def wait_for(what, cond, timeout, every=0.02):
    """The first true value of cond(), looked at every so many seconds; an error after timeout seconds."""
    end = time.monotonic() + timeout
    while True:
        v = cond()
        if v:
            return v
        if time.monotonic() > end:
            raise Failed(f"waited {timeout} s in vain for: {what}")
        time.sleep(every)


class Proc:
    """One program. With ready=True it is waited for by --ready-fd."""

    def __init__(self, lab, name, argv, env=None, ready=True, timeout=30):
        self.lab, self.name, self.argv = lab, name, argv
        self.log_path = os.path.join(lab.dir, name + ".log")
        self.env = dict(lab.env, **(env or {}))
        self.popen = None
        self.words = {}
        self.ready = ready
        self.timeout = timeout
        self.start()

    def start(self):
        argv = list(self.argv)
        pass_fds = ()
        if self.ready:
            r, w = os.pipe()
            argv += ["--ready-fd", str(w)]
            pass_fds = (w,)
        with open(self.log_path, "ab") as log:
            self.popen = subprocess.Popen(
                argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.env, pass_fds=pass_fds
            )
        if self.ready:
            os.close(w)
            try:
                self._read_ready(r)
            finally:
                os.close(r)
        return self

    def _read_ready(self, fd):
        text = b""
        end = time.monotonic() + self.timeout
        while b"\n" not in text:
            left = end - time.monotonic()
            if left <= 0 or not select.select([fd], [], [], left)[0]:
                raise Failed(f"{self.name} was not ready after {self.timeout} s\n{self.tail()}")
            got = os.read(fd, 4096)
            if not got:
                self.popen.wait()
                raise Failed(f"{self.name} ended before it was ready, status {self.popen.returncode}\n{self.tail()}")
            text += got
        for word in text.decode().split()[1:]:
            k, _, v = word.partition("=")
            self.words[k if v else "port"] = v or k

    def tail(self, n=3000):
        try:
            with open(self.log_path, "rb") as f:
                return f.read()[-n:].decode(errors="replace")
        except OSError:
            return ""

    @property
    def pid(self):
        return self.popen.pid

    def alive(self):
        return self.popen.poll() is None

    def kill(self, sig=signal.SIGKILL):
        if self.alive():
            self.popen.send_signal(sig)
        if sig == signal.SIGKILL:
            self.popen.wait()

    def stop(self, timeout=30):
        """SIGTERM and wait; gives the exit status."""
        if self.alive():
            self.popen.send_signal(signal.SIGTERM)
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed(f"{self.name} did not stop within {timeout} s of SIGTERM\n{self.tail()}") from None

    def peak_kib(self):
        """Highest resident memory so far."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as f:
            return int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1))

    def cpu_s(self):
        """Seconds of processor time so far, of all its threads."""
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as f:
            fields = f.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class S3d(Proc):
    """tests/s3d with its admin interface."""

    def __init__(self, lab, name, *args, keys=((SRC_KEY, SRC_SECRET), (DST_KEY, DST_SECRET))):
        argv = [os.path.join(BIN, "s3d"), "--listen", "127.0.0.1:0", "--quiet"]
        for k, s in keys:
            argv += ["--key", f"{k}:{s}"]
        super().__init__(lab, name, argv + list(args))
        self.port = int(self.words["port"])
        self.url = f"http://127.0.0.1:{self.port}"

    def admin(self, path, method="GET", body=None):
        data = None if body is None else json.dumps(body).encode()
        req = urllib.request.Request(self.url + "/-/" + path, data=data, method=method)
        try:
            with urllib.request.urlopen(req, timeout=600) as r:
                text = r.read()
        except urllib.error.HTTPError as e:
            raise Failed(f"s3d: {method} {path}: {e.code} {e.read()[:500]!r}") from None
        return text.decode() if path.startswith("dump") else json.loads(text or "{}")

    def post(self, path, body=None):
        return self.admin(path, "POST", body if body is not None else {})

    def put(self, bucket, key, body=None, **more):
        d = dict(bucket=bucket, key=key, **more)
        if body is not None:
            d["body"] = body
        return self.post("put", d)

    def faults(self, *rules):
        return self.post("faults", list(rules))

    def diff(self, a, b, other=None):
        """Compares two BUCKET/PREFIX; `b` may be on another server."""
        a, b = (urllib.parse.quote(x, safe="") for x in (a, b))
        return self.admin(f"diff?a={a}&b={b}" + (f"&other={other.url}" if other else ""))

    def dump(self, bucket, prefix=""):
        """Key (bytes) to (size, MD5, digest of the attributes, etag)."""
        got = {}
        q = urllib.parse.urlencode({"bucket": bucket, "prefix": prefix})
        for line in self.admin(f"dump?{q}").splitlines():
            key, size, *rest = line.split(" ")
            got[urllib.parse.unquote_to_bytes(key)] = (int(size), *rest)
        return got

    def keys(self, bucket, prefix=""):
        return sorted(self.dump(bucket, prefix))

    def count(self, *ops):
        """Requests of these operations since the last reset of the counters."""
        got = self.admin("counters")["ops"]
        return sum(got.get(op, {}).get("count", 0) for op in ops)

    def requests(self, op=None, key=None, since=0):
        """Requests kept by --log-requests, of one operation or key when given."""
        got = self.admin(f"requests?since={since}" + (f"&op={op}" if op else ""))["requests"]
        return [r for r in got if key is None or r["key"] in (key, urllib.parse.quote(key), urllib.parse.quote(key, safe=""))]

    def boto(self):
        """An independent client with the rights of the destination's user."""
        import boto3
        from botocore.config import Config

        conf = Config(s3={"addressing_style": "path"}, retries={"max_attempts": 2}, proxies={})
        keys = {"aws_access_key_id": DST_KEY, "aws_secret_access_key": DST_SECRET}
        return boto3.client("s3", endpoint_url=self.url, region_name="us-east-1", config=conf, **keys)


class Lab:
    def __init__(self, name):
        self.name = name
        self.dir = tempfile.mkdtemp(prefix=f"xfer-{name}-")
        self.procs = []
        self.jobs = 0
        self.bus_port = free_port()
        self.http_port = free_port()
        self.secrets = [SRC_SECRET, DST_SECRET]
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "XFER_")) or k == "XFER_LOG"}
        self.env.update(
            XFER_COORDINATOR=self.bus_url,
            HOME=self.dir,
            AWS_EC2_METADATA_DISABLED="true",
            XDG_STATE_HOME=os.path.join(self.dir, "state"),
            SRC_ID=SRC_KEY,
            SRC_SECRET=SRC_SECRET,
            DST_ID=DST_KEY,
            DST_SECRET=DST_SECRET,
        )

    @property
    def bus_url(self):
        return f"tcp://127.0.0.1:{self.bus_port}"

    @property
    def http_url(self):
        return f"http://127.0.0.1:{self.http_port}"

    def __enter__(self):
        # A test that is ended from outside ends its programs too.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        return self

    def __exit__(self, kind, value, trace):
        for p in self.procs:
            if p.alive():
                p.kill(signal.SIGCONT)
                p.kill()
        try:
            self.search_secrets()
        finally:
            if os.environ.get("XF_KEEP_TMP") or kind is not None:
                print(f"kept: {self.dir}", flush=True)
                if kind is not None:
                    for p in self.procs:
                        print(f"--- end of {p.name}.log\n{p.tail()}", flush=True)
            else:
                shutil.rmtree(self.dir, ignore_errors=True)

    def no_secret(self, what, data):
        """Fails when a secret stands in these bytes or this text, as it is, in base64 or in hex."""
        data = data if isinstance(data, bytes) else data.encode(errors="replace")
        for s in (s.encode() for s in self.secrets):
            for form in (s, base64.b64encode(s).rstrip(b"="), s.hex().encode()):
                check(form not in data, f"a secret stands in {what}")

    def search_secrets(self):
        """No secret that the programs got may stand in any file that they wrote."""
        for folder, folders, files in os.walk(self.dir):
            folders[:] = [d for d in folders if not d.startswith("server-")]  # other people's servers know their users
            for f in files:
                if f.startswith("secret-"):
                    continue  # written by a test to be read by the programs
                path = os.path.join(folder, f)
                try:
                    with open(path, "rb") as fh:
                        data = fh.read()
                except OSError:
                    continue
                self.no_secret(path, data)

    def config(self, name, text):
        """Options that hand a daemon this configuration; none without a text."""
        if text is None:
            return ()
        path = os.path.join(self.dir, name + ".toml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return ("--config", path)

    def add(self, p):
        if p not in self.procs:
            self.procs.append(p)
        return p

    def s3d(self, name, *args, **kw):
        return self.add(S3d(self, name, *args, **kw))

    def coordinator(self, *args, env=None, data="data", ready=True):
        argv = [os.path.join(BIN, "xfer-coordinator"), "--data-dir", os.path.join(self.dir, data)]
        argv += ["--listen", self.bus_url, "--http", f"127.0.0.1:{self.http_port}", *args]
        return self.add(Proc(self, "coordinator", argv, env, ready=ready))

    def agent(self, name, *args, env=None, ready=True, url=None):
        argv = [os.path.join(BIN, "xfer-agent"), "--id", name, "--coordinator", url or self.bus_url]
        argv += ["--state-dir", os.path.join(self.dir, "agent-" + name), *args]
        return self.add(Proc(self, name, argv, env, ready=ready))

    def ctl(self, *args, env=None, timeout=120):
        """(exit status, stdout, stderr) of xferctl."""
        r = subprocess.run(
            [os.path.join(BIN, "xferctl"), *args],
            env=dict(self.env, **(env or {})),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            cwd=self.dir,
            check=False,
        )
        out, err = r.stdout.decode(errors="replace"), r.stderr.decode(errors="replace")
        self.no_secret(f"what xferctl {args} printed", r.stdout + r.stderr)
        return r.returncode, out, err

    def toml(self, src, dst, src_url, dst_url, text="", src_more="", dst_more=""):
        """Path of a migrate.toml from s3d `src` to s3d `dst`; `text` is appended."""
        self.jobs += 1
        path = os.path.join(self.dir, f"job{self.jobs}.toml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(
                f'[source]\nurl = {json.dumps(src_url, ensure_ascii=False)}\nendpoint = "{src.url}"\n'
                f'region = "us-east-1"\naccess_key_env = "SRC_ID"\nsecret_key_env = "SRC_SECRET"\n{src_more}\n'
                f'[destination]\nurl = {json.dumps(dst_url, ensure_ascii=False)}\nendpoint = "{dst.url}"\n'
                f'region = "us-east-1"\naccess_key_env = "DST_ID"\nsecret_key_env = "DST_SECRET"\n{dst_more}\n{text}\n'
            )
        return path

    def http(self, path):
        """Text of a page of the coordinator."""
        with urllib.request.urlopen(f"{self.http_url}/{path}", timeout=10) as r:
            text = r.read().decode()
        self.no_secret(f"the coordinator's /{path}", text)
        return text

    def look_everywhere(self):
        """Everything that a coordinator tells of its jobs: each text is searched for secrets."""
        for path in ("", "metrics", "api/v1/jobs", "api/v1/agents"):
            self.http(path)
        code, out, err = self.ctl("list", "--json")
        check(code == 0, f"list ended with {code}: {err}")
        self.ctl("agents", "--json")
        for job in json.loads(out)["jobs"]:
            for args in (["status"], ["show"], ["report", "--only", "failed"], ["report", "--only", "failed", "--format", "json"]):
                self.ctl(args[0], job["id"], *args[1:])

    def submit(self, path, *args):
        code, out, err = self.ctl("submit", path, *args)
        check(code == 0, f"submit ended with {code}: {err}{out}")
        job = out.strip().splitlines()[-1]
        check(re.fullmatch(r"j-[0-9a-z]+", job), f"submit printed no job id: {out!r}")
        return job

    def status(self, job):
        """The status object, or None while the coordinator is away."""
        code, out, err = self.ctl("status", job, "--json")
        if code == 5:
            return None
        check(code in (0, 1, 3, 4, 8), f"status ended with {code}: {err}")
        return json.loads(out)

    def wait_job(self, job, timeout, tick=None, every=0.02):
        """The final status. tick(status) is called at each look."""

        def look():
            st = self.status(job)
            if st and tick:
                tick(st)
            return st if st and st["state"] in ENDS else None

        return wait_for(f"the end of {job}", look, timeout, every)

    def show(self, job):
        """Everything that `show` knows of a job."""
        code, out, err = self.ctl("show", job, "--json")
        check(code == 0, f"show ended with {code}: {err}")
        return json.loads(out)

    def failures(self, job, bucket="src"):
        """Key to the whole row, of the report of failures."""
        code, out, err = self.ctl("report", job, "--format", "csv", "--only", "failed")
        check(code == 0, f"report ended with {code}: {err}")
        return {urllib.parse.unquote_plus(r[1]): r for r in csv.reader(io.StringIO(out)) if r and r[0] == bucket}

    def check_store(self, data="data"):
        """Invariants from the store alone."""
        r = subprocess.run(
            [os.path.join(BIN, "xfer-coordinator"), "--check-store", os.path.join(self.dir, data)],
            env=self.env,
            capture_output=True,
            timeout=300,
            check=False,
        )
        text = (r.stdout + r.stderr).decode(errors="replace")
        check(r.returncode == 0, f"the store is not sound:\n{text}")
        return text


def certificate(lab, name, *names):
    """Paths of a self-signed certificate for an address, or DNS names, which is its own CA, and of its key."""
    pem, key = (os.path.join(lab.dir, f"{name}.{ext}") for ext in ("pem", "key"))
    how = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", pem, "-days", "2"]
    alt = ",".join(f"DNS:{n}" for n in names) or f"IP:{name}"
    args = ["openssl", "req", "-x509", *how, "-subj", f"/CN={name}", "-addext", f"subjectAltName={alt}"]
    r = subprocess.run(args, capture_output=True, check=False)
    check(r.returncode == 0, f"openssl: {r.stderr.decode(errors='replace')}")
    return pem, key


class Wall:
    """The wall clock of the programs that are started with `env` (wallstep.c)."""

    def __init__(self, lab):
        self.path = os.path.join(lab.dir, "wallstep")
        library = os.path.join(os.path.dirname(BIN), "test", "wallstep.so")
        check(os.path.exists(library), f"not built: {library}")
        self.env = {"LD_PRELOAD": library, "XF_WALLSTEP": self.path}
        with open(self.path, "wb") as f:
            f.write(struct.pack("q", 0))

    def step(self, seconds):
        """So many seconds off the true time, from now on."""
        with open(self.path, "r+b") as f:
            f.write(struct.pack("q", seconds))


class Zone:
    """Host names for the programs that are started with `env` (zone.c): names to lists of addresses, "*.DOMAIN" among them."""

    def __init__(self, lab, names):
        self.path = os.path.join(lab.dir, "zone")
        library = os.path.join(os.path.dirname(BIN), "test", "zone.so")
        check(os.path.exists(library), f"not built: {library}")
        self.env = {"LD_PRELOAD": library, "XF_ZONE": self.path}
        with open(self.path, "w", encoding="ascii") as f:
            f.writelines(f"{name} {' '.join(addresses)}\n" for name, addresses in names.items())


class Bench(Lab):
    """Two servers, a coordinator and agents, for jobs one after the other, each below a prefix of its own.

    Server `one` holds buckets src and dst, for server copies; a relay goes to bucket dst of server `two`.
    At its end the programs stop cleanly and the store is sound.
    """

    def __init__(self, name, one=(), two=(), agents=1, env=None, coord_conf=None, agent_conf=None, wall=False):
        super().__init__(name)
        self.args = (one, two, agents, env)
        self.conf = {"coordinator": self.config("coordinator", coord_conf), "agent": self.config("agent", agent_conf)}
        self.wall = Wall(self) if wall else None  # the coordinator's

    def __enter__(self):
        one, two, agents, env = self.args
        try:
            self.one = self.s3d("s3", "--bucket", "src", "--bucket", "dst", "--log-requests", "100000", *one)
            self.two = self.s3d("s3b", "--bucket", "dst", "--log-requests", "100000", *two)
            self.coord = self.coordinator(*self.conf["coordinator"], env=dict(env or {}, **(self.wall.env if self.wall else {})))
            self.agents = [self.agent(f"a{i}", *self.conf["agent"], env=env) for i in range(agents)]
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind, value, trace):
        try:
            if kind is None:
                self.look_everywhere()
                for p in [*self.agents, self.coord]:
                    check(p.stop() == 0, f"{p.name} did not stop cleanly: {p.popen.returncode}\n{p.tail()}")
                self.check_store()
        except BaseException:
            super().__exit__(*sys.exc_info())
            raise
        super().__exit__(kind, value, trace)

    def to(self, mode):
        """The server on which the destination of that mode is."""
        return self.one if mode == "server" else self.two

    def begin(self, prefix, mode="server", text="", to=None, source=None, **more):
        """Submits a job from src/PREFIX (or SOURCE, with its bucket) to dst/PREFIX (or dst/TO) and gives its id."""
        src, dst = source or f"src/{prefix}", prefix if to is None else to
        return self.submit(self.toml(self.one, self.to(mode), f"s3://{src}", f"s3://dst/{dst}", text, **more))

    def ended(self, job, want="completed", timeout=120, tick=None):
        """Waits for the end of a job, checks what must hold of every job, and gives its status."""

        def look(st):
            for p in [self.coord, *self.agents]:
                check(p.alive(), f"{p.name} ended by itself: {p.popen.returncode}\n{p.tail()}")
            invariant_1(st)
            if tick:
                tick(st)

        try:
            st = self.wait_job(job, timeout, tick=look)
        except Failed as e:
            raise Failed(f"{e}\n{json.dumps(self.show(job))[:3000]}") from None
        check(st["state"] == want, f"ended {st['state']}, not {want}: {json.dumps(st)}\n{json.dumps(self.show(job))[:3000]}")
        check(st["exit_code"] in EXITS[want], f"exit code {st['exit_code']} of a job that is {want}")
        at_rest = want in ("completed", "completed_with_failures")
        check(not at_rest or st["objects"]["pending"] == 0 and st["objects"]["in_flight"] == 0, f"not at rest: {json.dumps(st)}")
        check(want != "completed" or st["listing"]["complete"], f"completed by an incomplete listing: {json.dumps(st)}")
        return st

    def work(self, prefix, mode="server", text="", want="completed", timeout=120, tick=None, **more):
        """begin() and ended(); nothing may be left open."""
        st = self.ended(self.begin(prefix, mode, text, **more), want, timeout, tick)
        for s in (self.one, self.two):
            check(s.admin("uploads")["count"] == 0, f"open uploads: {s.admin('uploads')}")
        return st

    def same(self, prefix, mode="server", to=None, source=None):
        src, dst = source or f"src/{prefix}", prefix if to is None else to
        return same(self.one.diff(src, f"dst/{dst}", other=None if mode == "server" else self.two))

    def absent(self, key, mode="server"):
        check(key.encode() not in self.to(mode).keys("dst", key), f"dst/{key} was made")


MODES = ("server", "relay")


def same(diff):
    """Fails unless an s3d diff says equal, attributes included."""
    bad = {k: v for k, v in diff.items() if isinstance(v, dict) and v.get("count")}
    check(not bad and diff.get("equal", True), f"the buckets differ: {json.dumps(bad)[:3000]}")
    return diff


def invariant_1(st):
    o = st["objects"]
    parts = ("copied", "skipped", "failed", "vanished", "archived", "pending", "in_flight")
    total = sum(o[p] for p in parts)
    check(o["listed"] == total, f"listed {o['listed']} is not the sum {total} of {o}")


def run(tests):
    """main() of a test file: runs all functions, or those whose names are arguments."""
    names = sys.argv[1:] or list(tests)
    failed = []
    for n in names:
        started = time.monotonic()
        print(f"[ RUN      ] {n}", flush=True)
        try:
            tests[n]()
        except Exception as e:  # pylint: disable=broad-except  a test must not end the others
            if not isinstance(e, Failed):
                import traceback

                traceback.print_exc()
            failed.append(n)
            print(f"[  FAILED  ] {n}: {e}", flush=True)
            continue
        print(f"[       OK ] {n} ({time.monotonic() - started:.1f} s)", flush=True)
    if failed:
        print("failed: " + " ".join(failed), flush=True)
        sys.exit(1)


def cases(scope):
    """The test functions of a module: names that begin with a case number or `test_`."""
    return {n: f for n, f in scope.items() if re.match(r"(c\d{3}_|test_)", n) and callable(f)}
