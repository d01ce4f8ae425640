//! Small system calls about the process itself: who it is, what it used, what it may.

use super::load::fails_with;
use super::mix::Mix;
use crate::sys::{Failure, check};
use std::mem::zeroed;
use std::ptr::null_mut;

/// A few calls that belong together.
type Calls = fn(&mut Mix) -> Result<(), Failure>;

/// Call some of those that programs make.
pub fn some(mix: &mut Mix) -> Result<(), Failure> {
    const ALL: [Calls; 8] = [identity, clocks, usage, names, limits, masks, waits, process];
    ALL[mix.below(ALL.len())](mix)
}

fn identity(_: &mut Mix) -> Result<(), Failure> {
    // SAFETY: no pointers; by number, so that no library answers.
    unsafe {
        for call in [libc::SYS_getpid, libc::SYS_getppid, libc::SYS_gettid, libc::SYS_getuid, libc::SYS_getegid] {
            check("getpid()", libc::syscall(call))?;
        }
        check("getpgid()", libc::getpgid(0))?;
        check("getsid()", libc::getsid(0))?;
        check("getgroups()", libc::getgroups(0, null_mut()))?;
    }
    Ok(())
}

fn clocks(mix: &mut Mix) -> Result<(), Failure> {
    const CLOCKS: [libc::clockid_t; 5] = [
        libc::CLOCK_REALTIME,
        libc::CLOCK_MONOTONIC,
        libc::CLOCK_MONOTONIC_COARSE,
        libc::CLOCK_PROCESS_CPUTIME_ID,
        libc::CLOCK_THREAD_CPUTIME_ID,
    ];
    // SAFETY: structures of the right types. By number: as a call, not in the vDSO.
    unsafe {
        let mut time: libc::timespec = zeroed();
        let clock = CLOCKS[mix.below(CLOCKS.len())];
        check("clock_gettime()", libc::syscall(libc::SYS_clock_gettime, clock, &raw mut time))?;
        let mut day: libc::timeval = zeroed();
        check("gettimeofday()", libc::syscall(libc::SYS_gettimeofday, &raw mut day, 0))?;
        let mut ticks = zeroed();
        libc::times(&mut ticks);
        let mut timer = zeroed();
        check("getitimer()", libc::getitimer(libc::ITIMER_REAL, &mut timer))?;
    }
    Ok(())
}

fn usage(_: &mut Mix) -> Result<(), Failure> {
    // SAFETY: structures of the right types.
    unsafe {
        check("getrusage()", libc::getrusage(libc::RUSAGE_SELF, &mut zeroed()))?;
        check("getrusage()", libc::getrusage(libc::RUSAGE_CHILDREN, &mut zeroed()))?;
        check("sysinfo()", libc::sysinfo(&mut zeroed()))?;
    }
    Ok(())
}

fn names(_: &mut Mix) -> Result<(), Failure> {
    let mut buffer = [0_u8; 4096];
    let (place, size) = (buffer.as_mut_ptr().cast(), buffer.len());
    // SAFETY: `buffer` is writable for its length; C strings.
    unsafe {
        check("uname()", libc::uname(&mut zeroed()))?;
        check("gethostname()", libc::gethostname(place, size))?;
        check("getcwd()", libc::syscall(libc::SYS_getcwd, place, size))?;
        check("prctl(PR_GET_NAME)", libc::prctl(libc::PR_GET_NAME, place))?;
    }
    Ok(())
}

fn limits(mix: &mut Mix) -> Result<(), Failure> {
    let which = [libc::RLIMIT_NOFILE, libc::RLIMIT_STACK, libc::RLIMIT_CORE][mix.below(3)];
    // SAFETY: structures of the right types.
    unsafe {
        let mut limit = zeroed();
        check("getrlimit()", libc::getrlimit(which, &mut limit))?;
        check("prlimit()", libc::prlimit(0, which, &limit, null_mut()))?;
        libc::umask(libc::umask(0o077));
        check("getpriority()", libc::getpriority(libc::PRIO_PROCESS, 0).max(0))?;
        check("sched_getaffinity()", libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut zeroed()))?;
        check("sched_getscheduler()", libc::sched_getscheduler(0))?;
        libc::sched_yield();
    }
    Ok(())
}

fn masks(mix: &mut Mix) -> Result<(), Failure> {
    let signal = [libc::SIGUSR1, libc::SIGUSR2, libc::SIGHUP][mix.below(3)];
    // SAFETY: sets and actions made or filled by the calls for them; the action is what it was.
    unsafe {
        let (mut set, mut before) = (zeroed(), zeroed());
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        check("sigprocmask()", libc::sigprocmask(libc::SIG_BLOCK, &set, &mut before))?;
        check("sigprocmask()", libc::sigprocmask(libc::SIG_SETMASK, &before, null_mut()))?;
        let mut action = zeroed();
        check("sigaction()", libc::sigaction(signal, std::ptr::null(), &mut action))?;
        check("sigaction()", libc::sigaction(signal, &action, null_mut()))?;
    }
    Ok(())
}

fn waits(_: &mut Mix) -> Result<(), Failure> {
    // SAFETY: a word that nobody else knows, and another value than the one it has; no pointers in wait4.
    unsafe {
        let word = 1_u32;
        let none: *mut libc::timespec = null_mut();
        let futex = |what: libc::c_int| {
            libc::syscall(libc::SYS_futex, &raw const word, what | libc::FUTEX_PRIVATE_FLAG, 0, none)
        };
        fails_with("futex(FUTEX_WAIT)", libc::EAGAIN, futex(libc::FUTEX_WAIT))?;
        check("futex(FUTEX_WAKE)", futex(libc::FUTEX_WAKE))?;
        fails_with("wait4()", libc::ECHILD, libc::waitpid(-1, null_mut(), libc::WNOHANG).into())?;
        let moment = libc::timespec { tv_sec: 0, tv_nsec: 1 };
        check("nanosleep()", libc::nanosleep(&moment, null_mut()))?;
    }
    Ok(())
}

fn process(_: &mut Mix) -> Result<(), Failure> {
    let mut bytes = [0_u8; 16];
    // SAFETY: `bytes` is writable for its length; signal 0 only asks.
    unsafe {
        check("getrandom()", libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), libc::GRND_NONBLOCK).max(0))?;
        check("kill(0)", libc::kill(libc::getpid(), 0))?;
        check("prctl(PR_GET_DUMPABLE)", libc::prctl(libc::PR_GET_DUMPABLE))?;
        check("personality()", libc::personality(0xffff_ffff))?;
        check("brk()", libc::syscall(libc::SYS_brk, 0))?;
    }
    Ok(())
}
