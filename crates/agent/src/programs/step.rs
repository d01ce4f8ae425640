//! Runs one step of a program and streams what it says.

use crate::processes::{self, Death};
use crate::sink::Sink;
use kdyno_proto::{Program, Record, Stream};
use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

/// What one `output` record holds at most; its line stays below the 32 kB that one write to a virtio port takes.
const PIECE: usize = 8 << 10;

/// Exit statuses of what could not be run, or not to its end, as shells and timeout(1) have them.
const IMPOSSIBLE: u8 = 126;
const NOT_THERE: u8 = 127;
const TOOK_TOO_LONG: u8 = 124;

/// What takes the output of a step, piece by piece.
pub trait Listener {
    fn hear(&mut self, stream: Stream, written: &[u8]);
}

/// Each piece becomes a record.
impl Listener for &Sink {
    fn hear(&mut self, stream: Stream, written: &[u8]) {
        self.emit(&Record::Output { stream, data: written.to_vec() });
    }
}

/// One step that can be tried.
pub struct Step<'a> {
    pub words: &'a [String],
    pub program: &'a Program,
    pub path: Option<&'a str>,
    /// A directory that the step has for `/`.
    pub root: Option<&'a str>,
    /// When it is ended with all of its process group, which then is one of its own.
    pub until: Option<Instant>,
}

/// How it ended, and nanoseconds: from its start to its end, and those of the processor.
#[derive(Default)]
pub struct Outcome {
    pub status: u8,
    pub elapsed: u64,
    pub user: u64,
    pub system: u64,
}

impl Step<'_> {
    /// Run it until it ends, which is not when its output ends: a daemon that it leaves behind may keep that open.
    pub fn run(&self, listener: &mut dyn Listener) -> Outcome {
        watch_children();
        let (user, system) = processor_times();
        let begin = Instant::now();
        let mut child = match self.command().spawn() {
            Ok(child) => child,
            Err(error) => {
                let _ = mask_children(libc::SIG_UNBLOCK);
                say(&format!("command {}: {error}", self.words[0]), listener);
                return Outcome { status: NOT_THERE, ..Outcome::default() };
            }
        };
        let mut outputs = [
            Output::new(Stream::Stdout, child.stdout.take().map(OwnedFd::from)),
            Output::new(Stream::Stderr, child.stderr.take().map(OwnedFd::from)),
        ];
        let limit = self.program.seconds.map(|seconds| begin + Duration::from_secs(seconds.into()));
        let limit = limit.into_iter().chain(self.until).min();
        let child = child.id() as libc::pid_t;
        let ended = if self.until.is_some() { -child } else { child };
        let status = follow(child, ended, &mut outputs, limit, listener);
        let elapsed = begin.elapsed().as_nanos() as u64;
        let (user_after, system_after) = processor_times();
        // What it wrote before it ended is still in the pipes.
        for output in &mut outputs {
            while wait_no_longer(output.fd()) && output.pass_on(listener) {}
        }
        let _ = mask_children(libc::SIG_UNBLOCK);
        Outcome { status, elapsed, user: user_after - user, system: system_after - system }
    }

    fn command(&self) -> Command {
        let (program, arguments) = self.words.split_first().expect("a step is not empty");
        let mut command = Command::new(program);
        command.args(arguments).envs(&self.program.environment);
        if let Some(path) = self.path {
            command.env("PATH", path);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if self.until.is_some() {
            command.process_group(0);
        }
        let root = self.root.map(|root| CString::new(root).expect("our own constant"));
        // SAFETY: raw system calls between fork and exec. Without the first the step would start with SIGCHLD blocked.
        unsafe {
            command.pre_exec(move || {
                mask_children(libc::SIG_UNBLOCK)?;
                match &root {
                    Some(root) if libc::chroot(root.as_ptr()) != 0 || libc::chdir(c"/".as_ptr()) != 0 => {
                        Err(std::io::Error::last_os_error())
                    }
                    _ => Ok(()),
                }
            })
        };
        command
    }
}

/// Report why a step can't even be tried.
pub fn impossible(why: &str, listener: &mut dyn Listener) -> Outcome {
    say(why, listener);
    Outcome { status: IMPOSSIBLE, ..Outcome::default() }
}

