"""Check boots: before the measurement each image with KUnit boots once for its own tests."""

from __future__ import annotations

from kdyno.base import regex
from kdyno.base.files import read_whole
from kdyno.judge.verdicts.checks import read_check
from kdyno.kernel.image import Image
from kdyno.kernel.knobs.kconfig import MOST_BYTES
from kdyno.measure.guest.job import Program
from kdyno.measure.workload.needs import Needs
from kdyno.runs.images import Images
from kdyno.runs.one_boot import BootRequest
from kdyno.runs.prepare import Prepared
from kdyno.runs.session import Session
from kdyno.runs.single_boots import boot_once, open_equipped_machine
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
    state, talk, carrier = session.state, session.talk, session.carrier
    settings = prepared.settings.for_check_boot()
    machine = open_equipped_machine(settings, Needs(), state, talk, carrier.open_machine)
    job = machine.describe().job(1, programs=(Program(name="checks", command=COMMAND),))
    requests: dict[str, BootRequest] = {}
    for variant, image in images_with_kunit:
        cmdline = prepared.experiment.variants[variant].words
        key = check_key(image.record.key, cmdline, prepared.about.facts)
        name, words, number = f"{variant} for its own tests (KUnit)", (*cmdline, *WORDS), len(requests)
        request = BootRequest(name, image, words, job, SEED, variant, number, number, is_counted=False)
        requests.setdefault(key, request)
    before = session.store.ends(requests)
    boots = boot_once(requests, machine, session)
    for key, (boot, _) in boots.items():
        if key not in before:
            check = read_check(requests[key].variant, boot, session.artefacts)
            (talk.say if check.passed else talk.warn)(f"KUnit: {check.in_words()}")
    lost = {requests[key].variant: boot.reason for key, (boot, _) in boots.items() if boot.status == "lost"}
    return {f"KUnit of {variant}": reason for variant, reason in lost.items()}


def has_kunit(image: Image) -> bool:
    """Return whether the image's configuration has CONFIG_KUNIT=y; false if the configuration can't be read."""
    try:
        config = read_whole(image.config, MOST_BYTES)
    except OSError:
        return False
    return HAS_KUNIT.search(config.decode(errors="replace")) is not None
