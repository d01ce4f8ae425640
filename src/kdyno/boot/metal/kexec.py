"""Kernels that a box starts by kexec, without its firmware: nothing on a disk changes."""

from __future__ import annotations

from collections.abc import Sequence

from kdyno.boot.metal.ssh import BoxFailed, Ssh

START_SECONDS = 120.0
EXAMINE = """
[ "$(findmnt -nvo TARGET -T /var/lib)" = / ] || echo "/var/lib on its root file system"
if [ ! -e /sys/kernel/kexec_loaded ]; then echo "a kernel with CONFIG_KEXEC_FILE"
elif [ "$(cat /proc/sys/kernel/kexec_load_disabled)" = 1 ]; then echo "kexec (kernel.kexec_load_disabled is 1)"
elif grep -q '\\[\\(integrity\\|confidentiality\\)\\]' /sys/kernel/security/lockdown 2>/dev/null; then
    echo "kexec of unsigned kernels (the kernel is locked down, as with Secure Boot)"
fi
"""
START = """
agent=$1; shift
"$agent" kexec "$@" || exit
unit=/run/systemd/system/systemd-kexec.service.d
mkdir -p "$unit" || exit
printf '[Service]\\nExecStart=\\nExecStart=%s kexec-start\\n' "$agent" >"$unit/kdyno.conf" || exit
systemctl daemon-reload && systemctl start --no-block --job-mode=replace-irreversibly kexec.target
"""
"""systemd stops all services and unmounts all file systems but the root, and then calls the agent instead of
kexec-tools, which need not be there."""


class KexecStarter:
    """Starts kernels by kexec_file_load(2), which the agent calls."""

    def __init__(self, ssh: Ssh) -> None:
        self.ssh = ssh

    def missing(self) -> list[str]:
        """Return what the box lacks, for people. Raises what ssh raises."""
        return self.ssh.run(self.ssh.script(EXAMINE), most=10_000).output.strip().splitlines()

    def store(self, kernel: str, initrd: str | None) -> None:
        """Do nothing: kexec takes files from anywhere."""

    def start(self, agent: str, kernel: str, initrd: str | None, words: Sequence[str], mark: str) -> None:  # noqa: ARG002
        """Stop the box's services, and start a kernel. Returns at once. Raises BoxFailed."""
        options = ("--initrd", initrd) if initrd else ()
        script = self.ssh.script(START, agent, kernel, *options, "--cmdline", " ".join(words))
        result = self.ssh.run(script, seconds=START_SECONDS, most=10_000)
        if result.status != 0:
            way = "`dmesg` there may say more"
            raise BoxFailed(host=self.ssh.host, what="load the kernel", why=result.last_message, way=way)

    def has_started(self, mark: str) -> bool:  # noqa: ARG002
        """Return True: nothing stands between kexec and the kernel."""
        return True
