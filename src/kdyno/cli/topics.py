"""What `kdyno help TOPIC` prints, and the man page has in sections of their own. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kdyno.cli.exit_codes import MEANINGS

ENVIRONMENT = {
    "KDYNO_STATE": "the state directory, if --state doesn't name one",
    "KDYNO_STORE": "the database, if --store doesn't name one",
    "XDG_STATE_HOME": "the parent of the state directory, if neither names one (default: ~/.local/state)",
    "TMPDIR": "the directory of temporary files (default: /tmp)",
    "CCACHE_DIR, CCACHE_DISABLE": "as ccache reads them: where it keeps objects, and whether kdyno uses it",
    "COLUMNS, TERM": "the width of tables, and whether the terminal can draw progress",
}
FILES = {
    "~/.local/state/kdyno": "the state directory: sources, images, artefacts, records; `kdyno store gc` lists it",
    "~/.local/state/kdyno/store.sqlite": "the store: runs, boots, samples, self-tests",
    "experiment.toml": "an experiment; `kdyno init` writes one, `kdyno schema experiment` has every key",
    "demo-report.html": "the report that `make demo` writes",
}
EXAMPLES = {
    "kdyno ab image=debian:linux-image-amd64 image=debian:linux-image-rt-amd64 -t lat_pipe": "compare two packages, "
    "without a build",
    "kdyno ab .#HEAD~1 .#HEAD -t lat_pipe": "in a kernel tree: did the last commit make pipes slower",
    "kdyno ab --machine uml plain march=auto": "is a kernel for this CPU faster, timed on this processor",
    "kdyno run experiment.toml --html report.html": "run an experiment, and write a page",
    "kdyno explain latest opt-O3 lat_pipe": "why a benchmark differs",
    "kdyno judge before=a.csv after=b.csv": "judge what another tool measured",
}
TOPICS = {
    "exit-codes": ("the exit codes of all verbs", {str(int(code)): text for code, text in sorted(MEANINGS.items())}),
    "environment": ("the environment variables that kdyno reads", ENVIRONMENT),
    "files": ("where kdyno keeps what", FILES),
    "examples": ("commands for common questions", EXAMPLES),
}
"""A summary and the entries of each topic."""


def topic_lines(topic: str) -> Iterator[str]:
    """Yield the lines of a topic: each entry, and indented what it means."""
    summary, entries = TOPICS[topic]
    yield f"{summary[0].upper()}{summary[1:]}."
    for name, meaning in entries.items():
        yield ""
        yield f"  {name}"
        yield f"      {meaning}"
