"""`kdyno show`"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kdyno.base.terminal import line, lines
from kdyno.cli.common import add_run, print_json, run_of, state_of, store_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdyno.kernel.image import ImageFile
    from kdyno.store.reading import PlacedEnd
    from kdyno.store.records import BootRecord, RunRecord
    from kdyno.store.store import Store

BOOTED: tuple[ImageFile, ...] = ("bzImage", "vmlinux")
"""The files of an image to compare when its runs on two hosts differ."""
RUN_AGAIN = "run again"
"""The end of a boot that other work on the host disturbed, and that a later attempt replaces."""
PIECE = 64 * 1024
"""The number of characters of a console to print at once if it has no lines."""


def configure(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--reproduce", action="store_true", help="print only the command line that repeats the run")
    form.add_argument("--console", metavar="VARIANT/BLOCK", help="print the console of one boot")
    form.add_argument("--json", action="store_true", help="print the run and its boots as JSON")


def act(args: argparse.Namespace) -> int:
    with store_of(args, "read") as store:
        run = run_of(args, store, args.run)
        if args.reproduce:
            line(run.command_to_repeat)
        elif args.console:
            _print_console(args, run, store.boots(run.id))
        elif args.json:
            from kdyno.store.records import RunWithBoots

            print_json(RunWithBoots(run=run, boots=tuple(store.boots(run.id))).model_dump(mode="json"))
        else:
            _print_run(run, store.ends_in_place(run.id), _find_confirmation(run, store))
            _print_protections(args, run)
            _print_compilers(args, run)
            line()
            line("to repeat it")
            line(f"  {run.command_to_repeat}")
    return 0


def _find_confirmation(run: RunRecord, store: Store) -> RunRecord | None:
    """Return the run that confirms a run on this host's processor, if there is one."""
    from kdyno.store.records import CONFIRMATION_SUFFIX

    names = [summary.name for summary in store.runs() if summary.name.endswith(CONFIRMATION_SUFFIX)]
    if not any(run.name.startswith(name.removesuffix(CONFIRMATION_SUFFIX)) for name in names):
        return None  # without reading the experiment, which takes longer than all else

    from kdyno.runs.silicon import find_confirmation_of

    return find_confirmation_of(run, store)


def _print_run(run: RunRecord, boots: Sequence[PlacedEnd], confirmation: RunRecord | None) -> None:
    for notice in run.notices:
        line(f"note: {notice}")
    line(f"run {run.id}: {run.name}, {run.created:%Y-%m-%d %H:%M} UTC, lane {run.lane}, kdyno {run.kdyno}")
    line(f"host: {', '.join(f'{key} {value}' for key, value in run.host.items())}")
    line(f"machine: {', '.join(f'{key} {value}' for key, value in run.machine.items() if value is not None)}")
    stopped = f" (stopped early after {run.stopped_at})" if run.stopped_at else ""
    layouts = f", {run.layouts} layouts of each variant" if run.layouts else ""
    line(f"blocks: {run.blocks}{stopped}{layouts}, seed {run.seed}, margin {run.margin:.2%}, alpha {run.alpha:g}")
    if confirmation:
        cpu = confirmation.host.get("cpu", "an unknown processor")
        line(f"confirmed on this processor ({cpu}) by run {confirmation.id}: `kdyno report {run.id[:12]}` shows both")
    line()
    line("variants")
    for variant in run.variants:
        mark = " (baseline)" if variant.name == run.baseline else ""
        line(f"  {variant.name}{mark}")
        for image in variant.images:
            line(f"    image {image.key[:12]}: linux {image.release}, {image.toolchain.banner}")
            line(f"    make {' '.join(image.make)}")
            line(f"    {image.sizes}, {image.build_seconds:.0f} s")
            for name in BOOTED:
                if name in image.files:
                    line(f"    {name} sha256 {image.files[name]}")
        if variant.recipe.words:
            line(f"    command line: {' '.join(variant.recipe.words)}")
    line()
    line("boots")
    for variant in run.variants:
        ends = [_end(boot) for boot in boots if boot.variant == variant.name]
        counts = ", ".join(f"{ends.count(end)} {end}" for end in ("ok", "failed", "lost", RUN_AGAIN) if end in ends)
        line(f"  {variant.name}: {counts or 'none yet'} of {run.blocks}")
    for boot in boots:
        if boot.status != "ok":
            line(f"  {boot.variant}/{boot.block}: {_end(boot)}: {boot.reason}")


def _end(boot: PlacedEnd) -> str:
    return RUN_AGAIN if boot.was_run_again else boot.status


def _print_protections(args: argparse.Namespace, run: RunRecord) -> None:
    """Print the mitigations and hardening options of each variant whose configuration is still stored."""
    from kdyno.kernel.hardening import protections
    from kdyno.kernel.kconfig_check import read_config

    images = state_of(args).images
    variants: dict[tuple[str, ...], list[str]] = {}
    for variant in run.variants:
        config = images / variant.images[0].key / "config" if variant.images else None
        if config is None or not config.is_file():
            continue
        by_state: dict[str, list[str]] = {"on": [], "off": [], "no such option": []}
        for protection in protections(read_config(config.read_text(encoding="utf-8"))):
            by_state[protection.state].append(protection.option)
        states = tuple(f"  {state} ({len(names)}): {' '.join(names) or '-'}" for state, names in by_state.items())
        variants.setdefault(states, []).append(variant.name)
    for states, names in variants.items():
        line()
        line(f"mitigations and hardening: {', '.join(names)}")
        for state in states:
            line(state)


def _print_compilers(args: argparse.Namespace, run: RunRecord) -> None:
    """Print the compilers of each variant that has a delegation plan and whose image is still stored."""
    from kdyno.kernel.delegation.show import image_view
    from kdyno.kernel.images import ImageMissing, load_image

    for variant in run.variants:
        if not any(image.objects for image in variant.images):
            continue
        try:
            view = image_view(load_image(variant.images[0].key, state_of(args)))
        except ImageMissing:
            continue
        if view is not None:
            line()
            line(f"compilers: {variant.name}: {view.summary}")
            line(f"  `kdyno delegation show {view.image[:12]}` lists the objects")


def _print_console(args: argparse.Namespace, run: RunRecord, boots: Sequence[BootRecord]) -> None:
    from kdyno.judge.verdicts.consoles import console_artefact
    from kdyno.store.artefacts import Artefacts

    sha256 = console_artefact(run, boots, args.console)
    path = Artefacts(state_of(args).artefacts).get(sha256)
    with path.open(encoding="utf-8", errors="replace") as console:
        while piece := console.readline(PIECE):
            lines(piece, end="")
