"""A toy of the kernel's conf: makes .config from Kconfig, a mode, and what .config or KCONFIG_ALLCONFIG say."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path


class Symbol:
    def __init__(self, name, around, choice):
        self.name, self.choice, self.depends = name, choice, list(around)
        self.type, self.prompt, self.default, self.selects = "bool", None, None, []


def parse(tree, name="Kconfig", blocks=(), found=None):
    found = {} if found is None else found
    blocks, symbol, choices = list(blocks), None, 0
    lines = iter((tree / name).read_text().replace("\\\n", " ").splitlines())
    for line in lines:
        words = shlex.split(line, comments=True) or [""]
        rest = line.strip().partition(" ")[2].split("#")[0].strip()
        if line and not line[0].isspace():
            if symbol is not None and words[0] not in ("endif", "endmenu", "endchoice"):
                symbol = None
        if words[0] == "config" and line.startswith("config"):
            around = [text for kind, texts in blocks for text in texts]
            choice = next((kind for kind, _ in blocks if kind.startswith("choice")), None)
            symbol = found[words[1]] = Symbol(words[1], around, choice)
        elif words[0] == "source":
            parse(tree, words[1], blocks, found)
        elif words[0] in ("if", "menu", "choice"):
            choices += 1
            blocks.append((f"{words[0]}{choices}", [rest] if words[0] == "if" else []))
            symbol = None
        elif words[0] in ("endif", "endmenu", "endchoice"):
            blocks.pop()
        elif words[0] == "depends":
            (symbol.depends if symbol else blocks[-1][1]).append(rest.removeprefix("on "))
        elif symbol and words[0] in ("bool", "string", "int", "tristate"):
            symbol.type = words[0]
            if len(words) > 1:
                symbol.prompt = " ".join(words[3:]) or "y"
        elif symbol and words[0] in ("def_bool", "default"):
            symbol.default = rest
        elif symbol and words[0] == "select":
            symbol.selects.append(words[1])
    return found


def holds(text, config):
    """Whether an expression of &&, ||, ! and names is y."""
    names = re.sub(r"[\w]+", lambda m: repr(m[0] == "y" or config.get(m[0], "n") == "y"), text)
    python = names.replace("&&", " and ").replace("||", " or ").replace("!", " not ")
    return eval(python, {})


def default(symbol, config):
    if symbol.default and symbol.default.startswith("$(success,"):
        command = symbol.default.removeprefix("$(success,").removesuffix(")").replace("$(CC)", os.environ["CC"])
        return "y" if subprocess.run(["sh", "-c", command], capture_output=True).returncode == 0 else "n"
    if symbol.default is None:
        return {"bool": "n", "tristate": "n", "string": '""', "int": "0"}[symbol.type]
    return symbol.default


def solve(symbols, wanted, defaults):
    config = {}
    for _ in range(8):
        for symbol in symbols.values():
            met = all(holds(text, config) for text in symbol.depends)
            usable = met and symbol.prompt and holds(symbol.prompt, config)
            if symbol.choice:
                members = [s.name for s in symbols.values() if s.choice == symbol.choice]
                able = [n for n in members if all(holds(text, config) for text in symbols[n].depends)]
                asked = [name for name in wanted if name in able and wanted[name] == "y"]
                value = "y" if symbol.name == (asked[-1] if asked else able[0]) else "n"
            elif usable and symbol.name in wanted:
                value = wanted[symbol.name]
            elif met and (defaults or not symbol.prompt or symbol.type not in ("bool", "tristate")):
                value = default(symbol, config)
            else:
                value = "n" if symbol.type in ("bool", "tristate") else default(symbol, config)
            if any(symbol.name in other.selects and config.get(other.name) == "y" for other in symbols.values()):
                value = "y"
            config[symbol.name] = value
    return config


def read(path):
    wanted = {}
    for line in path.read_text().splitlines() if path.is_file() else []:
        if match := re.fullmatch(r"CONFIG_(\w+)=(.*)", line):
            wanted.pop(match[1], None)
            wanted[match[1]] = match[2]
        elif match := re.fullmatch(r"# CONFIG_(\w+) is not set", line):
            wanted.pop(match[1], None)
            wanted[match[1]] = "n"
    return wanted


def main():
    tree, mode = Path(sys.argv[1]), sys.argv[2]
    symbols = parse(tree)
    wanted = read(Path(".config")) if mode in ("olddefconfig", "localmodconfig") else {}
    if mode == "allnoconfig" and os.environ.get("KCONFIG_ALLCONFIG"):
        wanted = read(Path(os.environ["KCONFIG_ALLCONFIG"]))
    if mode == "tinyconfig":
        wanted = read(tree / "kernel/configs/tiny.config")
    if mode == "defconfig":
        wanted = read(tree / "arch/x86/configs/x86_64_defconfig")
    if mode == "localmodconfig":
        loaded = Path(os.environ["LSMOD"]).read_text()
        wanted = {name: value for name, value in wanted.items() if name != "EXT4" or "ext4" in loaded}
        if not sys.stdin.readline():
            sys.exit("Error in reading or end of file.")
    config = solve(symbols, wanted, mode not in ("allnoconfig", "tinyconfig"))
    lines = ["# made by fakelinux"]
    for name, value in config.items():
        if value in ("n", '""') and symbols[name].type in ("bool", "tristate"):
            lines.append(f"# CONFIG_{name} is not set")
        else:
            lines.append(f"CONFIG_{name}={value}")
    Path(".config").write_text("\n".join(lines) + "\n")
    Path("auto.conf.mk").write_text("\n".join(line for line in lines if not line.endswith(("=0",))) + "\n")
    print("#\n# configuration written to .config\n#")


main()
