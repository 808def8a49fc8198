"""How a step reaches the gateway: an address, a token and a certificate authority, from its pod.

=========================  =======================================  ============================================
in the step's environment  left out                                 what it is
=========================  =======================================  ============================================
``DAGBRIDGE_URL``          the component's ``url`` is needed        REST address, ``https://gateway:7071``
``DAGBRIDGE_TOKEN_FILE``   ``/var/run/secrets/dagbridge/token``     the bearer token; read for every call
``DAGBRIDGE_CA_FILE``      ``/var/run/secrets/dagbridge/ca.crt``    who has signed the gateway's certificate
=========================  =======================================  ============================================

Files that are left out need not be there: then no token is sent, and the system's authorities are trusted. The folder is a
Secret (``kubernetes.use_secret_as_volume(step, "dagbridge", mount_path="/var/run/secrets/dagbridge")``), or a projected volume
with a service-account token of the audience that the gateway wants (``auth.serviceAccounts``), which the pod is given by a
PodDefault or another admission: KFP 2.17 has no word for it. Kubernetes replaces either token while a step waits.
"""

from __future__ import annotations

import os
from pathlib import Path

from dagbridge import AsyncClient

MOUNTED = Path("/var/run/secrets/dagbridge")
#: For how many seconds a gateway that is away is asked again to take the work. What it has taken is waited for without an end.
PATIENCE = 300.0


def address(url: str) -> str:
    """The gateway's REST address. ``ValueError`` when nothing says it."""
    found = url or os.environ.get("DAGBRIDGE_URL", "")
    if not found:
        raise ValueError("which gateway? Give url=, or set DAGBRIDGE_URL in the step's environment (https://gateway:7071)")
    return found.rstrip("/")


def connect(url: str) -> AsyncClient:
    """A client for an address."""
    token_file, ca_file = _file("DAGBRIDGE_TOKEN_FILE", "token"), _file("DAGBRIDGE_CA_FILE", "ca.crt")
    return AsyncClient(url, token_file=token_file, verify=ca_file or True, patience=PATIENCE)


def _file(variable: str, name: str) -> str | None:
    """The file that the environment names, or the one that is mounted."""
    if named := os.environ.get(variable):
        return named
    mounted = MOUNTED / name
    return str(mounted) if mounted.exists() else None
