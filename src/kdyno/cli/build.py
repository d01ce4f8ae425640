"""`kdyno build`"""

from __future__ import annotations

import argparse
from pathlib import Path

from kdyno.cli.common import print_json, state_of, talk_of


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", type=Path, help="experiment file")
    parser.add_argument("variant", nargs="*", help="variants to build; all if none is named")
    parser.add_argument("--json", action="store_true", help="provenance of the images as JSON")


def act(args: argparse.Namespace) -> int:
    from kdyno.experiment.load import load_experiment, only_variants
    from kdyno.line.forecast import forecast_builds
    from kdyno.line.outlook import builds_ahead
    from kdyno.line.prepare import build_images, plan_builds

    experiment = only_variants(load_experiment(args.experiment), args.variant)
    state, talk = state_of(args), talk_of(args)
    plans = plan_builds(experiment, state, talk)
    for line in builds_ahead(forecast_builds(plans, state)):
        talk.say(line)
    images = build_images(plans, state, talk)
    if args.json:
        print_json({name: [image.record.model_dump(mode="json") for image in of] for name, of in images.items()})
        return 0
    for name, image in ((name, image) for name, layouts in images.items() for image in layouts):
        record = image.record
        layout = "" if record.recipe.layout is None else f", layout {record.recipe.layout}"
        print(
            f"{name}{layout}: {image.bzimage}\n"
            f"  linux {record.release}, {record.toolchain.banner}\n"
            f"  bzImage {record.sizes.bzimage:,} B, vmlinux {record.sizes.vmlinux:,} B, .text {record.sizes.text:,} B, "
            f"built in {record.build_seconds:.0f} s"
        )
    return 0
