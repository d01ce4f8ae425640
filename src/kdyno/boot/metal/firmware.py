"""Kernels that the firmware and the boot loader of a box start, once: for boxes whose devices don't survive kexec.

The kernel is stored where the boot loader reads, with an entry that is chosen for the next start only: systemd-boot's
LoaderEntryOneShot (the Boot Loader Interface), or GRUB's next_entry. Both delete the choice before they start a kernel.
The script CLEAN, which the lease runs at its end, removes all of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kdyno.boot.metal.ssh import BoxFailed, BoxFull, BoxUntrusted, Ssh

START_SECONDS = 300.0
PLACE = re.compile(r"(systemd-boot|grub) (/[A-Za-z0-9/_.+-]{1,200})")
QUOTABLE = re.compile(r"[!-&(-~]+")
"""A word that GRUB reads as it is between single quotes."""

FIND_LOADER = """
lacks() { echo "lacks $*"; exit; }
secure=/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c
[ "$(cat "$secure" 2>/dev/null | tail -c 1 | od -An -tu1 | tr -d ' ')" != 1 ] ||
    lacks "a firmware that starts unsigned kernels (Secure Boot is on)"
info=/sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f
case $(cat "$info" 2>/dev/null | tail -c +5 | tr -d '\\000') in
systemd-boot*)
    command -v bootctl >/dev/null || lacks "the program bootctl"
    place=$(bootctl --print-boot-path)
    [ -d "$place/loader/entries" ] || lacks "the entries of systemd-boot (is the ESP mounted?)"
    echo "systemd-boot $place";;
'' | GRUB*)
    grub=/boot/grub
    [ -f "$grub/grub.cfg" ] || grub=/boot/grub2
    [ -f "$grub/grub.cfg" ] || lacks "systemd-boot or GRUB"
    grep -q 'BOOT_IMAGE=' /proc/cmdline || lacks "GRUB as its boot loader (there is only its menu)"
    grep -q 'custom\\.cfg' "$grub/grub.cfg" || lacks "a menu of GRUB that reads custom.cfg (41_custom)"
    grep -q 'next_entry' "$grub/grub.cfg" || lacks "a menu of GRUB that reads next_entry (00_header)"
    [ ! -e "$grub/custom.cfg" ] || grep -q 'kdyno-metal' "$grub/custom.cfg" ||
        lacks "a free place for an entry of GRUB ($grub/custom.cfg is another's)"
    editenv=grub-editenv; command -v $editenv >/dev/null || editenv=grub2-editenv
    [ -f "$grub/grubenv" ] && $editenv "$grub/grubenv" list >/dev/null 2>&1 ||
        lacks "GRUB's environment block $grub/grubenv"
    case " $(grub-probe --target=abstraction "$grub" 2>/dev/null) $(grub-probe --target=fs "$grub" 2>/dev/null) " in
    *" lvm "* | *" mdraid"* | *" luks"* | *" cryptodisk"* | *" btrfs "* | *" zfs "* | *" f2fs "*)
        lacks "an environment block that GRUB can write";;
    esac
    echo "grub $grub";;
*) lacks "systemd-boot or GRUB";;
esac
"""
"""Prints the boot loader and its directory, or what the box lacks."""

STORE = """
own=$1 loader=$2 place=$3 kernel=$4 initrd=$5
store() {
    cmp -s "$1" "$2" && return
    cp "$1" "$2.new" && sync "$2.new" && mv "$2.new" "$2" || { rm -f "$2.new"; exit 1; }
}
case $loader in
grub)
    files=/boot/kdyno-metal entry=$place/custom.cfg
    editenv=grub-editenv; command -v $editenv >/dev/null || editenv=grub2-editenv
    {
        echo "rm -rf '$files' '$entry'; $editenv '$place/grubenv' unset kdyno_metal"
        echo "[ \\"\\$($editenv '$place/grubenv' list | sed -n s/^next_entry=//p)\\" != kdyno-metal ] ||"
        echo "    $editenv '$place/grubenv' unset next_entry"
    } >"$own/clean" || exit;;
systemd-boot)
    files=$place/kdyno-metal entry=$place/loader/entries/kdyno-metal.conf
    one=/sys/firmware/efi/efivars/LoaderEntryOneShot-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f
    {
        printf '%s\\n' "case \\$(cat '$one' 2>/dev/null | tail -c +5 | tr -d '\\\\000') in"
        echo "kdyno-metal*) bootctl set-oneshot '';; esac"
        echo "rm -rf '$files' '$entry'"
    } >"$own/clean" || exit;;
