//! The same addresses in each boot: where stack, heap and mappings are decides how many page tables a process has, and
//! one table more or less is a percent of a fork.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr::null;

/// What personality(2) takes for "only say which it is".
const ASK: libc::c_ulong = 0xffff_ffff;

/// Start this program anew without randomisation of its addresses and its children's. Returns if that is so already, or
/// can't be had: then only precision is lost.
pub fn fix() {
    // SAFETY: no pointers.
    let now = unsafe { libc::personality(ASK) };
    if now < 0 || now & libc::ADDR_NO_RANDOMIZE != 0 || !set(now | libc::ADDR_NO_RANDOMIZE) {
        return;
    }
    // Without /proc it can only be the guest's init.
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/init"));
    let text = |bytes: &[u8]| CString::new(bytes).expect("the kernel's strings hold no NUL");
    let arguments: Vec<CString> = std::env::args_os().map(|argument| text(argument.as_bytes())).collect();
    let pointers: Vec<_> = arguments.iter().map(|argument| argument.as_ptr()).chain([null()]).collect();
    // SAFETY: a C string, and a null-ended array of such that outlive the call.
    unsafe { libc::execv(text(program.as_os_str().as_bytes()).as_ptr(), pointers.as_ptr()) };
}

/// Set whether what is executed from now on has the same addresses in each boot, or random ones, as programs usually
/// have.
pub fn randomise(are_random: bool) {
    // SAFETY: no pointers.
    let now = unsafe { libc::personality(ASK) };
    if now >= 0 {
        set(if are_random { now & !libc::ADDR_NO_RANDOMIZE } else { now | libc::ADDR_NO_RANDOMIZE });
    }
}

fn set(personality: libc::c_int) -> bool {
    // SAFETY: no pointers.
    unsafe { libc::personality(personality as libc::c_ulong) >= 0 }
}
