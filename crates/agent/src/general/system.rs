//! general_system: small system calls of every kind, and what /proc and devices tell.

use super::load::{self, Named, fails_with, optional};
use super::mix::Mix;
use crate::measure::Recorder;
use crate::params::Params;
use crate::sys::{Failure, Stop, check, fd, file};
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};
use std::ffi::CStr;
use std::fs::File;
use std::io::Read;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::ptr::null_mut;

pub static TEST: Test = Test {
    name: "general_system",
    suite: Some(Suite::General),
    description: "train: small system calls, /proc, devices",
    params: &[],
    metrics: &[
        Metric {
            suffix: "calls",
            kind: Kind::Latency,
            description: "small system calls of every kind, in changing order",
            model_operations: 1,
            run: calls,
        },
        Metric {
            suffix: "proc",
            kind: Kind::Latency,
            description: "what monitors read in /proc and /sys, and what devices give and take",
            model_operations: 1,
            run: |recorder: &Recorder, _: &Params| load::measure(recorder, |_| proc_and_devices()),
        },
    ],
};

/// Calls of a round.
const CALLS: usize = 600;

/// What the calls are made on.
struct Things {
    file: OwnedFd,
    null: OwnedFd,
    zero: OwnedFd,
    pipe: (OwnedFd, OwnedFd),
    path: std::ffi::CString,
    link: std::ffi::CString,
}

/// A small system call, or a few that belong together.
type Call = fn(&Things, &mut Mix) -> Result<(), Failure>;

fn calls(recorder: &Recorder, _: &Params) -> Result<(), Stop> {
    let path = file::c_path(&recorder.scratch.join("file"));
    let link = file::c_path(&recorder.scratch.join("link"));
    // SAFETY: C strings.
    check("symlink(scratch file)", unsafe { libc::symlink(path.as_ptr(), link.as_ptr()) })?;
    let things = Things {
        file: file::cached(&path, 20_000)?,
        null: file::open("open(/dev/null)", c"/dev/null", libc::O_RDWR)?,
        zero: file::open("open(/dev/zero)", c"/dev/zero", libc::O_RDONLY)?,
        pipe: fd::pipe()?,
        path,
        link,
    };
    load::measure(recorder, |mix| {
        for _ in 0..CALLS {
            optional(CALLS_OF_A_PROGRAM[mix.below(CALLS_OF_A_PROGRAM.len())](&things, mix))?;
        }
        Ok(())
    })
}

static CALLS_OF_A_PROGRAM: [Call; 20] = [
    identity,
    clocks,
    usage,
    names,
    limits,
    masks,
    status,
    status,
    paths,
    reads,
    reads,
    writes,
    writes,
    opens,
    opens,
    descriptors,
    ready,
    ready,
    waits,
    process,
];

