"""Inputs for a reader: sound ones with a few things wrong. For Hypothesis, which makes small what it finds."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from tests.fuzz.check import LARGEST

NASTY = (
    b"\0", b"\n", b"\r", b'"', b"'", b"\\", b",", b";", b"{", b"}", b"[", b"]", b"(", b")", b"=", b":", b"#", b"$(id)",
    b"`id`", b"../../", b"/dev/zero", b"-1", b"0", b"1e999", b"-1e-999", b"NaN", b"Infinity", b"1e9",
    b"18446744073709551616",
        b"9" * 5000, b"null", b"true", b"{}",
    b"\x1b]0;title\x07", b"\x1b[2J", b"\xc2\x9b31m", b"\xff\xfe", b"\xef\xbb\xbf",
    b"\xed\xa0\x80", b"\xe2\x80\xae", b"\\ud800", b"\\u0000", b"[" * 2000, b'{"a":' * 500, b" " * 2000, b"\t" * 300,
    b"a" * 3000, b"(" * 500, b"- " * 300, b"\x80" * 12, b"\xff" * 12,
)  # fmt: skip
MOST_EDITS = 6
MOST_REPEATS = 200


@st.composite
def mutated(draw: st.DrawFn, seeds: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """One of the seeds with up to MOST_EDITS edits; at most LARGEST bytes."""
    content = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(0, MOST_EDITS))):
        start = draw(st.integers(0, len(content)))
        end = draw(st.integers(start, min(len(content), start + draw(st.sampled_from((0, 1, 8, 64, LARGEST))))))
        part = content[start:end]
        content = content[:start] + draw(_instead(part, content, words)) + content[end:]
    return content[:LARGEST]


def _instead(part: bytes, whole: bytes, words: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """What may stand in the place of a part: nothing, something nasty, a word, other bytes, itself again and again."""
    return st.one_of(
        st.just(b""),
        st.sampled_from((*NASTY, *words)),
        st.integers(0, 10**6).map(lambda number: str(number).encode()),
        st.binary(max_size=16),
        st.integers(2, MOST_REPEATS).map(lambda times: part * times),
        st.integers(0, len(whole)).map(lambda at: whole[at : at + 200]),
    )
