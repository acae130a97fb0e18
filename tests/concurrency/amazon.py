"""moto's server, one request at a time: `python amazon.py PORT`.

The threads of moto's own do not keep each other out: of writers that put an item at once, one was now and then told 500.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable
from typing import Any

from moto.server import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple


def main(port: int) -> None:
    """Answer until the process is killed."""
    os.environ["MOTO_PORT"] = str(port)
    answer, alone = DomainDispatcherApplication(create_backend_app), threading.Lock()

    def one_at_a_time(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        with alone:
            return list(answer(environ, start_response))

    run_simple("127.0.0.1", port, one_at_a_time, threaded=True, request_handler=MotoRequestHandler)


if __name__ == "__main__":
    main(int(sys.argv[1]))
