//! Code made at run time, with any layout: a kernel's instructions don't fit the caches as a loop's do.

use crate::arena::Arena;
use crate::rng::Rng;

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
            for (index, byte) in function[..size - 1].iter_mut().enumerate() {
                // What is left over at the end is too short for a step: one-byte nops.
                let whole = index / STEP.len() < (size - 1) / STEP.len();
                *byte = if whole { STEP[index % STEP.len()] } else { 0x90 };
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

/// Instructions of the lengths that a kernel's have, 4 bytes on average. They wait little for each other, so that fetching
/// them decides; they change registers that the convention allows, and words below the stack pointer.
const SIMPLE: [&[u8]; 12] = [
    &[0x01, 0xc8],                               // add %ecx,%eax
    &[0x48, 0x89, 0xc6],                         // mov %rax,%rsi
    &[0x48, 0x85, 0xc9],                         // test %rcx,%rcx
    &[0x48, 0x31, 0xd2],                         // xor %rdx,%rdx
    &[0x48, 0x83, 0xf1, 0x03],                   // xor $3,%rcx
    &[0x48, 0xc1, 0xef, 0x03],                   // shr $3,%rdi
    &[0x4c, 0x8d, 0x04, 0x31],                   // lea (%rcx,%rsi),%r8
    &[0x48, 0x8b, 0x44, 0x24, 0xf8],             // mov -8(%rsp),%rax
    &[0x48, 0x8b, 0x7c, 0x24, 0xf0],             // mov -16(%rsp),%rdi
    &[0x48, 0x89, 0x54, 0x24, 0xe8],             // mov %rdx,-24(%rsp)
    &[0x41, 0xb9, 0x07, 0x00, 0x01, 0x00],       // mov $0x10007,%r9d
    &[0x48, 0x81, 0xe6, 0xff, 0x0f, 0x00, 0x00], // and $0xfff,%rsi
];
const NOP: u8 = 0x90;
const LONGEST: usize = 8;

/// Code that is written from its start to its end, and then run.
pub struct Code {
    arena: Arena,
    end: usize,
    rng: Rng,
}

impl Code {
    pub fn new(bytes: usize) -> Self {
        Code { arena: Arena::executable(bytes), end: 0, rng: Rng::new(183) }
    }

    pub fn end(&self) -> usize {
        self.end
    }

    fn write(&mut self, bytes: &[u8]) {
        self.arena.bytes()[self.end..self.end + bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
    }

    /// Fill with simple instructions up to an offset.
    pub fn fill(&mut self, target: usize) {
        while self.end + LONGEST <= target {
            let instruction = self.rng.below(SIMPLE.len() as u64) as usize;
            self.write(SIMPLE[instruction]);
        }
        while self.end < target {
            self.write(&[NOP]);
        }
    }

    pub fn call(&mut self, target: usize) {
        self.relative(&[0xe8], target);
    }

    pub fn jump(&mut self, target: usize) {
        self.relative(&[0xe9], target);
    }

    /// Jump back to an offset until r10d, which this counts down, is zero.
    pub fn repeat(&mut self, start: usize) {
        self.write(&[0x41, 0xff, 0xca]); // dec %r10d
        self.relative(&[0x0f, 0x85], start);
    }

    pub fn set_counter(&mut self, times: u32) {
        self.write(&[0x41, 0xba]); // mov $times,%r10d
        self.write(&times.to_le_bytes());
    }

    /// Write a jump that is never taken.
    pub fn check(&mut self, target: usize) {
        self.write(&[0x48, 0x39, 0xe4]); // cmp %rsp,%rsp
        self.relative(&[0x0f, 0x85], target);
    }

    pub fn ret(&mut self) {
        self.write(&[RET]);
    }

    /// Write on from here.
    pub fn go_on_at(&mut self, offset: usize) {
        self.end = offset;
    }

    fn relative(&mut self, opcode: &[u8], target: usize) {
        self.write(opcode);
        let distance = target as i64 - (self.end as i64 + 4);
        self.write(&(distance as i32).to_le_bytes());
    }

    #[inline(always)]
    pub fn run(&self, entry: usize) -> u64 {
        // SAFETY: the code above; it keeps to the convention, and the words that it changes are below its stack.
        let function: extern "C" fn() -> u64 = unsafe { std::mem::transmute(self.arena.address() + entry) };
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

    #[test]
    fn code_fills_the_bytes_that_it_is_told_to_fill_and_returns() {
        let mut code = Code::new(4096);
        code.fill(100);
        let function = code.end();
        code.set_counter(3);
        let start = code.end();
        code.fill(200);
        code.repeat(start);
        code.ret();
        let entry = code.end();
        code.check(0);
        code.call(function);
        code.ret();
        assert_eq!(function, 100);
        code.run(entry);
    }
}
