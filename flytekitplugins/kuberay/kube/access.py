"""The way to the cluster: the pod's service account or a kubeconfig, fresh credentials, and proxies.

Everything here ends in one `kubernetes.aio` Configuration. Texts of errors never quote a kubeconfig's content, nor
what the library says about it in full: its messages may hold the user entry with its token.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException
from kubernetes.aio.config.incluster_config import InClusterConfigLoader
from kubernetes.aio.config.kube_config import ENV_KUBECONFIG_PATH_SEPARATOR, KubeConfigLoader, load_kube_config

from .errors import AccessError

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_REFRESH_SECONDS = 60.0  # as kubernetes.aio's own refresh_token; a plugin that named a token's expiry runs only then
_LONGEST_CLOSE = 5.0


@dataclass(eq=False)
class Access:
    """A cluster's address and credentials.

    Args:
        configuration: For the client; its token changes as credentials are renewed.
        source: Where it came from, in words for a person.
        namespace: The one that applies where nobody names one.
        loader: Of a kubeconfig; None for a pod's service account, whose token is read before every call.
        tls: What the client's new connections present; None while there is no client.
    """

    configuration: Configuration
    source: str
    namespace: str = "default"
    loader: KubeConfigLoader | None = None
    tls: ssl.SSLContext | None = None
    _loaded_at: float = field(default_factory=time.monotonic)
    _renewal: asyncio.Task[None] | None = None

    @classmethod
    async def find(
        cls,
        kubeconfig: str = "",
        context: str = "",
        *,
        environ: Mapping[str, str] = os.environ,
        service_account: Path = _SERVICE_ACCOUNT,
    ) -> Access:
        """The first way that there is: the arguments, KUBECONFIG, the pod's service account, ~/.kube/config.

        The service account stands before ~/.kube/config, unlike in kubectl: a file that an image happens to hold
        must not turn a connector to another cluster.

        Args:
            kubeconfig: A path, or several as in KUBECONFIG.
            context: Of that kubeconfig; its current one when empty.
            environ: The process's environment.
            service_account: Where Kubernetes mounts a pod's token.

        Raises:
            AccessError: There is none, or it can't be used.
        """
        home = str(Path(environ.get("HOME", "~")).expanduser() / ".kube" / "config")
        in_pod = bool(environ.get("KUBERNETES_SERVICE_HOST")) and (service_account / "token").exists()
        if paths := kubeconfig or environ.get("KUBECONFIG", ""):
            access = await _from_kubeconfig(paths, context)
        elif in_pod and not context:
            access = _from_service_account(service_account, environ)
        elif Path(home).exists():
            access = await _from_kubeconfig(home, context)
        else:
            raise AccessError(_no_way(context, home, service_account))
        _set_connections(access, environ)
        return access

    async def renew(self, timeout: float) -> None:
        """Looks the credentials up again when they are a minute old, once for all who wait.

        A renewal that fails or takes too long leaves the old credentials, and the server decides about them.

        Args:
            timeout: Seconds to wait for it; it goes on in the background.

        Raises:
            Nothing, but for cancellation.
        """
        if self.loader is None or (self._renewal is None and time.monotonic() - self._loaded_at < _REFRESH_SECONDS):
            return
        if self._renewal is None:
            self._renewal = asyncio.create_task(self._load_again(self.loader))
        await asyncio.wait([self._renewal], timeout=timeout)

    def expire(self) -> None:
        """Makes the next `renew` look the credentials up, since the server refused them. Raises nothing."""
        self._loaded_at = min(self._loaded_at, time.monotonic() - _REFRESH_SECONDS)

    async def close(self) -> None:
        """Waits for a renewal that runs, and in the end stops it. Raises nothing."""
        if self._renewal is not None:
            # Cancelled at once, the library would leave the plugin's process behind.
            _, late = await asyncio.wait([self._renewal], timeout=_LONGEST_CLOSE)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _load_again(self, loader: KubeConfigLoader) -> None:
        try:
            await loader.load_and_set(self.configuration)
            self._present_certificate()
        except Exception:  # noqa: BLE001  # a plugin or file may fail in any way, and says nothing safe to tell
            pass
        finally:
            self._loaded_at = time.monotonic()
            self._renewal = None

    def _present_certificate(self) -> None:
        """Has the next connections present the client certificate as it is now: a plugin's, or a file's.

        Raises:
            OSError: It can't be used, and the old one stays.
        """
        certificate, key = self.configuration.cert_file, self.configuration.key_file
        if self.tls is None or not certificate:
            return
        # Tried elsewhere first: a key that does not fit, of files replaced one by one, leaves a context without any.
        for context in (ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), self.tls):
            context.load_cert_chain(certificate, key)


def _no_way(context: str, home: str, service_account: Path) -> str:
    none = "no kubeconfig is named, KUBECONFIG is not set"
    if context:
        remedy = "name a kubeconfig, or no context: a pod's own service account needs none"
        return f"context {context} needs a kubeconfig, but {none} and there is no {home}; {remedy}"
    missing = f"{none}, there is no {home} and no service account token in {service_account}"
    return f"no Kubernetes cluster to talk to: {missing}; name a kubeconfig, or run in a pod"


def _from_service_account(folder: Path, environ: Mapping[str, str]) -> Access:
    configuration = Configuration()
    try:
        InClusterConfigLoader(
            token_filename=str(folder / "token"),
            cert_filename=str(folder / "ca.crt"),
            try_refresh_token=False,
            environ=environ,
        ).load_and_set(configuration)
        namespace = (folder / "namespace").read_text().strip() if (folder / "namespace").exists() else "default"
    except (ConfigException, OSError) as error:
        raise AccessError(f"the pod's service account in {folder} can't be used: {error}") from error
    read_token = partial(_read_token, folder / "token")
    configuration.refresh_api_key_hook = read_token  # type: ignore[assignment]  # the library's None is a place for it
    return Access(configuration, f"the pod's service account ({configuration.host})", namespace)


def _read_token(file: Path, configuration: Configuration) -> None:
    """Reads the token, before every call, since the kubelet replaces it within its hour and the file is small."""
    try:
        token = file.read_text().strip()
    except OSError:
        return  # the old one may still do, and the server will tell
    if token:
        configuration.api_key["BearerToken"] = f"Bearer {token}"


async def _from_kubeconfig(paths: str, context: str) -> Access:
    if not any(Path(path).expanduser().is_file() for path in paths.split(ENV_KUBECONFIG_PATH_SEPARATOR) if path):
        raise AccessError(f"the kubeconfig {paths} does not exist")
    configuration = Configuration()
    try:
        loader = await load_kube_config(
            config_file=paths, context=context or None, client_configuration=configuration, persist_config=False
        )
    except Exception as error:  # noqa: BLE001  # odd files make the library fail in a dozen ways
        # Not chained: the library's text may hold a token.
        raise AccessError(f"the kubeconfig {paths} can't be used: {_fault(error)}") from None
    chosen = loader.current_context
    where = f"context {chosen['name']} of {paths}"
    _require_credentials(loader, configuration, where)
    return Access(configuration, where, chosen["context"].get("namespace") or "default", loader)


def _fault(error: Exception) -> str:
    if isinstance(error, ConfigException):
        # What follows " in " names the entry by its whole content.
        return str(error).split(" in ")[0].removeprefix("Invalid kube-config file. ")
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"it is no YAML, line {error.problem_mark.line + 1}"
    if isinstance(error, OSError):
        return f"{error.strerror}: {error.filename}"
    return f"it is not shaped like a kubeconfig, or its credentials are broken ({type(error).__name__})"


def _require_credentials(loader: KubeConfigLoader, configuration: Configuration, where: str) -> None:
    """Refuses a plugin without credentials: the library only logs that it failed, and would go on.

    Raises:
        AccessError: The plugin gave none.
    """
    user: Any = loader._user  # the library has no other word for whether a plugin is asked
    if user is not None and "exec" in user and not (configuration.api_key or configuration.cert_file):
        command = user["exec"].safe_get("command")
        raise AccessError(f"{where} can't be used: its plugin {command} gave no credentials; run it by hand to see why")


def _set_connections(access: Access, environ: Mapping[str, str]) -> None:
    configuration = access.configuration
    # No limit. The watches hold two for each namespace, and of the library's 100 none would be left for calls.
    configuration.connection_pool_maxsize = 0
    # aiohttp's own reading of the environment knows no address ranges in NO_PROXY, which clusters live by, and takes
    # a password for the API server out of ~/.netrc.
    configuration.client_session_kwargs = {"trust_env": False}
    configuration.proxy = configuration.proxy or proxy_of(configuration.host, environ)
    scheme = urlsplit(configuration.proxy).scheme if configuration.proxy else "http"
    if scheme not in ("http", "https"):
        raise AccessError(f"{access.source}: a proxy of the kind {scheme}:// is not supported; use an HTTP proxy")


def proxy_of(server: str, environ: Mapping[str, str]) -> str | None:
    """The proxy that HTTPS_PROXY (HTTP_PROXY for http) and NO_PROXY mean for an address, or None.

    Source: golang.org/x/net/http/httpproxy, FromEnvironment and useProxy, which every other client of a cluster obeys.

    Raises:
        Nothing.
    """
    address = urlsplit(server)
    host, name = (address.hostname or "").rstrip("."), f"{address.scheme}_proxy"
    port = address.port or (443 if address.scheme == "https" else 80)
    proxy = environ.get(name.upper()) or environ.get(name) or ""
    bypassed = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    local = host == "localhost" or _is_in(host, "127.0.0.0/8") or host == "::1"
    if not proxy or local or any(_is_bypassed(host, port, entry.strip()) for entry in bypassed.lower().split(",")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_bypassed(host: str, port: int, entry: str) -> bool:
    if entry == "*" or _is_in(host, entry):  # an address is a range of one
        return True
    try:
        wanted, wanted_port = urlsplit(f"//{entry}").hostname, urlsplit(f"//{entry}").port
    except ValueError:
        return False
    if not wanted or wanted_port not in (None, port):
        return False
    domain = wanted.removeprefix("*")
    return host == domain or host.endswith(domain if domain.startswith(".") else f".{domain}")


def _is_in(host: str, network: str) -> bool:
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False
