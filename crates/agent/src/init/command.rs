//! Runs the job's command and streams what it says.

use crate::processes::{self, Death};
use crate::sink::Sink;
use kdyno_proto::{Record, Stream};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::ptr::{null, null_mut};

/// What one `output` record holds at most; its line stays below the 32 kB that one write to a virtio port takes.
const PIECE: usize = 8 << 10;

/// Runs the command until it ends, which is not when its output ends: a daemon that it leaves behind may keep that open.
pub fn run(command: &[String], sink: &Sink) {
    let (program, arguments) = command.split_first().expect("a job's command is not empty");
    watch_children();
    let mut command = Command::new(program);
    // SAFETY: one raw system call between fork and exec. Without it the command would start with SIGCHLD blocked.
    unsafe { command.pre_exec(|| mask_children(libc::SIG_UNBLOCK)) };
    let started = command
        .args(arguments)
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => return not_started(program, &error, sink),
    };
    let mut outputs = [
        Output::new(Stream::Stdout, child.stdout.take().map(OwnedFd::from)),
        Output::new(Stream::Stderr, child.stderr.take().map(OwnedFd::from)),
    ];
    let pid = child.id() as libc::pid_t;
    let death = loop {
        if let Some(death) = reap_all(pid) {
            break death;
        }
        let ready = wait(outputs.each_ref().map(Output::fd));
        for (output, ready) in outputs.iter_mut().zip(ready) {
            if ready {
                output.pass_on(sink);
            }
        }
    };
    // What it wrote before it ended is still in the pipes.
    for output in &mut outputs {
        while wait_no_longer(output.fd()) && output.pass_on(sink) {}
    }
    let _ = mask_children(libc::SIG_UNBLOCK);
    sink.emit(&Record::Exited { status: death.code() });
}

/// Says that there is no such command, as a shell would.
fn not_started(program: &str, error: &std::io::Error, sink: &Sink) {
    let _ = mask_children(libc::SIG_UNBLOCK);
    let message = format!("kdyno-agent: command {program}: {error}\n");
    sink.emit(&Record::Output { stream: Stream::Stderr, data: message.into_bytes() });
    sink.emit(&Record::Exited { status: 127 });
}

/// One of the command's outputs; closed once it has ended.
struct Output {
    stream: Stream,
    pipe: Option<OwnedFd>,
}

impl Output {
    fn new(stream: Stream, pipe: Option<OwnedFd>) -> Output {
        Output { stream, pipe }
    }

    /// -1 once closed, which poll(2) ignores.
    fn fd(&self) -> RawFd {
        self.pipe.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Records what can be read now; false when there will be no more.
    fn pass_on(&mut self, sink: &Sink) -> bool {
        let mut piece = [0; PIECE];
        // SAFETY: `piece` is writable for its length.
        let got = unsafe { libc::read(self.fd(), piece.as_mut_ptr().cast(), piece.len()) };
        if got <= 0 {
            self.pipe = None;
            return false;
        }
        sink.emit(&Record::Output { stream: self.stream, data: piece[..got as usize].to_vec() });
        true
    }
}

extern "C" fn wake_up(_: libc::c_int) {}

/// Makes the end of a child interrupt [`wait`], and nothing else: SIGCHLD is blocked outside of it.
fn watch_children() {
    // SAFETY: all bits 0 is an action with no flags and an empty mask; the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = wake_up as extern "C" fn(libc::c_int) as libc::sighandler_t;
        libc::sigaction(libc::SIGCHLD, &action, null_mut());
    }
    let _ = mask_children(libc::SIG_BLOCK);
}

/// Blocks or unblocks SIGCHLD.
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

/// Waits until one of the descriptors is ready or a child has ended.
fn wait(fds: [RawFd; 2]) -> [bool; 2] {
    let mut polled = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    // SAFETY: `polled` and the empty mask live as long as the call; null means "for ever".
    unsafe {
        let mut nothing: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut nothing);
        libc::ppoll(polled.as_mut_ptr(), 2, null(), &nothing);
    }
    polled.map(|one| one.revents != 0)
}

/// Whether the descriptor is ready now.
fn wait_no_longer(fd: RawFd) -> bool {
    let mut polled = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: `polled` lives as long as the call.
    fd >= 0 && unsafe { libc::poll(&mut polled, 1, 0) } > 0
}

/// Reaps whoever has ended, ours and orphans; the command's death if it is among them.
fn reap_all(command: libc::pid_t) -> Option<Death> {
    let mut found = None;
    while let Some((pid, death)) = processes::reap(libc::WNOHANG) {
        if pid == command {
            found = Some(death);
        }
    }
    found
}
