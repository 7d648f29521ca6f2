"""Keys are found by their shape or their name; code, hashes and lock files stay as they are."""

import base64
import hashlib
import random
import string
import time
import uuid
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smista.core import key_shapes
from smista.core.key_shapes import find_keys, mask_keys, note

_DRAW = random.Random(7)
_ALNUM = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"


def drawn(length: int, letters: str = _ALNUM) -> str:
    return "".join(_DRAW.choice(letters) for _ in range(length))


def _jwt() -> str:
    parts = (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"1234567890"}', drawn(32).encode())
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def _pem(name: str) -> str:
    body = "\n".join(drawn(64) for _ in range(12))
    return f"-----BEGIN {name}-----\n{body}\n-----END {name}-----"


KEYS = [
    ("aws access key", "AKIA" + drawn(16, string.ascii_uppercase + "234567")),
    ("aws access key", "ASIA" + drawn(16, string.ascii_uppercase + "234567")),
    ("github token", "ghp_" + drawn(36)),
    ("github token", "gho_" + drawn(36)),
    ("github token", "ghs_" + drawn(36)),
    ("github token", "github_pat_" + drawn(22) + "_" + drawn(59)),
    ("gitlab token", "glpat-" + drawn(20)),
    ("slack token", "xoxb-" + drawn(12, string.digits) + "-" + drawn(24)),
    ("slack webhook", "hooks.slack.com/services/T0AB12CD3/B0AB12CD3/" + drawn(24)),
    ("stripe key", "sk_live_" + drawn(24)),
    ("stripe key", "rk_live_" + drawn(24)),
    ("google key", "AIza" + drawn(35)),
    ("openai key", "sk-proj-" + drawn(48)),
    ("api key", "sk-" + "a1" + drawn(46)),
    ("anthropic key", "sk-ant-api03-" + drawn(93)),
    ("openrouter key", "sk-or-v1-" + drawn(64, _HEX)),
    ("hugging face token", "hf_" + drawn(34)),
    ("npm token", "npm_" + drawn(36)),
    ("pypi token", "pypi-AgE" + "IcHlwaS5vcmc" + drawn(60)),
    ("twilio key", "SK" + drawn(32, _HEX)),
    ("sendgrid key", "SG." + drawn(22) + "." + drawn(43)),
    ("json web token", _jwt()),
    ("private key", _pem("RSA PRIVATE KEY")),
    ("private key", _pem("OPENSSH PRIVATE KEY")),
    ("private key", _pem("PGP PRIVATE KEY BLOCK")),
    ("smista key", "sk-smista-api01-" + drawn(32, _HEX) + "-" + drawn(96)),
    ("smista token", drawn(32, _HEX) + "-" + drawn(64, string.ascii_lowercase + string.digits)),
]
AROUND = ["{}", "it is {} indeed", '"{}"', "'{}',", "--token={}\n", "({})", "\\n{}\\n", "a: {}"]


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize(("kind", "key"), KEYS)
def test_a_key_is_masked_whole_wherever_it_stands(kind: str, key: str, around: str):
    masked, kinds = mask_keys(around.format(key))
    assert masked == around.format(note(kind))
    assert kinds == (kind,)


@pytest.mark.parametrize(
    ("text", "secret", "kind"),
    [
        ("postgres://app:s3cr3t-pw@db:5432/x", "s3cr3t-pw", "password in an address"),
        ("Authorization: Bearer " + "opaque0token1value2", "opaque0token1value2",
         "authorization header"),
        ('"authorization": "Basic dXNlcjpwYXNzd29yZA=="', "dXNlcjpwYXNzd29yZA==",
         "authorization header"),
        ("curl -H 'x: Bearer t0k3n9v4l7u3x2y1'", "t0k3n9v4l7u3x2y1", "bearer token"),
        ("aws_secret_access_key = " + "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzKEY",
         "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzKEY", "aws secret key"),
        ("API_KEY=9fK2mQ7xT4vB8nLw", "9fK2mQ7xT4vB8nLw", "key"),
        ("DB_PASSWORD='Tr0ub4d0r-3xyz!q'", "Tr0ub4d0r-3xyz!q", "password"),
        ('client_secret: "Zq8Wn3Lr5Tp0Vx6M"', "Zq8Wn3Lr5Tp0Vx6M", "secret"),
        ('{"token": "b7Yd2Kf9Jm4Hs6Pz"}', "b7Yd2Kf9Jm4Hs6Pz", "token"),
        ('{\\"apiKey\\": \\"b7Yd2Kf9Jm4Hs6Pz\\"}', "b7Yd2Kf9Jm4Hs6Pz", "key"),
        ("SECRET_KEY=" + "3f9a07b2c8d1e465" * 4, "3f9a07b2c8d1e465" * 4, "key"),
        ("spoken=no BROKEN_PASSWD=9fK2mQ7xT4vB8nLw", "9fK2mQ7xT4vB8nLw", "password"),
    ],
)  # fmt: skip
def test_a_secret_is_known_by_what_stands_before_it(text: str, secret: str, kind: str):
    masked, kinds = mask_keys(text)
    assert masked == text.replace(secret, note(kind))
    assert kinds == (kind,)


