"""How tasks and triggers reach a gateway: an Airflow connection of the type ``dagbridge``.

Host, port and schema (``http``, ``https``) make the address, the password is the token, and the extra holds the rest
(``provider_info.CONNECTION_FIELDS``). The token never leaves the connection: triggers carry the connection's id.
"""

from __future__ import annotations

import logging
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseHook

from dagbridge.airflow.provider_info import CONNECTION_FIELDS, UI_FIELDS
from dagbridge.connection import Connection

if TYPE_CHECKING:
    import asyncio

    from airflow.providers.common.compat.sdk import Connection as AirflowConnection

    from dagbridge import AsyncClient, Client, Job

# httpx tells every request at INFO, which would be in the tasks' logs. Airflow 3 quiets it as well.
if (_httpx := logging.getLogger("httpx")).level == logging.NOTSET:
    _httpx.setLevel(logging.WARNING)

#: One client, and so one stream, for all triggers of a process that run in the same loop and have the same settings.
_clients: dict[tuple[asyncio.AbstractEventLoop, Connection], AsyncClient] = {}


class DagBridgeHook(BaseHook):
    """A dagbridge gateway.

    :param dagbridge_conn_id: the connection; ``get_conn`` is a ``dagbridge.Client`` made of it.
    """

    conn_name_attr = "dagbridge_conn_id"
    default_conn_name = "dagbridge_default"
    conn_type = "dagbridge"
    hook_name = "dagbridge"

    def __init__(self, dagbridge_conn_id: str = default_conn_name, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dagbridge_conn_id = dagbridge_conn_id

    @cached_property
    def connection(self) -> AirflowConnection:
        """The Airflow connection."""
        return self.get_connection(self.dagbridge_conn_id)

    @property
    def extra(self) -> dict[str, Any]:
        """The connection's extra, without what was left empty in the form."""
        return {name: value for name, value in self.connection.extra_dejson.items() if value not in (None, "")}

    @property
    def settings(self) -> Connection:
        """How the gateway is reached."""
        connection, extra = self.connection, self.extra
        host = connection.host or "127.0.0.1"
        scheme, _, rest = host.rpartition("://")
        url = f"{scheme or connection.schema or 'http'}://{rest.rstrip('/')}"
        if connection.port or not scheme:
            url += f":{connection.port or 7071}"
        known: dict[str, Any] = {"url": url, "token": connection.password or None}
        if "token_file" in extra:
            known["token_file"] = extra["token_file"]
        if "patience" in extra:
            known["patience"] = float(extra["patience"])
        if str(extra.get("verify", True)).lower() == "false":
            known["verify"] = False
        elif "ca_file" in extra:
            known["verify"] = extra["ca_file"]
        return Connection(**known)

    @property
    def deployment(self) -> str:
        """Which Airflow this is to the gateway."""
        return str(self.extra.get("deployment", "default"))

    @property
    def link_base(self) -> str:
        """What links to the gateway begin with; people may reach it by another address than the workers do."""
        return str(self.extra.get("link_base", self.settings.url)).rstrip("/")

    def link(self, job: Job) -> str:
        """Where a person reads about a job: its own address if it has one, else the gateway's."""
        return job.get("url") or f"{self.link_base}/v1/jobs/{job['id']}"

    def run_link(self, run_id: str) -> str:
        """Where a person reads about a run."""
        return f"{self.link_base}/v1/runs/{run_id}"

    def new_client(self) -> Client:
        """A client of its own, for who must not wait for what another one is doing, such as a signal's handler."""
        from dataclasses import asdict

        from dagbridge import Client

        return Client(**asdict(self.settings))

    @cached_property
    def _client(self) -> Client:
        return self.new_client()

    def get_conn(self) -> Client:
        """The client that blocks; one for each hook."""
        return self._client

    async def get_async_client(self) -> AsyncClient:
        """The client of this event loop, shared by all that have the same settings. Nobody closes it."""
        import asyncio
        from dataclasses import asdict

        from dagbridge import AsyncClient

        if "connection" not in self.__dict__:
            self.connection = await self._aget_connection()
        loop, settings = asyncio.get_running_loop(), self.settings
        for old, other in list(_clients):
            if old.is_closed():
                del _clients[old, other]
        if (loop, settings) not in _clients:
            _clients[loop, settings] = AsyncClient(**asdict(settings))
        return _clients[loop, settings]

    async def _aget_connection(self) -> AirflowConnection:
        """Without blocking the loop; Airflow before 3.1 has no call for that."""
        if hasattr(BaseHook, "aget_connection"):
            return await self.aget_connection(self.dagbridge_conn_id)
        import asyncio

        return await asyncio.to_thread(self.get_connection, self.dagbridge_conn_id)

    def test_connection(self) -> tuple[bool, str]:
        """What the button in the connection form shows: the clusters behind the gateway, and whether they answer."""
        from dagbridge import DagBridgeError

        try:
            clusters = self.get_conn().clusters()
        except (DagBridgeError, OSError, ValueError) as error:
            return False, str(error)
        told = "; ".join(
            f"{c['name']} ({c['kind']}{', ' + c['message'] if c.get('message') else ''})"
            + ("" if c.get("reachable") else " does not answer")
            for c in clusters
        )
        return True, f"The gateway at {self.settings.url} answers. Clusters: {told or 'none'}."

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """For Airflow 2, whose form is made here; Airflow 3 reads the provider info."""
        return {name.replace("-", "_"): value for name, value in UI_FIELDS.items()}

    @classmethod
    def get_connection_form_widgets(cls) -> dict[str, Any]:
        """For Airflow 2."""
        from flask_appbuilder.fieldwidgets import BS3TextFieldWidget
        from wtforms import BooleanField, StringField

        return {
            name: BooleanField(field["label"], description=field["description"], default=True)
            if "boolean" in field["schema"]["type"]
            else StringField(field["label"], description=field["description"], widget=BS3TextFieldWidget())
            for name, field in CONNECTION_FIELDS.items()
        }
