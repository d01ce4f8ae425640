//! lat_proc: three ways to make a process, each dearer than the one before.
//!
//! LMBench's `hello` program is this agent, called with the argument `hello`: a static binary that returns at once.

use crate::measure::Recorder;
use crate::params::Params;
use crate::processes::Death;
use crate::sys::{Failure, Stop, check, file};
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};
use std::ffi::{CStr, CString};
use std::path::PathBuf;
use std::ptr::null;

pub static TEST: Test = Test {
    name: "lat_proc",
    suite: Some(Suite::Lmbench),
    description: "make processes: fork, fork and exec, fork and shell",
    params: &[],
    metrics: &[
        Metric {
            suffix: "fork",
            kind: Kind::Latency,
            description: "fork a process that exits, wait for it",
            model_operations: 2,
            run: fork,
        },
        Metric {
            suffix: "exec",
            kind: Kind::Latency,
            description: "fork a process that executes a small static program, wait for it",
            model_operations: 1,
            run: exec,
        },
        Metric {
            suffix: "shell",
            kind: Kind::Latency,
            description: "fork a process that runs the program with /bin/sh -c, wait for it",
            model_operations: 1,
            run: shell,
        },
    ],
};

const SHELL: &CStr = c"/bin/sh";

/// The argument that makes the agent a program which does nothing; main() knows it.
const HELLO: &CStr = c"hello";

fn fork(recorder: &Recorder, _: &Params) -> Result<(), Stop> {
    // SAFETY: no pointers.
    measure_children(recorder, || unsafe { libc::_exit(0) })
}

fn exec(recorder: &Recorder, _: &Params) -> Result<(), Stop> {
    let hello = own_path();
    let arguments = [hello.as_ptr(), HELLO.as_ptr(), null()];
    // SAFETY: strings and the null-ended array outlive the call.
    measure_children(recorder, || unsafe { libc::execv(hello.as_ptr(), arguments.as_ptr()) })
}

fn shell(recorder: &Recorder, _: &Params) -> Result<(), Stop> {
    // SAFETY: SHELL is a C string. Asked before, because a child could only say "127".
    check("execve(/bin/sh)", unsafe { libc::access(SHELL.as_ptr(), libc::X_OK) })?;
    let hello = own_path();
    let arguments = [SHELL.as_ptr(), c"-c".as_ptr(), c"\"$0\" hello".as_ptr(), hello.as_ptr(), null()];
    // SAFETY: strings and the null-ended array outlive the call.
    measure_children(recorder, || unsafe { libc::execv(SHELL.as_ptr(), arguments.as_ptr()) })
}

/// Measures making processes that run `child`, which only returns when it has failed.
fn measure_children<T>(recorder: &Recorder, child: impl Fn() -> T) -> Result<(), Stop> {
    recorder.measure(|processes| {
        for _ in 0..processes {
            // SAFETY: one thread, so the child may go on; it leaves by exec or _exit.
            let pid = check("fork()", unsafe { libc::fork() })?;
            if pid == 0 {
                child();
                // SAFETY: no pointers.
                unsafe { libc::_exit(127) };
            }
            let mut status = 0;
            // SAFETY: `status` is writable.
            if unsafe { libc::waitpid(pid, &mut status, 0) } != pid {
                return Err(Failure::last("waitpid()").into());
            }
            if status != 0 {
                return Err(Stop::Broken(format!("the new process {}", Death::from_status(status))));
            }
        }
        Ok(processes)
    })
}

/// Where this program is; without /proc it can only be the guest's init.
fn own_path() -> CString {
    file::c_path(&std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/init")))
}
