"""A port of its own for the Connect server of a test run: Spark gives them all 15002, and two runs may share a machine."""

from __future__ import annotations

from typing import Any

ANY_FREE_PORT = {"spark.connect.grpc.binding.port": "0"}
"""For the server."""


def ask_the_server_for_its_port() -> None:
    """Clients of this process ask their local server which port it took; its session must be the only one of the process."""
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.session import SparkSession

    def port_of_the_server() -> int:
        service = "org.apache.spark.sql.connect.service.SparkConnectService$"
        server = SparkSession._instantiatedSession
        assert server is not None, "Connect's server runs in the session that began it"
        port: int = getattr(getattr(server._jvm, service), "MODULE$").localPort()
        return port

    DefaultChannelBuilder.default_port = staticmethod(port_of_the_server)


def on_a_port_of_its_own(builder: Any) -> Any:
    """A builder of a Connect session with a local server that takes any free port, and a client that asks it which.

    Args:
        builder: `SparkSession.builder.remote("local[...]")`; the session must be the only one of its process.
    """
    ask_the_server_for_its_port()
    for key, value in ANY_FREE_PORT.items():
        builder = builder.config(key, value)
    return builder
