//! What is done when QEMU translates a block: it is read and known by its place, and calls are put where it runs.

use super::execution::{on_access, on_block, on_idle_block, on_marker, on_switch, on_user_access, on_user_block};
use super::{Plugin, plugin};
use crate::decode::is_cut;
use crate::options::Scope;
use crate::symbols::Role;
use kdyno_marker::{CLOSE, ONE, OPEN, XCHG, ZERO};
use qemu_plugin_sys as qemu;
use std::ffi::{c_int, c_uint, c_void};

/// From here on QEMU copies an instruction's bytes instead of pointing to them.
const COPIES_BYTES: c_int = 3;

/// x86 instructions are not longer.
const LONGEST_INSTRUCTION: usize = 15;

/// A block as QEMU has translated it. Used for one after another.
#[derive(Default)]
pub struct Translated {
    instructions: Vec<*mut qemu::qemu_plugin_insn>,
    addresses: Vec<u64>,
    bytes: Vec<u8>,
    /// Where each instruction's bytes begin.
    offsets: Vec<usize>,
}

impl Translated {
    /// # Safety
    /// `tb` is the block of a translation callback.
    unsafe fn read(&mut self, tb: *mut qemu::qemu_plugin_tb, api: c_int) {
        self.instructions.clear();
        self.addresses.clear();
        self.bytes.clear();
        self.offsets.clear();
        // SAFETY: as promised.
        unsafe {
            for place in 0..qemu::qemu_plugin_tb_n_insns(tb) {
                let instruction = qemu::qemu_plugin_tb_get_insn(tb, place);
                self.instructions.push(instruction);
                self.addresses.push(qemu::qemu_plugin_insn_vaddr(instruction));
                self.offsets.push(self.bytes.len());
                bytes_of(instruction, api, &mut self.bytes);
            }
        }
        self.forget_undone();
    }

    /// Forget an instruction that was undone. One that reaches into another page is only ever the first of its block
    /// (QEMU, target/i386/tcg/translate.c): where it came later it was undone, and the next block begins with it. QEMU
    /// 7.2 tells plugins of it all the same, but only of its bytes in the first page.
    fn forget_undone(&mut self) {
        if let (Some(&address), Some(&offset)) = (self.addresses.last(), self.offsets.last())
            && self.addresses.len() > 1
            && is_cut(address, &self.bytes[offset..])
        {
            self.instructions.pop();
            self.addresses.pop();
            self.offsets.pop();
            self.bytes.truncate(offset);
        }
    }
}

/// # Safety
/// `instruction` is one of a translation callback.
unsafe fn bytes_of(instruction: *const qemu::qemu_plugin_insn, api: c_int, bytes: &mut Vec<u8>) {
    type Copy = unsafe extern "C" fn(*const qemu::qemu_plugin_insn, *mut c_void, usize) -> usize;
    // SAFETY: as promised; until version 2 the function has one argument and returns a pointer, later it has three.
    unsafe {
        let size = qemu::qemu_plugin_insn_size(instruction).min(LONGEST_INSTRUCTION);
        if api < COPIES_BYTES {
            let data = qemu::qemu_plugin_insn_data(instruction).cast::<u8>();
            bytes.extend_from_slice(std::slice::from_raw_parts(data, size));
        } else {
            let copy: Copy = std::mem::transmute(qemu::qemu_plugin_insn_data as *const ());
            let mut buffer = [0; LONGEST_INSTRUCTION];
            let copied = copy(instruction, buffer.as_mut_ptr().cast(), size).min(size);
            bytes.extend_from_slice(&buffer[..copied]);
        }
    }
}

const KERNEL_HALF: u64 = 1 << 63;

pub unsafe extern "C" fn on_translation(_: qemu::qemu_plugin_id_t, tb: *mut qemu::qemu_plugin_tb) {
    // SAFETY: a callback; `tb` is valid until it returns.
    unsafe {
        let plugin = plugin();
        if plugin.counter.has_given_up() {
            return;
        }
        let is_kernel = qemu::qemu_plugin_tb_vaddr(tb) >= KERNEL_HALF;
        let mut block = std::mem::take(&mut plugin.translated);
        block.read(tb, plugin.api);
        if !is_kernel {
            watch_markers(&block);
        }
        match plugin.scope {
            Scope::Kernel | Scope::All if is_kernel && is_idle(plugin, &block) => {
                let flags = qemu::qemu_plugin_cb_flags::QEMU_PLUGIN_CB_NO_REGS;
                qemu::qemu_plugin_register_vcpu_tb_exec_cb(tb, Some(on_idle_block), flags, std::ptr::null_mut());
            }
            Scope::Kernel | Scope::All if is_kernel => instrument(plugin, tb, &block),
            Scope::User => instrument(plugin, tb, &block),
            Scope::Kernel | Scope::All => instrument_user(plugin, tb, &block),
        }
        plugin.translated = block;
    }
}

