"""The bench's own connection knows where an answer ends, however it is cut."""

import pytest
import trio
import trio.testing

from bench.line import Answer, Broken, open_line, request

WHOLE = b"HTTP/1.1 200 \r\ncontent-length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"


async def asked(*pieces: bytes) -> Answer:
    """Return what a line hears of a server that sends *pieces*, each on its own, and hangs up."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]

    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some()
            for piece in pieces:
                await stream.send_all(piece)
                await trio.testing.wait_all_tasks_blocked()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, serve, listeners)
        async with open_line(port) as line:
            answer = await line.ask(request("GET", "/"))
        nursery.cancel_scope.cancel()
    return answer


@pytest.mark.parametrize("raw", [WHOLE, CHUNKED])
async def test_an_answer_ends_where_it_says_however_it_is_cut(raw: bytes) -> None:
    for cut in range(1, len(raw)):
        answer = await asked(raw[:cut], raw[cut:])
        assert answer.raw == raw
        assert len(answer.times) == len(answer.pieces)


@pytest.mark.parametrize("raw", [WHOLE[:-1], CHUNKED[:-3], b"HTTP/1.1 2"])
async def test_an_answer_that_breaks_off_is_told(raw: bytes) -> None:
    with pytest.RaisesGroup(Broken):
        await asked(raw)


async def test_a_request_names_the_host_that_it_is_sent_to() -> None:
    heard: list[bytes] = []

    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            heard.append(bytes(await stream.receive_some()))
            await stream.send_all(WHOLE)

    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, serve, listeners)
        async with open_line(port) as line:
            answer = await line.ask(request("POST", "/x", {"a": 1}, {"Accept": "text/plain"}))
        nursery.cancel_scope.cancel()
    head, _, body = heard[0].partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[:2] == [b"POST /x HTTP/1.1", b"Host: 127.0.0.1:%d" % port]
    assert b"Content-Length: 8" in head
    assert body == b'{"a": 1}'
    assert answer.ok
    assert answer.json() == {}


def test_a_piece_is_dated_by_what_is_in_it() -> None:
    answer = Answer(1, pieces=[b"head", b"delta", b"delta end"], times=[2, 3, 4])
    assert answer.last_with(b"delta") == 4
    assert answer.last_with(b"head") == 2
    assert answer.milliseconds == 3 / 1e6
    with pytest.raises(ValueError, match="no b'tool'"):
        answer.last_with(b"tool")
