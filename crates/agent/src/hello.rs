//! The program that lat_proc executes: this one, called with the argument `hello`.
//!
//! LMBench's `hello` writes a line and ends. So does this, before Rust's runtime has made its own twenty system calls:
//! glibc calls what is in `.init_array` first, with the arguments of `main`.

use std::ffi::{CStr, c_char, c_int};

/// The argument.
pub const ARGUMENT: &CStr = c"hello";

const LINE: &[u8] = b"hello\n";

#[used]
/// The function that prints, of the type that glibc calls.
#[unsafe(link_section = ".init_array")]
static FIRST: extern "C" fn(c_int, *const *const c_char) = first;

extern "C" fn first(count: c_int, arguments: *const *const c_char) {
    // SAFETY: `arguments` are `count` C strings; write and _exit need nothing that isn't there yet.
    unsafe {
        if count == 2 && CStr::from_ptr(*arguments.add(1)) == ARGUMENT {
            libc::write(1, LINE.as_ptr().cast(), LINE.len());
            libc::_exit(0);
        }
    }
}
