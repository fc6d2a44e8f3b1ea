# SPDX-License-Identifier: MIT
"""A server that takes connections and says nothing: who connects to it costs it next to nothing."""

import socket
import threading
from collections import deque


class Takers:
    """`taken`: how many so far. The newest `kept` stay open, the rest are closed."""

    def __init__(self, kept: int = 0) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self._open: deque[socket.socket] = deque()
        self._kept = kept
        self.port = int(self._listener.getsockname()[1])
        self.taken = 0
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        while True:
            sock, _ = self._listener.accept()
            self._open.append(sock)
            if len(self._open) > self._kept:
                self._open.popleft().close()
            self.taken += 1
