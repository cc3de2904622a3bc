"""Dask clients: the current one of this process, and new ones by address."""

from __future__ import annotations

from typing import Any

from truerank.core.errors import InvalidInputError


def current_client(client: object) -> Any:
    """Return the given client, the current one of this process, or None."""
    if client is not None:
        return client
    import sys

    if "distributed" not in sys.modules:
        return None
    from distributed import get_client

    try:
        return get_client()
    except ValueError:
        return None


# Every round allocates and frees histograms of some megabytes. These settings keep the C library of the workers from
# returning the pages to the system, which costs (with Dask's sampling of stacks) a quarter of a fit's CPU time.
_KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(1 << 28), "MALLOC_MMAP_THRESHOLD_": str(1 << 25)}
# A process that monitors itself 50 times a second uses 2 % of a core, and 0.4 % with these intervals.
_LOOK_SELDOM = {
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.memory.monitor-interval": "500ms",
    "distributed.worker.profile.enabled": False,
}
# Disable pages about the cluster that every user of the machine could read; `dask_setup` ends their server.
_NO_PAGES: dict[str, Any] = {
    f"distributed.{server}.{key}": value
    for server in ("scheduler", "worker")
    for key, value in (("http.routes", []), ("preload", [__name__]))
}


def dask_setup(server: Any) -> None:
    """Stop the HTTP server of a scheduler or worker that starts; Dask calls this by its name."""
    server.http_server.stop()


def connect(where: str) -> Any:
    """Return a client: `"local:N"` starts N worker processes on this machine, `"tcp://host:port"` joins a scheduler.

    Local processes communicate under TLS with a temporary certificate in memory, so that no other user of the machine
    can reach them. The processes start neither a dashboard nor an HTTP server.

    Raises MissingExtraError without the extra `cluster`, and InvalidInputError if `where` is neither.
    """
    from dask import config
    from distributed import Client, LocalCluster, Security

    kind, _, rest = where.partition(":")
    if kind == "local" and rest.isdigit() and int(rest) >= 1:
        import cryptography  # noqa: F401 - `temporary` needs it

        security = Security.temporary()
        environment = "distributed.nanny.pre-spawn-environ"
        kept = {environment: {**config.get(environment), **_KEEP_MEMORY}}
        with config.set({**kept, **_LOOK_SELDOM, **_NO_PAGES}):
            cluster = LocalCluster(
                n_workers=int(rest),
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address=None,
                protocol="tls://",
                security=security,
            )
        # A worker that is killed while it starts is not started again by its nanny: this asks for another one.
        cluster.adapt(minimum=int(rest), maximum=int(rest), interval="2s")
        return Client(cluster, direct_to_workers=True)
    if kind in ("tcp", "tls", "ucx", "ws") and rest.startswith("//"):
        return Client(where, direct_to_workers=True, timeout=30)
    raise InvalidInputError(
        "the address of a cluster must be local:N (N worker processes), or the address of a scheduler such as "
        f"tcp://host:8786 or tls://host:8786, got {where!r}",
        code="cluster-address",
    )
