"""`kdyno plan` looks at an experiment of a stranger, and at the tree that it names: it runs nothing of either."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.conftest import Lab
from tests.unit.kernel_toy import commit, git, toy_repository


@pytest.mark.parametrize("source", ["linux", "dir:linux", "git:linux", "tarball:linux.tar"])
def test_a_plan_runs_nothing_of_the_tree_nor_of_its_repository(lab: Lab, source: str) -> None:
    mark = lab.directory / "ran"
    tree = toy_repository(lab.directory)
    for name, line in {
        "Makefile": f"\n$(shell touch {mark})\n",
        "Kconfig": f"\nconfig RUNS\n\tdef_bool $(success,touch {mark})\n",
        "scripts/kconfig/merge_config.sh": f"\ntouch {mark}\n",
        "scripts/kconfig/conf.py": f"\nopen({str(mark)!r}, 'w')\n",
    }.items():
        with (tree / name).open("a") as file:
            file.write(line)
    (tree / ".gitattributes").write_text("* filter=x\n")
    commit(tree, "a tree of a stranger")
    for key in ("core.fsmonitor", "filter.x.clean", "filter.x.smudge", "core.pager", "core.sshCommand"):
        git(tree, "config", key, f"touch {mark};")
    os.system(f"tar -cf {lab.directory}/linux.tar -C {lab.directory} linux")
    mark.unlink(missing_ok=True)
    path = lab.directory / "stranger.toml"
    (lab.directory / "a.patch").write_text("--- /dev/null\n+++ b/fs/new.c\n@@ -0,0 +1 @@\n+int new;\n")
    path.write_text(
        f'name = "x"\nsource = "{source}"\nconfig = "make:tinyconfig"\nbaseline = "a"\n'
        '[variants.a]\n[variants.b]\npatches = ["a.patch"]\n'
    )
    result = lab("plan", str(path))
    assert result.status == 0, result.err
    assert not mark.exists()


def test_a_value_that_make_would_run_is_refused_by_the_plan_already(lab: Lab, tmp_path: Path) -> None:
    toy_repository(tmp_path)
    path = tmp_path / "stranger.toml"
    path.write_text(
        'name = "x"\nsource = "linux"\nconfig = "make:tinyconfig"\nbaseline = "a"\n'
        '[variants.a]\nkconfig = { INITRAMFS_SOURCE = "$(shell id > F)" }\n'
    )
    result = lab("plan", str(path))
    assert result.status == 1
    assert "kconfig sets CONFIG_INITRAMFS_SOURCE to" in result.err
