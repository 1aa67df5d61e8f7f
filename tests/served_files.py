"""A server of files on this machine, for the tests of downloads."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["serving"]


@contextmanager
def serving(files: Mapping[str, bytes], truncated: tuple[str, ...] = ()) -> Iterator[str]:
    """The address of a server of ``files``, by path; ``truncated`` files are shorter than their Content-Length."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self):
            path = self.path.lstrip("/")
            if path not in files:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(files[path]) + 10 * (path in truncated)))
            self.end_headers()
            self.wfile.write(files[path])

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
