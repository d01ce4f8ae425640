//! Marker instructions: how a program tells the emulated PMU (crates/pmu) which part of it is measured.
//!
//! `xchg %r16,%r16` with one register twice does nothing, and no compiler emits it; 16 bits, so that not even the upper
//! half of the register is cleared. The plugin sees the bytes when it translates. Plugins of API version 1 can't read
//! registers, so a number is sent bit by bit: an instruction for 0 and another for 1.
//!
//! | instruction | bytes | means |
//! | --- | --- | --- |
//! | `xchg %bx,%bx` | 66 87 db | the measured part begins |
//! | `xchg %cx,%cx` | 66 87 c9 | the measured part ends |
//! | `xchg %dx,%dx` | 66 87 d2 | a bit 1 of the announced word, highest first |
//! | `xchg %si,%si` | 66 87 f6 | a bit 0 |

use std::arch::asm;

/// The iteration that is not recorded.
pub const WARM_UP: u16 = u16::MAX;

/// Says whose measured parts follow, until something else is announced. Several parts of one iteration are added up.
pub fn announce(benchmark: u16, iteration: u16) {
    let word = u32::from(benchmark) << 16 | u32::from(iteration);
    for bit in (0..u32::BITS).rev() {
        if word >> bit & 1 == 1 {
            // SAFETY: exchanges a register with itself.
            unsafe { asm!(".byte 0x66, 0x87, 0xd2", options(nomem, nostack, preserves_flags)) };
        } else {
            // SAFETY: as above.
            unsafe { asm!(".byte 0x66, 0x87, 0xf6", options(nomem, nostack, preserves_flags)) };
        }
    }
}

/// The measured part begins. A barrier for the compiler: no memory access moves across it.
#[inline(always)]
pub fn open() {
    // SAFETY: exchanges a register with itself.
    unsafe { asm!(".byte 0x66, 0x87, 0xdb", options(nostack, preserves_flags)) };
}

/// The measured part ends.
#[inline(always)]
pub fn close() {
    // SAFETY: as above.
    unsafe { asm!(".byte 0x66, 0x87, 0xc9", options(nostack, preserves_flags)) };
}
