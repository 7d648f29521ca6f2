"""What is sealed opens where it was sealed, with that key, unchanged; and nowhere else."""

import copy
import json
import pickle
from base64 import b64encode, urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_decrypt,
    crypto_aead_xchacha20poly1305_ietf_encrypt,
)
from pydantic import SecretStr

from smista.core.secret import Envelope
from smista.core.session_key import BadKey, SessionKey, from_base64, is_key_id, key_id_of
from smista.sdk.sealing import (
    HEAVY,
    Sealer,
    Tampered,
    UnknownEnvelope,
    WrongKey,
    new_key,
)

SESSION = "018f9c3e-7a2b-7c4d-8e5f-1a2b3c4d5e6f"
OTHER = "018f9c3e-7a2b-7c4d-8e5f-1a2b3c4d5e70"
ROW = "message:018f9c3e-7a2b-7c4d-8e5f-0000000000aa"
KEY = SessionKey(bytes(range(32)))


@pytest.fixture
def sealer():
    return Sealer(KEY, SESSION)


def test_the_cipher_is_that_of_the_draft():
    # draft-irtf-cfrg-xchacha-03, A.3.1
    text = (
        b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the "
        b"future, sunscreen would be it."
    )
    key, nonce = bytes(range(0x80, 0xA0)), bytes(range(0x40, 0x58))
    bound_to = bytes.fromhex("50515253c0c1c2c3c4c5c6c7")
    sealed = bytes.fromhex(
        "bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb731c7f1b0b4aa6440bf3a82f"
        "4eda7e39ae64c6708c54c216cb96b72e1213b4522f8c9ba40db5d945b11b69b982c1bb9e3f3fac2bc369488f"
        "76b2383565d3fff921f9664c97637da9768812f615c68b13b52e"
        "c0875924c1c7987947deafd8780acf49"
    )
    assert crypto_aead_xchacha20poly1305_ietf_encrypt(text, bound_to, nonce, key) == sealed
    assert crypto_aead_xchacha20poly1305_ietf_decrypt(sealed, bound_to, nonce, key) == text


def test_a_fingerprint_is_the_sha256_of_the_key():
    assert key_id_of(bytes(32)) == "kf_Zmh6rfhivXdsj8GLjp-OIAiXFIVu4jOzkCpZHQ1fKSU"
    assert SessionKey(bytes(32)).key_id == key_id_of(bytes(32))


def test_what_was_sealed_once_opens_for_ever(sealer):
    kept = Envelope(
        version=2,
        algorithm="xchacha20poly1305",
        key_id="kf_Yw3NKWbEM2aRElRIu7JbT_QSpJxzLbLIq8G4WBvXEN0",
        nonce="AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        ciphertext="4m7ts8z_hGo2_R5QiKyJkTXI1Wp3NqXuq9JEqQE",
    )
    assert sealer.open_one(ROW, kept) == "what was said"


def test_an_envelope_is_bound_to_key_session_and_reference(sealer):
    envelope = sealer.seal_one(ROW, "hello")
    bound_to = f"smista-e2e-v2\0{KEY.key_id}\0{SESSION}\0{ROW}".encode()
    nonce, sealed = from_base64(envelope.nonce), from_base64(envelope.ciphertext)
    opened = crypto_aead_xchacha20poly1305_ietf_decrypt(sealed, bound_to, nonce, KEY.secret())
    assert opened == b"hello"
    assert (envelope.version, envelope.algorithm) == (2, "xchacha20poly1305")
    assert not set("+/=") & set(envelope.nonce + envelope.ciphertext)


@given(st.text(), st.text(min_size=1))
def test_whatever_is_sealed_opens(text, reference):
    sealer = Sealer(KEY, SESSION)
    assert sealer.open_one(reference, sealer.seal_one(reference, text)) == text


def test_half_a_character_survives(sealer):
    assert sealer.open_one(ROW, sealer.seal_one(ROW, "\ud800")) == "\ud800"


def test_no_two_envelopes_are_the_same(sealer):
    assert len({sealer.seal_one(ROW, "x").nonce for _ in range(100)}) == 100


def test_an_envelope_of_version_one_is_bound_to_nothing(sealer):
    nonce = bytes(24)
    sealed = crypto_aead_xchacha20poly1305_ietf_encrypt(b"old", b"", nonce, KEY.secret())
    envelope = Envelope(
        version=1,
        algorithm="xchacha20poly1305",
        key_id=KEY.key_id,
        nonce=b64encode(nonce).decode(),
        ciphertext=b64encode(sealed).decode(),
    )
    assert sealer.open_one(ROW, envelope) == "old"


@pytest.mark.parametrize("encode", [b64encode, urlsafe_b64encode])
@pytest.mark.parametrize("padded", [True, False])
def test_both_alphabets_are_read(sealer, encode, padded):
    envelope = sealer.seal_one(ROW, "?>~" * 50)

    def again(text):
        written = encode(from_base64(text)).decode()
        return written if padded else written.rstrip("=")

    other = envelope.model_copy(
        update={"nonce": again(envelope.nonce), "ciphertext": again(envelope.ciphertext)}
    )
    assert sealer.open_one(ROW, other) == "?>~" * 50


