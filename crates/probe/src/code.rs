//! Code made at run time, with any layout: a kernel's instructions don't fit the caches as a loop's do.

use crate::arena::Arena;

/// `add $7, %rax; xor $3, %rax; lea 5(%rax), %rcx; add %rcx, %rax`: 15 bytes, four instructions.
const STEP: [u8; 15] = [0x48, 0x83, 0xc0, 0x07, 0x48, 0x83, 0xf0, 0x03, 0x48, 0x8d, 0x48, 0x05, 0x48, 0x01, 0xc8];
const RET: u8 = 0xc3;

/// Functions of `size` bytes, full of simple instructions, `spacing` bytes apart.
pub struct Functions {
    arena: Arena,
    spacing: usize,
    pub count: usize,
}

impl Functions {
    pub fn new(count: usize, size: usize, spacing: usize) -> Self {
        let mut arena = Arena::executable(count * spacing);
        for function in arena.bytes().chunks_exact_mut(spacing) {
            for (at, byte) in function[..size - 1].iter_mut().enumerate() {
                // What is left over at the end is too short for a step: one-byte nops.
                let whole = at / STEP.len() < (size - 1) / STEP.len();
                *byte = if whole { STEP[at % STEP.len()] } else { 0x90 };
            }
            function[size - 1] = RET;
        }
        Functions { arena, spacing, count }
    }

    #[inline(always)]
    pub fn call(&self, index: usize) -> u64 {
        debug_assert!(index < self.count);
        // SAFETY: the code above: it changes rax and rcx, which the convention allows, and returns.
        let function: extern "C" fn() -> u64 =
            unsafe { std::mem::transmute(self.arena.address() + index * self.spacing) };
        function()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_functions_can_be_called() {
        let functions = Functions::new(3, 40, 128);
        let returned: Vec<u64> = (0..3).map(|index| functions.call(index)).collect();
        assert_eq!(returned.len(), 3);
    }
}
