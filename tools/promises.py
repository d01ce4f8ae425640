"""docs/security.md's table of promises: each names the tests that attack it. `tools/check-docs` compares it with the
tests.
"""

from __future__ import annotations

import re
from pathlib import Path

HEADING = "| promise | tested by |"
PLACE = re.compile(r"((?:tests|crates)/[\w/]+\.(?:py|rs))(?:::(\w+))?")
IS_TEST = re.compile(r"^(?:async )?def test_\w+\(|^ *#\[test\]$", re.MULTILINE)


def promise_problems(text: str, root: Path) -> list[str]:
    """Return the rows that name no test, and the tests that don't exist below `root`."""
    rows = [line for line in text.partition(HEADING)[2].partition("\n\n")[0].splitlines()[2:] if line]
    problems = [] if rows else ["there is no table of promises"]
    for row in rows:
        promise, _, tests = row.strip("| ").partition(" | ")
        places = [PLACE.fullmatch(place) for place in tests.split(", ")]
        if not all(places):
            problems.append(f"a promise must name its tests as paths, got {tests!r}: {promise}")
        for place in filter(None, places):
            path, name = place.groups()
            source = (root / path).read_text(encoding="utf-8") if (root / path).is_file() else ""
            if not IS_TEST.search(source) or (name and f"def {name}(" not in source):
                problems.append(f"there is no test {place[0]}: {promise}")
    return problems
