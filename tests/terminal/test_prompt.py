"""Typing: paste, history, completion."""

from tests.terminal.seat import DOWN, ESC, RIGHT, UP, seat

BEGIN, END = "\x1b[200~", "\x1b[201~"


def test_two_thousand_pasted_lines_are_one_prompt_and_go_whole(at):
    lines = "\r".join(f"line {number}" for number in range(1, 2001))
    at.send(f"read this: {BEGIN}{lines}{END} to the end")
    at.until(lambda: at.typed == "> read this: [pasted 2,000 lines] to the end", "folded")
    assert "Esc stops" not in at.text
    at.send("\r")
    at.see("You wrote: read this: line 1")
    at.see("tokens,")
    at.idle()
    assert at.text.count("line 2000 to the end") == 2
    at.send(UP)
    at.until(lambda: "[pasted 2,000 lines]" in at.typed, "folded in the history too")


def test_a_fold_is_deleted_as_one_character(at):
    at.send(f"a{BEGIN}{'x' * 5000}{END}b")
    at.until(lambda: at.typed == "> a[pasted 5,000 characters]b", "folded")
    at.send("\x7f\x7f")
    at.until(lambda: at.typed == "> a", "deleted")


def test_a_megabyte_is_pasted_and_sent(at):
    at.send(f"{BEGIN}{'0123456789abcde ' * 65536}{END}")
    at.until(lambda: at.typed == "> [pasted 1,048,576 characters]", "folded")
    at.send("!")
    at.until(lambda: at.typed.endswith("]!"), "still alive")


def test_control_bytes_in_a_paste_are_seen(at):
    at.send(f"{BEGIN}a\x07b\u202ec\td{END}")
    at.until(lambda: at.typed == "> a␇b⟨U+202E⟩c    d", "made visible")
    at.send("\r")
    at.see("You wrote: a␇b⟨U+202E⟩c")
    assert b"\x07" not in at.raw


def test_lines_that_come_at_once_without_marks_are_one_prompt(at):
    at.send("first\rsecond\rthird")
    at.until(lambda: at.typed.endswith("third"), "typed")
    at.send("\r")
    at.see("You wrote: first")
    at.idle()
    assert "> first\n  second\n  third" in at.text


def test_prompts_of_earlier_sessions_come_back(home):
    with seat(home) as at:
        at.say("remember me", "You wrote: remember me")
        at.say(" but not me", "You wrote:  but not me")
    with seat(home) as at:
        at.send(UP)
        at.until(lambda: at.typed == "> remember me", "the earlier prompt")
    assert (home.home / "history").stat().st_mode & 0o777 == 0o600


def test_paths_are_completed_one_segment_at_a_time(home, at):
    folder = home.project / "src"
    (folder / "inner").mkdir(parents=True, exist_ok=True)
    for name in ("alpha.py", "alps.py", "Alto.py", ".hidden"):
        (folder / name).write_text("")
    at.send("see @sr")
    at.see("src/")
    at.send("\t")
    at.until(lambda: at.typed == "> see @src/", "the folder")
    at.see(".hidden")
    at.send("al")
    at.gone(".hidden")
    assert "Alto.py" not in "\n".join(at.lines)
    at.see("alpha.py")
    at.send(DOWN)
    at.until(lambda: at.typed == "> see @src/alpha.py", "the first")
    at.send(DOWN)
    at.until(lambda: at.typed == "> see @src/alps.py", "the second")
    at.send(UP)
    at.until(lambda: at.typed == "> see @src/alpha.py", "the first again")
    at.send(RIGHT)
    at.gone("alps.py")
    assert at.typed == "> see @src/alpha.py"


def test_esc_closes_the_completion_and_keeps_what_was_typed(home, at):
    (home.project / "src").mkdir(exist_ok=True)
    at.send("see @s")
    at.see("src/")
    at.send(DOWN)
    at.until(lambda: at.typed == "> see @src/", "chosen")
    at.send(ESC)
    at.until(lambda: at.typed == "> see @s", "as typed")


def test_commands_are_completed_and_may_be_shortened(at):
    at.send("/sta")
    at.see("show the router's state")
    at.send("\t")
    at.until(lambda: at.typed == "> /status", "completed")
    at.send("\r")
    at.see("router ok, version")
    at.enter("/stat")
    at.until(lambda: at.text.count("router ok, version") == 2, "the same")


def test_a_mistyped_command_is_not_sent_and_what_was_meant_is_said(at):
    at.enter("/modle")
    at.see("there is no command /modle; did you mean /model?")
    at.until(lambda: at.typed == "> /modle", "kept")
    at.send("\x15")
    at.say("/etc/hosts is a path", "You wrote: /etc/hosts is a path")
