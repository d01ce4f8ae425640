//! Children of ccd: compilers, assemblers, programs. A signal that would end ccd goes to the child first; ccd then clears
//! up behind it and ends by the same signal.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeValLike;
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Why a child didn't do its work.
#[derive(Debug)]
pub enum Failure {
    /// It ran and failed: `failed`, `was killed by signal 9`.
    Child(String),
    /// ccd itself could not go on.
    Trouble(String),
    /// ccd was asked to end by this signal.
    Interrupted(i32),
}

impl Failure {
    /// Return the failure, with the child's name before what happened to it.
    pub fn of(self, name: &str) -> Self {
        match self {
            Self::Child(how) => Self::Child(format!("{name} {how}")),
            other => other,
        }
    }
}

/// The child that a signal goes to.
static CHILD: Mutex<Option<Pid>> = Mutex::new(None);
static INTERRUPTED: AtomicI32 = AtomicI32::new(0);

/// Catch signals: from now on a signal ends the child and is kept; without this it ends ccd at once.
pub fn catch_signals() -> Result<(), String> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(|error| format!("can't watch for signals: {error}"))?;
    thread::spawn(move || {
        for signal in signals.forever() {
            let child = CHILD.lock().expect("no thread panics");
            INTERRUPTED.store(signal, Ordering::SeqCst);
            if let (Some(child), Ok(signal)) = (*child, Signal::try_from(signal)) {
                // It may have ended by itself: `make` and terminals tell all of a group.
                let _ = kill(child, signal);
            }
        }
    });
    Ok(())
}

/// End as if the signal had not been caught.
pub fn end_by(signal: i32) {
    // Returns only for signals that don't end a process.
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}

/// Run a command to its end. What it says goes where ccd's own words go.
pub fn completed(words: &[OsString]) -> Result<(), Failure> {
    ended(&mut started(words, [Stdio::inherit(), Stdio::inherit(), Stdio::inherit()])?)
}

/// Run a command that reads `input`.
pub fn fed(words: &[OsString], input: &[u8]) -> Result<(), Failure> {
    let mut child = started(words, [Stdio::piped(), Stdio::inherit(), Stdio::inherit()])?;
    let mut pipe = child.stdin.take().expect("it was asked for");
    // A child that doesn't read all of it has failed, and says why, or doesn't need it.
    let _ = pipe.write_all(input);
    drop(pipe);
    ended(&mut child)
}

/// Return the output of a command that reads `input`.
pub fn filtered(words: &[OsString], input: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut child = started(words, [Stdio::piped(), Stdio::piped(), Stdio::inherit()])?;
    let (mut to, mut from) = (child.stdin.take().expect("it was asked for"), child.stdout.take().expect("as well"));
    let mut output = Vec::new();
    let read = thread::scope(|scope| {
        scope.spawn(move || to.write_all(input));
        from.read_to_end(&mut output)
    });
    ended(&mut child)?;
    read.map_err(|error| Failure::Trouble(format!("can't read what {} writes: {error}", shown(&words[0]))))?;
    Ok(output)
}

/// What a command says to a question.
pub struct Answer {
    pub status: u8,
    /// What it wrote to standard error.
    pub messages: Vec<u8>,
}

/// Run a command that reads `input`, and keep what it has to say.
pub fn asked(words: &[OsString], input: &[u8]) -> Result<Answer, Failure> {
    let mut child = started(words, [Stdio::piped(), Stdio::inherit(), Stdio::piped()])?;
    let (mut to, mut from) = (child.stdin.take().expect("it was asked for"), child.stderr.take().expect("as well"));
    let mut messages = Vec::new();
    let read = thread::scope(|scope| {
        scope.spawn(move || to.write_all(input));
        from.read_to_end(&mut messages)
    });
    let status = waited(&mut child)?;
    read.map_err(|error| Failure::Trouble(format!("can't read the output of {}: {error}", shown(&words[0]))))?;
    // What a signal ends has no status; shells call it 128 and the signal.
    let status = status.code().unwrap_or(128 + status.signal().unwrap_or(0));
    Ok(Answer { status: u8::try_from(status).unwrap_or(u8::MAX), messages })
}

fn started(words: &[OsString], [input, output, messages]: [Stdio; 3]) -> Result<Child, Failure> {
    let mut current = CHILD.lock().expect("no thread panics");
    interrupted()?;
    let (program, arguments) = words.split_first().expect("a command has words");
    let child = Command::new(program).args(arguments).stdin(input).stdout(output).stderr(messages).spawn();
    let child = child.map_err(|error| Failure::Trouble(format!("can't run {}: {error}", shown(program))))?;
    *current = i32::try_from(child.id()).ok().map(Pid::from_raw);
    Ok(child)
}

/// Wait for a child that has to succeed.
fn ended(child: &mut Child) -> Result<(), Failure> {
    let status = waited(child)?;
    if status.success() { Ok(()) } else { Err(Failure::Child(how(status))) }
}

/// Wait for a child. Its number is forgotten before the system may give it to another process.
fn waited(child: &mut Child) -> Result<ExitStatus, Failure> {
    let pid = *CHILD.lock().expect("no thread panics");
    if let Some(pid) = pid {
        while waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) == Err(nix::Error::EINTR) {}
    }
    *CHILD.lock().expect("no thread panics") = None;
    let status = child.wait().map_err(|error| Failure::Trouble(format!("can't wait for a child: {error}")))?;
    interrupted()?;
    Ok(status)
}

fn interrupted() -> Result<(), Failure> {
    match INTERRUPTED.load(Ordering::SeqCst) {
        0 => Ok(()),
        signal => Err(Failure::Interrupted(signal)),
    }
}

fn how(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => format!("was killed by signal {signal}"),
        None => "failed".to_owned(),
    }
}

fn shown(word: &OsStr) -> String {
    word.to_string_lossy().into_owned()
}

/// Return the CPU seconds of this process and of all children that it has waited for.
pub fn cpu_seconds() -> Option<f64> {
    let of = |who| getrusage(who).ok().map(|usage| (usage.user_time() + usage.system_time()).num_microseconds());
    let microseconds = of(UsageWho::RUSAGE_SELF)? + of(UsageWho::RUSAGE_CHILDREN)?;
    Some(microseconds as f64 / 1e6)
}
