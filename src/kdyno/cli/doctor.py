"""`kdyno doctor`"""

from __future__ import annotations

import argparse
from dataclasses import asdict

from kdyno.cli.common import print_json, state_of
from kdyno.doctor import examine

MARKS = {"ok": "ok      ", "missing": "MISSING ", "optional": "optional"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="findings as JSON")


def act(args: argparse.Namespace) -> int:
    findings = []
    for finding in examine(state_of(args)):
        findings.append(finding)
        if not args.json:
            print(f"{MARKS[finding.status]}  {finding.name:<26} {finding.detail}", flush=True)
            if finding.mend and finding.status != "ok":
                print(f"{'':38}mend: {finding.mend}")
    if args.json:
        print_json([asdict(finding) for finding in findings])
    missing = [finding.name for finding in findings if finding.status == "missing"]
    if not args.json:
        print(f"missing: {', '.join(missing)}" if missing else "kdyno can build, boot and measure here")
    return 3 if missing else 0
