"""Check boots: before the measurement each image with KUnit boots once for its own tests."""

from __future__ import annotations

from datetime import UTC, datetime

from kdyno.base import regex
from kdyno.base.files import read_whole
from kdyno.boot.base import MachineBackend
from kdyno.boot.registry import open_machine
from kdyno.judge.verdicts.checks import read_check
from kdyno.kernel.image import Image
from kdyno.kernel.knobs.kconfig import MOST_BYTES
from kdyno.measure.guest.job import Program
from kdyno.runs.images import Images
from kdyno.runs.one_boot import BootRequest, boot_record
from kdyno.runs.prepare import Prepared
from kdyno.runs.session import Session
from kdyno.store.checks import check_key
from kdyno.store.store import Store

HAS_KUNIT = regex.compile_pattern(r"(?m)^CONFIG_KUNIT=y$")
COMMAND = ("true",)
SEED = 1
WORDS = (
    # Suites run if they are enabled, from 6.17 on also unless autorun is off (lib/kunit/executor.c). They write with
    # KERN_INFO, which `quiet` keeps from the console. A suite may compute for long on an emulated CPU without giving it
    # up: two and five minutes are not a lock-up.
    "kunit.enable=1",
    "kunit.autorun=1",
    "loglevel=7",
    "watchdog_thresh=60",
    "rcupdate.rcu_cpu_stall_timeout=300",
)


def checks_left(prepared: Prepared, store: Store) -> int:
    """Return the number of check boots that a run begins with, as far as recipes and base configurations show it."""
    keys = {
        check_key(plan.key, prepared.experiment.variants[variant].words, prepared.about.facts)
        for variant, layouts in prepared.plans.items()
        for plan in layouts
        if plan.asks_for_kunit
    }
    return len(keys) - len(store.ends(keys))


def check_kernels(prepared: Prepared, images: Images, session: Session) -> dict[str, str]:
    """Boot each image with KUnit once, unless that is on record. Return the reason by name of each lost check.

    The results of the others are in the store; see judge/verdicts/checks.py. The machine is that of the run, with more
    time.
    """
    images_with_kunit = [
        (variant, image) for variant, layouts in images.items() for image in layouts if has_kunit(image)
    ]
    if not images_with_kunit:
        return {}
    checker = _Checker(prepared, open_machine(prepared.settings.for_check_boot()), session)
    ends = {f"KUnit of {variant}": checker.check(variant, image) for variant, image in images_with_kunit}
    return {name: reason for name, reason in ends.items() if reason}


def has_kunit(image: Image) -> bool:
    """Return whether the image's configuration has KUnit=y.

    A configuration that can't be read has not; nothing is raised.
    """
    try:
        config = read_whole(image.config, MOST_BYTES)
    except OSError:
        return False
    return HAS_KUNIT.search(config.decode(errors="replace")) is not None


class _Checker:
    def __init__(self, prepared: Prepared, machine: MachineBackend, session: Session) -> None:
        self.prepared, self.machine = prepared, machine
        self.session, self.artefacts = session, session.artefacts

    def check(self, variant: str, image: Image) -> str:
        """Boot the image once for its tests. Return why the boot was lost; empty if it was not.

        A lost boot is started again with the run.
        """
        cmdline = self.prepared.experiment.variants[variant].words
        key = check_key(image.record.key, cmdline, self.prepared.about.facts)
        with self.session.state.lock(
            f"boot-{key[:24]}", on_wait=lambda: self.session.talk.say(f"KUnit of {variant}: waiting for it")
        ):
            recorded_boot = self.session.store.boot(key)
            if recorded_boot and recorded_boot[0].status != "lost":
                return ""
            self.session.talk.say(f"KUnit: booting {variant} for its own tests")
            with self.session.state.scratch("kunit") as scratch:
                job = self.machine.describe().job(1, programs=(Program(name="checks", command=COMMAND),))
                words = (*cmdline, *WORDS)
                request = BootRequest(f"{variant}, KUnit", image, words, job, SEED, variant, is_counted=False)
                started = datetime.now(UTC)
                end = self.machine.boot(request.order(scratch))
                boot = boot_record(key, SEED, started, end, self.artefacts)
            self.session.store.add_boot(boot, ())
        check = read_check(variant, boot, self.artefacts)
        say = self.session.talk.say if check.passed else self.session.talk.warn
        say(f"KUnit: {check.in_words()}")
        return boot.reason if boot.status == "lost" else ""
