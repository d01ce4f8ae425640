//! Values that the compiler knows nothing about, at no cost: `black_box` would take them through memory.

use std::arch::asm;

/// Return the same value. A loop that has it is neither removed, nor vectorised, nor made a `memcpy`.
#[inline(always)]
pub fn opaque(mut value: u64) -> u64 {
    // SAFETY: no instruction.
    unsafe { asm!("/* {0} */", inout(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Return the same value as `opaque` does, for an index or an address.
#[inline(always)]
pub fn opaque_size(value: usize) -> usize {
    opaque(value as u64) as usize
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_opaque_value_is_the_same_value() {
        assert_eq!((super::opaque(7), super::opaque_size(9)), (7, 9));
    }
}
