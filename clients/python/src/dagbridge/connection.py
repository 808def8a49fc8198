"""How a gateway is reached: address, token, certificate authority, and for how long to wait for one that is away."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from dagbridge.errors import DagBridgeError, Denied, Unavailable

if TYPE_CHECKING:
    import ssl

    from dagbridge.calls import Call


@dataclass(frozen=True, repr=False)
class Connection:
    """What both clients are made of. ``ValueError`` when the address is none.

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

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                f"{self.url!r} is no gateway's address: it should be like http://127.0.0.1:7071 or https://gateway.example"
            )

    def __repr__(self) -> str:
        return f"Connection({self.url!r})"

    def headers(self, call: Call) -> dict[str, str]:
        """What goes with a call. ``Denied`` when the token's file cannot be read."""
        headers = {"content-type": "application/json"}
        if call.holds:  # the gateway answers in time with what there is then
            headers["grpc-timeout"] = f"{max(int(self.timeout * 800), 1)}m"
        if token := self._token():
            headers["authorization"] = f"Bearer {token}"
        return headers

    def _token(self) -> str | None:
        if not self.token_file:
            return self.token
        try:
            return Path(self.token_file).read_text().strip()
        except (OSError, ValueError) as error:
            raise Denied(f"the token's file {self.token_file} cannot be read: {error}", 16) from error

    def client_options(self) -> dict[str, Any]:
        """What httpx's clients take; proxies are the environment's."""
        return {"base_url": self.url.rstrip("/"), "verify": self._verify(), "timeout": self.timeout, "follow_redirects": False}

    def _verify(self) -> bool | ssl.SSLContext:
        if isinstance(self.verify, bool):
            return self.verify
        import ssl

        try:
            return ssl.create_default_context(cafile=self.verify)
        except (OSError, ssl.SSLError) as error:
            raise ValueError(f"{self.verify} is no certificate authority's file: {error}") from error

    def retrying(self, again: bool, patience: float) -> dict[str, Any]:
        """What tenacity's loops take: only what the gateway surely has not taken, or what is the same when sent twice."""
        import httpx
        import tenacity

        def may_go_again(error: BaseException) -> bool:
            if _distrust(error) is not None:
                return False
            if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
                return True
            return again and isinstance(error, httpx.TransportError | Unavailable)

        return {
            "retry": tenacity.retry_if_exception(may_go_again),
            "wait": tenacity.wait_random_exponential(multiplier=0.2, max=5),
            "stop": tenacity.stop_after_delay(patience),
            "reraise": True,
        }

    def away(self, error: Exception) -> DagBridgeError:
        """The sentence for a transport's failure."""
        if (distrust := _distrust(error)) is not None:
            return Denied(f"the gateway at {self.url} is not trusted: {distrust}", 16)
        return Unavailable(f"the gateway at {self.url} cannot be reached: {error or type(error).__name__}", 14)


def _distrust(error: BaseException | None) -> BaseException | None:
    """A certificate that is not accepted, however deep it is in the error: it will not get better."""
    import ssl

    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error
