"""Looking back over a real router and store: usage, export, deletion and import, all sealed."""

import json
import stat

from tests.e2e.house import POLICY, House


def _newest(house: House) -> str:
    listed = house.run("session", "list", "--json")
    return json.loads(listed.stdout.splitlines()[0])["id"]


def _usage(house: House, *words: str) -> dict:
    return json.loads(house.run("usage", "--json", *words).stdout)


def test_an_encrypted_session_is_counted_exported_deleted_and_imported(shared: House) -> None:
    shared.write_policy(POLICY)
    assert shared.run("the milk is sour").returncode == 0
    session = _newest(shared)
    every, one = _usage(shared, "--here"), _usage(shared, session)
    assert "openai-compat:demo" in [group["provider"] for group in every["by_model"]]
    assert one["total"]["input_tokens"] > 0
    assert one["by_model"][0]["request_count"] == 1

    before = shared.run("session", "show", session).stdout
    assert "you: the milk is sour" in before
    file = shared.project / "kept.json"
    assert shared.run("session", "export", session, "--to", "kept.json").returncode == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "milk" not in file.read_text()
    there = shared.run("session", "import", "kept.json")
    assert (there.returncode, "session_exists" in there.stderr) == (1, True)
    assert shared.run("session", "delete", session, "--yes", "--keep-key").returncode == 0
    assert shared.run("session", "import", "kept.json").returncode == 0
    assert shared.run("session", "show", session).stdout == before
    file.unlink()
