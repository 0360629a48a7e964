"""A WebSocket through pods/proxy, services/proxy and nodes/proxy, and through kubectl's own proxy.

Usage: web_sockets.py KUBECTL KUBECONFIG PORT PATH... A server on PORT of this machine says each
message back; each PATH below the API must lead there. Prints nothing and ends with 0 when all is as
it should be.
"""
import base64
import hashlib
import os
import re
import socket
import struct
import subprocess
import sys
import threading

MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
PATIENCE = 30


def accept_of(key):
    digest = hashlib.sha1((key + MAGIC).encode()).digest()
    return base64.b64encode(digest).decode()


def read_head(stream):
    lines = []
    while line := stream.readline().decode().rstrip("\r\n"):
        lines.append(line)
    return lines


def header(lines, name):
    for line in lines[1:]:
        own, _, value = line.partition(":")
        if own.lower() == name:
            return value.strip()
    return None


def read_message(stream):
    """One short text frame, masked or not."""
    first, second = stream.read(2)
    assert first == 0x81, hex(first)
    mask = stream.read(4) if second & 0x80 else bytes(4)
    payload = stream.read(second & 0x7F)
    return bytes(byte ^ mask[place % 4] for place, byte in enumerate(payload)).decode()


def frame(text, mask=b""):
    data = text.encode()
    assert len(data) < 126
    head = struct.pack("BB", 0x81, len(data) | (0x80 if mask else 0))
    if not mask:
        return head + data
    return head + mask + bytes(byte ^ mask[place % 4] for place, byte in enumerate(data))


def echo(connection):
    with connection, connection.makefile("rwb") as stream:
        lines = read_head(stream)
        answer = [
            "HTTP/1.1 101 Switching Protocols",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Accept: {accept_of(header(lines, 'sec-websocket-key'))}",
            f"Sec-WebSocket-Protocol: {header(lines, 'sec-websocket-protocol')}",
        ]
        stream.write("\r\n".join(answer + ["", ""]).encode())
        stream.flush()
        path = lines[0].split()[1]
        # Nobody's credentials get this far.
        secret = header(lines, "authorization") or "none"
        while True:
            try:
                message = read_message(stream)
            except ValueError:
                return
            stream.write(frame(f"{path} {secret} {message}"))
            stream.flush()


def serve(listener):
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=echo, args=(connection,), daemon=True).start()


def talk(port, path):
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        connection.settimeout(PATIENCE)
        with connection.makefile("rwb") as stream:
            key = base64.b64encode(os.urandom(16)).decode()
            asked = [
                f"GET {path}/a/b?c=d HTTP/1.1",
                f"Host: 127.0.0.1:{port}",
                "Upgrade: websocket",
                "Connection: Upgrade",
                "Sec-WebSocket-Version: 13",
                "Sec-WebSocket-Protocol: chat",
                f"Sec-WebSocket-Key: {key}",
            ]
            stream.write("\r\n".join(asked + ["", ""]).encode())
            stream.flush()
            lines = read_head(stream)
            assert lines[0].split()[1] == "101", (path, lines)
            assert header(lines, "sec-websocket-accept") == accept_of(key), lines
            assert header(lines, "sec-websocket-protocol") == "chat", lines
            for message in ["one", "two"]:
                stream.write(frame(message, os.urandom(4)))
                stream.flush()
                heard = read_message(stream)
                assert heard == f"/a/b?c=d none {message}", (path, heard)


def main():
    kubectl, kubeconfig, port, *paths = sys.argv[1:]
    listener = socket.create_server(("", int(port)))
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
    command = [kubectl, "--kubeconfig", kubeconfig, "proxy", "--port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as proxy:
        try:
            local = int(re.search(r":(\d+)\s*$", proxy.stdout.readline()).group(1))
            for path in paths:
                talk(local, path)
        finally:
            proxy.kill()


main()
