"""How we use the HTTP client: what holds for providers and the SDK alike."""

import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from ipaddress import ip_address
from pathlib import Path

import httpx
import pytest
import trio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from smista.core.errors import ProviderFailure
from smista.core.prompt import Prompt
from smista.net import DirectClient, closing_reads, create_client, create_request
from smista.ports.provider import Provider
from smista.providers.registry import CompatInstance, open_registry
from tests.providers.raw_server import answers, chunked, open_raw_server, sends


def self_signed(folder: Path) -> ssl.SSLContext:
    """Return the server side of a certificate nobody has a reason to trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "stranger")])
    begin = datetime(2020, 1, 1, tzinfo=UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, begin, begin + timedelta(99_999))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "server.pem"
    path.write_bytes(private + certificate.public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


@asynccontextmanager
async def open_tls_server(context: ssl.SSLContext, heard: list[bytes]) -> AsyncGenerator[int]:
    async def serve(stream: trio.SSLStream[trio.SocketStream]) -> None:
        try:
            heard.append(await stream.receive_some())
        except trio.BrokenResourceError:
            return

    async with trio.open_nursery() as nursery:
        serving = partial(trio.serve_ssl_over_tcp, serve, 0, context, host="127.0.0.1")
        (listener, *_) = await nursery.start(serving)
        yield listener.transport_listener.socket.getsockname()[1]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("local", [True, False])
async def test_a_certificate_nobody_vouches_for_ends_the_connection(tmp_path, local):
    heard: list[bytes] = []
    async with open_tls_server(self_signed(tmp_path), heard) as port:
        url = f"https://127.0.0.1:{port}"
        async with create_client(url, local=local) as client:
            with pytest.raises(httpx.ConnectError):
                await client.get("/")
        instance = CompatInstance(id="openai-compat:t", base_url=url, local=local)
        async with open_registry([instance]) as registry:
            provider = registry.provider("openai-compat:t")
            assert provider is not None
            with pytest.raises(ProviderFailure, match="self-signed certificate") as caught:
                await enter(provider)
    assert caught.value.details["kind"] == "bad_certificate"
    assert heard == []


async def enter(provider: Provider) -> None:
    async with provider.open_stream(Prompt(model="m", system="", messages=()), key=None):
        pass


async def test_a_request_carries_its_length_and_its_body():
    async with (
        open_raw_server(answers(200, b"ok")) as server,
        create_client(server.url, local=True) as client,
    ):
        for body in (b"hello", b""):
            request = create_request(client, "POST", server.url, body=body, headers={"X-A": "1"})
            response = await client.send(request)
            assert response.content == b"ok"
    first, second = server.requests
    assert first.endswith(b"\r\n\r\nhello")
    assert b"content-length: 5" in first.lower()
    assert b"x-a: 1" in first.lower()
    assert second.endswith(b"\r\n\r\n")


async def test_the_direct_client_sends_what_the_other_one_sends():
    async with open_raw_server(answers(200, b"ok")) as server:
        direct = DirectClient(server.url)
        async with create_client(server.url, local=True) as client:
            for sender in (client, direct):
                headers = {"X-A": "1"}
                request = create_request(sender, "POST", server.url, body=b"hi", headers=headers)
                assert (await sender.send(request, stream=False)).content == b"ok"
        await direct.aclose()
    first, second = (set(raw.lower().split(b"\r\n")) for raw in server.requests)
    assert second == first - {b"connection: keep-alive"}  # which HTTP/1.1 takes for granted


async def first_part(client: httpx.AsyncClient, url: str) -> bytes:
    async with (
        client.stream("GET", url) as response,
        closing_reads(response.aiter_raw()) as parts,
    ):
        return await anext(parts)


async def test_a_response_left_in_the_middle_leaves_nothing_open():
    async with (
        open_raw_server(sends(b"one", then="hold")) as server,
        create_client(server.url, local=True) as client,
    ):
        for _ in range(3):
            assert await first_part(client, server.url) == b"one"
        with trio.fail_after(5):
            await server.left.wait()
    assert server.connections == 3


async def test_a_response_that_has_all_come_in_gives_its_connection_back():
    async def play(stream: trio.SocketStream) -> None:
        head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        await stream.send_all(head + chunked(b"one") + chunked(b"two") + b"0\r\n\r\n")

    async with (
        open_raw_server(play) as server,
        create_client(server.url, local=True) as client,
    ):
        for _ in range(3):
            assert await first_part(client, server.url) == b"one"
    assert server.connections == 1


async def test_leaving_keeps_the_error_that_made_one_leave():
    async def parts() -> AsyncIterator[bytes]:
        yield b"one"
        raise httpx.ReadError("what came later")

    async def leave() -> None:
        async with closing_reads(parts()) as read:
            await anext(read)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await leave()
