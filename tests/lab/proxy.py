"""proxy.py - a TCP relay between programs of a lab that can cut, delay, repeat and record.

It knows the framing of SP over TCP (nng): 8 bytes of greeting each way, then messages with an 8-byte length. What it
recorded can be sent again over a connection of its own (replay).
"""

import random
import socket
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


class Proxy:
    """Listens on a port of its own; `copies` is how often each request of a client is passed on."""

    def __init__(self, port, copies=1, record=False):
        self.upstream = ("127.0.0.1", port)
        self.copies = copies
        self.record = record
        self.recorded = []
        self.raw = bytearray()  # everything that passed, both ways, when recording
        self.is_cut = False
        self.socks = set()
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"tcp://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.is_cut:
                client.close()
                continue
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

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
