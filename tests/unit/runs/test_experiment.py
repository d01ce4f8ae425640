"""Experiments: reading, expanding, planning; and what a mistake in a file says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kdyno.base.errors import UserError
from kdyno.boot.qemu_config import QemuConfig
from kdyno.judge.stats.sequential import look_ends
from kdyno.kernel.recipe import Recipe
from kdyno.runs.experiment.errors import BadExperiment, NoBaseline, NoExperiment, NotToml, OneLayout, TooManyLayouts
from kdyno.runs.experiment.models import Experiment, ExperimentFile, VariantSpec
from kdyno.runs.experiment.named import named_recipes
from kdyno.runs.experiment.plan import PlannedBoot, block_seed, named_variants, plan_boots, recipes
from kdyno.runs.experiment.resolve import load_experiment
from kdyno.runs.experiment.toml_lines import line_of
from kdyno.runs.experiment.variants import CircularExtends, NotAMatrixKnob, UnknownParent, expand
from tests.unit.experiment_files import MINIMAL, written

COMMAND = '[workload]\ntype = "command"\ncommand = ["true"]\n'


def complaint(tmp_path: Path, text: str) -> str:
    with pytest.raises(BadExperiment) as caught:
        load_experiment(written(tmp_path, text))
    return str(caught.value)


def test_a_minimal_experiment_gets_the_documented_defaults(tmp_path: Path) -> None:
    experiment = load_experiment(written(tmp_path, MINIMAL))
    assert (experiment.config, experiment.blocks, experiment.machine.lane) == ("dyno", 12, "model")
    assert experiment.variants["plain"].toolchain == "gcc"


def test_paths_start_from_the_directory_of_the_experiment(tmp_path: Path) -> None:
    text = MINIMAL + 'patches = ["a.patch"]\nfragments = ["sub/b.config"]\n'
    experiment = load_experiment(written(tmp_path, text))
    assert experiment.source == str(tmp_path / "linux")
    assert experiment.variants["plain"].patches == (str(tmp_path / "a.patch"),)
    assert experiment.variants["plain"].fragments == (str(tmp_path / "sub" / "b.config"),)


def test_the_file_of_a_cpu_family_starts_from_there_too(tmp_path: Path) -> None:
    experiment = load_experiment(written(tmp_path, MINIMAL + '[machine.pmu]\nfamily = "file:mine.toml"\n'))
    assert isinstance(experiment.machine, QemuConfig) and experiment.machine.pmu
    assert experiment.machine.pmu.family == f"file:{tmp_path / 'mine.toml'}"


OF_A_GUEST = {"SYSFS", "VIRTIO_CONSOLE", "VIRTIO_MMIO", "VIRTIO_MMIO_CMDLINE_DEVICES", "VIRTIO_PCI"}


def symbols(tmp_path: Path, config: str, machine: str = "", variant: str = "") -> dict[str, Any]:
    text = (
        f'name = "x"\nsource = "y"\nconfig = "{config}"\nbaseline = "a"\n[variants.a]\n{variant}\n[machine]\n{machine}'
    )
    return dict(load_experiment(written(tmp_path, text)).variants["a"].kconfig)


def test_a_machine_s_configuration_gets_what_kdyno_s_guests_need(tmp_path: Path) -> None:
    of_a_server = symbols(tmp_path, "make:defconfig")
    assert of_a_server.keys() > OF_A_GUEST and set(of_a_server.values()) == {True}
    assert not OF_A_GUEST & symbols(tmp_path, "dyno").keys(), "kdyno's own configuration has them"
    assert "VIRTIO_MMIO" not in symbols(tmp_path, "make:defconfig", 'platform = "q35"')
    own = symbols(tmp_path, "make:defconfig", variant='kconfig = { VIRTIO_CONSOLE = "m" }')
    assert own["VIRTIO_CONSOLE"] == "m"


def test_a_box_behind_ssh_needs_nothing_of_a_guest_but_training_does(tmp_path: Path) -> None:
    text = (
        'name = "x"\nsource = "y"\nconfig = "make:defconfig"\nbaseline = "a"\n[variants.a]\n[variants.b]\n'
        'profile = { use = ["order"], train = ["web"] }\n'
        '[workload]\ntype = "programs"\nuse = ["web"]\n[machine]\ntype = "metal"\nhost = "box"\nlane = "wall"\n'
    )
    variants = load_experiment(written(tmp_path, text)).variants
    assert not OF_A_GUEST & variants["a"].kconfig.keys()
    profile = variants["b"].profile
    assert profile and profile.trainee
    assert profile.trainee.recipe.kconfig.keys() > OF_A_GUEST


def test_a_kernel_that_trains_as_a_process_needs_nothing_of_a_guest(tmp_path: Path) -> None:
    text = (
        'name = "x"\nsource = "y"\nconfig = "make:defconfig"\nbaseline = "a"\n[variants.a]\n'
        'profile = { use = ["order"], train = ["paths"] }\n[machine]\ntype = "uml"\n'
    )
    profile = load_experiment(written(tmp_path, text)).variants["a"].profile
    assert profile and profile.trainee
    assert not OF_A_GUEST & profile.trainee.recipe.kconfig.keys()


def test_a_debian_source_is_not_a_path(tmp_path: Path) -> None:
    text = MINIMAL.replace('"linux"', '"debian:linux-source-6.12"')
    assert load_experiment(written(tmp_path, text)).source == "debian:linux-source-6.12"


@pytest.mark.parametrize(
    ("addition", "line", "expected"),
    [
        ('marhc = "x86-64-v3"\n', 6, "did you mean `march`?"),
        ("[machine]\nmemory = 5\n", 7, "did you mean `memory_mb`?"),
        ("[machine.limits]\nsilense = 5\n", 7, "did you mean `silence`?"),
        ('[machine.pmu]\nfamly = "znver4"\n', 7, "did you mean `family`?"),
        ("[workload]\ntest = []\n", 7, "did you mean `tests`?"),
        ('[workload]\ntype = "lmbench"\ncommand = ["true"]\n', 8, "unknown key `workload.command`; known keys: "),
        (COMMAND + "iterations = 7\n", 9, "unknown key `workload.iterations`; known keys: command, metrics, type"),
        (COMMAND + 'comand = ["true"]\n', 9, "did you mean `command`?"),
        (COMMAND + "metrics.p99.patern = 'x'\n", 9, "did you mean `pattern`?"),
        (COMMAND + "[workload.metrics.p99]\nunit = 'us'\n", 9, "`workload.metrics.p99.direction` is missing"),
        (
            COMMAND + "[workload.metrics.p99]\nunit = 'us'\ndirection = 'lower'\n",
            9,
            "`workload.metrics.p99.pattern` is missing",
        ),
        (COMMAND + "metrics.p99.direction = 'up'\n", 9, "`workload.metrics.p99.direction`: 'lower'"),
        (COMMAND + "metrics.pattern.patern = 'x'\n", 9, "`workload.metrics.pattern.patern`; did you mean `pattern`?"),
        ('[variants.x]\nprofile = { use = "order", form = "x" }\n', 7, "did you mean `from`?"),
        (COMMAND + "metrics = {}\n", 9, "`workload.metrics`"),
        (COMMAND + "[workload.metrics.'p 99']\n", 9, "`workload.metrics.p 99`: a name is expected"),
        ('[workload]\ntype = "command"\ncommand = []\n', 8, "`workload.command`: it must have at least 1"),
        ('[workload]\ntype = "command"\ncommand = [5]\n', 8, "`workload.command.0`: a text in quotation"),
        ('[workload]\ntype = "comand"\n', 7, "`workload`: there is no such type; there are lmbench, command, programs"),
        ('[machine]\ntype = "metel"\n', 7, "`machine`: there is no such type; there are qemu, uml, local, metal, fake"),
        ("[workload]\ntype = 3\n", 7, "there is no such type"),
        ('[variants.command]\nmarhc = "x"\n', 7, "unknown key `variants.command.marhc`; did you mean `march`?"),
        ("[judges]\n", 6, "did you mean `judge`?"),
        ('[variants.x]\nopt = "O9"\n', 7, "`variants.x.opt`"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_the_nearest_key(
    tmp_path: Path, addition: str, line: int, expected: str
) -> None:
    message = complaint(tmp_path, MINIMAL + addition)
    assert f"experiment.toml:{line}: " in message
    assert expected in message


def test_all_mistakes_are_named_at_once(tmp_path: Path) -> None:
    assert len(complaint(tmp_path, MINIMAL + "a = 1\nb = 2\n").splitlines()) == 2


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    assert "`source` is missing" in complaint(tmp_path, MINIMAL.replace('source = "linux"\n', ""))


def test_a_baseline_that_is_no_variant_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(NoBaseline, match=r"experiment.toml:3: the baseline plane"):
        load_experiment(written(tmp_path, MINIMAL.replace('"plain"', '"plane"')))


def test_a_file_that_is_not_toml_is_refused_with_the_line(tmp_path: Path) -> None:
    with pytest.raises(NotToml, match="line 2"):
        load_experiment(written(tmp_path, "a = 1\nb = = 2\n"))


def test_a_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoExperiment, match=r"nowhere\.toml"):
        load_experiment(tmp_path / "nowhere.toml")


def test_a_variant_that_extends_another_replaces_values_merges_tables_and_appends_lists() -> None:
    parent = VariantSpec(opt="O2", kconfig={"A": True, "B": 1}, cmdline=("one",))
    child = VariantSpec(extends="parent", opt="O3", kconfig={"B": 2}, cmdline=("two",))
    recipe = expand({"parent": parent, "child": child})["child"]
    assert (recipe.opt, recipe.kconfig, recipe.cmdline) == ("O3", {"A": True, "B": 2}, ("one", "two"))


def test_a_variant_may_extend_a_recipe_that_kdyno_has_and_have_its_name() -> None:
    tuned = named_recipes()["tuned"]
    recipes = expand(
        {"tuned": VariantSpec(extends="tuned", march="x86-64-v3"), "O3": VariantSpec(extends="tuned", opt="O3")}
    )
    for recipe in recipes.values():
        assert (recipe.toolchain, recipe.lto, recipe.profile) == (tuned.toolchain, tuned.lto, tuned.profile)
        assert recipe.march == "x86-64-v3"  # both extend the variant, which is nearer than the recipe
    assert recipes["O3"].opt == "O3"
    assert expand({"mine": VariantSpec(extends="tuned")})["mine"] == tuned


def test_a_variant_with_the_name_of_a_recipe_is_the_one_that_others_extend() -> None:
    recipes = expand({"tuned": VariantSpec(opt="O3"), "child": VariantSpec(extends="tuned")})
    assert recipes["child"].opt == "O3" and recipes["child"].profile is None


def test_a_matrix_stands_for_every_combination() -> None:
    spec = VariantSpec(matrix={"march": ("x86-64", "x86-64-v3"), "opt": ("O2", "O3")})
    assert list(expand({"m": spec})) == ["m-x86-64-O2", "m-x86-64-O3", "m-x86-64-v3-O2", "m-x86-64-v3-O3"]


@pytest.mark.parametrize(
    ("specs", "error"),
    [
        ({"a": VariantSpec(extends="b")}, UnknownParent),
        ({"a": VariantSpec(extends="b"), "b": VariantSpec(extends="a")}, CircularExtends),
        ({"a": VariantSpec(matrix={"kconfig": ("x",)})}, NotAMatrixKnob),
    ],
)
def test_variants_that_make_no_sense_are_refused(specs: dict[str, VariantSpec], error: type[UserError]) -> None:
    with pytest.raises(error):
        expand(specs)


def test_the_variants_that_are_named_are_taken_all_if_none_is_and_others_are_refused(tmp_path: Path) -> None:
    experiment = load_experiment(written(tmp_path, MINIMAL + "[variants.other]\n"))
    assert list(named_variants(experiment, ["other"])) == ["other"]
    assert list(named_variants(experiment, [])) == ["plain", "other"]
    with pytest.raises(UserError, match="no variant nobody"):
        named_variants(experiment, ["nobody"])


def test_line_of_finds_dotted_and_quoted_keys() -> None:
    text = '[variants."a.b"]\nx = 1\n[workload]\nparams.lat_ctx = {}\n'
    assert line_of(text, ("variants", "a.b", "x")) == 2
    assert line_of(text, ("workload", "params", "lat_ctx", "processes")) == 4


def planned(variants: str, blocks: int, seed: int = 1, **settings: Any) -> list[PlannedBoot]:
    recipes = dict.fromkeys(variants, Recipe())
    return plan_boots(
        Experiment(
            name="plan", source="linux", baseline=variants[0], variants=recipes, blocks=blocks, seed=seed, **settings
        )
    )


def test_a_plan_has_every_variant_once_in_every_block() -> None:
    boots = planned("abc", 20)
    assert Counter((boot.variant, boot.block) for boot in boots) == Counter(
        (variant, block) for variant in "abc" for block in range(20)
    )
    assert [boot.position for boot in boots] == list(range(60))


def test_the_order_within_blocks_is_drawn_anew_and_repeats_with_the_seed() -> None:
    def orders(seed: int) -> list[str]:
        return ["".join(b.variant for b in planned("abc", 20, seed) if b.block == n) for n in range(20)]

    assert orders(1) == orders(1)
    assert orders(1) != orders(2)
    assert len(set(orders(1))) > 3


def test_seeds_differ_by_block_and_are_the_same_for_all_variants_of_a_block() -> None:
    boots = planned("ab", 50)
    by_block = {boot.block: {b.seed for b in boots if b.block == boot.block} for boot in boots}
    assert all(len(seeds) == 1 for seeds in by_block.values())
    assert len({seed for seeds in by_block.values() for seed in seeds}) == 50
    assert all(0 <= block_seed(7, block) < 2**31 for block in range(1000))


def test_seeds_of_their_own_differ_from_boot_to_boot() -> None:
    boots = planned("ab", 50, seeds="own")
    assert len({boot.seed for boot in boots}) == 100


def test_blocks_take_the_layouts_in_turn_and_all_variants_of_a_block_the_same_one() -> None:
    boots = planned("ab", 7, layouts=3)
    assert [boot.layout_index for boot in boots if boot.variant == "a"] == [0, 1, 2, 0, 1, 2, 0]
    assert [boot.layout_index for boot in boots if boot.variant == "b"] == [0, 1, 2, 0, 1, 2, 0]
    assert {boot.layout_index for boot in planned("ab", 7)} == {0}


def test_layouts_have_the_same_seeds_in_all_variants_unless_a_recipe_names_its_own() -> None:
    experiment = Experiment(
        name="layouts",
        source="linux",
        baseline="a",
        variants={"a": Recipe(), "b": Recipe(opt="O3"), "c": Recipe(layout_seed=7)},
        layouts=4,
    )
    seeds = {name: [recipe.layout_seed for recipe in recipes(experiment, name)] for name in experiment.variants}
    assert seeds["a"] == seeds["b"] == [1, 2, 3, 4]
    assert len(set(seeds["c"])) == 4 and not set(seeds["c"]) & set(seeds["a"])
    alone = experiment.model_copy(update={"layouts": 0})
    assert [recipe.layout_seed for recipe in recipes(alone, "c")] == [7]


def test_looks_are_at_equal_distances_and_the_last_one_is_the_end() -> None:
    assert look_ends(12, 4) == (3, 6, 9, 12)
    assert look_ends(10, 3) == (4, 7, 10)
    assert look_ends(12, 1) == (12,)
    assert look_ends(2, 8) == (1, 2)


def test_more_layouts_than_blocks_and_a_single_layout_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TooManyLayouts, match=r"experiment.toml:4: 20 layouts need as many blocks, but .* has 12"):
        load_experiment(written(tmp_path, MINIMAL.replace("\n\n[", "\nlayouts = 20\n\n[")))
    with pytest.raises(OneLayout, match="one layout does not show"):
        load_experiment(written(tmp_path, MINIMAL.replace("\n\n[", "\nlayouts = 1\n\n[")))


def test_automatic_blocks_begin_with_a_pilot_in_which_every_layout_is_there_twice(tmp_path: Path) -> None:
    experiment = load_experiment(written(tmp_path, MINIMAL.replace("\n\n[", '\nblocks = "auto"\n\n[')))
    assert (experiment.auto, experiment.blocks) == (True, 6)
    text = MINIMAL.replace("\n\n[", '\nblocks = "auto"\nlayouts = 4\n\n[')
    assert load_experiment(written(tmp_path, text)).blocks == 8
    bad = MINIMAL.replace("\n\n[", '\nblocks = "many"\n\n[')
    assert "`blocks`" in complaint(tmp_path, bad)


@pytest.mark.parametrize("key", ["trainee", "trained_for"])
def test_what_kdyno_finds_out_of_a_profile_is_no_key_of_the_file(tmp_path: Path, key: str) -> None:
    text = MINIMAL + f'[variants.tuned]\nprofile = {{ use = "order", {key} = "order" }}\n'
    assert f"unknown key `variants.tuned.profile.{key}`" in complaint(tmp_path, text)
    kinds = ExperimentFile.model_json_schema()["$defs"]
    assert key not in kinds["ProfileSpec"]["properties"] and not {"Profile", "Trainee"} & kinds.keys()
