"""A disk that changes bytes of a store: a report is the same as before, or it is one message and no report."""

from __future__ import annotations

import random

from tests.cli.conftest import Lab
from tests.cli.replay import slower

TRIES = 36
WIDEST = 64


def test_a_store_with_flipped_bytes_gives_the_same_report_or_one_message(lab: Lab) -> None:
    lab.recording.add("slow", slower("lat_syscall.null", 10))
    assert lab("run", lab.experiment("slow"), "-q").status == 0
    path = lab.directory / "store.sqlite"
    written = (lab.state / "store.sqlite").read_bytes()
    path.write_bytes(written)
    commands = [[*words, "--store", f"sqlite:///{path}"] for words in (["report", "latest"], ["show", "latest"])]
    sound = [lab(*words) for words in commands]
    assert [result.status for result in sound] == [0, 0]
    dice, refused = random.Random(7), 0
    for number in range(TRIES):
        content = bytearray(written)
        for _ in range(dice.randrange(1, 4)):
            start = dice.randrange(len(content))
            for place in range(start, min(start + dice.randrange(1, WIDEST), len(content))):
                content[place] ^= dice.randrange(1, 256)
        path.write_bytes(content)
        for words, expected in zip(commands, sound, strict=True):
            result = lab(*words)
            if result.status == 0:
                assert result == expected, number
                continue
            refused += 1
            assert (result.status in (1, 3), result.out) == (True, ""), (number, result)
            message, hint = result.err.splitlines()
            assert message.startswith("kdyno: "), number
            assert hint.startswith("hint: "), number
    assert refused > TRIES // 2
