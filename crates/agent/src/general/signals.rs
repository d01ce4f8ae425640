//! Signals: sent to oneself and others, caught, blocked, awaited, ignored, made by timers and faults, deadly.

use super::child::Child;
use super::load::optional;
use crate::processes::Death;
use crate::sys::{Failure, Stop, check, fd};
use std::os::fd::AsRawFd;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};

const TURNS: u64 = 40;

/// Microseconds until a timer is due.
const SOON: libc::suseconds_t = 300;

static CAUGHT: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_: libc::c_int) {
    CAUGHT.fetch_add(1, Ordering::Relaxed);
}

pub fn round() -> Result<(), Stop> {
    // In a process of its own: actions, masks and timers go with it.
    Child::spawn(to_oneself)?.wait()?;
    optional(Child::spawn(timers)?.wait())?;
    to_another()?;
    optional(Child::spawn(from_descriptor)?.wait())?;
    deadly()
}

/// Make a signal be counted, with these flags.
fn catch(signal: libc::c_int, flags: libc::c_int) -> Result<(), Failure> {
    // SAFETY: all bits 0 is an action without flags; the handler only adds to an atomic.
    check("sigaction()", unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = count as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = flags;
        libc::sigaction(signal, &action, null_mut())
    })?;
    Ok(())
}

/// Return a set of one signal.
fn only(signal: libc::c_int) -> libc::sigset_t {
    // SAFETY: the set is made by the calls for it.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        set
    }
}

fn mask(how: libc::c_int, signal: libc::c_int) -> Result<(), Failure> {
    // SAFETY: a set; null for "the old one is not asked for".
    check("sigprocmask()", unsafe { libc::sigprocmask(how, &only(signal), null_mut()) })?;
    Ok(())
}

/// Send signals to this process: caught at once; caught after being blocked; awaited; ignored; on a stack of its own.
fn to_oneself() -> Result<(), Failure> {
    let mut stack = vec![0_u8; 1 << 16];
    let own = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: stack.len() };
    // SAFETY: the stack lives as long as this process uses it; other calls have no pointers but sets and null.
    unsafe {
        let me = libc::getpid();
        check("sigaltstack()", libc::sigaltstack(&own, null_mut()))?;
        for turn in 0..TURNS {
            let signal = [libc::SIGUSR1, libc::SIGUSR2, libc::SIGRTMIN(), libc::SIGWINCH][turn as usize % 4];
            catch(signal, [0, libc::SA_RESTART, libc::SA_ONSTACK, libc::SA_NODEFER][turn as usize / 4 % 4])?;
            check("raise()", libc::raise(signal))?;
            mask(libc::SIG_BLOCK, signal)?;
            check("sigqueue()", libc::sigqueue(me, signal, std::mem::zeroed()))?;
            let mut pending = std::mem::zeroed();
            check("sigpending()", libc::sigpending(&mut pending))?;
            if turn / 4 % 2 == 1 {
                check("sigwaitinfo()", libc::sigwaitinfo(&only(signal), null_mut()))?;
            }
            mask(libc::SIG_UNBLOCK, signal)?;
            libc::signal(signal, libc::SIG_IGN);
            check("kill()", libc::kill(me, signal))?;
            libc::signal(signal, libc::SIG_DFL);
        }
        check("sigaltstack()", libc::sigaltstack(&libc::stack_t { ss_flags: libc::SS_DISABLE, ..own }, null_mut()))?;
    }
    Ok(())
}

