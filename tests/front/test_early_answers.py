"""An answer that comes before the request is whole ends the connection, and says so."""

from tests.front.harness import MINE, running

LENGTH = ("Content-Type: application/json", "Content-Length: 1000")
LOST = "/api/v1/sessions/not-a-uuid/execute"


async def test_a_refusal_ahead_of_the_body_announces_the_close() -> None:
    async with running() as front:
        bearer = f"Authorization: Bearer {front.token}"
        for path, lines in (
            (LOST, (bearer,)),
            (f"/api/v1/sessions/{MINE}/execute", ()),
            ("/api/v1/auth/bootstrap", ("Origin: http://evil.example",)),
        ):
            async with front.open_wire(front.head("POST", path, *lines, *LENGTH)) as wire:
                answer = await wire.until_closed()
            head = answer.partition(b"\r\n\r\n")[0].lower().split(b"\r\n")
            assert head.count(b"connection: close") == 1, path


async def test_a_request_that_was_read_whole_leaves_its_connection_open() -> None:
    async with running() as front:
        asked = front.head("GET", "/status")
        async with front.open_wire(asked) as wire:
            for _ in range(2):
                answer = await wire.until(b'"version":"1.2.3"}')
                assert b"200" in answer
                assert b"connection:" not in answer.lower()
                await wire.stream.send_all(asked)