def flipped(text, at):
    content = bytearray(from_base64(text))
    content[at] ^= 1
    return urlsafe_b64encode(bytes(content)).decode()


@pytest.mark.parametrize("at", [0, 11, 23])
def test_a_changed_nonce_is_refused(sealer, at):
    envelope = sealer.seal_one(ROW, "hello")
    changed = envelope.model_copy(update={"nonce": flipped(envelope.nonce, at)})
    with pytest.raises(Tampered, match=ROW):
        sealer.open_one(ROW, changed)


@pytest.mark.parametrize("at", [0, 4, 5, 20])
def test_a_changed_ciphertext_is_refused(sealer, at):
    envelope = sealer.seal_one(ROW, "hello")
    changed = envelope.model_copy(update={"ciphertext": flipped(envelope.ciphertext, at)})
    with pytest.raises(Tampered):
        sealer.open_one(ROW, changed)


@pytest.mark.parametrize("cut", [0, 10, 20, 27])
def test_a_ciphertext_that_was_cut_is_refused(sealer, cut):
    envelope = sealer.seal_one(ROW, "hello")
    shorter = envelope.model_copy(update={"ciphertext": envelope.ciphertext[:cut]})
    with pytest.raises(Tampered):
        sealer.open_one(ROW, shorter)


def test_the_version_cannot_be_lowered(sealer):
    envelope = sealer.seal_one(ROW, "hello").model_copy(update={"version": 1})
    with pytest.raises(Tampered):
        sealer.open_one(ROW, envelope)


@pytest.mark.parametrize("change", [{"version": 3}, {"version": 0}, {"algorithm": "rot13"}])
def test_an_unknown_kind_asks_for_a_newer_smista(sealer, change):
    envelope = sealer.seal_one(ROW, "hello").model_copy(update=change)
    with pytest.raises(UnknownEnvelope, match="update smista"):
        sealer.open_one(ROW, envelope)


def test_an_envelope_of_another_key_is_left_closed(sealer):
    envelope = Sealer(new_key(), SESSION).seal_one(ROW, "hello")
    with pytest.raises(WrongKey, match=envelope.key_id):
        sealer.open_one(ROW, envelope)
    renamed = envelope.model_copy(update={"key_id": KEY.key_id})
    with pytest.raises(Tampered):
        sealer.open_one(ROW, renamed)


def test_rows_cannot_change_places(sealer):
    envelope = sealer.seal_one(ROW, "approved")
    for reference in (ROW.replace("aa", "ab"), ROW.replace("message", "tool_call")):
        with pytest.raises(Tampered):
            sealer.open_one(reference, envelope)


def test_sessions_cannot_change_places(sealer):
    # The same key, as if it had been used twice: the session alone is another.
    with pytest.raises(Tampered):
        Sealer(KEY, OTHER).open_one(ROW, sealer.seal_one(ROW, "hello"))


def test_it_does_not_matter_how_the_session_was_written(sealer):
    shouted = Sealer(KEY, SESSION.upper().replace("-", ""))
    assert shouted.open_one(ROW, sealer.seal_one(ROW, "hello")) == "hello"


async def test_maps_are_sealed_and_opened_whole(sealer):
    texts = {ROW: "a", "trace:1": "b" * HEAVY}
    sealed = await sealer.seal(texts)
    assert await sealer.open({n: e.model_dump(mode="json") for n, e in sealed.items()}) == texts


@pytest.mark.parametrize("envelope", [None, "text", {}, {"plaintext": "x"}])
async def test_what_is_no_envelope_is_said_to_be_none(sealer, envelope):
    with pytest.raises(UnknownEnvelope, match="no envelope"):
        await sealer.open({ROW: envelope})


def test_a_key_shows_nowhere():
    secret = KEY.text().get_secret_value()
    shown = [repr(KEY), str(KEY), f"{KEY}", repr([KEY]), str(KEY.text())]
    assert not any(secret in text or KEY.secret().hex() in text for text in shown)
    assert KEY.key_id in repr(KEY)


@pytest.mark.parametrize("carry", [pickle.dumps, copy.deepcopy, json.dumps])
def test_a_key_is_not_carried_away(carry):
    with pytest.raises(TypeError):
        carry(KEY)


def test_a_key_reads_what_it_wrote():
    key = new_key()
    assert SessionKey.parse(key.text()).key_id == key.key_id
    padded = SecretStr(b64encode(key.secret()).decode() + "\n")
    assert SessionKey.parse(padded).key_id == key.key_id


@pytest.mark.parametrize("text", ["", "abc", "!" * 43, "A" * 42, "A" * 44, "é" * 43])
def test_what_is_no_key_is_refused_without_being_quoted(text):
    with pytest.raises(BadKey) as raised:
        SessionKey.parse(SecretStr(text))
    assert not text or text not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    ["", "kf_", "../../etc/passwd", f"kf_{'a' * 42}", f"kf_{'a' * 44}", f"kf_{'a' * 42}/",
     f"kf_{'a' * 43}\n", f"KF_{'a' * 43}", f"kf_{'é' * 43}"],
)  # fmt: skip
def test_what_is_no_fingerprint_names_no_file(text):
    assert not is_key_id(text)
    assert is_key_id(KEY.key_id)
