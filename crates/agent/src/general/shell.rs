//! general_shell: a user at work in a shell, from a script.

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
        description: "run one of two scripts: texts and archives; names, processes and the system",
        model_operations: 1,
        run,
    }],
};

const BUSYBOX: &str = "/bin/busybox";

/// Sessions, in turns. Each works in its current directory, finds all commands on the PATH, and ends with 0.
const SESSIONS: [(&str, &str); 2] =
    [("texts.sh", include_str!("texts.sh")), ("administration.sh", include_str!("administration.sh"))];

fn run(recorder: &Recorder, _: &Params) -> Result<(), Stop> {
    let commands = recorder.scratch.join("bin");
    fs::create_dir(&commands).named("mkdir(scratch directory)")?;
    succeeds(Command::new(BUSYBOX).arg("--install").arg("-s").arg(&commands))?;
    for (name, text) in SESSIONS {
        let session = recorder.scratch.join(name);
        fs::write(&session, text).named("write(scratch file)")?;
        fs::set_permissions(&session, fs::Permissions::from_mode(0o755)).named("chmod(scratch file)")?;
    }
    let mut turns = SESSIONS.iter().cycle();
    load::measure(recorder, |_| {
        let place = recorder.scratch.join("home");
        fs::create_dir(&place).named("mkdir(scratch directory)")?;
        let (name, _) = turns.next().expect("a cycle has no end");
        once(&recorder.scratch.join(name), &place, &commands)?;
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

/// Run a command that must succeed.
fn succeeds(command: &mut Command) -> Result<(), Stop> {
    let status = command.stdin(Stdio::null()).stderr(Stdio::null()).status();
    match status.named("execve(/bin/busybox)")? {
        status if status.success() => Ok(()),
        status => Err(Stop::Broken(format!("the shell session: {status}"))),
    }
}
