"""Questions at the prompt: what is shown, what answers them, and what does not."""

from tests.terminal.seat import ESC


def test_a_change_is_shown_whole_and_made_after_y(home, at):
    at.enter("fix the typo in @hello.txt")
    at.settle_question("do it?")
    for line in (
        "-Helo, world!",
        "+Hello, world!",
        "@@ -1 +1 @@",
        "attached: hello.txt (13 bytes)",
    ):
        assert line in at.text
    assert b"\x1b[31m-Helo" in at.raw
    assert b"\x1b[32m+Hello" in at.raw
    at.send("y")
    at.see("Done: written")
    at.idle()
    assert home.hello.read_text() == "Hello, world!\n"


def test_always_is_offered_for_a_change_and_holds_for_the_session(home, at):
    at.enter("fix the typo")
    at.settle_question("do it?")
    assert "always in this session" in at.text
    at.send("a")
    at.see("Done: written")
    at.idle()
    home.hello.write_text("Helo, world!\n")
    at.enter("fix the typo once more")
    at.see("approved in advance")
    at.idle()
    assert home.hello.read_text() == "Hello, world!\n"


def test_no_may_have_a_reason_which_the_model_is_told(home, at):
    at.enter("fix the typo")
    at.settle_question("do it?")
    at.send("n")
    at.see("tell the model why")
    at.enter("it is meant so")
    at.see("Then not: Error: the user said no: it is meant so")
    at.idle()
    assert home.hello.read_text() == "Helo, world!\n"


def test_enter_alone_is_no(home, at):
    at.enter("fix the typo")
    at.settle_question("do it?")
    at.send("\r")
    at.see("Then not: Error: the user said no")
    assert home.hello.read_text() == "Helo, world!\n"


def test_keys_that_were_typed_before_a_question_do_not_answer_it(home, at):
    at.enter("fix the typo")
    at.until(lambda: at.typed == ">", "sent")
    at.send("y")
    at.see("do it?")
    at.until(lambda: at.typed == "> y", "y is typed, not an answer")
    at.settle_question("do it?")
    assert "do it?" in "\n".join(at.lines)
    assert home.hello.read_text() == "Helo, world!\n"
    at.send("\x7f")
    at.until(lambda: at.typed == ">", "empty")
    at.send(ESC)
    at.see("Then not")


def test_a_long_change_is_read_to_its_end_before_it_can_be_agreed_to(home, at):
    much = home.project / "much.txt"
    much.unlink(missing_ok=True)
    at.enter("write much")
    at.settle_question("do it?")
    assert "more lines: Space" in at.text
    at.send("y")
    at.until(lambda: at.typed == "> y", "no answer yet")
    at.send("\x7f")
    at.until(lambda: at.typed == ">", "empty")
    for _ in range(20):
        at.settle_question("do it?")
        if "more line" not in "\n".join(at.lines):
            break
        shown = at.text.count("+row")
        at.send(" ")
        at.until(lambda shown=shown: at.text.count("+row") > shown, "another page")
    assert "+row 100" in at.text
    at.settle_question("y yes")
    at.send("y")
    at.see("Done: written")
    at.idle()
    assert much.read_text().endswith("row 100\n")


def test_a_plan_is_shown_as_markdown_and_carried_out_after_y(at):
    at.enter("/plan")
    at.until(lambda: at.typed == "plan >", "plan mode")
    at.enter("make a plan")
    at.settle_question("carry this plan out?")
    assert "1. look" not in at.text.split("plan .smista")[1]
    at.send("y")
    at.see("carry this plan out? yes")
    at.idle()
    assert "stopped" not in at.text
    at.enter("/chat")
    at.until(lambda: at.typed == ">", "chat mode")


def test_a_plan_that_is_refused_without_a_reason_ends_the_run(at):
    at.enter("/plan")
    at.until(lambda: at.typed == "plan >", "plan mode")
    at.enter("make a plan")
    at.settle_question("carry this plan out?")
    at.send("n")
    at.see("tell the model why")
    at.send("\r")
    at.see("stopped")
    at.enter("/chat")
    at.until(lambda: at.typed == ">", "chat mode")


def test_who_would_see_what_is_said_before_it_leaves_this_machine(at):
    at.enter("/model far")
    at.see("model openai-compat:far/far")
    at.enter("look at @hello.txt")
    at.settle_question("to openai-compat:far?")
    assert "openai-compat:far/far on another machine would see, 13 bytes known of it" in at.text
    assert "  hello.txt (13 bytes)" in at.text
    at.send("n")
    at.see("tell the model why")
    at.send("\r")
    at.see("error: ")
    at.until(lambda: at.typed == ">", "at rest")
    at.enter("look at @hello.txt")
    at.settle_question("to openai-compat:far?")
    at.send("y")
    at.see("You wrote: look at @hello.txt")


def test_a_command_is_shown_as_it_will_run(at):
    at.enter("sleep long")
    at.settle_question("run it?")
    assert "echo $$ > pid; echo ready-$((1+1)); sleep 60" in at.text
    at.send(ESC)
    at.see("Then not")


def test_a_file_outside_the_project_or_named_in_a_paste_is_asked_about(home, at):
    (home.folder / "outside.txt").write_text("out there")
    at.enter("look at @../outside.txt")
    at.settle_question("attach these files?")
    assert "outside.txt" in at.text
    at.send("n")
    at.see("You wrote: look at @../outside.txt")
    at.idle()
    assert "attached:" not in at.text
    at.send("\x1b[200~see @hello.txt\x1b[201~")
    at.until(lambda: at.typed.endswith("@hello.txt"), "pasted")
    at.send("\r")
    at.settle_question("attach these files?")
    at.send("y")
    at.see("attached: hello.txt (13 bytes)")
