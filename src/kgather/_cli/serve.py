"""`kgather serve`."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from kgather._cli.query import PolicyOption
from kgather._errors import InputError

_QUIET = {"JE_ARROW_MALLOC_CONF": "background_thread:false", "OPENBLAS_NUM_THREADS": "1"}
"""Keeps libraries from starting threads while they load."""

EXTRA = "needs libraries that are not installed: pip install 'kgather[server]'"


def command(
    *,
    policy: PolicyOption,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="Settings as YAML; options go before them.")
    ] = None,
    users: Annotated[
        Path | None,
        typer.Option("--users", metavar="FILE", help="Password hashes (default users.scram beside the policy)."),
    ] = None,
    host: Annotated[
        str | None, typer.Option("--host", metavar="ADDRESS", help="Where to listen (default 127.0.0.1).")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", metavar="PORT", help="Of the PostgreSQL protocol (default 5432).")
    ] = None,
    flight_port: Annotated[
        int | None, typer.Option("--flight-port", metavar="PORT", help="Of Arrow Flight SQL (default none).")
    ] = None,
    metrics_port: Annotated[
        int | None, typer.Option("--metrics-port", metavar="PORT", help="Of /metrics and /healthz (default none).")
    ] = None,
    metrics_host: Annotated[
        str | None, typer.Option("--metrics-host", metavar="ADDRESS", help="Where these listen (default 127.0.0.1).")
    ] = None,
    tls_certificate: Annotated[
        Path | None, typer.Option("--tls-certificate", metavar="FILE", help="Certificate, with its chain, as PEM.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="Its key, as PEM.")] = None,
    max_connections: Annotated[
        int | None, typer.Option("--max-connections", metavar="N", help="Connections at once (default 100).")
    ] = None,
    queries_at_once: Annotated[
        int | None, typer.Option("--queries-at-once", metavar="N", help="Queries that run at once (default 4).")
    ] = None,
    statement_timeout: Annotated[
        int | None, typer.Option("--statement-timeout", metavar="MS", help="Longest wait for an answer.")
    ] = None,
    shutdown_grace: Annotated[
        float | None,
        typer.Option("--shutdown-grace", metavar="SECONDS", help="For queries that run at the end (default 10)."),
    ] = None,
    memory: Annotated[
        str | None, typer.Option("--memory", metavar="SIZE", help="Most address space of the process, as 16GB.")
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="NAME", help="The user to become if started as root.")
    ] = None,
    allow_root: Annotated[bool | None, typer.Option("--allow-root", help="Stay root.")] = None,
    log_file: Annotated[
        Path | None, typer.Option("--log-file", metavar="FILE", help="The log (default standard error).")
    ] = None,
    log_level: Annotated[
        str | None, typer.Option("--log-level", metavar="LEVEL", help="debug, info, warning or error.")
    ] = None,
) -> None:
    """Serve a policy to PostgreSQL clients and to Arrow Flight SQL, until told to stop."""
    try:
        from kgather._server.settings import load_settings

        settings = load_settings(
            config,
            policy.resolve().parent,
            users=users,
            host=host,
            port=port,
            flight_port=flight_port,
            metrics_port=metrics_port,
            metrics_host=metrics_host,
            tls_certificate=tls_certificate,
            tls_key=tls_key,
            max_connections=max_connections,
            queries_at_once=queries_at_once,
            statement_timeout_ms=statement_timeout,
            shutdown_grace_s=shutdown_grace,
            memory=memory,
            user=user,
            allow_root=allow_root,
            log_file=log_file,
            log_level=log_level,
        )
        if not set(_QUIET) <= set(os.environ):
            # Landlock binds a thread and those it starts: begin anew, as the same process, without any others.
            os.execve(sys.executable, sys.orig_argv, _QUIET | os.environ)
        from kgather._server.main import serve
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.split(".")[0] == "kgather":
            raise
        msg = f"kgather serve {EXTRA}."
        raise InputError(msg) from None
    serve(policy, settings)
