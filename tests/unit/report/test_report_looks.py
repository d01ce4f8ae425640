"""A group-sequential run is judged look by look, each at its own level, and only by complete blocks."""

from __future__ import annotations

from kdyno.judge.verdicts.looks import complete_blocks, look_of
from kdyno.store.records import BootRecord
from tests.unit import specimen


def boots(blocks: int, *, without: tuple[str, int] | None = None) -> list[BootRecord]:
    return [
        BootRecord(
            key=f"{variant}, block {block}",
            variant=variant,
            block=block,
            position=0,
            seed=block,
            status="lost" if (variant, block) == without else "ok",
            started=specimen.NOON,
            seconds=1.0,
        )
        for block in range(blocks)
        for variant in specimen.VARIANTS
    ]


RUN = specimen.run_record(blocks=12).model_copy(update={"looks": 4})


def test_without_looks_everything_is_judged_at_alpha() -> None:
    look = look_of(RUN.model_copy(update={"looks": 1}), boots(5))
    assert (look.blocks, look.alpha, look.confidence) == (12, 0.05, 0.95)


def test_a_look_is_judged_when_all_its_blocks_are_complete() -> None:
    assert [look_of(RUN, boots(blocks)).number for blocks in (0, 2, 3, 5, 6, 11, 12)] == [0, 0, 1, 1, 2, 3, 4]
    assert look_of(RUN, boots(8)).blocks == 6
    assert look_of(RUN, boots(2)).blocks == 0
    assert complete_blocks(RUN, boots(8, without=("gcc-12", 4))) == 4
    assert look_of(RUN, boots(8, without=("gcc-12", 4))).blocks == 3


def test_early_looks_have_next_to_nothing_to_spend_and_the_last_nearly_all() -> None:
    levels = [look_of(RUN, boots(blocks)).alpha for blocks in (3, 6, 9, 12)]
    assert levels == sorted(levels)
    assert levels[0] < 0.0001 and 0.03 < levels[-1] < 0.05
    assert look_of(RUN, boots(3)).confidence == 1 - levels[0]


def test_more_boots_than_the_look_at_which_a_run_was_stopped_change_nothing() -> None:
    stopped = RUN.model_copy(update={"stopped_at": 6})
    assert look_of(stopped, boots(6)) == look_of(stopped, boots(9))
