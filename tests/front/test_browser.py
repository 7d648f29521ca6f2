"""A page of a stranger, in a real browser, gets nothing from the router."""

import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.front.harness import running

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--virtual-time-budget=4000",
    "--dump-dom",
]

PAGE = """<!doctype html><title>stranger</title><p id="log"></p>
<iframe name="quiet"></iframe>
<form id="form" method="post" action="{router}/api/v1/auth/bootstrap" target="quiet"></form>
<img src="{router}/status"><script src="{router}/status"></script>
<script>
const tries = [
  fetch("{router}/api/v1/auth/bootstrap", {{method: "POST"}}),
  fetch("{router}/api/v1/auth/bootstrap", {{method: "POST", mode: "no-cors"}}),
  fetch("{router}/api/v1/auth/bootstrap",
        {{method: "POST", mode: "no-cors", headers: {{"Content-Type": "text/plain"}}, body: "x"}}),
  fetch("{router}/api/v1/auth/bootstrap",
        {{method: "POST", headers: {{"X-Custom": "1", "Content-Type": "application/json"}}}}),
  fetch("{router}/status").then(r => r.text()),
  new Promise((ok, no) => {{
    const socket = new WebSocket("{router}/status".replace("http", "ws"));
    socket.onopen = ok; socket.onerror = no;
  }}),
];
document.getElementById("form").submit();
navigator.sendBeacon("{router}/api/v1/auth/bootstrap", "x");
Promise.allSettled(tries).then(ends => {{
  document.getElementById("log").textContent =
    "ends " + ends.map(end => end.status + ":" + (end.value && end.value.type || "")).join(" ");
}});
</script>"""


async def _serve_page(page: str, stream: trio.SocketStream) -> None:
    async with stream:
        await stream.receive_some(65536)
        body = page.encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}"
        await stream.send_all(f"{head}\r\nConnection: close\r\n\r\n".encode() + body)


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed on this machine")
async def test_a_strangers_page_reads_nothing_and_makes_no_user(tmp_path: Path):
    async with running(sign_in=False) as front, trio.open_nursery() as nursery:
        page = partial(_serve_page, PAGE.format(router=f"http://127.0.0.1:{front.port}"))
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, page, [listener])
        address = f"http://127.0.0.1:{listener.socket.getsockname()[1]}/"
        browser = await trio.run_process(
            [str(CHROMIUM), *FLAGS, f"--user-data-dir={tmp_path}", address],
            capture_stdout=True,
            stderr=subprocess.DEVNULL,
        )
        shown = browser.stdout.decode()
        assert "ends " in shown, "the page's script did not come to its end"
        ends = shown.split("ends ")[1].split("<")[0].split()
        assert len(ends) == 6
        # A request the page may not read is opaque to it; everything else fails outright.
        assert set(ends) <= {"rejected:", "fulfilled:opaque"}
        assert front.journal.users == {}
        nursery.cancel_scope.cancel()
