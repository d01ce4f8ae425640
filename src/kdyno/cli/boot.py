"""`kdyno boot`"""

from __future__ import annotations

import argparse
from pathlib import Path

from kdyno.base.lanes import GUEST_LANES, TIMED_LANE
from kdyno.cli.common import number_from, state_of, talk_of

OUTPUT_MB = 256
"""The most bytes of the stream of an interactive boot, which is not stored: twice the output limit of the command."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kernel", help="a bzImage, a kernel build directory, or the key of an image that kdyno built")
    parser.set_defaults(command=[])
    parser.add_argument(
        "--lane", choices=GUEST_LANES, default=TIMED_LANE.name, help="clock of the guest (default: %(default)s)"
    )
    parser.add_argument("--accel", choices=["auto", "kvm", "tcg"], default="auto", help="wall lane: the accelerator")
    parser.add_argument("--platform", choices=["microvm", "q35"], default="microvm", help="QEMU's machine type")
    parser.add_argument("--cpu", help="QEMU's CPU model")
    parser.add_argument("--cpus", type=number_from(1, 64), metavar="N", default=1, help="number of CPUs (wall lane)")
    parser.add_argument(
        "--memory", type=number_from(64, 1 << 20), default=512, metavar="MB", help="guest memory (default: 512)"
    )
    parser.add_argument("--append", default="", metavar="WORDS", help="parameters for the kernel command line")
    parser.add_argument("--seed", type=number_from(0), default=1, metavar="N", help="seed of the guest (default: 1)")
    parser.add_argument(
        "--share", type=Path, metavar="DIR", help="share DIR with the guest, read-only, as 9p tag `host`"
    )
    parser.add_argument(
        "--disk", type=number_from(1, 1 << 20), metavar="MB", help="give the guest an empty disk, /dev/vda (wall lane)"
    )
    parser.add_argument(
        "--limit",
        type=number_from(1, 7 * 24 * 3600),
        default=600,
        metavar="SECONDS",
        help="the time limit of a boot with a command",
    )
    parser.add_argument("--console", type=Path, metavar="FILE", help="write the console to FILE")
    parser.usage = "kdyno boot [options] KERNEL [-- COMMAND ...]"
    parser.epilog = (
        "Without a command, a shell runs. The exit status is the command's, or 3 if the command was not reached."
    )


def act(args: argparse.Namespace) -> int:
    from kdyno.boot.base import BootLimits
    from kdyno.boot.registry import default_machine
    from kdyno.runs.bootone import boot_command, boot_shell, find_kernel

    state, talk = state_of(args), talk_of(args)
    kernel = find_kernel(args.kernel, state)
    config = default_machine(
        lane=args.lane,
        accel=args.accel,
        platform=args.platform,
        cpu=args.cpu,
        cpus=args.cpus,
        memory_mb=args.memory,
        disk_mb=args.disk,
        share=args.share.resolve() if args.share else None,
        limits=BootLimits(total=args.limit, silence=args.limit, stream_mb=OUTPUT_MB),
    )
    words = tuple(args.append.split())
    if args.command:
        return boot_command(
            config,
            kernel,
            tuple(args.command),
            words=words,
            seed=args.seed,
            console=args.console,
            state=state,
            talk=talk,
        )
    return boot_shell(config, kernel, words=words, seed=args.seed, state=state, talk=talk)
