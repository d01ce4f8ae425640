"""`kdyno schema`"""

from __future__ import annotations

import argparse

from kdyno.cli.common import print_json

FORMATS = {
    "blockmap": "`kdyno blockmap --json`",
    "budget": "`kdyno explain --budget --json`",
    "build": "`kdyno build --json`",
    "calibrate": "`kdyno calibrate --json`",
    "calibrate-kernel": "`kdyno calibrate --kernel --json`",
    "catalogue": "`kdyno-agent list --json`: the benchmarks and commands of the agent",
    "compare": "`kdyno compare --json`",
    "coverage": "`kdyno coverage --json`",
    "coverage-diff": "`kdyno coverage --diff --json`",
    "coverage-unused": "`kdyno coverage --unused --json`",
    "delegation": "`kdyno delegation show PLAN --json`",
    "delegation-image": "`kdyno delegation show IMAGE --json`",
    "delegation-plan": "a delegation plan",
    "delegation-record": "the record of ccd, each line",
    "delegation-resolved": "the plan that ccd reads",
    "doctor": "`kdyno doctor --json`",
    "doctor-host": "`kdyno doctor --host --json`",
    "doctor-set": "`kdyno doctor --host --set --json`, and --restore",
    "experiment": "an experiment file",
    "explanation": "`kdyno explain --json`",
    "family": "a CPU family's file",
    "fit-config": "`kdyno fit-config --json`",
    "image": "image.json in the directory of an image",
    "job": "the job of the agent in a guest",
    "judge": "`kdyno judge --json`",
    "lint": "`kdyno kernel lint --json`",
    "load": "`kdyno-loads LOAD --json`",
    "march": "`kdyno march --json`",
    "march-list": "`kdyno march list --json`",
    "pgod-listing": "`kdyno-pgod status --json`, and the header of its archives",
    "plan": "`kdyno plan --json`",
    "probe-line": "`kdyno-probe run`, each line",
    "probe-list": "`kdyno-probe list --json`",
    "profile-cover": "`kdyno profile cover --json`",
    "profile-merge": "`kdyno profile merge --json`",
    "profile-objects": "`kdyno profile objects --json`",
    "profile-overlap": "`kdyno profile overlap --json`",
    "profile-pull": "`kdyno profile pull --json`, and pulled.json in the directory of the counters",
    "profile-show": "`kdyno profile show --json`",
    "profile-stale": "`kdyno profile stale --json`",
    "record": "the agent's stream, each line",
    "report": "`kdyno report --json`, `kdyno run --json` and `kdyno ab --json`",
    "run-file": "manifest.json in a file of `kdyno store export`",
    "run-file-boot": "boots/N.json in that file",
    "run-file-run": "run.json in that file",
    "runs": "`kdyno runs --json`",
    "scaling": "`kdyno scaling --json`",
    "section": "the hot and cold functions that lkd lists, each line",
    "selftest": "`kdyno selftest --json`",
    "show": "`kdyno show --json`",
    "size": "`kdyno kernel size --json`",
    "soak": "`kdyno soak --json`, and the file of -o",
    "store-gc": "`kdyno store gc --json`",
    "tune": "`kdyno tune delegation --json`",
    "validate": "`kdyno validate --json`, and the file of -o",
    "validate-kvm": "`kdyno validate --kvm --json`",
    "validate-library": "`kdyno validate --library --json`",
    "workload": "a workload, as TOML",
    "workload-list": "`kdyno workload list --json`",
    "workload-try": "`kdyno workload try --json`",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", choices=tuple(FORMATS), metavar="NAME", help="one of the formats below")
    parser.epilog = "\n".join(f"{name:<20} {what}" for name, what in FORMATS.items())
    parser.formatter_class = argparse.RawDescriptionHelpFormatter


def act(args: argparse.Namespace) -> int:
    from kdyno.cli.schemas import schema

    print_json(schema(args.name))
    return 0
