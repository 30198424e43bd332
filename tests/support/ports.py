"""Ports of 127.0.0.1 that nothing else is given while a test wants them."""

import contextlib
import socket


@contextlib.contextmanager
def reserved_ports(count):
    """Who listens has to ask for them by SO_REUSEADDR, as PyTorch's store and Slurm do."""
    with contextlib.ExitStack() as held:
        reservations = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in reservations:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            each.bind(("127.0.0.1", 0))
        yield [each.getsockname()[1] for each in reservations]
