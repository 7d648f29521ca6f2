"""A session whose text only this machine can read, at the prompt."""

from tests.e2e.house import running
from tests.terminal.script import POLICY
from tests.terminal.seat import ESC, UP, seat
from tests.terminal.test_commands import session_ended_by_clear


def test_an_encrypted_session_is_spoken_in_looked_at_and_resumed(own_home):
    with running(own_home):
        own_home.write_policy(POLICY.replace("encrypt_sessions = false", "encrypt_sessions = true"))
        assert own_home.run("login").returncode == 0
        with seat(own_home) as at:
            at.say("a secret plan", "You wrote: a secret plan")
            at.enter("fix the typo")
            at.settle_question("do it?")
            at.send("y")
            at.see("Done: written")
            at.idle()
            at.enter("/trace")
            at.see("the default intent is 'chat', low")
            at.enter("/usage")
            at.see("3 calls ·")
            at.enter("/resume")
            at.see("a secret plan  (this one)")
            at.send(ESC)
            at.gone("Which session?")
            session_id = session_ended_by_clear(at)
            at.enter(f"/resume {session_id}")
            at.see("in session")
            at.see("> a secret plan")
            at.see("You wrote: a secret plan")
            at.say("and on it goes", "You wrote: and on it goes")
            at.enter("/undo")
            at.settle_question("write this?")
            at.send("y")
            at.see("taken back: hello.txt")
        with seat(own_home) as at:
            at.send(UP)
            at.until(lambda: at.typed == "> and on it goes", "an earlier prompt")
        assert b'"sealed"' in (own_home.home / "history").read_bytes()
        kept = own_home.home.rglob("*")
        assert not any(b"secret plan" in file.read_bytes() for file in kept if file.is_file())
