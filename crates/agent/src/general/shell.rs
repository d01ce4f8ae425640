//! general_shell: somebody at work in a shell, from a script.

use super::load::{self, Named};
use crate::measure::Recorder;
use crate::params::Params;
use crate::sys::Stop;
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

pub static TEST: Test = Test {
    name: "general_shell",
    suite: Some(Suite::General),
    description: "train: a shell session of busybox commands",
    params: &[],
    metrics: &[Metric {
        suffix: "",
        kind: Kind::Latency,
        description: "run the script once",
        model_operations: 1,
        run,
    }],
};

const BUSYBOX: &str = "/bin/busybox";

/// The session. It works in its current directory, finds all commands on the PATH, and ends with 0.
const SESSION: &str = include_str!("session.sh");

fn run(recorder: &Recorder, _: &Params) -> Result<(), Stop> {
    let commands = recorder.scratch.join("bin");
    fs::create_dir(&commands).named("mkdir(scratch directory)")?;
    succeeds(Command::new(BUSYBOX).arg("--install").arg("-s").arg(&commands))?;
    let session = recorder.scratch.join("session");
    fs::write(&session, SESSION).named("write(scratch file)")?;
    fs::set_permissions(&session, fs::Permissions::from_mode(0o755)).named("chmod(scratch file)")?;
    load::measure(recorder, |_| {
        let place = recorder.scratch.join("home");
        fs::create_dir(&place).named("mkdir(scratch directory)")?;
        once(&session, &place, &commands)?;
        fs::remove_dir_all(&place).named("rmdir(scratch directory)")?;
        Ok(())
    })
}

fn once(session: &Path, place: &Path, commands: &Path) -> Result<(), Stop> {
    let log = File::create(place.join("log")).named("open(scratch file)")?;
    let mut command = Command::new(session);
    command.current_dir(place).env_clear().env("PATH", commands).env("HOME", place).env("LANG", "C");
    succeeds(command.stdout(log))
}

/// Runs a command that must succeed.
fn succeeds(command: &mut Command) -> Result<(), Stop> {
    let status = command.stdin(Stdio::null()).stderr(Stdio::null()).status();
    match status.named("execve(/bin/busybox)")? {
        status if status.success() => Ok(()),
        status => Err(Stop::Broken(format!("the shell session: {status}"))),
    }
}
