"""`kdyno build`"""

from __future__ import annotations

import argparse
from pathlib import Path

from kdyno.base import terminal
from kdyno.cli.common import print_json, state_of, store_of, talk_of
from kdyno.runs.session import Session


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", type=Path, help="experiment file")
    parser.add_argument("variant", nargs="*", help="variants to build (default: all)")
    parser.add_argument("--json", action="store_true", help="provenance of the images as JSON")


def act(args: argparse.Namespace) -> int:
    from kdyno.runs.derive import boots_left
    from kdyno.runs.experiment.resolve import load_experiment
    from kdyno.runs.forecast import forecast_builds
    from kdyno.runs.images import build_images
    from kdyno.runs.outlook import builds_ahead, training_ahead
    from kdyno.runs.prepare import plan_builds
    from kdyno.runs.train import make_inputs

    experiment = load_experiment(args.experiment)
    state, talk = state_of(args), talk_of(args)
    builds = plan_builds(experiment, state, talk, args.variant)
    for line in builds_ahead(forecast_builds(builds.plans, state, builds.trainings)):
        talk.say(line)
    if builds.trainings:
        with store_of(args) as store:
            for line in training_ahead(sum(boots_left(builds.trainings, store).values())):
                talk.say(line)
            make_inputs(builds.trainings, Session(state, store, talk))
    images = build_images(builds.plans, state, talk)
    if args.json:
        print_json({name: [image.record.model_dump(mode="json") for image in of] for name, of in images.items()})
        return 0
    for name, image in ((name, image) for name, layouts in images.items() for image in layouts):
        record = image.record
        seed = record.recipe.layout_seed
        layout = "" if seed is None else f", layout {seed}"
        terminal.line(f"{name}{layout}: {image.program}")
        terminal.line(f"  linux {record.release}, {record.toolchain.banner}")
        terminal.line(f"  {record.sizes}, built in {record.build_seconds:.0f} s")
    return 0
