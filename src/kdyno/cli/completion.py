"""`kdyno completion`"""

from __future__ import annotations

import argparse

from kdyno.base.terminal import data


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=["bash", "zsh", "fish", "tcsh"], help="the shell")
    parser.epilog = (
        "For bash: kdyno completion bash | sudo tee /etc/bash_completion.d/kdyno. "
        "For fish: kdyno completion fish > ~/.config/fish/completions/kdyno.fish"
    )


def act(args: argparse.Namespace) -> int:
    import shtab

    from kdyno.cli.main import make_parser
    from kdyno.cli.verbs import VERBS

    data(f"{shtab.complete(make_parser(VERBS), shell=args.shell)}\n")
    return 0
