"""What is killed: the router, the command; and how the session goes on."""

from tests.e2e.house import running
from tests.terminal.seat import ESC, seat


def test_the_session_outlives_its_router(own_home):
    with running(own_home) as router:
        assert own_home.run("login").returncode == 0
        with seat(own_home) as at:
            at.say("hello", "You wrote: hello")
            router.kill()
            at.enter("is anybody there")
            at.see("no router answers")
            at.until(lambda: at.typed == "> is anybody there", "the prompt is back")
            router.start()
            at.send("\r")
            at.see("You wrote: is anybody there")
            at.idle()
            at.enter("tick")
            at.see("tick5 ")
            router.kill()
            router.start()
            at.see("tick5 ")
            at.send(ESC)
            at.see("stopped")
            at.idle()
            at.enter("/usage")
            at.see("calls ·")


def test_a_run_goes_on_after_the_command_was_killed(home):
    with seat(home) as at:
        at.enter("fix the typo")
        at.settle_question("do it?")
        at.kill()
        at.until(lambda: at.over, "the end")
    with seat(home) as at:
        at.enter("/resume")
        at.see("Which session?")
        at.send("\r")
        at.see("it goes on from where it stood")
        at.settle_question("do it?")
        at.send("y")
        at.see("Done: written")
        at.idle()
    assert home.hello.read_text() == "Hello, world!\n"


def test_who_has_no_key_yet_is_offered_one_and_the_prompt_goes_on(own_home):
    with running(own_home), seat(own_home) as at:
        at.enter("hello there")
        at.settle_question("keep its key for this project")
        at.send("n")
        at.see("you are not logged in")
        at.until(lambda: at.typed == "> hello there", "the prompt is back")
        at.send("\r")
        at.settle_question("keep its key for this project")
        at.send("y")
        at.see("logged in; the key is kept in")
        at.see("You wrote: hello there")
