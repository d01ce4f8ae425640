"""The toy kernel of tests/fakelinux, for the tests of the kernel package."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from kdyno.base.state import State
from kdyno.kernel.build import build, plan_build
from kdyno.kernel.image import Image
from kdyno.kernel.plan import BuildPlan
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import KernelSource, fetch

FAKELINUX = Path(__file__).parent.parent / "fakelinux"
TINY = "make:tinyconfig"


def silent(_text: str) -> None:
    """A `say` that nobody hears."""


def no_progress(_done: int, _total: int | None, _line: str) -> None:
    """A `progress` that nobody sees."""


def toy_tree(folder: Path) -> Path:
    """A private copy of the toy, outside of any repository."""
    return Path(shutil.copytree(FAKELINUX, folder / "linux", ignore=shutil.ignore_patterns("__pycache__")))


def toy_repository(folder: Path) -> Path:
    tree = toy_tree(folder)
    git(tree, "init", "-q", "-b", "main")
    commit(tree, "the toy")
    return tree


def git(tree: Path, *words: str) -> str:
    identity = ["-c", "user.name=A Tester", "-c", "user.email=tester@example.org"]
    return subprocess.run(["git", *identity, *words], cwd=tree, check=True, capture_output=True, text=True).stdout


def commit(tree: Path, subject: str) -> str:
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", subject)
    return git(tree, "rev-parse", "HEAD").strip()


def toy_source(folder: Path, state: State) -> KernelSource:
    return fetch(str(toy_tree(folder)), state, silent)


def local_base(folder: Path, config: str, lsmod: str) -> str:
    """Return a base of localmodconfig from a .config and the lines of lsmod, which are written to the folder."""
    (folder / "config").write_text(config)
    (folder / "lsmod").write_text(f"Module Size Used by\n{lsmod}")
    return f"make:localmodconfig?lsmod={folder}/lsmod&config={folder}/config"


def plan(recipe: Recipe, source: KernelSource, state: State, base: str = TINY) -> BuildPlan:
    return plan_build(recipe, source, base, state)


def built(recipe: Recipe, source: KernelSource, state: State, base: str = TINY) -> Image:
    return build(plan(recipe, source, state, base), state, no_progress, jobs=4)


def snapshot(tree: Path) -> dict[str, tuple[int, int, bytes | None]]:
    """All that a write to a tree would change."""
    paths = (path for path in sorted(tree.rglob("*")) if ".git" not in path.parts)
    return {
        str(path.relative_to(tree)): (
            path.lstat().st_mtime_ns,
            path.lstat().st_mode,
            path.read_bytes() if path.is_file() else None,
        )
        for path in paths
    }


BUILD_SCRIPT = """
import sys
from pathlib import Path
from kdyno.kernel import build
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import fetch
from kdyno.base.state import State

tree, root, recipe, jobs = sys.argv[1:]
build.NEEDED_MB = 0
state = State(Path(root))
try:
    source = fetch(tree, state, print)
    plan = build.plan_build(Recipe.model_validate_json(recipe), source, "make:tinyconfig", state)
    image = build.build(plan, state, lambda done, total, line: print(line, flush=True), int(jobs))
except Exception as error:
    print(type(error).__name__, error)
    sys.exit(1)
print("built", image.record.key)
"""


def build_elsewhere(tree: Path, state: State, recipe: Recipe, jobs: int, *before: str) -> subprocess.Popen[str]:
    """Build in another process; its output is the lines of progress."""
    command = [*before, sys.executable, "-c", BUILD_SCRIPT, str(tree), str(state.root), recipe.model_dump_json()]
    return subprocess.Popen([*command, str(jobs)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for_line(child: subprocess.Popen[str], part: str) -> str:
    assert child.stdout is not None
    lines = []
    for line in child.stdout:
        lines.append(line)
        if part in line:
            return line
    raise AssertionError(f"no `{part}` in: {''.join(lines)}")


def processes_naming(text: str) -> list[str]:
    """Command lines of running processes that mention a text."""
    processes = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in words:
            processes.append(words)
    return processes