fn identity(_: &Things, _: &mut Mix) -> Result<(), Failure> {
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

fn clocks(_: &Things, mix: &mut Mix) -> Result<(), Failure> {
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

fn usage(_: &Things, _: &mut Mix) -> Result<(), Failure> {
    // SAFETY: structures of the right types.
    unsafe {
        check("getrusage()", libc::getrusage(libc::RUSAGE_SELF, &mut zeroed()))?;
        check("getrusage()", libc::getrusage(libc::RUSAGE_CHILDREN, &mut zeroed()))?;
        check("sysinfo()", libc::sysinfo(&mut zeroed()))?;
    }
    Ok(())
}

fn names(things: &Things, _: &mut Mix) -> Result<(), Failure> {
    let mut buffer = [0_u8; 4096];
    let (place, size) = (buffer.as_mut_ptr().cast(), buffer.len());
    // SAFETY: `buffer` is writable for its length; C strings.
    unsafe {
        check("uname()", libc::uname(&mut zeroed()))?;
        check("gethostname()", libc::gethostname(place, size))?;
        check("getcwd()", libc::syscall(libc::SYS_getcwd, place, size))?;
        check("readlink()", libc::readlink(things.link.as_ptr(), place, size))?;
        check("prctl(PR_GET_NAME)", libc::prctl(libc::PR_GET_NAME, place))?;
    }
    Ok(())
}

fn limits(_: &Things, mix: &mut Mix) -> Result<(), Failure> {
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

fn masks(_: &Things, mix: &mut Mix) -> Result<(), Failure> {
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

fn status(things: &Things, mix: &mut Mix) -> Result<(), Failure> {
    const PATHS: [&CStr; 5] = [c"/", c"/dev/null", c"/tmp/.", c"/proc/self/exe", c"/bin/../tmp"];
    // SAFETY: C strings and structures of the right types; a path that is missing costs nothing.
    unsafe {
        let mut found: libc::stat = zeroed();
        libc::stat(PATHS[mix.below(PATHS.len())].as_ptr(), &mut found);
        check("stat(scratch file)", libc::stat(things.path.as_ptr(), &mut found))?;
        check("lstat(link)", libc::lstat(things.link.as_ptr(), &mut found))?;
        check("fstat(scratch file)", libc::fstat(things.file.as_raw_fd(), &mut found))?;
        check("fstat(pipe)", libc::fstat(things.pipe.0.as_raw_fd(), &mut found))?;
        check("statfs(scratch file)", libc::statfs(things.path.as_ptr(), &mut zeroed()))?;
        let at = libc::AT_FDCWD;
        let mut more = zeroed();
        check("statx()", libc::statx(at, things.link.as_ptr(), 0, libc::STATX_BASIC_STATS, &mut more))?;
    }
    Ok(())
}

fn paths(things: &Things, mix: &mut Mix) -> Result<(), Failure> {
    const MISSING: [&CStr; 4] = [c"/lib/none.so", c"/usr/share/none", c"none", c"/dev/null/none"];
    let missing = MISSING[mix.below(MISSING.len())].as_ptr();
    // SAFETY: C strings.
    unsafe {
        libc::access(missing, libc::F_OK);
        libc::open(missing, libc::O_RDONLY | libc::O_CLOEXEC);
        libc::unlink(missing);
        check("access(scratch file)", libc::access(things.path.as_ptr(), libc::R_OK))?;
        check("chdir(.)", libc::chdir(c".".as_ptr()))?;
        check("chmod(scratch file)", libc::fchmod(things.file.as_raw_fd(), 0o600))?;
    }
    Ok(())
}

fn reads(things: &Things, mix: &mut Mix) -> Result<(), Failure> {
    let mut buffer = [0_u8; 4096];
    let size = mix.size(buffer.len());
    let (place, file) = (buffer.as_mut_ptr(), things.file.as_raw_fd());
    // SAFETY: `buffer` is writable for its length, which `size` is not above.
    unsafe {
        check("read(/dev/zero)", libc::read(things.zero.as_raw_fd(), place.cast(), size))?;
        check("lseek()", libc::lseek(file, mix.below(10_000) as libc::off_t, libc::SEEK_SET))?;
        check("read(scratch file)", libc::read(file, place.cast(), size))?;
        check("pread(scratch file)", libc::pread(file, place.cast(), size, mix.below(16_000) as libc::off_t))?;
        let end = check("read(/dev/null)", libc::read(things.null.as_raw_fd(), place.cast(), size))?;
        debug_assert_eq!(end, 0);
    }
    Ok(())
}

fn writes(things: &Things, mix: &mut Mix) -> Result<(), Failure> {
    let mut buffer = [1_u8; 2048];
    let size = mix.size(buffer.len());
    fd::write_all("write(/dev/null)", things.null.as_raw_fd(), &buffer[..size])?;
    fd::write_all("write(pipe)", things.pipe.1.as_raw_fd(), &buffer[..size])?;
    fd::read_exact("read(pipe)", things.pipe.0.as_raw_fd(), &mut buffer[..size])?;
    let place = mix.below(16_000) as libc::off_t;
    // SAFETY: `buffer` is readable for `size`.
    let put = unsafe { libc::pwrite(things.file.as_raw_fd(), buffer.as_ptr().cast(), size, place) };
    check("pwrite(scratch file)", put)?;
    Ok(())
}

fn opens(things: &Things, mix: &mut Mix) -> Result<(), Failure> {
    let flags = [libc::O_RDONLY, libc::O_RDWR, libc::O_WRONLY | libc::O_APPEND][mix.below(3)];
    drop(file::open("open(scratch file)", &things.path, flags)?);
    drop(file::open("open(link)", &things.link, libc::O_RDONLY)?);
    drop(file::open("open(/dev/null)", c"/dev/null", libc::O_RDWR)?);
    drop(file::open("open(/tmp)", c"/tmp", libc::O_RDONLY | libc::O_DIRECTORY)?);
    Ok(())
}

fn descriptors(things: &Things, _: &mut Mix) -> Result<(), Failure> {
    let file = things.file.as_raw_fd();
    // SAFETY: no pointers; the copies are closed.
    unsafe {
        let copy = fd::owned("dup()", libc::dup(file))?;
        check("dup2()", libc::dup2(file, copy.as_raw_fd()))?;
        let high = fd::owned("fcntl(F_DUPFD)", libc::fcntl(file, libc::F_DUPFD_CLOEXEC, 40))?;
        check("fcntl(F_GETFL)", libc::fcntl(high.as_raw_fd(), libc::F_GETFL))?;
        check("fcntl(F_SETFL)", libc::fcntl(high.as_raw_fd(), libc::F_SETFL, libc::O_APPEND))?;
        check("fcntl(F_SETFL)", libc::fcntl(high.as_raw_fd(), libc::F_SETFL, 0))?;
        check("fcntl(F_GETFD)", libc::fcntl(high.as_raw_fd(), libc::F_GETFD))?;
        check("fcntl(F_SETFD)", libc::fcntl(high.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC))?;
        let tty = libc::isatty(things.null.as_raw_fd());
        fails_with("ioctl(TCGETS)", libc::ENOTTY, i64::from(tty) - 1)?;
    }
    drop(fd::pipe()?);
    Ok(())
}

/// Who is ready, of several kinds of descriptors at once, without waiting.
fn ready(things: &Things, mix: &mut Mix) -> Result<(), Failure> {
    let Things { file, null, zero, pipe, .. } = things;
    let all = [file, null, zero, &pipe.0, &pipe.1].map(AsRawFd::as_raw_fd);
    let mut asked: Vec<_> = (0..=mix.below(16))
        .map(|i| libc::pollfd { fd: all[i % all.len()], events: libc::POLLIN | libc::POLLOUT, revents: 0 })
        .collect();
    let mut at_once = libc::timeval { tv_sec: 0, tv_usec: 0 };
    // SAFETY: as many as said; all bits 0 is an empty set, and a program's first descriptors are below its size.
    unsafe {
        check("poll()", libc::poll(asked.as_mut_ptr(), asked.len() as libc::nfds_t, 0))?;
        let (mut to_read, mut to_write): (libc::fd_set, libc::fd_set) = (zeroed(), zeroed());
        let mut end = 0;
        for &one in all.iter().filter(|&&one| (one as usize) < libc::FD_SETSIZE) {
            libc::FD_SET(one, &mut to_read);
            libc::FD_SET(one, &mut to_write);
            end = end.max(one + 1);
        }
        check("select()", libc::select(end, &mut to_read, &mut to_write, null_mut(), &mut at_once))?;
    }
    Ok(())
}

fn waits(_: &Things, _: &mut Mix) -> Result<(), Failure> {
    // SAFETY: a word that nobody else knows, and another value than the one it has; no pointers in wait4.
    unsafe {
        let word = 1_u32;
        let none: *mut libc::timespec = null_mut();
        let waited =
            libc::syscall(libc::SYS_futex, &raw const word, libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, 0, none);
        fails_with("futex(FUTEX_WAIT)", libc::EAGAIN, waited)?;
        check(
            "futex(FUTEX_WAKE)",
            libc::syscall(libc::SYS_futex, &raw const word, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1),
        )?;
        fails_with("wait4()", libc::ECHILD, libc::waitpid(-1, null_mut(), libc::WNOHANG).into())?;
        let moment = libc::timespec { tv_sec: 0, tv_nsec: 1 };
        check("nanosleep()", libc::nanosleep(&moment, null_mut()))
    }?;
    Ok(())
}

fn process(_: &Things, _: &mut Mix) -> Result<(), Failure> {
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

/// A file that isn't there is no failure: which there are is the configuration's business.
fn proc_and_devices() -> Result<(), Stop> {
    const TEXTS: [&str; 16] = [
        "/proc/self/stat",
        "/proc/self/status",
        "/proc/self/maps",
        "/proc/self/statm",
        "/proc/self/cmdline",
        "/proc/self/mountinfo",
        "/proc/self/limits",
        "/proc/1/stat",
        "/proc/stat",
        "/proc/meminfo",
        "/proc/loadavg",
        "/proc/uptime",
        "/proc/mounts",
        "/proc/net/dev",
        "/proc/net/tcp",
        "/proc/sys/kernel/osrelease",
    ];
    let mut text = Vec::new();
    for path in TEXTS {
        if let Ok(mut file) = File::open(path) {
            text.clear();
            file.read_to_end(&mut text).named("read(/proc)")?;
        }
    }
    for place in ["/proc", "/proc/self/fd", "/sys/class", "/dev"] {
        list(Path::new(place))?;
    }
    if let Ok(mut random) = File::open("/dev/urandom") {
        random.read_exact(&mut [0; 200]).named("read(/dev/urandom)")?;
    }
    Ok(())
}

fn list(place: &Path) -> Result<(), Failure> {
    let Ok(entries) = std::fs::read_dir(place) else { return Ok(()) };
    for entry in entries {
        // A process may be gone by now.
        _ = entry.named("readdir(/proc)")?.metadata();
    }
    Ok(())
}
