#!/usr/bin/python3
"""cases_ends.py - where requests go: regions and redirects (C064), names and styles (C065), proxies and private CAs (C067),
all addresses of a name (C068)."""

import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from lab import MIB, Lab, Zone, cases, certificate, check, run, same, wait_for  # noqa: E402
from proxy import HttpProxy, Wire  # noqa: E402

PARTS = '[copy]\npart_size = "5MiB"\nmultipart_threshold = "5MiB"\n'


def side(name, url, server, more=""):
    who = {"source": "SRC", "destination": "DST"}[name]
    return f'[{name}]\nurl = "{url}"\nendpoint = "{server}"\naccess_key_env = "{who}_ID"\nsecret_key_env = "{who}_SECRET"\n{more}\n'


def job_file(lab, source, destination, text=""):
    path = os.path.join(lab.dir, f"job{lab.jobs}.toml")
    lab.jobs += 1
    with open(path, "w", encoding="utf-8") as f:
        f.write(source + destination + text)
    return path


def load(server):
    server.post("load", {"bucket": "src", "count": 30, "size": "1KiB", "pattern": "utf-8", "prefix": "k/"})
    server.put("src", "k/big", size=11 * MIB, seed=2)


def moved(lab, path, n=31):
    st = lab.wait_job(lab.submit(path), 60)
    check(st["state"] == "completed" and st["objects"]["copied"] == n, json.dumps(st))
    return st


def in_both_modes(lab, one, two):
    """Within server `one`, and from it through an agent to `two`; nothing is tried twice."""
    for mode, to in (("server", one), ("relay", two)):
        text = PARTS.replace("[copy]", f'[copy]\nmode = "{mode}"')
        st = moved(lab, job_file(lab, side("source", "s3://src/k/", one.url), side("destination", f"s3://dst/{mode}/", to.url), text))
        same(one.diff("src/k/", f"dst/{mode}/", other=None if to is one else to))
        check(st["retries"] == 0, f"{mode}: it costs tries: {json.dumps(st)}")


def c064_a_bucket_in_another_region_is_found():
    with Lab("c064") as lab:
        one = lab.s3d("s3", "--bucket", "src", "--bucket", "dst", "--region", "eu-central-1")
        two = lab.s3d("s3b", "--bucket", "dst", "--region", "ap-northeast-1")
        load(one)
        lab.coordinator()
        lab.agent("one")
        in_both_modes(lab, one, two)
        # One that is given is meant.
        for name in ("source", "destination"):
            more = {"source": "", "destination": "", name: 'region = "us-west-2"\n'}
            path = job_file(lab, side("source", "s3://src/k/", one.url, more["source"]), side("destination", "s3://dst/", two.url, more["destination"]))
            code, _, err = lab.ctl("submit", path)
            where = {"source": "eu-central-1", "destination": "ap-northeast-1"}[name]
            check(code == 2 and where in err and "us-west-2" in err and f"[{name}]" in err, f"exit {code}: {err}")