fn say(message: &str, listener: &mut dyn Listener) {
    listener.hear(Stream::Stderr, format!("kdyno-agent: {message}\n").as_bytes());
}

/// Pass on what the step prints until it has ended; return its status. What is `ended` at the limit is the step alone,
/// or its group.
fn follow(
    step: libc::pid_t,
    ended: libc::pid_t,
    outputs: &mut [Output; 2],
    limit: Option<Instant>,
    listener: &mut dyn Listener,
) -> u8 {
    loop {
        if let Some(death) = reap_all(step) {
            return death.code();
        }
        let left = limit.map(|limit| limit.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            say("it took too long", listener);
            // SAFETY: no pointers. What it has started itself is ended with the program.
            unsafe { libc::kill(ended, libc::SIGKILL) };
            processes::wait_for(step);
            return TOOK_TOO_LONG;
        }
        let ready = wait([outputs[0].fd(), outputs[1].fd()], left);
        for (output, ready) in outputs.iter_mut().zip(ready) {
            if ready {
                output.pass_on(listener);
            }
        }
    }
}

/// Return the nanoseconds in user and kernel code of all processes that were reaped.
fn processor_times() -> (u64, u64) {
    // SAFETY: all bits 0 is a rusage, which the call fills.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let nanoseconds = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    (nanoseconds(usage.ru_utime), nanoseconds(usage.ru_stime))
}

/// One of the step's outputs; closed once it has ended.
struct Output {
    stream: Stream,
    pipe: Option<OwnedFd>,
}

impl Output {
    fn new(stream: Stream, pipe: Option<OwnedFd>) -> Output {
        Output { stream, pipe }
    }

    /// Return the descriptor, or -1 once closed, which poll(2) ignores.
    fn fd(&self) -> RawFd {
        self.pipe.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Pass on what can be read now; false when there will be no more.
    fn pass_on(&mut self, listener: &mut dyn Listener) -> bool {
        let mut piece = [0; PIECE];
        // SAFETY: `piece` is writable for its length.
        let got = unsafe { libc::read(self.fd(), piece.as_mut_ptr().cast(), piece.len()) };
        if got <= 0 {
            self.pipe = None;
            return false;
        }
        listener.hear(self.stream, &piece[..got as usize]);
        true
    }
}

extern "C" fn wake_up(_: libc::c_int) {}

/// Make the end of a child interrupt [`wait`], and nothing else: SIGCHLD is blocked outside of it.
fn watch_children() {
    // SAFETY: all bits 0 is an action with no flags and an empty mask; the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = wake_up as extern "C" fn(libc::c_int) as libc::sighandler_t;
        libc::sigaction(libc::SIGCHLD, &action, null_mut());
    }
    let _ = mask_children(libc::SIG_BLOCK);
}

/// Block or unblock SIGCHLD.
fn mask_children(how: libc::c_int) -> std::io::Result<()> {
    // SAFETY: the set is made by the calls for it.
    unsafe {
        let mut children: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut children);
        libc::sigaddset(&mut children, libc::SIGCHLD);
        libc::sigprocmask(how, &children, null_mut());
    }
    Ok(())
}

/// Wait until one of the descriptors is ready, a child has ended, or the time is over; None: for ever.
fn wait(fds: [RawFd; 2], limit: Option<Duration>) -> [bool; 2] {
    let mut polled = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    let limit = limit.map(|left| libc::timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() });
    // SAFETY: `polled`, the time and the empty mask live as long as the call; null means "for ever".
    unsafe {
        let mut nothing: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut nothing);
        let limit = limit.as_ref().map_or(null(), std::ptr::from_ref);
        libc::ppoll(polled.as_mut_ptr(), 2, limit, &nothing);
    }
    polled.map(|one| one.revents != 0)
}

/// Return whether the descriptor is ready now.
fn wait_no_longer(fd: RawFd) -> bool {
    let mut polled = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: `polled` lives as long as the call.
    fd >= 0 && unsafe { libc::poll(&mut polled, 1, 0) } > 0
}

/// Reap whoever has ended, ours and orphans; the step's death if it is among them.
fn reap_all(step: libc::pid_t) -> Option<Death> {
    let mut of_step = None;
    while let Some((pid, death)) = processes::reap(libc::WNOHANG) {
        if pid == step {
            of_step = Some(death);
        }
    }
    of_step
}