/// Wait until a timer ends the wait: of setitimer(2), and POSIX's.
fn timers() -> Result<(), Failure> {
    catch(libc::SIGALRM, 0)?;
    let soon = libc::itimerval {
        it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 },
        it_value: libc::timeval { tv_sec: 0, tv_usec: SOON },
    };
    let short = libc::timespec { tv_sec: 0, tv_nsec: 20_000 };
    // SAFETY: structures of the right types; null for "not asked for". SIGALRM is blocked until sigsuspend waits for it.
    unsafe {
        for _ in 0..3 {
            mask(libc::SIG_BLOCK, libc::SIGALRM)?;
            check("setitimer()", libc::setitimer(libc::ITIMER_REAL, &soon, null_mut()))?;
            let mut nothing = std::mem::zeroed();
            libc::sigemptyset(&mut nothing);
            libc::sigsuspend(&nothing);
            let mut event: libc::sigevent = std::mem::zeroed();
            (event.sigev_notify, event.sigev_signo) = (libc::SIGEV_SIGNAL, libc::SIGALRM);
            let mut timer = std::mem::zeroed();
            check("timer_create()", libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer))?;
            let due = libc::itimerspec { it_interval: std::mem::zeroed(), it_value: short };
            check("timer_settime()", libc::timer_settime(timer, 0, &due, null_mut()))?;
            libc::sigsuspend(&nothing);
            check("timer_delete()", libc::timer_delete(timer))?;
            mask(libc::SIG_UNBLOCK, libc::SIGALRM)?;
            check("nanosleep()", libc::nanosleep(&short, null_mut()))?;
            check("clock_nanosleep()", -libc::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, &short, null_mut()))?;
            libc::poll(null_mut(), 0, 1);
        }
        libc::alarm(10);
        libc::alarm(0);
    }
    Ok(())
}

/// Signal a process that waits for signals, and answers.
fn to_another() -> Result<(), Stop> {
    let (read, write) = fd::pipe()?;
    mask(libc::SIG_BLOCK, libc::SIGUSR1)?;
    let other = Child::spawn(|| {
        for _ in 0..TURNS {
            // SAFETY: a set; null for "not asked for".
            check("sigwaitinfo()", unsafe { libc::sigwaitinfo(&only(libc::SIGUSR1), null_mut()) })?;
            fd::write_all("write(pipe)", write.as_raw_fd(), b".")?;
        }
        Ok(())
    })?;
    for _ in 0..TURNS {
        // SAFETY: no pointers; the process is ours.
        check("kill()", unsafe { libc::kill(other.id(), libc::SIGUSR1) })?;
        fd::read_exact("read(pipe)", read.as_raw_fd(), &mut [0])?;
    }
    mask(libc::SIG_UNBLOCK, libc::SIGUSR1)?;
    // Stopped, continued.
    let sleeper = Child::spawn(pause)?;
    // SAFETY: as above.
    unsafe {
        check("kill(SIGSTOP)", libc::kill(sleeper.id(), libc::SIGSTOP))?;
        check("waitpid()", libc::waitpid(sleeper.id(), null_mut(), libc::WUNTRACED))?;
        check("kill(SIGCONT)", libc::kill(sleeper.id(), libc::SIGCONT))?;
    }
    drop(sleeper);
    other.wait()
}

fn pause() -> Result<(), Failure> {
    // SAFETY: no pointers.
    unsafe { libc::pause() };
    Ok(())
}

/// Read as data: signalfd, where the kernel has it.
fn from_descriptor() -> Result<(), Failure> {
    mask(libc::SIG_BLOCK, libc::SIGUSR2)?;
    // SAFETY: a set; no pointers in kill.
    let source = unsafe {
        let source = fd::owned("signalfd()", libc::signalfd(-1, &only(libc::SIGUSR2), libc::SFD_CLOEXEC))?;
        check("kill()", libc::kill(libc::getpid(), libc::SIGUSR2))?;
        source
    };
    fd::read_exact("read(signalfd)", source.as_raw_fd(), &mut [0; size_of::<libc::signalfd_siginfo>()])
}

/// Run processes that a signal ends: of another, of themselves, of a fault.
fn deadly() -> Result<(), Stop> {
    let killed = Child::spawn(pause)?;
    // SAFETY: no pointers; the process is ours.
    check("kill()", unsafe { libc::kill(killed.id(), libc::SIGTERM) })?;
    let broken = Child::spawn(|| {
        // SAFETY: it is, on purpose, not: an address that nothing is mapped at, in a process that ends with it.
        _ = unsafe { null::<u8>().wrapping_add(64).read_volatile() };
        Ok(())
    })?;
    for (child, signal) in [(killed, libc::SIGTERM), (broken, libc::SIGSEGV)] {
        match child.death()? {
            Death::Signal(got) if got == signal => {}
            death => return Err(Stop::Broken(format!("not killed by signal {signal}: {death}"))),
        }
    }
    Ok(())
}
