"""Whatever stands in a configuration file: findings with place and cure, never another error."""

import os
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smista.core.classify import classify
from smista.local.config_files import own_configuration
from smista.local.config_layers import layer_of, read_layer
from smista.local.router_file import parse_router
from smista.local.toml_source import MAX_BYTES, parse_source, read_source

GOOD = b'[routing.default]\nmodel = "ollama/m"\n'


def findings_in(content):
    source = parse_source(content, "config.toml")
    findings = own_configuration(layer_of(source)).findings
    _, others = parse_router(parse_source(content, "router.toml"))
    assert all(finding.message and str(finding) for finding in (*findings, *others))
    return findings


@pytest.mark.parametrize(
    ("content", "spot", "message", "remedy"),
    [
        (b"[routing\n", (1, 9), "not TOML", ""),
        (b"a = 1\nb =\n", (2, 4), "not TOML: Invalid value", "quotes"),
        (b"a = 1\n\na = 2\n", (3, 6), "not TOML: Cannot overwrite", "second time"),
        (b'a = "x\n', (1, 7), "not TOML: Illegal character", "remove"),
        (b"a = [1,\n", (2, 1), "not TOML", ""),
        (b"a = 1\rb = 2\n", (1, 6), "not TOML", ""),
        (b"\xef\xbb\xbf" + GOOD, (1, 1), "byte order mark", "without one"),
        (b'a = "caf\xe9"\n', (1, 9), "not UTF-8", "save the file as UTF-8"),
        (b"# ok\n\n# caf\xc3\xa9 \xff\n", (3, 8), "not UTF-8", "save the file as UTF-8"),
        ("a = 1\n".encode("utf-16"), (1, 1), "not UTF-8", "save the file as UTF-8"),
        (b"a = " + b"[" * 5000 + b"]" * 5000, None, "too deep", "no setting"),
        (b"a = " + b"9" * 5000, None, "too many digits", "smaller"),
        (b"\n" + b"a." * 100_000 + b"a = 1\n", (2, 1), "more than 64 parts", "no setting"),
        (b"[" + b'"a" . ' * 100_000 + b"a]\n", (1, 2), "more than 64 parts", "no setting"),
        (b"x" * (MAX_BYTES + 1), None, "larger than", "write less"),
    ],
    ids=lambda value: repr(value[:24]) if isinstance(value, bytes) else None,
)
def test_a_file_that_cannot_be_read_names_line_and_cure(content, spot, message, remedy):
    found = findings_in(content)[0]
    assert (found.line, found.column) == (spot or (None, None))
    assert message in found.message
    assert remedy in found.remedy


def test_a_byte_order_mark_hides_nothing_else():
    places = [finding.place for finding in findings_in(b"\xef\xbb\xbfsurprise = 1\n")]
    assert places == ["", "surprise"]


def test_windows_line_ends_are_no_fault():
    assert findings_in(GOOD.replace(b"\n", b"\r\n")) == ()


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("1", "number"),
        ("true", "boolean"),
        ('"x"', "text"),
        ("[1, 2]", "list"),
        ("{ a = 1 }", "table"),
        ("1979-05-27", "date"),
        ("nan", "no number"),
        ('[{ name = 1 }, 5, "x"]', "mixed"),
    ],
)
@pytest.mark.parametrize(
    "key",
    [
        *("providers", "providers.ollama", "providers.ollama.type", "classification"),
        *("classification.rules", "classification.default_intent", "routing", "routing.rules"),
        *("routing.default", "routing.default.model", "routing.default.fallbacks", "tools"),
        *("tools.permissions", "tools.permissions.shell", "privacy", "privacy.restricted_paths"),
        *("privacy.remote", "privacy.remote.mode", "privacy.local", "router", "router.url"),
        *("router.port", "router.limits", "router.limits.request_timeout_ms"),
        *("router.providers", "router.prices", "router.cors.allowed_origins"),
        *("local_preferences", "local_preferences.local_only"),
    ],
)
def test_any_type_at_any_place_is_read_or_found(key, value, kind):
    findings_in(f"{key} = {value}\n".encode())


@pytest.mark.parametrize("what", ["directory", "fifo", "link to nothing", "unreadable"])
def test_what_is_no_file_does_not_hold_the_reader(tmp_path, what):
    path = tmp_path / "config.toml"
    match what:
        case "directory":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "link to nothing":
            path.symlink_to(tmp_path / "gone")
        case _:
            path.symlink_to(path)  # a circle
    found = read_source(path)
    if what == "link to nothing":
        assert not found.exists
        assert found.faults == ()
    else:
        assert "cannot be read" in found.faults[0].message
        assert read_layer(path).data == {}


