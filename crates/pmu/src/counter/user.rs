//! User code, while a kernel is counted: its instructions, and with `scope=all` what it does to caches and TLBs.

use super::Counter;
use crate::block::UserBlock;
use crate::events::Event;
use crate::hardware::Place;

impl Counter {
    /// Begin a block of user code, while a kernel is counted.
    #[inline(always)]
    pub fn user_block(&mut self, block: &UserBlock) {
        if self.sees_user_accesses {
            self.user_fetch(block);
        }
        if self.is_warming {
            self.previous = self.outside;
            return;
        }
        if self.previous != self.outside {
            self.previous = self.outside;
            self.task.leave(self.root);
            // SAFETY: user blocks are never freed.
            if let Some(faulted) = unsafe { std::mem::replace(&mut self.task.faulted, std::ptr::null()).as_ref() } {
                let repeats = faulted.instructions.iter().filter(|address| **address >= block.start).count();
                if faulted.instructions.contains(&block.start) {
                    self.counted.user_instructions = self.counted.user_instructions.wrapping_sub(repeats as u64);
                }
            }
        }
        // SAFETY: as above.
        let goes_on = unsafe { self.previous_user.as_ref() }
            .is_some_and(|previous| previous.is_rep && previous.last == block.start);
        if goes_on {
            self.counted.user_rep_iterations += 1;
        } else {
            self.counted.user_instructions += block.instructions.len() as u64;
        }
        self.previous_user = block;
    }

    /// Fetch user code's pages from the TLBs, once the kernel's last block before it has done what it does to them.
    #[inline(always)]
    fn user_fetch(&mut self, block: &UserBlock) {
        let Some(detail) = &mut self.detail else {
            return;
        };
        // SAFETY: blocks are never freed.
        if let Some(flush) = unsafe { (*self.previous).facts.flush } {
            detail.hardware.flush(flush);
        }
        let counts = if self.is_warming { &mut self.unread } else { &mut self.counted.user.0 };
        for address in [block.start, block.last] {
            detail.hardware.user_fetch(address, counts);
        }
    }

    /// Model an access to memory by an instruction of user code, while a kernel is counted. `place` is asked rarely.
    #[inline(always)]
    pub fn user_access(&mut self, address: u64, is_store: bool, place: impl Fn() -> Place) {
        let Some(detail) = &mut self.detail else {
            return;
        };
        let counts = if self.is_warming { &mut self.unread } else { &mut self.counted.user.0 };
        counts[if is_store { Event::stores } else { Event::loads } as usize] += 1;
        detail.hardware.access(address, counts, place);
    }
}
