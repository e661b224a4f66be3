"""proxy.py - TCP relays between programs of a lab.

Proxy can cut, hold back, repeat and record. It knows the framing of SP over TCP (nng): 8 bytes of greeting each way, then messages
with an 8-byte length. What it recorded can be sent again over a connection of its own (replay).

Wire stands before an S3 server: as a firewall that drops every packet, or as a TLS end that closes in the middle of a body.
"""

import base64
import ctypes
import random
import socket
import ssl
import struct
import threading

GREETING = 8
REQ_GREETING = b"\x00SP\x00" + struct.pack(">HH", 0x30, 0)


def read_exactly(sock, n):
    data = b""
    while len(data) < n:
        got = sock.recv(min(n - len(data), 1 << 16))
        if not got:
            raise ConnectionError("closed")
        data += got
    return data


def read_message(sock):
    (n,) = struct.unpack(">Q", read_exactly(sock, 8))
    if n > 1 << 28:
        raise ConnectionError("not an SP message")
    return read_exactly(sock, n)


def write_message(sock, body):
    sock.sendall(struct.pack(">Q", len(body)) + body)


class Listener:
    """A port of its own before another one, at `url`; start() serves each connection by _serve(), on a thread of its own."""

    def __init__(self, scheme, port, at=("127.0.0.1", 0)):
        self.upstream = ("127.0.0.1", port)
        self.lock = threading.Lock()
        self.listener = socket.create_server(at, family=socket.AF_INET6 if ":" in at[0] else socket.AF_INET, backlog=128)
        self.port = self.listener.getsockname()[1]
        self.url = f"{scheme}://{'[' + at[0] + ']' if ':' in at[0] else at[0]}:{self.port}"
        self.accepted = 0
        self.is_cut = False  # whoever comes is turned away

    def start(self):
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            if self.is_cut:
                client.close()
                continue
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        raise NotImplementedError


class Proxy(Listener):
    """Listens on a port of its own; `copies` is how often each request of a client is passed on."""

    def __init__(self, port, copies=1, record=False):
        super().__init__("tcp", port)
        self.copies = copies
        self.record = record
        self.recorded = []
        self.mangle = None  # a function of a request's bytes: what is passed on
        self.mangle_reply = None  # likewise of a reply's
        self.raw = bytearray()  # everything that passed, both ways, when recording
        self.replies = threading.Event()  # when cleared, replies wait here
        self.replies.set()
        self.socks = set()
        self.start()

    def _serve(self, client):
        try:
            server = socket.create_connection(self.upstream, 10)
            server.settimeout(None)
        except OSError:
            client.close()
            return
        with self.lock:
            self.socks |= {client, server}
        threading.Thread(target=self._pump, args=(server, client, 1, False), daemon=True).start()
        self._pump(client, server, self.copies, True)

    def _pump(self, src, dst, copies, is_request):
        try:
            dst.sendall(read_exactly(src, GREETING))
            while True:
                body = read_message(src)
                with self.lock:
                    if self.record:
                        self.raw += body
                        if is_request:
                            self.recorded.append(body)
                if not is_request:
                    self.replies.wait()
                    body = self.mangle_reply(body) if self.mangle_reply else body
                elif self.mangle:
                    body = self.mangle(body)
                for _ in range(copies):
                    write_message(dst, body)
        except OSError:
            pass
        finally:
            for s in (src, dst):
                s.close()
            with self.lock:
                self.socks -= {src, dst}

    def cut(self):
        """The network is gone: connections end, new ones are not taken."""
        self.is_cut = True
        with self.lock:
            for s in self.socks:
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def mend(self):
        self.is_cut = False

    def close(self):
        self.cut()
        self.listener.close()


SO_ATTACH_FILTER, SO_DETACH_FILTER = 26, 27


CUT = 1000000


