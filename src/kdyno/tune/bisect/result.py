"""Makes the result of a bisection from what its trials have shown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kdyno.base.text import cut, format_count, format_signed
from kdyno.judge.verdicts.regression import means
from kdyno.tune.bisect.bench import BisectBench
from kdyno.tune.bisect.culprit import Culprit, Interval, interval_of
from kdyno.tune.bisect.evidence import Differences, Untestable
from kdyno.tune.bisect.model import (
    BisectBenchmark,
    BisectChange,
    BisectCulprit,
    BisectEffect,
    Bisection,
    BisectKernel,
    BisectVerdict,
    KernelAnswer,
)
from kdyno.tune.bisect.order import BisectOrder
from kdyno.tune.bisect.packages import PackageRange
from kdyno.tune.bisect.recipes import RecipeRange
from kdyno.tune.bisect.record import RecordFile
from kdyno.tune.bisect.search import Search

MOST_REASON = 400
"""The most characters of the reason why a kernel is skipped."""
MOST_CONFIG = 20
"""The most Kconfig symbols that a result lists."""
ANSWERS: dict[str, KernelAnswer] = {"better": "good", "worse": "bad", "undecided": "undecided"}


class BisectionResult:
    """The result of a bisection whose trials are over."""

    def __init__(self, order: BisectOrder, search: Search, bench: BisectBench, file: RecordFile) -> None:
        self.order, self.search, self.bench, self.file = order, search, bench, file
        self.kernels = order.kernels

    def model(self) -> Bisection:
        """Return the result with its verdict, culprits and kernels."""
        search, order = self.search, self.order
        ends = search.ends()
        culprits = [self._culprit(culprit) for culprit in self._culprits()] if ends == "worse" else []
        candidates = self._candidates() if ends == "worse" else ()
        verdict = self._verdict(culprits)
        measured = search.evidence.measured.get(self.kernels.steps)
        about = self.bench.prepared.about
        events = self.file.record.events
        benchmarks = self._benchmarks()
        by_benchmark = self._by_benchmark()
        luck, noise = search.luck_and_noise()
        result = Bisection(
            id=order.id,
            kind=self.kernels.kind,
            named=self.kernels.named,
            good=self.kernels.name(0),
            bad=self.kernels.name(self.kernels.steps),
            steps=self.kernels.steps,
            verdict=verdict,
            sentence="",
            benchmarks=benchmarks,
            better=order.better,
            lane=about.lane,
            machine=self.bench.prepared.settings.type,
            kernel=self._kernel(),
            probability=order.settings.probability,
            range=effect_of(interval_of(measured), len(measured.values)) if measured else None,
            by_benchmark=by_benchmark,
            luck=None if luck is None else math.expm1(luck),
            noise=None if noise is None else math.expm1(noise),
            advice=self._advice(verdict, by_benchmark),
            culprits=tuple(culprits),
            explained=search.explained() if ends == "worse" else 0.0,
            candidates=candidates,
            kernels=tuple(self._kernels()),
            builds=search.builds,
            boots=self._boots(),
            runs=tuple(dict.fromkeys(event.run for event in events if event.run)),
            lost_config=self._lost_config(),
            command=order.command,
        )
        return result.model_copy(update={"sentence": sentence(result)})

    def _kernel(self) -> str:
        """Return the compiler and the base configuration of the good end, unless that is what differs."""
        if isinstance(self.kernels, PackageRange):
            return "packages of the distribution"
        good = self.kernels.recipe(self.bench.base, 0)
        if isinstance(self.kernels, RecipeRange) and self.kernels.configs[0]:
            return good.toolchain
        return f"{good.toolchain}, configuration {good.config or self.bench.template.config}"

    def _culprits(self) -> Sequence[Culprit]:
        """Return the confirmed culprits, and the probable one that was not confirmed."""
        confirmed = self.search.culprits()
        if self.search.is_explained():
            return confirmed
        posterior = self.search.posterior()
        suspect = self.search.suspect(posterior)
        return [*confirmed, *([self.search.with_size(suspect)] if suspect else [])]

    def _candidates(self) -> tuple[BisectChange, ...]:
        if self.search.is_explained():
            return ()
        remaining = self.search.smallest_set(self.search.posterior())
        return tuple(map(self._change, remaining.steps)) if remaining else ()

    def _verdict(self, culprits: Sequence[BisectCulprit]) -> BisectVerdict:
        match self.search.ends():
            case "worse":
                if culprits and not culprits[-1].confirmed:
                    return "unconfirmed"
                if not culprits or len(culprits[0].changes) > 1:
                    return "set"
                return "found"
            case "unknown":
                return "untestable"
            case ends:
                return ends

    def _culprit(self, culprit: Culprit) -> BisectCulprit:
        differences = self.search.evidence.checks.get((culprit.before, culprit.after))
        reverted = self.search.evidence.reverts.get(culprit.steps[0]) if len(culprit.steps) == 1 else None
        runs = [
            event.run
            for event in self.file.record.events
            if event.kind == "check" and (event.before, event.state) == (culprit.before, culprit.after)
        ]
        if self.bench.prepared.about.needs_images:
            self.bench.load_images([culprit.before, culprit.after])
        return BisectCulprit(
            changes=tuple(map(self._change, culprit.steps)),
            before=self.kernels.name(culprit.before),
            after=self.kernels.name(culprit.after),
            probability=culprit.probability,
            check=effect_of(culprit.size, len(differences.values)) if culprit.size and differences else None,
            confirmed=culprit.checked == "confirmed",
            share=culprit.share,
            layouts=differences.orders if differences and differences.layouts else 0,
            run=runs[-1] if runs else None,
            revert=effect_of(interval_of(reverted), len(reverted.values))
            if isinstance(reverted, Differences)
            else None,
            revert_reason=cut(reverted.reason, MOST_REASON) if isinstance(reverted, Untestable) else "",
            config=self.bench.config_differences(culprit.before, culprit.after)[:MOST_CONFIG],
            advice=self.kernels.advice(culprit.before, culprit.after),
        )

    def _change(self, step: int) -> BisectChange:
        return BisectChange(step=step, name=self.kernels.name(step), title=self.kernels.title(step))

    def _kernels(self) -> list[BisectKernel]:
        evidence = self.search.evidence
        rows = []
        for state in sorted({0, *evidence.tried} & {*range(self.kernels.steps + 1)}):
            answer: KernelAnswer = "good"
            effect, reason = None, ""
            if state in evidence.untestable:
                answer, reason = "skipped", cut(evidence.untestable[state], MOST_REASON)
            elif state in evidence.same:
                answer, reason = "same code", self.kernels.name(evidence.same[state])
            elif state in evidence.measured:
                measured = evidence.measured[state]
                effect = effect_of(interval_of(measured), len(measured.values))
                answer = "undecided"
                if self.search.ends() == "worse":
                    answer = ANSWERS[self.search.answer(state)]
            rows.append(
                BisectKernel(
                    state=state,
                    name=self.kernels.name(state),
                    title=self.kernels.title(state),
                    answer=answer,
                    effect=effect,
                    reason=reason,
                )
            )
        return rows

    def _benchmarks(self) -> tuple[str, ...]:
        names = self.bench.template.workload.benchmark_names()
        return tuple(name for name in names if not self.order.benchmarks or means(self.order.benchmarks, name))

    def _by_benchmark(self) -> tuple[BisectBenchmark, ...]:
        """Return the effect of the range on each benchmark, by the last run of both ends; nothing for a single one."""
        last, events = self.kernels.steps, self.file.record.events
        runs = [event for event in events if event.kind == "measure" and event.state == last and event.values]
        if not runs or runs[-1].run is None:
            return ()
        by_name = self.bench.benchmark_differences(runs[-1].run, self.kernels.name(0), self.kernels.name(last))
        if len(by_name) == 1:
            return ()
        rows = {
            name: Differences(tuple(values.values()), runs[-1].layouts, runs[-1].blocks, tuple(values))
            for name, values in by_name.items()
        }
        return tuple(
            BisectBenchmark(name=name, effect=effect_of(interval_of(row), len(row.values)))
            for name, row in rows.items()
        )

    def _advice(self, verdict: BisectVerdict, by_benchmark: Sequence[BisectBenchmark]) -> str:
        """Return what shows more, if luck and noise hid the ends' difference or the culprit; empty otherwise."""
        search, settings = self.search, self.search.settings
        if verdict == "undecided":
            worse = [one for one in by_benchmark if one.effect.low is not None and one.effect.low > 0]
            if worse:
                largest = max(worse, key=lambda one: one.effect.low or 0.0)
                return f"the others dilute what {largest.name} shows: `--benchmark {largest.name}`"
            blocks = search.blocks_that_show(search.evidence.measured[self.kernels.steps].mean)
            if blocks is None:
                return (
                    "an effect as small as this can't be bisected here: name the benchmark that got slower by "
                    "--benchmark, or measure in another lane"
                )
            orders = f"--layouts {blocks} " if settings.layouts else ""
            return f"`{orders}--most-blocks {blocks}` should show an effect of this size"
        if verdict not in ("set", "unconfirmed"):
            return ""
        if search.builds >= settings.most_builds:
            return f"`--most-builds {2 * settings.most_builds}` lets it go on"
        if verdict == "unconfirmed" or search.is_divisible():
            orders = f"--layouts {2 * settings.layouts} " if settings.layouts else ""
            return f"`{orders}--most-blocks {2 * settings.most_blocks}` lets it go on"
        return ""

    def _boots(self) -> int:
        evidence = self.search.evidence
        measured = sum(len(differences.values) for differences in evidence.measured.values())
        longest = max((len(differences.values) for differences in evidence.measured.values()), default=0)
        pairs = [*evidence.checks.values(), *evidence.reverts.values()]
        return measured + longest + 2 * sum(len(pair.values) for pair in pairs if isinstance(pair, Differences))

    def _lost_config(self) -> tuple[str, ...]:
        last = self.kernels.steps
        if not self.bench.prepared.about.needs_images or last in self.search.evidence.untestable:
            return ()
        self.bench.load_images([0, last])
        changes = self.bench.config_differences(0, last)
        return tuple(change for change in changes if change.endswith((" to absent", " to n")))[:MOST_CONFIG]


