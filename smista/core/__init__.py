"""Values and decisions. Pure: no IO, no clock, no randomness, no task ever starts here."""
