"""The slash commands, one by one."""

import re

from tests.terminal.seat import DOWN, ESC, seat

RESUME = re.compile(r"^/resume ([0-9a-f-]{36})$", re.M)


def session_ended_by_clear(at) -> str:
    at.enter("/clear")
    at.until(lambda: RESUME.search(at.text), "how to come back")
    return RESUME.findall(at.text)[-1]


def test_help_tells_keys_and_commands(at):
    at.enter("/help")
    for words in (
        "/resume [session]",
        "Ctrl-J",
        "/model [model|auto]",
        "answer no, close the list",
    ):
        at.see(words)


def test_a_model_is_chosen_from_a_list_and_auto_gives_the_choice_back(at):
    at.enter("/model")
    at.see("Which model?")
    at.see("Demo Two")
    at.until(lambda: "> auto" in "\n".join(at.lines), "auto is first")
    at.send(DOWN)
    at.send(DOWN)
    at.until(lambda: "> openai-compat:demo/other" in "\n".join(at.lines), "the third")
    at.send("\r")
    at.see("model openai-compat:demo/other")
    at.enter("hello")
    at.see("as you asked")
    at.idle()
    at.enter("/model auto")
    at.see("the rules decide which model serves")
    at.enter("/model")
    at.see("Which model?")
    at.send(ESC)
    at.gone("Which model?")


def test_a_model_is_named_by_id_display_name_or_reference(at):
    # Said once for each, and once in the status line.
    for number, name in enumerate(["other", "demo two", "openai-compat:demo/other"], 2):
        at.enter(f"/model {name}")
        at.until(
            lambda number=number: at.text.count("\nmodel openai-compat:demo/other") == number, name
        )
    at.enter("/model nobody")
    at.see("the router lists no model 'nobody'")


def test_a_preview_calls_no_model(at):
    at.enter("/preview fix @hello.txt")
    at.see("edits stay here")
    for words in ("keyword 'fix'", "hello.txt", "file_write: ask", "cost", "USD"):
        at.see(words)
    assert "You wrote" not in at.text
    at.enter("/usage")
    at.see("there is no session yet")


def test_providers_say_where_they_are(at):
    at.enter("/providers")
    at.until(lambda: re.search(r"openai-compat:demo +\S.*, local", at.text), "a local one")
    at.until(lambda: re.search(r"anthropic +Anthropic, remote", at.text), "a remote one")


def test_a_session_tells_its_usage_and_its_trace(at):
    at.say("hello", "You wrote: hello")
    at.enter("/usage")
    at.see("1 call ·")
    at.enter("/trace")
    at.see("the default intent is 'chat', low")
    at.see("no routing rule matched")


def test_skills_are_listed_and_one_is_used_in_the_next_prompt(home, at):
    folder = home.project / ".agents" / "skills" / "brevity"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(
        "---\nname: brevity\ndescription: Say little.\n---\n\nBe brief.\n"
    )
    at.enter("/skills")
    at.see("brevity  Say little.")
    at.enter("/skill brevity")
    at.see("the next prompt uses the skill brevity")
    at.say("hello", "You wrote: hello")
    at.enter("/trace")
    at.see("a skill the user invoked")
    at.see("answered  You wrote: hello")
    at.enter("/skill nothing")
    at.see("there is no skill 'nothing'")


def test_what_is_remembered_is_listed(at):
    at.enter("/memory")
    at.see("nothing is remembered")


def test_a_change_of_the_session_is_taken_back(home, at):
    at.enter("/undo")
    at.see("nothing was changed in this session")
    at.enter("fix the typo")
    at.settle_question("do it?")
    at.send("y")
    at.see("Done: written")
    at.idle()
    at.enter("/undo")
    at.settle_question("write this?")
    assert "+Helo, world!" in at.text
    at.send("y")
    at.see("taken back: hello.txt")
    assert home.hello.read_text() == "Helo, world!\n"
    at.enter("/undo")
    at.see("there is nothing left to take back")


def test_the_uncommitted_changes_are_shown(home, at):
    at.enter("/diff")
    at.until(lambda: "no uncommitted changes" in at.text or "@@" in at.text, "an answer")


def test_clear_ends_the_session_and_resume_brings_it_back(home, at):
    at.say("the first of all", "You wrote: the first of all")
    session_id = session_ended_by_clear(at)
    assert "the first of all" not in "\n".join(at.lines)
    assert "tokens" in "\n".join(at.lines)
    at.enter("/usage")
    at.see("there is no session yet")
    at.enter(f"/resume {session_id}")
    at.see("> the first of all")
    at.see("You wrote: the first of all")
    at.see(f"in session {session_id}")
    at.enter("/usage")
    at.see("1 call ·")
    at.enter("/resume nonsense")
    at.see("'nonsense' is no session id")


def test_sessions_of_the_project_are_listed_to_resume(home):
    with seat(home) as at:
        at.say("an older one", "You wrote: an older one")
        at.enter("/quit")
        assert at.wait() == 0
    with seat(home) as at:
        at.enter("/resume")
        at.see("Which session?")
        at.see("an older one")
        at.send("\r")
        at.see("You wrote: an older one")
        at.see("in session")


def test_a_title_of_others_cannot_steer_the_terminal(at):
    at.send("\x1b[200~a\x1b]0;PWNED\x07 title\u202e\x1b[201~")
    at.until(lambda: "␛]0;PWNED␇" in at.typed, "pasted, made visible")
    at.send("\r")
    at.see("You wrote: a␛]0;PWNED␇ title⟨U+202E⟩")
    at.idle()
    session_ended_by_clear(at)
    at.enter("/resume")
    at.see("Which session?")
    at.until(lambda: "a␛]0;PWNED␇ title⟨U+202E⟩" in "\n".join(at.lines), "its title")
    at.send("\r")
    at.see("in session")
    at.enter("/trace")
    at.see("no routing rule matched")
    assert b"PWNED\x07" not in at.raw
    assert "\u202e".encode() not in at.raw


def test_the_short_ways_to_leave(home):
    for word in ("/q", "/exit"):
        with seat(home) as at:
            at.enter(word)
            assert at.wait() == 0