def effect_of(interval: Interval, blocks: int) -> BisectEffect:
    """Return an interval as part of a result."""
    is_known = math.isfinite(interval.high)
    return BisectEffect(
        effect=interval.effect,
        low=interval.low if is_known else None,
        high=interval.high if is_known else None,
        blocks=blocks,
    )


def effect_text(effect: BisectEffect) -> str:
    """Return `+1.2 % (+1.1 to +1.3)`."""
    text = f"{format_signed(effect.effect)} %"
    if effect.low is None or effect.high is None:
        return text
    return f"{text} ({format_signed(effect.low)} to {format_signed(effect.high)})"


def sentence(result: Bisection) -> str:
    """Return the result in one sentence."""
    word = "better" if result.better else "worse"
    if result.verdict == "untestable":
        return f"the bad end {result.bad} can't be tested: {result.kernels[-1].reason}"
    assert result.range or result.verdict == "equal"
    size = effect_text(result.range) if result.range else "they have the same code"
    match result.verdict:
        case "equal":
            return f"{result.bad} is not {word} than {result.good}: {size}"
        case "reversed":
            return f"the ends are reversed: {result.bad} is not {word} than {result.good}, but the opposite: {size}"
        case "undecided":
            return f"it was not shown that {result.bad} is {word} than {result.good}: {size}"
        case "found":
            names = " and ".join(culprit.changes[0].name for culprit in result.culprits if len(culprit.changes) == 1)
            explain = "explain" if len(result.culprits) > 1 else "explains"
            return f"{names} made it {word}, and {explain} {100 * result.explained:.0f} % of the effect of the range"
        case "unconfirmed":
            [*_, culprit] = result.culprits
            return (
                f"{culprit.changes[0].name} is the most probable culprit ({100 * culprit.probability:.0f} %), but the "
                "check didn't confirm it"
            )
    changes = result.culprits[0].changes if result.culprits else result.candidates
    return f"the culprit is one of {format_count(len(changes), 'step')}, which the trials didn't distinguish"
