//! Marker instructions: how a program tells the emulated PMU (crates/pmu) which part of it is measured.
//!
//! `xchg %r16,%r16` with one register twice does nothing, and no compiler emits it; 16 bits, so that not even the upper
//! half of the register is cleared. The plugin sees the bytes when it translates. Plugins of API version 1 can't read
//! registers, so a number is sent bit by bit: an instruction for 0 and another for 1.

use std::arch::asm;

/// How every marker begins: `xchg` of two registers, of 16 bits. A third byte says which register.
pub const XCHG: [u8; 2] = [0x66, 0x87];

/// `xchg %bx,%bx`: the measured part begins.
pub const OPEN: u8 = 0xdb;

/// `xchg %cx,%cx`: the measured part ends.
pub const CLOSE: u8 = 0xc9;

/// `xchg %dx,%dx`: a bit 1 of the announced word, highest first.
pub const ONE: u8 = 0xd2;

/// `xchg %si,%si`: a bit 0.
pub const ZERO: u8 = 0xf6;

/// The last iteration before those that are recorded: it goes through caches, TLBs and predictor, and isn't counted.
pub const WARM_UP: u16 = u16::MAX;

/// An earlier one, which the PMU doesn't look at at all.
pub const UNSEEN: u16 = u16::MAX - 1;

/// Return the word that announces a benchmark and one of its iterations.
pub fn word(benchmark: u16, iteration: u16) -> u32 {
    u32::from(benchmark) << 16 | u32::from(iteration)
}

/// Return the benchmark and the iteration of an announced word.
pub fn from_word(word: u32) -> (u16, u16) {
    ((word >> 16) as u16, word as u16)
}

macro_rules! marker {
    ($register:ident, $($option:ident),*) => {
        // SAFETY: exchanges a register with itself.
        unsafe {
            asm!(
                ".byte {}, {}, {}",
                const XCHG[0],
                const XCHG[1],
                const $register,
                options(nostack, preserves_flags $(, $option)*),
            )
        }
    };
}

/// Announce whose measured parts follow, until something else is announced. Several parts of one iteration are added
/// up.
pub fn announce(benchmark: u16, iteration: u16) {
    let word = word(benchmark, iteration);
    for bit in (0..u32::BITS).rev() {
        if word >> bit & 1 == 1 {
            marker!(ONE, nomem);
        } else {
            marker!(ZERO, nomem);
        }
    }
}

/// Begin the measured part. A barrier for the compiler: no memory access moves across it.
#[inline(always)]
pub fn open() {
    marker!(OPEN,);
}

/// End the measured part.
#[inline(always)]
pub fn close() {
    marker!(CLOSE,);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_read_as_it_was_made() {
        for identity in [(0, 0), (37, 6), (u16::MAX, WARM_UP), (1, UNSEEN)] {
            assert_eq!(from_word(word(identity.0, identity.1)), identity);
        }
    }
}
