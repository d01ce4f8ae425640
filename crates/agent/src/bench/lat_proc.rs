//! lat_proc: three ways to make a process, each dearer than the one before.
//!
//! LMBench's `hello` program is this agent, called with the argument `hello`: see hello.rs. As there, a child leaves by
//! exit(3), which writes to some pages of its own, and one that executes something closes its standard output first and
//! passes no environment on.

use crate::hello;
use crate::measure::Recorder;
use crate::params::Params;
use crate::processes::Death;
use crate::sys::{Failure, Stop, check, file};
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};
use std::ffi::{CStr, CString, c_char};
use std::path::PathBuf;
use std::ptr::null;
use std::sync::atomic::{AtomicI32, Ordering};

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

/// The exit status of a child that could not become another program.
const NOT_EXECUTED: i32 = 1;

/// The child that is waited for; in memory, as LMBench keeps it, so that the parent writes to a page that both share.
static CHILD: AtomicI32 = AtomicI32::new(0);

fn fork(recorder: &Recorder, _: &Params) -> Result<(), Stop> {
    measure_children(recorder, NOT_EXECUTED, || {})
}

fn exec(recorder: &Recorder, _: &Params) -> Result<(), Stop> {
    let hello = own_path();
    let arguments = [hello.as_ptr(), hello::ARGUMENT.as_ptr(), null()];
    measure_children(recorder, 0, || execute(&hello, &arguments))
}

fn shell(recorder: &Recorder, _: &Params) -> Result<(), Stop> {
    // SAFETY: SHELL is a C string. Asked before, because a child could only say that it failed.
    check("execve(/bin/sh)", unsafe { libc::access(SHELL.as_ptr(), libc::X_OK) })?;
    let hello = own_path();
    let arguments = [SHELL.as_ptr(), c"-c".as_ptr(), c"\"$0\" hello".as_ptr(), hello.as_ptr(), null()];
    measure_children(recorder, 0, || execute(SHELL, &arguments))
}

/// Become another program, without standard output and environment; return if that fails.
fn execute(program: &CStr, arguments: &[*const c_char]) {
    let environment = [null()];
    // SAFETY: C strings and null-ended arrays that outlive the call.
    unsafe {
        libc::close(libc::STDOUT_FILENO);
        libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr());
    }
}

/// Measure making processes that run `child`, then end with NOT_EXECUTED; their status must be `expected`.
fn measure_children(recorder: &Recorder, expected: i32, child: impl Fn()) -> Result<(), Stop> {
    recorder.measure(|processes| {
        for _ in 0..processes {
            // SAFETY: one thread, so the child may go on; it leaves by exec or exit.
            let pid = check("fork()", unsafe { libc::fork() })?;
            if pid == 0 {
                child();
                // SAFETY: no pointers; nothing of the parent's waits for the end of the process.
                unsafe { libc::exit(NOT_EXECUTED) };
            }
            CHILD.store(pid, Ordering::Relaxed);
            let mut status = 0;
            // SAFETY: `status` is writable.
            if unsafe { libc::waitpid(pid, &mut status, 0) } != pid {
                return Err(Failure::last("waitpid()").into());
            }
            match Death::from_status(status) {
                Death::Exit(code) if code == expected => {}
                death => return Err(Stop::Broken(format!("the new process {death}"))),
            }
        }
        Ok(processes)
    })
}

/// Return the path of this program; without /proc it can only be the guest's init.
fn own_path() -> CString {
    file::c_path(&std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/init")))
}