def rules(count, line="priority = {n}\n"):
    one = '[[routing.rules]]\nname = "rule {n}"\nmodel = "ollama/m"\npaths = ["src/{n}/**"]\n'
    return "".join((one + line).format(n=n) for n in range(count)).encode()


def test_ten_thousand_good_rules_have_no_fault():
    content = rules(10_000)
    assert len(content) > 900_000
    assert findings_in(content) == ()


def test_ten_thousand_bad_rules_are_all_found_where_they_stand():
    findings = findings_in(rules(10_000, 'effort = "much"\n'))
    efforts = [finding for finding in findings if finding.place.endswith(".effort")]
    assert len(efforts) == 10_000
    assert [f.line for f in efforts[:2]] == [5, 10]
    assert efforts[-1].line == 50_000


def test_ten_thousand_rules_of_the_same_strength_are_found_in_one_look_each():
    findings = findings_in(rules(10_000, ""))
    assert len(findings) == 9_999
    assert {finding.message for finding in findings} == {
        "as strong as the rule 'rule 0' where both match"
    }


def test_a_list_of_too_many_patterns_is_said():
    patterns = ", ".join(f'"{n}"' for n in range(1001))
    found = findings_in(f"[privacy]\nrestricted_paths = [{patterns}]\n".encode())
    assert {finding.place for finding in found} == {"privacy.restricted_paths", "privacy"}


PIECES = st.sampled_from(
    [
        *("[routing.default]\n", 'model = "ollama/m"\n', "[[routing.rules]]\n", 'name = "a"\n'),
        *('model = "x/y"\n', "[privacy]\n", 'restricted_paths = ["a", "["]\n', "[tools]\n"),
        *("permissions = { shell = 1 }\n", "[[classification.rules]]\n", 'intent = "plan"\n'),
        *("[providers.openai]\n", "api_key = 3\n", "[router]\n", "port = 'a'\n", "[x.y]\n"),
        *("fallbacks = [1, 2]\n", "keywords = [[]]\n", "[routing]\n", "rules = [1, {}]\n"),
        *("required_permissions = { permissions = [] }\n", "requires_capabilities = 1\n"),
    ]
)


@given(st.lists(PIECES, max_size=12))
@settings(max_examples=400, deadline=None)
def test_pieces_in_any_order_are_read_or_found(pieces):
    content = "".join(pieces)
    found = findings_in(content.encode())
    try:
        tomllib.loads(content)
    except tomllib.TOMLDecodeError:
        assert found


@given(st.binary(max_size=80))
@settings(max_examples=400, deadline=None)
def test_any_bytes_are_read_or_found(content):
    findings_in(content)


@given(st.integers(0, 400), st.binary(max_size=4))
@settings(max_examples=200, deadline=None)
def test_a_good_file_with_a_scar_is_read_or_found(at, scar):
    content = rules(5)
    findings_in(content[:at] + scar + content[at + len(scar) :])


def test_a_configuration_without_fault_can_be_decided_on():
    config = own_configuration(layer_of(parse_source(rules(100), "f"))).checked().merged
    assert classify(config.classification, "hello", frozenset()).intent == "chat"


CANARY = "sk-live-canary"


@pytest.mark.parametrize(
    "line",
    [
        *('providers.openai = "{}"', 'providers.openai.api_key = "{}"', 'routing.default = "{}"'),
        *('routing.default.model = "{}"', 'routing.default.model = "{}/x"', 'routing = "{}"'),
        *('tools.permissions.shell = "{}"', 'privacy.remote.mode = "{}"', 'router.url = "{}"'),
        *('router.auth_source = "{}"', 'providers.openai.type = "{}"', 'router.host = "{} x"'),
        *('classification.default_intent = "{}"', 'router.storage.password = ["{}"]'),
        *('router.storage.mode = "{}"', 'router.storage.engine = "{}"', 'router.port = "{}"'),
        *('local_preferences.local_only = "{}"', 'privacy.restricted_paths = ["{{{}"]'),
        *('router.prices = ["{}"]', 'router.limits = "{}"', 'x = "{}', "y = {}"),
        'routing.rules = [{{ name = "a", model = "ollama/m", cost_limit = "{}" }}]',
    ],
)
def test_no_finding_quotes_what_may_be_a_key(line):
    content = line.format(CANARY).encode()
    findings = findings_in(content)
    _, others = parse_router(parse_source(content, "router.toml"))
    assert findings or others
    assert CANARY not in "".join(map(str, (*findings, *others)))
