//! A TCG plugin for QEMU that counts the calls of a kernel's library routines by size and offset.
//!
//! QEMU before version 9 doesn't let plugins read registers, so a call's arguments aren't seen. Its accesses to memory are:
//! what a routine reads and writes between its first instruction and its return is its memory, but for the stack and
//! tables. The first address and the extent are the offset and the size.
//!
//! plugin: what QEMU calls · routines: which code is of which routine · code: what an instruction does · calls: open calls, and
//! the counts of those that returned

mod calls;
mod code;
mod plugin;
mod routines;