/// Return whether a block is of the loop in which the kernel waits.
fn is_idle(plugin: &Plugin, translated: &Translated) -> bool {
    let symbols = plugin.counter.blocks.symbols();
    translated.addresses.first().is_some_and(|start| symbols.get(symbols.find(*start)).role == Role::Idle)
}

/// # Safety
/// Of a translation callback.
unsafe fn instrument(plugin: &mut Plugin, tb: *mut qemu::qemu_plugin_tb, translated: &Translated) {
    let start = translated.addresses.first().copied();
    let Some(block) = start.and_then(|start| plugin.counter.intern(start, &translated.bytes)) else {
        return;
    };
    // SAFETY: as promised; blocks are never freed.
    unsafe {
        let flags = qemu::qemu_plugin_cb_flags::QEMU_PLUGIN_CB_NO_REGS;
        qemu::qemu_plugin_register_vcpu_tb_exec_cb(tb, Some(on_block), flags, block.cast());
        let symbols = plugin.counter.blocks.symbols();
        let is_switch = symbols.get((*block).function).role == Role::Switch;
        let is_detailed = plugin.counter.is_detailed();
        if !is_switch && !is_detailed {
            return;
        }
        plugin.counter.blocks.prepare(&mut *block);
        let facts = &(*block).facts;
        for (place, instruction) in translated.instructions.iter().enumerate() {
            if is_switch && moves_stack_pointer(&translated.bytes[translated.offsets[place]..]) {
                watch_memory(*instruction, on_switch, std::ptr::null_mut());
            }
            if is_detailed && let Some(facts) = facts.instructions.get(place) {
                watch_memory(*instruction, on_access, std::ptr::without_provenance_mut(facts.access.packed()));
            }
        }
    }
}

/// Return whether it is `mov %rsp,X(%rdi)` or `mov X(%rsi),%rsp`, where X is the place of the stack pointer in a task:
/// what __switch_to_asm exchanges stacks with (arch/x86/entry/entry_64.S). The addresses tell the tasks apart.
fn moves_stack_pointer(bytes: &[u8]) -> bool {
    matches!(bytes, [0x48, 0x89, 0xa7 | 0x67, ..] | [0x48, 0x8b, 0xa6 | 0x66, ..])
}

/// # Safety
/// Of a translation callback.
unsafe fn watch_memory(
    instruction: *mut qemu::qemu_plugin_insn,
    callback: unsafe extern "C" fn(c_uint, qemu::qemu_plugin_meminfo_t, u64, *mut c_void),
    data: *mut c_void,
) {
    // SAFETY: as promised.
    unsafe {
        qemu::qemu_plugin_register_vcpu_mem_cb(
            instruction,
            Some(callback),
            qemu::qemu_plugin_cb_flags::QEMU_PLUGIN_CB_NO_REGS,
            qemu::qemu_plugin_mem_rw::QEMU_PLUGIN_MEM_RW,
            data,
        );
    }
}

/// # Safety
/// Of a translation callback.
unsafe fn instrument_user(plugin: &mut Plugin, tb: *mut qemu::qemu_plugin_tb, translated: &Translated) {
    let Some(block) = plugin.counter.intern_user(&translated.addresses, &translated.bytes) else {
        return;
    };
    // SAFETY: as promised.
    unsafe {
        let flags = qemu::qemu_plugin_cb_flags::QEMU_PLUGIN_CB_NO_REGS;
        qemu::qemu_plugin_register_vcpu_tb_exec_cb(tb, Some(on_user_block), flags, block.cast());
        if plugin.scope == Scope::All {
            for instruction in &translated.instructions {
                watch_memory(*instruction, on_user_access, std::ptr::null_mut());
            }
        }
    }
}

/// # Safety
/// Of a translation callback.
unsafe fn watch_markers(translated: &Translated) {
    for (place, instruction) in translated.instructions.iter().enumerate() {
        let bytes = &translated.bytes[translated.offsets[place]..];
        if let [register @ (OPEN | CLOSE | ONE | ZERO), ..] = *bytes.strip_prefix(&XCHG).unwrap_or_default() {
            let data = std::ptr::without_provenance_mut(usize::from(register));
            // SAFETY: as promised.
            unsafe {
                let flags = qemu::qemu_plugin_cb_flags::QEMU_PLUGIN_CB_NO_REGS;
                qemu::qemu_plugin_register_vcpu_insn_exec_cb(*instruction, Some(on_marker), flags, data);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_of_which_a_page_s_end_left_a_part_is_none_of_the_block() {
        let mut block = Translated {
            instructions: vec![std::ptr::null_mut(); 2],
            addresses: vec![0x1ffc, 0x1fff],
            bytes: vec![0x4d, 0x89, 0xc2, 0x4d], // mov %r8,%r10; a prefix
            offsets: vec![0, 3],
        };
        block.forget_undone();
        let left = (block.instructions.len(), block.bytes.len(), block.offsets.len());
        assert_eq!((block.addresses, left), (vec![0x1ffc], (1, 3, 1)));
    }
}