def _hashes() -> list[str]:
    sums = [hashlib.sha256(bytes([n])).hexdigest() for n in range(3)]
    return [
        f"commit {sums[0][:40]}\nparent {sums[1][:40]}",
        f'{{file = "a-1.0.tar.gz", hash = "sha256:{sums[0]}"}}',
        f'checksum = "{sums[2]}"',
        f'"integrity": "sha512-{base64.b64encode(bytes(range(64))).decode()}"',
        f"requests==2.0 --hash=sha256:{sums[1]}",
        f"id: {uuid.UUID(int=77)}, {uuid.UUID(sums[0][:32])}",
        f"data:image/png;base64,{base64.b64encode(_DRAW.randbytes(20_000)).decode()}",
        f"index {sums[0][:7]}..{sums[1][:7]} 100644",
    ]


CODE = [
    *_hashes(),
    "token = tokenizer.next_token_type2(value)",
    "api_key = os.environ['OPENAI_API_KEY']",
    "password = getpass.getpass()",
    "API_KEY=${OPENAI_API_KEY}",
    "PASSWORD=<your-password-1a2b3c>",
    'headers = {"Authorization": f"Bearer {token}"}',
    "Authorization: Bearer $TOKEN_FROM_ENV_1",
    "https://user:{password}@example.com/",
    "http://[::1]:8080/a@b and ssh://git@host:22/x",
    "for key, value in sorted(mapping.items()): cache_key = make_key(key)",
    'primary_key="a1b2c3d4e5f6a7b8"',
    'monkey: "4a4b4c4d5e5f6a6b"',
    "task-management-sk-some-long-css-class-name",
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    'if line.startswith("-----BEGIN PRIVATE KEY-----"): return False',
    "SG.x ghp_short AKIA sk-ant- eyJ.eyJ.x",
    "[masked: github token]",
]


@pytest.mark.parametrize("text", CODE)
def test_what_is_no_key_stays(text: str):
    assert mask_keys(text) == (text, ())


def test_the_sources_of_the_product_hold_no_keys():
    root = Path(key_shapes.__file__).parents[2]
    found = {
        path.name: find_keys(path.read_text(encoding="utf-8"))
        for room in ("smista", "actors", "cli")
        for path in (root / room).rglob("*.py")
    }
    assert {name: keys for name, keys in found.items() if keys} == {}


def test_a_key_block_that_was_cut_off_is_masked_as_far_as_it_goes():
    head, _, _ = _pem("RSA PRIVATE KEY").partition("\n-----END")
    assert mask_keys(f"{head}\nand so on")[0] == f"{note('private key')}\nand so on"


def test_kinds_are_told_once_and_in_order():
    text = "\n".join(key for _, key in KEYS[:4]) + "\npassword in an address: x://u:pw1@h"
    assert mask_keys(text)[1] == ("aws access key", "github token", "password in an address")


@given(st.text(alphabet="sk-_ghpAKIA:/@=\"' eyJ.a1\\n", max_size=200))
def test_nothing_is_found_twice_and_what_is_masked_stays_so(text: str):
    found = find_keys(text)
    assert all(a.end <= b.start for a, b in pairwise(found))
    masked, _ = mask_keys(text)
    assert mask_keys(masked) == (masked, ())


_MEGABYTE = 1_000_000
_HEADS = sorted({shape.head for shape in key_shapes._SHAPES})
_PIECES = [
    *_HEADS, "eyJaaaaaaaaaa.", "eyJaaaaaaaaaaa.eyJ", "SG.aaaaaaaaaaaaaaaaaa.", "a", "-", " ",
    "key=", "token='", 'key="', "://", "://a:", "://u:p", "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\n" + "a" * 64, "Authorization: Bearer ", "bearer a", "a1",
    "0" * 32 + "-", "password: a1", "Authorization=", "-a", "\\nghp_a",
]  # fmt: skip


def _seconds(text: str) -> float:
    started = time.process_time()
    mask_keys(text)
    return time.process_time() - started


@pytest.mark.parametrize("piece", _PIECES)
def test_twice_the_text_takes_about_twice_the_time(piece: str):
    small, large = (piece * (size // len(piece)) for size in (_MEGABYTE // 8, _MEGABYTE))
    # The best of several: a collection of garbage in between is no fault of the search.
    slow, slower = (min(_seconds(text) for _ in range(3)) for text in (small, large))
    assert slower < 8 * 4 * max(slow, 0.005)