esac
mkdir -p "$files" || exit
store "$kernel" "$files/kernel"
if [ -n "$initrd" ]; then store "$initrd" "$files/initrd"; else rm -f "$files/initrd"; fi
"""
"""Copies kernel and initrd to where the boot loader reads them, and writes the script that removes all traces."""

START = """
loader=$1 place=$2 initrd=$3 words=$4 mark=$5
case $loader in
grub)
    files=/boot/kdyno-metal entry=$place/custom.cfg
    editenv=grub-editenv; command -v $editenv >/dev/null || editenv=grub2-editenv
    below=$(grub-mkrelpath "$files" 2>/dev/null || grub2-mkrelpath "$files") || exit
    uuid=$(grub-probe --target=fs_uuid "$files" 2>/dev/null || grub2-probe --target=fs_uuid "$files") || exit
    {
        echo "# Written by kdyno, which removes it at the end of its run."
        echo "menuentry kdyno-metal --id kdyno-metal {"
        echo "    set kdyno_metal=$mark"
        echo "    save_env kdyno_metal"
        echo "    search --no-floppy --fs-uuid --set=root $uuid"
        printf '%s\\n' "    linux $below/kernel $words"
        [ -z "$initrd" ] || echo "    initrd $below/initrd"
        echo "}"
    } >"$entry.new" && sync "$entry.new" && mv "$entry.new" "$entry" || { rm -f "$entry.new"; exit 1; }
    $editenv "$place/grubenv" unset kdyno_metal && $editenv "$place/grubenv" set next_entry=kdyno-metal || exit;;
systemd-boot)
    entry=$place/loader/entries/kdyno-metal.conf
    {
        echo "title kdyno-metal"
        printf '%s\\n' "options $words"
        echo "linux /kdyno-metal/kernel"
        [ -z "$initrd" ] || echo "initrd /kdyno-metal/initrd"
    } >"$entry.new" && sync "$entry.new" && mv "$entry.new" "$entry" || { rm -f "$entry.new"; exit 1; }
    bootctl set-oneshot kdyno-metal.conf || exit;;
esac
sync
systemctl --no-block reboot
"""
"""Writes the entry, chooses it for the next start, and restarts the box."""

HAS_STARTED = """
if [ "$1" = grub ]; then
    editenv=grub-editenv; command -v $editenv >/dev/null || editenv=grub2-editenv
    $editenv "$2/grubenv" list | grep -qx "kdyno_metal=$3" && echo yes
else
    one=/sys/firmware/efi/efivars/LoaderEntryOneShot-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f
    [ -n "$(cat "$one" 2>/dev/null | tail -c +5 | tr -d '\\000')" ] || echo yes
fi
exit 0
"""
"""Prints `yes` if the boot loader has taken the choice of the last start."""


class FirmwareStarter:
    """Starts kernels by a restart of the box, whose boot loader is told once which."""

    def __init__(self, ssh: Ssh, directory: str) -> None:
        self.ssh, self.directory = ssh, directory
        self._loader = self._place = ""

    def missing(self) -> list[str]:
        """Return what the box lacks, for people. Raises what ssh raises."""
        answer = self.ssh.run(self.ssh.script(FIND_LOADER), most=10_000).output.strip()
        if match := PLACE.fullmatch(answer):
            self._loader, self._place = match[1], match[2]
            return []
        word, _, lack = answer.partition(" ")
        if word != "lacks":
            raise BoxUntrusted(host=self.ssh.host, what="the question for its boot loader", why=repr(answer[:80]))
        return [lack]

    def store(self, kernel: str, initrd: str | None) -> None:
        """Copy a kernel and its initrd to where the boot loader reads them. Raises BoxFailed and BoxFull."""
        self._run(STORE, self.directory, self._loader, self._place, kernel, initrd or "")

    def start(self, agent: str, kernel: str, initrd: str | None, words: Sequence[str], mark: str) -> None:  # noqa: ARG002
        """Choose the stored kernel for the next start, and restart the box. Returns at once. Raises BoxFailed and
        BoxFull.
        """
        if odd := [word for word in words if not QUOTABLE.fullmatch(word)]:
            self._fail(f"it cannot be told the kernel parameter {odd[0]}", "remove it from the command line")
        text = " ".join(f"'{word}'" for word in words) if self._loader == "grub" else " ".join(words)
        self._run(START, self._loader, self._place, initrd or "", text, mark)

    def _run(self, text: str, *arguments: str) -> None:
        result = self.ssh.run(self.ssh.script(text, *arguments), seconds=START_SECONDS, most=10_000)
        if "No space left" in result.message:
            raise BoxFull(host=self.ssh.host, place="/boot" if self._loader == "grub" else self._place)
        if result.status != 0:
            self._fail(result.last_message, f"look at {self._place} there")

    def has_started(self, mark: str) -> bool:
        """Return whether the boot loader started the kernel with this mark. Raises what ssh raises."""
        script = self.ssh.script(HAS_STARTED, self._loader, self._place, mark)
        return self.ssh.run(script, most=100).output.strip() == "yes"

    def _fail(self, why: str, way: str) -> None:
        raise BoxFailed(host=self.ssh.host, what=f"choose the kernel in {self._loader}", why=why, way=way)
