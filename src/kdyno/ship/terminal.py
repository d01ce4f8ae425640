"""Cards, shipments and verifications as text."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from kdyno.base.text import cut, format_count, format_list, format_signed
from kdyno.ship.card import BenchmarkVerdict, Card, EffectRatio
from kdyno.ship.find_card import FoundCard
from kdyno.ship.package_content import PackageKind
from kdyno.ship.ship import ShipAhead, Shipped
from kdyno.ship.verify import ComparedPackage, Verification

WIDTH = 110
INDENT = "  "
SHOWN = 8
"""Members of a list that a line names."""
DIGITS = 12
UNPROVEN = "its claims are those of its maker: `kdyno verify` proves them, and the rest of a package"
INSTALL: Mapping[PackageKind, str] = {
    "deb": "sudo apt-get install",
    "rpm": "sudo dnf install",
    "pacman": "sudo pacman -U",
}
"""By kind of package: the command that installs files."""
TRY_COMMANDS: Mapping[PackageKind, str] = {
    "deb": "sudo kdyno-try",
    "rpm": "sudo /usr/lib/kdyno/{release}/kdyno-try",
}
"""By kind of package: the command that tries the kernel once, if the package has it."""


def ahead_lines(ahead: ShipAhead) -> list[str]:
    """Return what a shipment would do."""
    image = "which is built" if ahead.image_is_built else "which would be built first"
    inputs = [f"make {format_count(ahead.training_inputs, 'input')} from boots first"] if ahead.training_inputs else []
    return [
        f"kernel {ahead.release}, from the judged image {ahead.image[:DIGITS]}, {image}",
        *inputs,
        "would write",
        *(f"{INDENT}{path}" for path in ahead.packages),
        *_notes(ahead.notes),
    ]


def shipped_lines(shipped: Shipped) -> list[str]:
    """Return what a shipment wrote."""
    lines = [f"kernel {shipped.release}", f"{INDENT}{code_line(shipped.card)}"]
    for package in shipped.packages:
        lines.append(f"wrote {package.path}, {package.size / 1e6:,.1f} MB")
        lines.append(f"{INDENT}sha256 {package.sha256}")
        if package.signature:
            lines.append(f"{INDENT}signature {package.signature}")
    return [*lines, *_lint_lines(shipped), *_notes(shipped.notes), *_next_lines(shipped)]


def _lint_lines(shipped: Shipped) -> Iterator[str]:
    if shipped.linter is None:
        yield "the packages were not linted: kdyno knows no linter for this kind"
        return
    if shipped.lint is None:
        yield f"{shipped.linter} is not installed: the packages were not linted"
        return
    counts = Counter(finding.level for finding in shipped.lint)
    found = [format_count(counts["E"], "error"), format_count(counts["W"], "warning")]
    tags = dict.fromkeys(finding.tag for finding in shipped.lint if finding.level in ("E", "W"))
    yield f"{shipped.linter}: {', '.join(found)}{': ' if tags else ''}{format_list(list(tags), SHOWN)}"


def _next_lines(shipped: Shipped) -> Iterator[str]:
    files = " ".join(f"./{package.path.name}" for package in shipped.packages)
    yield "to prove that these bytes follow from the run, and to install them"
    yield f"{INDENT}kdyno verify {files}"
    yield f"{INDENT}{INSTALL[shipped.kind]} {files}"
    if command := TRY_COMMANDS.get(shipped.kind):
        yield "to start it once, with the kernel that runs now as the default"
        yield f"{INDENT}{command.format(release=shipped.release)}"


def _notes(notes: Sequence[str]) -> Iterator[str]:
    for note in notes:
        yield from _wrapped(f"note: {note}", "")


def code_line(card: Card) -> str:
    """Return how its code compares with that of the judged image."""
    code = card.judged.code
    image = f"the judged image {card.judged.key[:DIGITS]}"
    if code.is_same:
        return f"all {code.functions:,} functions have the addresses and sizes that they have in {image}"
    return (
        f"of {code.functions:,} functions of {image}, {code.moved:,} lie at another address and {code.resized:,} "
        "have another size"
    )


def card_lines(found: FoundCard) -> list[str]:
    """Return a card for people."""
    card = found.card
    return [
        f"linux {card.release}",
        *_row("card", f"belongs to {found.subject}"),
        *_row("", UNPROVEN),
        *_row("package", f"{card.package} {card.version}"),
        *_row("image", f"sha256 {card.image.sha256}"),
        *_row("", f"build ID {card.image.build_id or 'none'}"),
        *_row("", "signed for Secure Boot" if card.image.is_signed else "not signed for Secure Boot"),
        *_row("judged", code_line(card)),
        "",
        *_origin(card),
        "",
        *_protections(card),
        "",
        *_verdicts(card),
    ]


def _origin(card: Card) -> Iterator[str]:
    yield from _row("source", f"{card.source.origin} ({card.source.identity})")
    for name, digest in zip(
        card.patch_names, card.patches[-len(card.patch_names) or len(card.patches) :], strict=False
    ):
        yield from _row("patch", f"{name}, sha256 {digest}")
    if len(card.patches) > len(card.patch_names):
        yield from _row(
            "patches", f"{len(card.patches)} in all: {' '.join(digest[:DIGITS] for digest in card.patches)}"
        )
    yield from _row("compiler", card.compiler.banner)
    if card.objects:
        yield from _row("objects", ", ".join(f"{count:,} by {name}" for name, count in card.objects.items()))
    yield from _row("make", " ".join(card.make))
    profile = card.profile
    if profile is None:
        yield from _row("profile", "none")
    elif profile.trainee is None:
        yield from _row("profile", f"{', '.join(profile.use)}, from a file that was given")
    else:
        seeds = format_count(profile.seeds, "boot")
        yield from _row("profile", f"{', '.join(profile.use)}: {seeds} of {profile.trainee}, which ran")
        yield from _row("", format_list(profile.trained_on, SHOWN))
    for name, digest in card.inputs.items():
        yield from _row("input", f"{name} {digest}")
    configuration = card.configuration
    asked = ", ".join(f"{symbol}={value}" for symbol, value in configuration.asked.items())
    yield from _row("config", f"{configuration.base}, with {asked or 'nothing else'}")
    if configuration.changed:
        changed = [f"{symbol} {before} -> {after}" for symbol, (before, after) in configuration.changed.items()]
        yield from _row("", f"{format_count(len(changed), 'symbol')} changed: {format_list(changed, SHOWN)}")
    if card.cpu_flags:
        yield from _row("needs", f"a processor with {' '.join(card.cpu_flags)}")
    yield from _row("by", f"kdyno {card.kdyno}")


def _protections(card: Card) -> Iterator[str]:
    configuration = card.configuration
    yield from _row(
        "protections", f"on ({len(configuration.protections_on)}): {' '.join(configuration.protections_on)}"
    )
    yield from _row("", f"off ({len(configuration.protections_off)}): {' '.join(configuration.protections_off)}")
    traded = " ".join(configuration.traded) or "none that the baseline has"
    yield from _row("traded", traded)


def _verdicts(card: Card) -> Iterator[str]:
    verdicts = card.verdicts
    yield from _row(
        "run", f"{verdicts.run[:DIGITS]} {verdicts.name}: variant {verdicts.variant}, {verdicts.blocks} blocks"
    )
    yield from _row("", verdicts.measured)
    if verdicts.model:
        yield from _row("", verdicts.model)
    if verdicts.command_line:
        yield from _row("started with", " ".join(verdicts.command_line))
    if verdicts.variant == verdicts.baseline:
        yield from _row("verdict", "none: it is the baseline of the run")
    else:
        scope = f", about {verdicts.scope}" if verdicts.scope else ""
        yield from _row("against", f"{verdicts.baseline}, margin {100 * verdicts.margin:g} %{scope}")
        if verdicts.overall:
            yield from _row("verdict", verdicts.overall.sentence)
        yield from _benchmarks(verdicts.benchmarks)
    yield from _row("processor", verdicts.processor.sentence if verdicts.processor else "not confirmed on a processor")
    yield from _row("self-checks", "; ".join(verdicts.checks) or "none: the kernel has no KUnit")
    soak = card.soak
    told = f"{soak.verdict} after {soak.hours:.1f} h of {format_list(soak.loads, SHOWN)}" if soak else "none"
    yield from _row("soak", told)
    for notice in verdicts.notices:
        yield from _row("note", notice)


def _benchmarks(benchmarks: Sequence[BenchmarkVerdict]) -> Iterator[str]:
    width = max((len(one.benchmark) for one in benchmarks), default=0)
    for one in benchmarks:
        verdict = one.verdict or one.caution or "not compared"
        yield f"{INDENT}{cut(one.benchmark, 60):<{width}}  {effect(one.effect):<26} {verdict}".rstrip()


def effect(ratio: EffectRatio | None) -> str:
    """Return the change of a value with its interval."""
    if ratio is None:
        return "-"
    change = f"{format_signed(ratio.ratio - 1)} %"
    if ratio.low is None or ratio.high is None:
        return f"{change} (alike)"
    return f"{change} ({format_signed(ratio.low - 1)} to {format_signed(ratio.high - 1)})"


def verification_lines(done: Verification) -> list[str]:
    """Return what a verification found."""
    lines = [line for package in done.packages for line in _compared(package)]
    lines += [f"card: {claim}" for claim in done.card] or ["card: every claim is what this host finds"]
    cache = "objects were taken from ccache where it had them" if done.used_ccache else "everything was compiled"
    verdict = "verified" if done.is_same else "NOT verified"
    return [*lines, f"{verdict}: linux {done.release}, built again from run {done.run[:DIGITS]}; {cache}"]


def _compared(package: ComparedPackage) -> Iterator[str]:
    if package.is_same:
        yield f"{package.path.name}: equal to the byte, sha256 {package.sha256}"
        return
    yield f"{package.path.name}: differs in {format_list(package.differing, SHOWN) or 'nothing but its control part'}"
    yield f"{INDENT}sha256 {package.sha256}"
    yield f"{INDENT}built again {package.built_sha256}"


def _row(name: str, text: str) -> Iterator[str]:
    yield from _wrapped(text, f"{name:<13}")


def _wrapped(text: str, label: str) -> Iterator[str]:
    width = max(20, WIDTH - len(label))
    first, *others = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
    yield f"{label}{first}"
    for line in others:
        yield f"{' ' * (len(label) or len(INDENT))}{line}"