class HttpProxy(Listener):
    """An HTTP proxy, by CONNECT and by whole URLs, that leads every host to one port of this one; asked: (method, host) of each."""

    def __init__(self, port, user=None):
        super().__init__("http", port)
        self.user = user and b"Basic " + base64.b64encode(user.encode())
        self.asked = []
        self.refused = 0
        self.start()

    def _serve(self, client):
        with client:
            head = b""
            while b"\r\n\r\n" not in head:
                got = client.recv(1 << 16)
                if not got:
                    return
                head += got
            head, _, rest = head.partition(b"\r\n\r\n")
            lines = head.split(b"\r\n")
            method, target, version = lines[0].split(b" ")
            if self.user and b"Proxy-Authorization: " + self.user not in lines:
                with self.lock:
                    self.refused += 1
                client.sendall(b'HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm="p"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
                return
            path = b""
            if method != b"CONNECT":
                target, _, path = target.removeprefix(b"http://").partition(b"/")
            with self.lock:
                self.asked.append((method.decode(), target.decode()))
            with socket.create_connection(self.upstream, 10) as server:
                if method == b"CONNECT":
                    client.sendall(b"HTTP/1.1 200 Go on\r\n\r\n")
                else:  # one request a connection, so that each is seen
                    kept = [line for line in lines[1:] if not line.lower().startswith((b"proxy-", b"connection:"))]
                    head = b"\r\n".join([b" ".join((method, b"/" + path, version)), *kept, b"Connection: close"])
                    server.sendall(head + b"\r\n\r\n" + rest)
                threading.Thread(target=self._pump, args=(client, server), daemon=True).start()
                self._pump(server, client)

    def _pump(self, src, dst):
        try:
            while data := src.recv(1 << 16):
                dst.sendall(data)
            dst.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Wire(Listener):
    """Another address of an S3 server. tls: (certificate, key) of its end of TLS; base: the path below which the server is, with tls only."""

    def __init__(self, server, tls=None, base="", **at):
        super().__init__("https" if tls else "http", server.port, **at)
        self.base = base.encode()
        self.hosts = set()  # that requests named
        self.context = None
        if tls:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*tls)
        self.cuts = {}  # path to how many of its answers end with the connection, after CUT bytes of the body
        self.is_open = threading.Event()
        self.is_open.set()
        self.clients = set()
        self.start()

    def _serve(self, client):
        server = None
        with self.lock:
            self.clients.add(client)
        try:
            server = socket.create_connection(self.upstream, 10)
            server.settimeout(None)
            if self.context:
                self._serve_tls(client, server)
                return
            threading.Thread(target=self._pump, args=(server, client), daemon=True).start()
            self._pump(client, server)
        except OSError:
            pass
        finally:
            for s in (client, server):
                if s and not self.context:
                    s.close()

    def _pump(self, src, dst):
        try:
            while True:
                data = src.recv(1 << 16)
                self.is_open.wait()  # nothing gets through; whoever sends is not told
                if not data:
                    break
                dst.sendall(data)
            dst.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def _serve_tls(self, raw, server):
        """A request and its answer at a time, so that one thread owns the TLS connection."""
        client = self.context.wrap_socket(raw, server_side=True)
        try:
            goes_on = True
            while goes_on:
                request = self._pass(client, server)
                goes_on = request and self._pass(server, client, request)
        finally:
            client.close()  # without unwrap(): no close_notify goes out
            server.close()

    def _pass(self, src, dst, request=b""):
        """Passes a message on, a request or the answer to it; gives its head, None when the connection is over."""
        data = b""
        while b"\r\n\r\n" not in data:
            got = src.recv(1 << 16)
            if not got:
                return None
            data += got
        head, _, body = data.partition(b"\r\n\r\n")
        if not request:
            self.hosts |= {line[6:].decode() for line in head.split(b"\r\n") if line.startswith(b"Host: ")}
            if not head.partition(b" ")[2].startswith(self.base + b"/"):
                return None
            head = head.replace(b" " + self.base, b" ", 1)
        dst.sendall(head + b"\r\n\r\n")
        lengths = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        until_closed = request and not lengths and head.split(b" ")[1] in (b"200", b"206")
        left = 0 if request.startswith(b"HEAD ") else 1 << 60 if until_closed else (lengths or [0])[0]
        cut = self._take_cut(request, left)
        while left > 0:
            body = body or src.recv(1 << 16)
            if not body or len(body) >= cut:
                dst.sendall(body[:cut])
                return None
            dst.sendall(body)
            left -= len(body)
            cut -= len(body)
            body = b""
        return head

    def _take_cut(self, request, length):
        path = request.split(b" ")[1].partition(b"?")[0].decode() if request else None
        with self.lock:
            if length <= CUT or self.cuts.get(path, 0) == 0:
                return 1 << 60
            self.cuts[path] -= 1
            return CUT

    def drop(self):
        """From now on no packet of a client is taken, none is sent, and nobody is told; new connections included."""
        self.is_open.clear()
        drop_all = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))  # BPF: return 0
        program = struct.pack("HP", 1, ctypes.addressof(drop_all))
        with self.lock:
            for s in (self.listener, *self.clients):
                try:
                    s.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
                except OSError:
                    pass  # closed meanwhile

    def mend(self):
        """New connections get through; a firewall has forgotten the old ones."""
        self.listener.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
        with self.lock:
            self.clients = set()
            self.is_open = threading.Event()
            self.is_open.set()

    def close(self):
        self.listener.close()


def replay(port, messages, times, seed):
    """Sends recorded requests again, in another order; gives the number of replies."""
    order = [m for m in messages for _ in range(times)]
    random.Random(seed).shuffle(order)
    replies = 0
    with socket.create_connection(("127.0.0.1", port), 10) as s:
        s.sendall(REQ_GREETING)
        read_exactly(s, GREETING)
        for i, m in enumerate(order):
            # A request id of its own, so that each copy is a request for the bus.
            write_message(s, struct.pack(">I", 0x80000000 | (i + 1)) + m[4:])
        s.settimeout(1.5)
        try:
            while replies < len(order):
                read_message(s)
                replies += 1
        except (OSError, ConnectionError):
            pass
    return replies
