"""Other terminals: narrow, resized, without colours, without a cursor."""

import re
import signal

from tests.terminal.seat import CTRL_C, CTRL_D, ESC, seat

COLOUR = re.compile(rb"\x1b\[[0-9;]*(3[0-7]|4[0-7]|9[0-7]|10[0-7]|38|48)[;m]")


def test_a_new_size_is_drawn_at_once(home):
    with seat(home) as at:
        at.say("hello", "You wrote: hello")
        at.resize(60, 20)
        at.until(lambda: at.typed == ">" and "chat" in at.lines[at.screen.cursor.y + 1], "drawn")
        at.say("hello again", "You wrote: hello again")
        at.resize(120, 40)
        at.say("and again", "You wrote: and again")


def test_twenty_columns_are_enough(home):
    with seat(home, columns=20, rows=12) as at:
        at.enter("fix the typo")
        at.settle_question("do it?")
        at.send("y")
        at.see("Done: written")
        at.idle()
        assert home.hello.read_text() == "Hello, world!\n"
        assert all(len(line) <= 20 for line in at.lines)


def test_no_color_means_none(home):
    with seat(home, NO_COLOR="1") as at:
        at.enter("think")
        at.see("two")
        at.idle()
        at.enter("fix the typo")
        at.settle_question("do it?")
        at.send(ESC)
        at.see("Then not")
        assert not COLOUR.search(at.raw)


def test_a_terminal_of_sixteen_colours_gets_no_others(home):
    with seat(home, TERM="xterm-16color") as at:
        at.enter("think")
        at.see("two")
        at.idle()
        assert COLOUR.search(at.raw)
        assert not re.search(rb"[34]8;[25];", at.raw)


def test_a_dumb_terminal_gets_lines_and_nothing_else(home):
    with seat(home, TERM="dumb") as at:
        at.enter("think")
        at.see("# Heading")
        at.see("- two")
        at.see("> ")
        at.send("/help\n")
        at.see("Ctrl-J")
        at.send(CTRL_D)
        assert at.wait() == 0
        assert b"\x1b" not in at.raw


def test_plain_mode_has_the_same_commands_and_asks_in_lines(home):
    with seat(home, "--plain") as at:
        at.send("fix the typo in @hello.txt\n")
        at.see("n because … to say why:")
        assert "+Hello, world!" in at.text
        at.send("n because it stays\n")
        at.see("Then not: Error: the user said no: it stays")
        at.see("tokens,")
        at.until(lambda: at.typed == ">", "the next prompt")
        at.send("/model\n")
        at.see("a number, or Enter for none:")
        at.see("1: auto")
        at.send("3\n")
        at.see("model openai-compat:demo/other")
        at.send("/model auto\n")
        at.see("the rules decide")
        at.send("tick\n")
        at.see("begun")
        at.send("one \\\n")
        at.send("two\n")
        at.see("You wrote: one")
        assert b"\x1b" not in at.raw


def test_plain_mode_stops_and_leaves_on_ctrl_c(home):
    with seat(home, "--plain") as at:
        at.send("hold on\n")
        at.see("it begins")
        at.child.kill(signal.SIGINT)
        at.see("Ctrl-C again leaves")
        at.see("stopped")
        at.send("hello\n")
        at.see("You wrote: hello")
        at.child.kill(signal.SIGINT)
        at.until(lambda: at.text.count("Ctrl-C again leaves") == 2, "told again")
        at.child.kill(signal.SIGINT)
        assert at.wait() == 0


def test_a_signal_leaves_the_terminal_as_it_was(home):
    with seat(home) as at:
        at.enter("tick")
        at.see("tick5 ")
        at.child.kill(signal.SIGTERM)
        assert at.wait() == 143
        assert b"\x1b[?25h" in at.raw[-200:]


def test_ctrl_c_twice_leaves_also_while_a_run_goes_on(home):
    with seat(home) as at:
        at.enter("tick")
        at.see("tick5 ")
        at.send(CTRL_C)
        at.see("Ctrl-C again leaves")
        at.send(CTRL_C)
        assert at.wait() == 0
