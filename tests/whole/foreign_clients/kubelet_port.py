"""The port of a node that has joined a cluster, as an API server that dials it uses it.

Usage: kubelet_port.py KUBECONFIG TOKEN ADDRESS PORT. KUBECONFIG is JSON with a client certificate in
it, TOKEN may read nodes/metrics alone; on the node runs the pod default/web with the container main,
which has an HTTP server on port 8080 with a file `page`. Prints nothing and ends with 0 when all is
as it should be.
"""
import base64
import json
import os
import socket
import ssl
import struct
import sys
import tempfile
import time

PATIENCE = 60
BINARY, CLOSE, PING = 2, 8, 9
STDIN, STDOUT, ERROR = 0, 1, 3


class Node:
    def __init__(self, config, address, port):
        config = json.load(open(config))
        self.address = (address, int(port))
        self.authority = decoded(config["clusters"][0]["cluster"]["certificate-authority-data"])
        user = config["users"][0]["user"]
        with tempfile.NamedTemporaryFile("w", delete=False) as file:
            file.write(decoded(user["client-certificate-data"]) + decoded(user["client-key-data"]))
        self.certificate = file.name

    def connect(self, is_admin):
        tls = ssl.create_default_context(cadata=self.authority)
        if is_admin:
            tls.load_cert_chain(self.certificate)
        plain = socket.create_connection(self.address, PATIENCE)
        return tls.wrap_socket(plain, server_hostname=self.address[0])

    def ask(self, path, is_admin=True, token=None, method="GET", headers=()):
        """Status and body of one request, by whom it is told to be."""
        lines = [f"{method} {path} HTTP/1.1", "Host: node", "Connection: close", *headers]
        if token:
            lines.append(f"Authorization: Bearer {token}")
        with self.connect(is_admin) as stream:
            stream.sendall("\r\n".join([*lines, "", ""]).encode())
            answer = b""
            while piece := stream.recv(65536):
                answer += piece
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), body.decode(errors="replace")


class WebSocket:
    def __init__(self, node, path, protocol, is_admin=True):
        self.stream = node.connect(is_admin).makefile("rwb")
        lines = [
            f"GET {path} HTTP/1.1",
            "Host: node",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
            f"Sec-WebSocket-Protocol: {protocol}",
        ]
        self.stream.write("\r\n".join([*lines, "", ""]).encode())
        self.stream.flush()
        status = self.stream.readline()
        assert status.split()[1] == b"101", (path, status)
        while self.stream.readline().strip():
            pass

    def say(self, channel, data):
        payload = bytes([channel]) + data
        assert len(payload) < 126
        head = struct.pack("BB", 0x80 | BINARY, 0x80 | len(payload))
        self.stream.write(head + bytes(4) + payload)
        self.stream.flush()

    def hear(self):
        """Channel and bytes of the next message; None at the end."""
        while True:
            first, second = self.stream.read(2)
            length = second & 0x7F
            if length == 126:
                (length,) = struct.unpack(">H", self.stream.read(2))
            payload = self.stream.read(length)
            if first & 0x0F == CLOSE:
                return None
            if first & 0x0F != PING:
                return payload[0], payload[1:]

    def until_close(self):
        heard = {}
        while message := self.hear():
            channel, data = message
            heard[channel] = heard.get(channel, b"") + data
        return heard


def decoded(text):
    return base64.b64decode(text).decode()


def until_signed(node):
    """At first the node shows a certificate that it made itself."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return node.connect(False).close()
        except ssl.SSLCertVerificationError:
            assert time.monotonic() < end, "the node's certificate is not signed"
            time.sleep(0.1)


def numbers_and_logs(node):
    for path, text in [
        ("/healthz", "ok"),
        ("/pods", '"name":"web"'),
        ("/runningpods/", '"name":"web"'),
        ("/stats/summary", '"podRef":{"name":"web"'),
        ("/metrics/resource", 'pod="web"'),
        ("/containerLogs/default/web/main", "started"),
    ]:
        status, body = node.ask(path)
        assert status == 200 and text in body, (path, status, body)


def who_may(node, token):
    for path in ["/healthz", "/pods", "/metrics", "/nothing"]:
        assert node.ask(path, is_admin=False) == (401, "Unauthorized"), path
    assert node.ask("/pods", is_admin=False, token="no.token")[0] == 401
    assert node.ask("/metrics/resource", is_admin=False, token=token)[0] == 200
    account = "system:serviceaccount:default:scraper"
    for path, verb, right in [
        ("/pods", "get", "pods proxy"),
        ("/stats/summary", "get", "stats"),
        ("/containerLogs/default/web/main", "get", "proxy"),
        ("/exec/default/web/main?command=id&output=1", "create", "proxy"),
    ]:
        status, body = node.ask(path, is_admin=False, token=token)
        told = f"Forbidden (user={account}, verb={verb}, resource=nodes, subresource(s)=[{right}])"
        assert status == 403 and body.strip() == told, (path, status, body)


def commands(node):
    path = "/exec/default/web/main?command=sh&command=-c&command=cat;exit+3&input=1&output=1"
    for prefix in ["v5", "v4"]:
        session = WebSocket(node, path, f"{prefix}.channel.k8s.io")
        session.say(STDIN, b"hello")
        if prefix == "v5":
            session.say(255, bytes([STDIN]))
            heard = session.until_close()
            assert heard[STDOUT] == b"hello", heard
            status = json.loads(heard[ERROR])
            assert status["details"]["causes"][0]["message"] == "3", status
        else:
            while (message := session.hear()) != (STDOUT, b"hello"):
                assert message, "the command ended"
    # A request that does not upgrade is told so, and what is not there before it is upgraded.
    status, body = node.ask("/exec/default/web/main?command=id&output=1")
    assert (status, body) == (400, "Upgrade request required"), (status, body)
    upgrade = ["Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: v4.channel.k8s.io"]
    path = "/exec/default/web/none?command=id&output=1"
    status, body = node.ask(path, method="POST", headers=upgrade)
    assert status == 500 and 'container not found ("none")' in body, (status, body)


def ports(node):
    session = WebSocket(node, "/portForward/default/web?port=8080", "v4.channel.k8s.io")
    number = struct.pack("<H", 8080)
    greetings = sorted([session.hear(), session.hear()])
    assert greetings == [(0, number), (1, number)], greetings
    session.say(0, b"GET /page HTTP/1.0\r\n\r\n")
    heard = session.until_close()
    assert b"here it is" in heard[0], heard


def main():
    config, token, address, port = sys.argv[1:]
    node = Node(config, address, port)
    until_signed(node)
    numbers_and_logs(node)
    who_may(node, token)
    commands(node)
    ports(node)


main()
