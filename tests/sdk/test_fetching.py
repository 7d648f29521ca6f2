"""Pages of the public internet, and no way to anything else."""

from functools import partial

import h11
import pytest
import trio

from smista.sdk import fetching
from smista.sdk.errors import NotFetched
from smista.sdk.fetching import Network, check_url, fetch_url, is_public, resolve


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "64:ff9b::8.8.8.8", "2002:808:808::1"]
)
def test_public_addresses_may_be_visited(address):
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.1.2.3", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1"),
        *("169.254.169.254", "100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1"),
        *("255.255.255.255", "192.0.0.8", "239.1.2.3", "0.1.2.3", "::", "::1", "::ffff:127.0.0.1"),
        *("::ffff:10.0.0.1", "::127.0.0.1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254"),
        *("ff02::1", "2001:db8::1", "64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b:1::1"),
        *("2002:7f00:1::", "2002:a00:1::1", "2001:0:53aa:64c::1", "100::1", "fec0::1", "4000::1"),
    ],
)
def test_all_other_addresses_may_not(address):
    assert not is_public(address)


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0x7f.1", "localhost"),
        *("[::1]", "[::ffff:7f00:1]", "0", "0.0.0.0", "[::]", "127.0.0.1."),
    ],
)
async def test_no_spelling_of_this_machine_gets_through(host):
    with pytest.raises(NotFetched):
        await fetch_url(check_url(f"http://{host}:1/"))


@pytest.mark.parametrize(
    "url",
    [
        *("file:///etc/passwd", "ftp://example.org/", "gopher://example.org", "example.org", ""),
        *("http://", "http:///x", "http://u@example.org/", "http://u:p@example.org/"),
        *("http://example.org:x/", "http://exa\x1bmple.org/", "http://example.org/\n"),
        "http://example.org/" + "x" * 3000,
        *("javascript:alert(1)", "data:text/plain,x", "http://[::1", "ws://example.org/"),
    ],
)
def test_only_plain_web_addresses_are_tried(url):
    with pytest.raises(NotFetched):
        check_url(url)


class Site:
    """A server with scripted answers; remembers what it was asked."""

    def __init__(self):
        self.pages, self.asked, self.port = {}, [], 0

    def page(self, path, body=b"", status=200, kind="text/plain", **headers):
        more = [(name.replace("_", "-"), value) for name, value in headers.items()]
        self.pages[path] = (status, [("Content-Type", kind), *more], body)

    async def serve(self, stream):
        async with stream:
            connection = h11.Connection(h11.SERVER)
            while (event := connection.next_event()) is h11.NEED_DATA:
                connection.receive_data(await stream.receive_some(65536))
            self.asked.append((event.target.decode(), dict(event.headers)))
            status, headers, body = self.pages[event.target.decode()]
            head = h11.Response(status_code=status, headers=[*headers, ("Connection", "close")])
            await stream.send_all(connection.send(head))
            try:
                await stream.send_all(connection.send(h11.Data(body)))
                await stream.send_all(connection.send(h11.EndOfMessage()))
            except trio.BrokenResourceError:
                pass  # whoever has read enough leaves


@pytest.fixture
async def site(nursery):
    site = Site()
    serve = partial(trio.serve_tcp, site.serve, 0, host="127.0.0.1")
    (listener,) = await nursery.start(serve)
    site.port = listener.socket.getsockname()[1]
    return site


class Names:
    """Answers each question for a name with the next of its addresses."""

    def __init__(self, **addresses):
        self.addresses = {name.replace("_", "."): list(them) for name, them in addresses.items()}

    async def __call__(self, host, port):
        them = self.addresses[host]
        answer = them.pop(0) if len(them) > 1 else them[0]
        return answer.split(",")


def network(names):
    """127.0.0.1 stands for the public internet."""
    return Network(resolve=names, allows=lambda address: address == "127.0.0.1")


async def fetch(site, path, host="site.test", names=None):
    names = names or Names(site_test=["127.0.0.1"])
    return await fetch_url(check_url(f"http://{host}:{site.port}{path}"), network(names))


async def test_a_page_is_fetched_without_cookies_keys_or_proxy(site, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    site.page("/a?q=1", "é".encode(), Set_Cookie="a=b")
    assert await fetch(site, "/a?q=1#part") == "é"
    (target, headers) = site.asked[0]
    assert target == "/a?q=1"
    assert headers[b"host"] == f"site.test:{site.port}".encode()
    assert not {b"cookie", b"authorization", b"referer"} & set(headers)


async def test_html_is_told_as_words_and_links(site):
    page = b"<h1>Hi</h1><script>evil()</script><p>a <b>b</b> <a href='/x'>c</a></p><style>x</style>"
    site.page("/", page, kind="text/html; charset=utf-8")
    assert await fetch(site, "/") == "Hi\na b c </x>"


async def test_each_hop_is_checked(site):
    site.page("/ok", b"there")
    site.page("/hop", status=302, Location="/ok")
    assert await fetch(site, "/hop") == "there"
    names = Names(site_test=["127.0.0.1"], inner_test=["10.0.0.1"])
    for place in ("http://inner.test/", "file:///etc/passwd", "http://u:p@site.test/", "//[::1/"):
        site.page("/away", status=301, Location=place)
        with pytest.raises(NotFetched):
            await fetch(site, "/away", names=names)


async def test_a_name_that_changes_its_mind_is_caught(site):
    site.page("/hop", status=302, Location="/hop")
    with pytest.raises(NotFetched, match="public"):
        await fetch(site, "/hop", names=Names(site_test=["127.0.0.1", "10.0.0.1"]))
    with pytest.raises(NotFetched, match="public"):
        await fetch(site, "/hop", names=Names(site_test=["127.0.0.1,192.168.0.1"]))
    assert len(site.asked) == 1


async def test_redirects_end(site):
    site.page("/hop", status=302, Location="/hop")
    with pytest.raises(NotFetched, match="redirects"):
        await fetch(site, "/hop")
    assert len(site.asked) == 6


async def test_only_text_comes_back_and_not_without_end(site):
    site.page("/image", b"\x89PNG", kind="image/png")
    site.page("/zip", b"x", Content_Encoding="gzip")
    site.page("/big", b"x" * 5_000_000)
    site.page("/odd", b"caf\xe9", kind="text/plain; charset=nonsense")
    site.page("/gone", b"no", status=404)
    for path in ("/image", "/zip"):
        with pytest.raises(NotFetched):
            await fetch(site, path)
    big = await fetch(site, "/big")
    assert len(big) < 70_000
    assert big.endswith("[the rest is left out]")
    assert await fetch(site, "/odd") == "caf�"
    assert await fetch(site, "/gone") == "[status 404]\nno"


async def test_a_server_that_says_nothing_is_left(nursery, monkeypatch):
    monkeypatch.setattr(fetching, "SECONDS", 0.3)

    async def silent(stream):
        await trio.sleep_forever()

    (listener,) = await nursery.start(partial(trio.serve_tcp, silent, 0, host="127.0.0.1"))
    site = Site()
    site.port = listener.socket.getsockname()[1]
    with pytest.raises(NotFetched, match="took more"):
        await fetch(site, "/")


async def test_a_name_that_is_none_and_a_port_that_is_closed(site):
    async def nowhere(host, port):
        return await resolve("nothing.invalid", port)

    with pytest.raises(NotFetched, match="found"):
        await fetch(site, "/", names=nowhere)
    site.port = 1
    with pytest.raises(NotFetched, match="answer"):
        await fetch(site, "/")