def c064_a_temporary_redirect_is_followed_with_its_body():
    with Lab("c064t") as lab:
        one = lab.s3d("s3", "--bucket", "src")
        two = lab.s3d("s3b", "--bucket", "dst")
        names = ("small", "big")
        one.put("src", "k/small", "x" * 100)
        one.put("src", "k/big", size=41 * MIB, seed=4)
        there = Wire(two)
        for name in names:
            location = {"Location": f"{there.url}/dst/{name}"}
            two.faults({"op": ["PutObject", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"], "key": name, "id": name,
                        "header": f"host: 127.0.0.1:{two.port}", "action": {"status": 307, "code": "TemporaryRedirect", "headers": location}})
        lab.coordinator()
        lab.agent("one")
        # Parts of 20 MiB go through the agent as a stream, which is not sent into a redirect twice.
        text = '[copy]\nmode = "relay"\npart_size = "20MiB"\n'
        st = moved(lab, job_file(lab, side("source", "s3://src/k/", one.url), side("destination", "s3://dst/", two.url), text), 2)
        same(one.diff("src/k/", "dst/", other=two))
        check(two.admin("uploads")["count"] == 0 and there.accepted > 0, json.dumps(st))
        check(all(r["fired"] > 0 for r in two.admin("faults")), f"{two.admin('faults')}")


def c065_dots_in_buckets_and_styles_over_tls():
    with Lab("c065") as lab:
        zone = Zone(lab, {"s3.local": ["127.0.0.1"], "*.s3.local": ["127.0.0.1"]})
        one = lab.s3d("s3", "--bucket", "src", "--bucket", "plain", "--bucket", "my.dotted.bucket", "--domain", "s3.local", "--region", "eu-west-7")
        load(one)
        tls = certificate(lab, "both", "s3.local", "*.s3.local")  # a wildcard stands for one label
        lab.coordinator(env=dict(zone.env, AWS_CA_BUNDLE=tls[0]))
        lab.agent("one", env=dict(zone.env, AWS_CA_BUNDLE=tls[0]))
        for bucket, style, wanted in (("plain", True, {"s3.local"}), ("plain", False, {"src.s3.local", "plain.s3.local"}),
                                      ("my.dotted.bucket", False, {"src.s3.local", "s3.local"})):
            for mode in ("server", "relay"):
                wire = Wire(one, tls=tls)
                where = f"https://s3.local:{wire.port}"
                more = f"path_style = {str(style).lower()}\n"
                text = PARTS.replace("[copy]", f'[copy]\nmode = "{mode}"')
                to = f"{bucket}/{mode}{style}/"
                moved(lab, job_file(lab, side("source", "s3://src/k/", where, more), side("destination", f"s3://{to}", where, more), text))
                same(one.diff("src/k/", to))
                check(wire.hosts == {f"{h}:{wire.port}" for h in wanted}, f"{bucket}, {mode}, path style {style}: {wire.hosts}")
        # Verification stays on, and the error names the host.
        other = Wire(one, tls=certificate(lab, "plain", "s3.local"))
        where = f"https://s3.local:{other.port}"
        path = job_file(lab, side("source", "s3://src/k/", where, "path_style = false\n"), side("destination", "s3://my.dotted.bucket/", where))
        code, _, err = lab.ctl("submit", path)
        check(code == 2 and "src.s3.local" in err, f"exit {code}: {err}")


def c065_addresses_ports_and_paths_of_endpoints():
    with Lab("c065e") as lab:
        one = lab.s3d("s3", "--bucket", "src", "--bucket", "dst")
        load(one)
        six = Wire(one, at=("::1", 0))
        tls = certificate(lab, "base", "localhost")
        open_to_all = lab.s3d("s3b", "--bucket", "src", "--bucket", "dst", "--no-auth")  # it sees another path than was signed
        load(open_to_all)
        based = Wire(open_to_all, tls=tls, base="/store/v1")
        lab.coordinator(env={"AWS_CA_BUNDLE": tls[0]})
        lab.agent("one", env={"AWS_CA_BUNDLE": tls[0]})
        for n, (where, server) in enumerate(((six.url, one), (f"https://localhost:{based.port}/store/v1/", open_to_all))):
            for mode in ("server", "relay"):
                text = PARTS.replace("[copy]", f'[copy]\nmode = "{mode}"')
                moved(lab, job_file(lab, side("source", "s3://src/k/", where), side("destination", f"s3://dst/{n}{mode}/", where), text))
                same(server.diff("src/k/", f"dst/{n}{mode}/"))
        check(six.accepted > 0, "nobody came over IPv6")


def test_a_server_whose_clock_is_off_is_followed():
    with Lab("skew") as lab:
        one = lab.s3d("s3", "--bucket", "src", "--bucket", "dst", "--clock-offset", "7200")
        two = lab.s3d("s3b", "--bucket", "dst", "--clock-offset", "-7200")
        load(one)
        lab.coordinator()
        lab.agent("one")
        in_both_modes(lab, one, two)


# No resolver knows this host: who gets there went through a proxy.
HOST = "s3.invalid"
PASSWORD = "PROXYPASSWORDk3T9vQ"


def c067_a_proxy_and_private_cas_of_the_environment():
    with Lab("c067") as lab:
        lab.secrets.append(PASSWORD)
        one = lab.s3d("s3", "--bucket", "src")
        two = lab.s3d("s3b", "--bucket", "dst")
        load(one)
        bundles = [certificate(lab, name, HOST) for name in ("old", "new")]
        wires = [Wire(s, tls=b) for s, b in zip((one, two), bundles)]
        # A proxy leads to one server: the destination is reached without, by its address' certificate.
        bundles[1] = certificate(lab, "127.0.0.1")
        wires[1] = Wire(two, tls=bundles[1])
        proxy = HttpProxy(wires[0].port, f"mover:{PASSWORD}")
        url = f"http://mover:{PASSWORD}@127.0.0.1:{proxy.port}"
        env = {"https_proxy": url, "http_proxy": url, "no_proxy": "10.1.2.3,.example"}
        source = side("source", "s3://src/k/", f"https://{HOST}:4443", f'ca_file = "{bundles[0][0]}"\n')
        target = side("destination", "s3://dst/", wires[1].url, f'ca_file = "{bundles[1][0]}"\n')
        lab.coordinator(env=env)
        lab.agent("one", env=env)
        st = moved(lab, job_file(lab, source, target, PARTS))
        check(st["bytes"]["through_agents"] > 0, json.dumps(st))
        same(one.diff("src/k/", "dst/", other=two))
        check(set(proxy.asked) == {("CONNECT", f"{HOST}:4443")}, f"asked: {set(proxy.asked)}")
        check(proxy.refused == 0, "the first request went without the password")
        # Each side trusts its own CA only.
        crossed = side("destination", "s3://dst/x/", wires[1].url, f'ca_file = "{bundles[0][0]}"\n')
        code, _, err = lab.ctl("submit", job_file(lab, source, crossed))
        check(code == 2 and bundles[0][0] in err and "ca_file below [destination]" in err, f"exit {code}: {err}")


def c067_a_proxy_of_the_config_and_whom_it_does_not_take():
    with Lab("c067c") as lab:
        one = lab.s3d("s3", "--bucket", "src")
        two = lab.s3d("s3b", "--bucket", "dst")
        load(one)
        proxy = HttpProxy(one.port)
        conf = f'[s3]\nproxy = "http://127.0.0.1:{proxy.port}"\nno_proxy = "127.0.0.1"\n'
        lab.coordinator(*lab.config("coordinator", conf))
        lab.agent("one", *lab.config("agent", conf))
        source = side("source", "s3://src/k/", f"http://{HOST}:9000")
        moved(lab, job_file(lab, source, side("destination", "s3://dst/", two.url), PARTS))
        same(one.diff("src/k/", "dst/", other=two))
        check({h for _, h in proxy.asked} == {f"{HOST}:9000"}, f"asked: {set(proxy.asked)}")
        check({"GET", "HEAD"} <= {m for m, _ in proxy.asked}, f"asked: {set(proxy.asked)}")
        # A password has its place elsewhere.
        path = lab.config("wrong", '[s3]\nproxy = "http://u:p@127.0.0.1:1"\n')
        p = lab.agent("two", *path, ready=False)
        wait_for("a refusal", lambda: not p.alive(), 20)
        check(p.popen.returncode == 2 and "https_proxy" in p.tail(), p.tail())


def c067_a_proxy_that_refuses_is_not_asked_on_and_on():
    with Lab("c067r") as lab:
        lab.secrets.append(PASSWORD)
        one = lab.s3d("s3", "--bucket", "src", "--bucket", "dst")
        load(one)
        for scheme, server in (("http", one), ("https", Wire(one, tls=certificate(lab, "any", HOST)))):
            proxy = HttpProxy(server.port, f"mover:{PASSWORD}")
            url = f"http://mover:wrong@127.0.0.1:{proxy.port}"
            c = lab.coordinator(env={"https_proxy": url, "http_proxy": url}, data=scheme)
            path = job_file(lab, side("source", "s3://src/k/", f"{scheme}://{HOST}:443"), side("destination", "s3://dst/", one.url))
            code, _, err = lab.ctl("submit", path)
            check(code == 2 and "407" in err and "no_proxy" in err, f"exit {code}: {err}")
            check(proxy.refused == 1, f"{proxy.refused} requests to a proxy that refuses all")
            c.stop()
        # An agent that it refuses is unfit, and spends nobody's attempts.
        proxy = HttpProxy(one.port, f"mover:{PASSWORD}")
        good, bad = ({"http_proxy": f"http://mover:{word}@127.0.0.1:{proxy.port}"} for word in (PASSWORD, "wrong"))
        lab.coordinator(env=good, data="third")
        lab.agent("refused", env=bad)
        source = side("source", "s3://src/k/", f"http://{HOST}")
        job = lab.submit(job_file(lab, source, side("destination", "s3://dst/", one.url), "[retry]\nattempts = 1\n"))
        wait_for("the agent to say why", lambda: "407" in lab.ctl("agents", "--json")[1], 20)
        lab.agent("let-in", env=good)
        st = lab.wait_job(job, 60)
        check(st["state"] == "completed" and st["objects"]["copied"] == 31, json.dumps(st))


def c068_connections_go_to_all_addresses_at_once():
    with Lab("c068") as lab:
        zone = Zone(lab, {"s3.test": [f"127.0.0.{n}" for n in (2, 3, 4, 5)]})
        one = lab.s3d("s3", "--synth", "src:1000:1KiB:flat", "--bucket", "dst", "--latency", "copy=50")
        wires = [Wire(one, at=("127.0.0.2", 0))]
        wires += [Wire(one, at=(f"127.0.0.{n}", wires[0].port)) for n in (3, 4, 5)]
        lab.coordinator(env=zone.env)
        lab.agent("one", *lab.config("agent", "lanes = 1\n"), env=zone.env)
        where = f"http://s3.test:{wires[0].port}"
        moved(lab, job_file(lab, side("source", "s3://src/", where), side("destination", "s3://dst/", where)), 1000)
        got = [w.accepted for w in wires]
        check(min(got) >= 5 and max(got) * 2 <= sum(got), f"connections of the addresses: {got}")


def c068_addresses_that_do_not_answer_are_passed_over():
    with Lab("c068b") as lab:
        zone = Zone(lab, {"s3.test": [f"127.0.0.{n}" for n in (2, 3, 4, 5)]})
        one = lab.s3d("s3", "--synth", "src:300:1KiB:flat", "--bucket", "dst")
        wire = Wire(one, at=("127.0.0.2", 0))  # nobody listens at the second
        lost = [Wire(one, at=(f"127.0.0.{n}", wire.port)) for n in (4, 5)]
        for w in lost:
            w.drop()  # hosts that take no packet
        lab.coordinator(env=zone.env)
        lab.agent("one", *lab.config("agent", '[s3]\nconnect = "2s"\n'), env=zone.env)
        where = f"http://s3.test:{wire.port}"
        began = time.monotonic()
        st = moved(lab, job_file(lab, side("source", "s3://src/", where), side("destination", "s3://dst/", where)), 300)
        check(st["objects"]["failed"] == 0 and st["retries"] == 0, f"an address costs tries: {json.dumps(st)}")
        check(time.monotonic() - began < 40, "the addresses that do not answer were asked on and on")
        same(one.diff("src/", "dst/"))


if __name__ == "__main__":
    run(cases(globals()))
