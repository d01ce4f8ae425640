"""`kdyno delegation`"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from kdyno.base.errors import UserError
from kdyno.base.terminal import line
from kdyno.cli.common import add_action, print_json, state_of, talk_of

if TYPE_CHECKING:
    from kdyno.kernel.delegation.show import PlanView


class NotDelegated(UserError):
    message = "image {key} was built by one compiler, without a delegation plan"
    hint = "the image's recipe has no `delegation`; `kdyno delegation show PLAN` shows a plan"


def configure(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(metavar="ACTION", dest="action", required=True)

    check = add_action(verbs, "check", "check whether a plan is possible here, and what each rule selects")
    check.add_argument("plan", type=Path, metavar="PLAN", help="delegation plan, a TOML file")
    _add_source(check)

    show = add_action(verbs, "show", "show which compiler compiles which file, by a plan or in an existing image")
    show.add_argument("what", metavar="PLAN|IMAGE", help="delegation plan, or an image's key or directory")
    _add_source(show)
    show.add_argument("--json", action="store_true", help="print everything as JSON")


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--source",
        metavar="SPEC",
        default="debian:linux-source-6.12",
        help="the kernel source that the plan is for (default: debian:linux-source-6.12)",
    )
    parser.add_argument(
        "--toolchain", metavar="NAME", default="gcc", help="the compiler of files that no rule selects (default: gcc)"
    )


def act(args: argparse.Namespace) -> int:
    from kdyno.kernel.delegation.show import plan_lines

    if args.action == "show" and not Path(args.what).is_file():
        return _show_image(args)
    path = args.plan if args.action == "check" else Path(args.what)
    view = _plan_view(args, path)
    if args.action == "show" and args.json:
        print_json(view.model_dump(mode="json"))
    elif args.action == "show":
        for text in plan_lines(view):
            line(text)
    else:
        rules = f"{len(view.plan.rules)} rule{'s' if len(view.plan.rules) != 1 else ''}"
        files = sum(len(files) for files in view.files.values())
        line(f"{path}: {rules} for {files:,} files of {args.source}; compilers: {', '.join(view.plan.compilers)}")
    return 0


def _plan_view(args: argparse.Namespace, path: Path) -> PlanView:
    from kdyno.kernel import toolchain
    from kdyno.kernel.delegation.plan_file import load
    from kdyno.kernel.delegation.show import plan_view
    from kdyno.kernel.source import fetch

    written = load(path)  # before a source is unpacked, which takes a minute
    state = state_of(args)
    reference = toolchain.find(args.toolchain, state)
    return plan_view(written, fetch(args.source, state, talk_of(args).say), reference, state)


def _show_image(args: argparse.Namespace) -> int:
    from kdyno.kernel.delegation.show import image_lines, image_view
    from kdyno.runs.subject import image_named

    image = image_named(args.what, state_of(args))
    view = image_view(image)
    if view is None:
        raise NotDelegated(key=image.record.key[:12])
    if args.json:
        print_json(view.model_dump(mode="json"))
    else:
        for text in image_lines(view):
            line(text)
    return 0
