"""A toy of the kernel's conf: makes .config from Kconfig, a mode, and what .config or KCONFIG_ALLCONFIG say."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

OFF = {"bool": "n", "string": '""', "int": "0"}
Block = tuple[str, list[str]]
Values = dict[str, str]


class Symbol:
    def __init__(self, name: str, blocks: list[Block]) -> None:
        self.name = name
        self.choice = next((kind for kind, _ in blocks if kind.startswith("choice")), None)
        self.depends = [text for _, texts in blocks for text in texts]
        self.selects: list[str] = []
        self.type, self.prompt, self.default = "bool", "", ""


def parse(tree: Path, name: str, blocks: list[Block], symbols: dict[str, Symbol]) -> None:
    symbol: Symbol | None = None
    for number, line in enumerate((tree / name).read_text().replace("\\\n", " ").splitlines()):
        words = shlex.split(line.replace("'", ""), comments=True) or [""]
        rest = line.strip().partition(" ")[2].split("#")[0].strip()
        if line and not line[0].isspace():
            symbol = None
        if line.startswith("config "):
            symbol = symbols[words[1]] = Symbol(words[1], blocks)
        elif line.startswith("source "):
            parse(tree, words[1], list(blocks), symbols)
        elif words[0] in ("if", "menu", "choice"):
            blocks.append((f"{words[0]}{number}", [rest] if words[0] == "if" else []))
        elif words[0] in ("endif", "endmenu", "endchoice"):
            blocks.pop()
        elif words[0] == "depends":
            (symbol.depends if symbol else blocks[-1][1]).append(rest.removeprefix("on "))
        elif symbol and words[0] in OFF:
            symbol.type = words[0]
            symbol.prompt = " ".join(words[3:]) or "y" if words[1:] else ""
        elif symbol and words[0] in ("def_bool", "default"):
            symbol.default = rest
        elif symbol and words[0] == "select":
            symbol.selects.append(words[1])


def holds(text: str, config: Values) -> bool:
    """Return whether an expression of &&, ||, !, parentheses and names is y."""
    python = re.sub(r"\w+", lambda match: repr(match[0] == "y" or config.get(match[0]) == "y"), text)
    return bool(eval(python.replace("&&", " and ").replace("||", " or ").replace("!", " not "), {}))


def default(symbol: Symbol) -> str:
    if symbol.default.startswith("$(success,"):
        command = symbol.default.removeprefix("$(success,").removesuffix(")").replace("$(CC)", os.environ["CC"])
        done = subprocess.run(["sh", "-c", command], check=False, capture_output=True)
        return "y" if done.returncode == 0 else "n"
    return symbol.default or OFF[symbol.type]


def solve(symbols: dict[str, Symbol], wanted: Values, defaults: Values) -> Values:
    config: Values = {}
    for _ in range(4):  # enough for what depends on what here
        for name, symbol in symbols.items():
            config[name] = value_of(symbol, symbols, wanted, defaults, config)
    return config


def value_of(symbol: Symbol, symbols: dict[str, Symbol], wanted: Values, defaults: Values, config: Values) -> str:
    if any(symbol.name in other.selects and config.get(other.name) == "y" for other in symbols.values()):
        return "y"
    if not all(holds(text, config) for text in symbol.depends):
        return OFF[symbol.type]
    if symbol.choice:
        members = [other for other in symbols.values() if other.choice == symbol.choice]
        able = [other.name for other in members if all(holds(text, config) for text in other.depends)]
        asked = [name for name, value in wanted.items() if name in able and value == "y"]
        return "y" if symbol.name == [able[0], *asked][-1] else "n"
    if symbol.prompt and holds(symbol.prompt, config) and symbol.name in wanted:
        return wanted[symbol.name]
    return defaults[symbol.name]


def read(path: Path) -> Values:
    wanted: Values = {}
    for line in path.read_text().splitlines():
        match = re.fullmatch(r"CONFIG_(\w+)=(.*)", line) or re.fullmatch(r"# CONFIG_(\w+) is not set()", line)
        if match:
            wanted.pop(match[1], None)
            wanted[match[1]] = match[2] or "n"
    return wanted


def wishes(tree: Path, mode: str) -> Values:
    if mode == "allnoconfig":
        return read(Path(os.environ["KCONFIG_ALLCONFIG"])) if "KCONFIG_ALLCONFIG" in os.environ else {}
    if mode == "tinyconfig":
        return read(tree / "kernel/configs/tiny.config")
    if mode == "defconfig":
        return read(tree / "arch/x86/configs/x86_64_defconfig")
    wanted = read(Path(".config"))
    if mode == "localmodconfig":
        if not sys.stdin.readline():
            sys.exit("Error in reading or end of file.")
        # As the kernel's streamline_config.pl: what it finds in the tree, by a `find` that follows no links.
        places = {Path(folder).name for folder, _, files in os.walk(tree) if "Kconfig" in files}
        known = {"ext4"} if "fs" in places else set()
        lines = Path(os.environ["LSMOD"]).read_text().splitlines()
        loaded = [line.split()[0] for line in lines if line and not line.startswith("Module")]
        for module in loaded:
            if module not in known:
                print(f"{module} config not found!!", file=sys.stderr)
            elif "EXT4" not in wanted:
                print(f"module {module} did not have configs CONFIG_EXT4", file=sys.stderr)
        wanted = {name: value for name, value in wanted.items() if name != "EXT4" or known.intersection(loaded)}
    return wanted


def main() -> None:
    tree, mode = Path(sys.argv[1]), sys.argv[2]
    symbols: dict[str, Symbol] = {}
    parse(tree, "Kconfig", [], symbols)
    off = mode in ("allnoconfig", "tinyconfig")
    defaults = {
        name: OFF[symbol.type] if off and symbol.prompt and symbol.type == "bool" else default(symbol)
        for name, symbol in symbols.items()
    }
    config = solve(symbols, wishes(tree, mode), defaults)
    lines = [
        f"CONFIG_{name}={value}" if value != "n" else f"# CONFIG_{name} is not set" for name, value in config.items()
    ]
    Path(".config").write_text("\n".join(["# made by fakelinux", *lines]) + "\n")
    Path("auto.conf.mk").write_text("\n".join(line for line in lines if not line.endswith("=0")) + "\n")
    print("#\n# configuration written to .config\n#")


main()
