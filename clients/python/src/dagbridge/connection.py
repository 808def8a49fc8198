"""How a gateway is reached: address, token, certificate authority, and for how long to wait for one that is away."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dagbridge.errors import Unavailable

if TYPE_CHECKING:
    import ssl


@dataclass(frozen=True)
class Connection:
    """What both clients are made of.

    :param url: ``http://host:7071`` or ``https://...``; a path in it is kept (a proxy's prefix).
    :param token: sent with every call.
    :param token_file: holds the token; read for every call, so that it may change.
    :param verify: True: the system's authorities; a path: this authority; False: anybody (tests only).
    :param patience: for how many seconds a call is sent again while the gateway is away. Watches wait for ever.
    :param timeout: seconds for one answer.
    """

    url: str = "http://127.0.0.1:7071"
    token: str | None = None
    token_file: str | None = None
    verify: bool | str = True
    patience: float = 60.0
    timeout: float = 60.0

    def __repr__(self) -> str:
        return f"Connection({self.url!r})"

    @property
    def headers(self) -> dict[str, str]:
        """Of every call."""
        headers = {"content-type": "application/json"}
        token = Path(self.token_file).read_text().strip() if self.token_file else self.token
        if token:
            headers["authorization"] = f"Bearer {token}"
        return headers

    def client_options(self) -> dict[str, Any]:
        """What httpx's clients take; proxies are the environment's."""
        return {"base_url": self.url.rstrip("/"), "verify": self._verify(), "timeout": self.timeout, "follow_redirects": False}

    def _verify(self) -> bool | ssl.SSLContext:
        if isinstance(self.verify, bool):
            return self.verify
        import ssl

        return ssl.create_default_context(cafile=self.verify)

    def retrying(self, again: bool) -> dict[str, Any]:
        """What tenacity's loops take: only what the gateway surely has not taken, or what is the same when sent twice."""
        import httpx
        import tenacity

        def may_go_again(error: BaseException) -> bool:
            if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
                return True
            return again and isinstance(error, httpx.TransportError | Unavailable)

        return {
            "retry": tenacity.retry_if_exception(may_go_again),
            "wait": tenacity.wait_random_exponential(multiplier=0.2, max=5),
            "stop": tenacity.stop_after_delay(self.patience),
            "reraise": True,
        }

    def away(self, error: Exception) -> Unavailable:
        """The sentence for a transport's failure."""
        return Unavailable(f"the gateway at {self.url} cannot be reached: {error or type(error).__name__}", 14)
