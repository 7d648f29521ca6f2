"""Prompts, answers and what is said about them."""

from tests.terminal.seat import CTRL_C, CTRL_D, CTRL_O, ESC


def test_an_answer_is_drawn_and_its_reasoning_folded(at):
    at.enter("think about it")
    at.see("two")
    at.idle()
    assert "reasoning, 24 characters" in at.text
    assert "first this and then that" not in at.text
    assert "# Heading" not in at.text
    assert "**bold**" not in at.text
    assert "<b>tags</b>" in at.text
    at.send(CTRL_O)
    at.see("first this and then that")


def test_the_status_line_tells_intent_model_rule_tokens_and_cost(at):
    at.enter("fix nothing")
    at.see("keyword 'fix'")
    at.idle()
    status = at.lines[at.screen.cursor.y + 1]
    for part in ("edit", "openai-compat:demo/demo", "rule edits stay here", "tokens", "USD"):
        assert part in status


def test_what_a_model_writes_cannot_steer_the_terminal(at):
    at.enter("hostile")
    at.see("http://there.example/x)")
    at.idle()
    assert b"\x1b]0;PWNED" not in at.raw
    assert b"\x1b[35m" not in at.raw
    assert "␛]0;PWNED␇" in at.text
    assert "http://there.example/x" in at.text
    assert at.text.count("⟨U+202E⟩") == 2


def test_a_line_goes_on_after_a_backslash_alt_enter_and_ctrl_j(at):
    at.send("one\\")
    at.send("\r")
    at.send("two")
    at.send("\x1b\r")
    at.send("three")
    at.send("\n")
    at.send("four")
    at.until(lambda: at.typed == "four", "four lines")
    at.send("\r")
    at.see("You wrote: one")
    at.idle()
    assert "\n  two\n  three\n  four" in at.text


def test_ctrl_c_clears_then_leaves_and_the_terminal_is_as_before(at):
    at.send("half a thought")
    at.until(lambda: "half a thought" in at.typed, "typed")
    at.send(CTRL_C)
    at.see("Ctrl-C again leaves")
    at.until(lambda: at.typed == ">", "cleared")
    at.send(CTRL_C)
    assert at.wait() == 0
    assert b"\x1b[?2004l" in at.raw[-200:]
    assert b"\x1b[?25h" in at.raw[-200:]


def test_ctrl_d_leaves_on_an_empty_line_only(at):
    at.send("x")
    at.until(lambda: at.typed == "> x", "typed")
    at.send(CTRL_D)
    at.send("y")
    at.until(lambda: at.typed == "> xy", "still here")
    at.send("\x7f\x7f")
    at.until(lambda: at.typed == ">", "empty")
    at.send(CTRL_D)
    assert at.wait() == 0


def test_esc_alone_does_nothing(at):
    at.send(ESC)
    at.say("hello", "You wrote: hello")


def test_a_command_during_an_answer_leaves_its_code_whole(at):
    at.enter("write code slowly")
    at.see("first = 1")
    at.enter("/status")
    at.see("router ok")
    at.see("After it, bold.")
    at.idle()
    assert "```" not in at.text
    assert "first = 1\n  second = 2" in at.text


def test_long_lines_break_between_words_and_go_on_below_their_column(at):
    at.resize(60, 30)
    at.say("hello", "You wrote: hello")
    at.enter("/trace")
    at.see("intent    chat: no classification rule matched;\n                    the default")


def test_a_narrow_status_line_keeps_the_model_and_the_cost(at):
    at.resize(40, 20)
    at.say("hello", "You wrote: hello")
    status = at.lines[at.screen.cursor.y + 1]
    assert status.startswith("chat · demo · 0.0")
    assert status.endswith("USD")


def test_what_is_drawn_for_good_is_not_there_a_second_time_for_a_moment(at):
    at.enter("write code slowly")
    at.see("After it, bold.")
    at.idle()
    frames = [frame for frame in at.raw.split(b"\x1b[?2026h") if b"second" in frame]
    assert frames
    assert all(frame.count(b"first") <= 1 for frame in frames)
