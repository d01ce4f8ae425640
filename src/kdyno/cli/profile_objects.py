"""`kdyno profile objects`"""

from __future__ import annotations

import argparse

from kdyno.base.errors import UserError
from kdyno.cli.common import add_action, print_json, state_of, store_of


class SectionsNotKept(UserError):
    message = "image {key} has no record of its hot functions: an older kdyno built it"
    hint = "remove it (rm -r {directory}): `kdyno build` of its experiment rebuilds it"


def configure(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    objects = add_action(
        verbs,
        "objects",
        "show the effect of a profile on an image: objects without a profile, and why; hot and cold functions",
    )
    objects.add_argument("image", metavar="IMAGE", help="key of an image that was compiled with a profile")
    objects.add_argument(
        "--hot", action="store_true", help="list the hot functions (JSON: always, with the cold functions)"
    )
    objects.add_argument("--json", action="store_true", help="print everything as JSON")
    objects.epilog = "-v lists every object without the profile."


def objects(args: argparse.Namespace) -> None:
    from kdyno.profile.show_objects import print_objects
    from kdyno.runs.objects import objects_of_image
    from kdyno.runs.subject import image_named

    state = state_of(args)
    image = image_named(args.image, state)
    with store_of(args, "read") as store:
        view = objects_of_image(image, state, store)
    if args.json:
        print_json(view.model_dump(mode="json"))
        return
    if args.hot and view.functions is None:
        raise SectionsNotKept(key=image.record.key[:12], directory=image.directory)
    print_objects(view, hot=args.hot, verbose=args.verbose)
