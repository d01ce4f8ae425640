"""How a box gets back to its own kernel after a boot, and who holds it meanwhile."""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable

from kdyno.base.errors import InfrastructureError, KdynoError
from kdyno.base.process import attempt, quote
from kdyno.base.talk import Talk
from kdyno.boot.base import BootOrder
from kdyno.boot.metal.box import BoxState, RemoteBox, SilenceNotice
from kdyno.boot.metal.lease import Lease
from kdyno.boot.metal.settings import MetalConfig
from kdyno.boot.metal.ssh import BoxUnreachable, UnknownHostKey

RESET_SECONDS = 120.0
LAST_LOOK_SECONDS = 20.0
SILENT_SECONDS = 45.0
"""How long a box is silent, in seconds, before kdyno reports it."""
SLOWER = 1.5
"""How much longer than the longest silence of this run before it is reported again."""
STILL_RUNS = "may still run the kernel of this boot; a restart brings its own one back"
REACHED_AGAIN_SECONDS = 60.0
"""How long the box is looked for after a connection broke, in seconds."""


class BoxGone(InfrastructureError):
    message = "{host} did not come back within {seconds:g} s ({what}); it was left as it is"
    hint = "{way}"


class ResetFailed(InfrastructureError):
    message = "the command that resets {host} failed: {command}: {why}"
    hint = "run it by hand, and correct `reset` in [machine]"


class WayBack:
    """Holds the lease of a box, waits for it, restarts it into its own kernel, and resets it if it hangs."""

    def __init__(self, config: MetalConfig, box: RemoteBox, lease: Lease) -> None:
        self.config, self.box, self.lease = config, box, lease
        self.talk = Talk(quiet=True)
        self.leaving = ""
        """The boot ID of the box when it was last told to start another kernel."""
        self.is_silent = False
        """Whether the box did not answer when it was last waited for."""
        self._usual_silence = 0.0
        """The longest silence in seconds after which the box came back."""

    def hold(self) -> None:
        """Take the lease of the box, and give it back when this process ends."""
        atexit.unregister(self.lease.release)
        self.lease.take()
        atexit.register(self.lease.release)

    def let_go(self) -> None:
        """Give the lease back now."""
        atexit.unregister(self.lease.release)
        self.lease.release()

    def hold_again(self) -> None:
        """Take the lease as `hold` does; if the connection breaks, a second time."""
        try:
            self.hold()
        except BoxUnreachable:
            if self.box.wait(lambda _: True, REACHED_AGAIN_SECONDS) is None:
                raise
            self.hold()

    def end_boot(self, order: BootOrder) -> None:
        """Bring the box's own kernel back; after an interrupt only begin to. Raises BoxGone, ResetFailed and
        UnknownHostKey.
        """
        try:
            if not order.cancelled.is_set() and self.bring_back("a boot had ended", order.cancelled.is_set):
                return
        except UnknownHostKey:
            self.talk.warn(f"{self.config.host} is left as it is, and {STILL_RUNS}")
            raise
        try:
            is_back = self._is_back(self.box.look(seconds=LAST_LOOK_SECONDS))
            self.lease.release()
            if not is_back:
                self.box.restart()
        except KdynoError:
            self.talk.warn(f"{self.config.host} does not answer: it {STILL_RUNS}")
        else:
            self.talk.say(f"{self.config.host} restarts into its own kernel")

    def bring_back(self, what: str, is_over: Callable[[], bool] = lambda: False) -> BoxState | None:
        """Restart the box into its own kernel, unless it has restarted already; reset it if it hangs. Return None if
        the wait is over before. Raises BoxGone, ResetFailed and BoxHeld.
        """
        self.lease.drop()
        seconds = self.config.limits.boot
        is_silent, self.is_silent = self.is_silent, False
        if is_silent and not self.config.reset:
            self.talk.warn(
                f"{self.config.host} does not answer, and may restart by itself: waiting {seconds:g} s for it"
            )
        state = self._wait_for_own_kernel(LAST_LOOK_SECONDS if is_silent and self.config.reset else seconds, is_over)
        if state is None and self.config.reset and not is_over():
            self._reset()
            state = self._wait_for_own_kernel(seconds, is_over)
        if state is not None:
            self.hold_again()
            return state
        if is_over():
            return None
        way = "switch it off and on: a restart brings its own kernel back"
        if not self.config.reset:
            way += "; `reset` in [machine] names a command that does it"
        raise BoxGone(host=self.config.host, seconds=self.config.limits.boot, what=what, way=way)

    def _wait_for_own_kernel(self, seconds: float, is_over: Callable[[], bool]) -> BoxState | None:
        """Return the state of the box when its own kernel runs again; None if it doesn't in time. A box that can be
        reached is told once to restart.
        """
        was_told = False

        def is_back(state: BoxState) -> bool:
            nonlocal was_told
            if self._is_back(state):
                return True
            if not was_told:
                self.box.restart()
                was_told = True
            return False

        return self.wait(is_back, seconds, is_over)

    def wait(
        self, is_wanted: Callable[[BoxState], bool], seconds: float, is_over: Callable[[], bool]
    ) -> BoxState | None:
        """Wait as the box does, and report a silence that is longer than that of other restarts in this run."""
        silences = []

        def report(silence: float, left: float) -> None:
            silences.append(silence)
            self.talk.say(
                f"{self.config.host} has not answered for {silence:.0f} s: waiting up to {max(left, 0):.0f} s more"
            )

        start = time.monotonic()
        notice = SilenceNotice(max(SILENT_SECONDS, SLOWER * self._usual_silence), report)
        state = self.box.wait(is_wanted, seconds, is_over, notice)
        if state is not None and silences:
            self._usual_silence = time.monotonic() - start
        return state

    def _is_back(self, state: BoxState) -> bool:
        """Return whether the box runs its own kernel, and wasn't told to leave it."""
        return state.mark is None and state.boot_id != self.leaving

    def _reset(self) -> None:
        """Run the user's command. Raises ResetFailed."""
        self.talk.say(f"{self.config.host} does not answer: {quote(self.config.reset)}")
        done = attempt(self.config.reset, timeout=RESET_SECONDS, most=1_000_000)
        if done.returncode != 0:
            why = (done.stderr or done.stdout).strip()[-300:] or f"exit status {done.returncode}"
            raise ResetFailed(host=self.config.host, command=quote(self.config.reset), why=why)
