"""A TCP proxy before a gateway, for what networks and other proxies do: answers that are lost, streams that are kept back."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Literal

#: What becomes of a request: it passes; its answer is lost, with the connection; its answer is kept back until it is whole.
Fate = Literal["pass", "lose", "keep"]


class Proxy:
    """Listens on a port of its own. ``fate`` says of each request's head what becomes of it; it may be changed at any time."""

    def __init__(self, port: int, fate: Callable[[str], Fate] = lambda head: "pass") -> None:
        self.fate = fate
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        #: The heads of all requests so far.
        self.heads: list[str] = []
        #: How often it was asked while the gateway was away.
        self.refused = 0
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        # Closing alone does not wake who accepts.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """Breaks all connections."""
        for end in list(self._open):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """One connection, until either side is gone."""
        with contextlib.suppress(OSError), client, self._reach() as server:
            both = {client, server}
            self._open |= both
            fates: list[Fate] = ["pass"]
            back = threading.Thread(target=self._back, args=(client, server, fates), daemon=True)
            back.start()
            try:
                while piece := client.recv(65536):
                    if piece.startswith((b"GET ", b"POST ")):
                        head = piece.partition(b"\r\n")[0].decode()
                        self.heads.append(head)
                        fates[0] = self.fate(head)
                    server.sendall(piece)
            finally:
                for end in both:
                    with contextlib.suppress(OSError):
                        end.shutdown(socket.SHUT_RDWR)
                back.join()
                self._open -= both

    def _reach(self) -> socket.socket:
        try:
            return socket.create_connection(self._target)
        except OSError:
            self.refused += 1
            raise

    def _back(self, client: socket.socket, server: socket.socket, fates: list[Fate]) -> None:
        """What comes back, until the gateway is gone, however it goes."""
        kept = b""
        with contextlib.suppress(OSError):
            while (piece := server.recv(65536)) and fates[0] != "lose":  # once it answers, it has taken the request
                kept += piece
                if fates[0] == "pass":
                    client.sendall(kept)
                    kept = b""
        with contextlib.suppress(OSError):
            client.sendall(kept)
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)
