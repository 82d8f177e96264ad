"""TLS before a server that speaks plain HTTP, as operators put it there."""

import contextlib
import socket
import ssl
import threading


class TlsFront:
    """Relays connections to ``target``, host and port, until it is stopped."""

    def __init__(self, target, certificate, key):
        self._target = target
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def stop(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self):
        while True:
            try:
                client, _address = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client):
        with contextlib.suppress(OSError), client:
            secured = self._context.wrap_socket(client, server_side=True)
            with secured, socket.create_connection(self._target) as server:
                back = threading.Thread(target=_copy, args=(server, secured), daemon=True)
                back.start()
                _copy(secured, server)
                back.join()


def _copy(source, sink):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
