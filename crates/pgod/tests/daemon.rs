//! The program as systemd runs it: on a directory that looks like debugfs, stopped, killed, and started again.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const OBJECTS: usize = 40;
/// Stands in a file that was being written when the program was killed.
const LEFT: &[u8] = b"left by the one that was killed";

struct Place {
    root: PathBuf,
}

impl Place {
    fn new(name: &str) -> Place {
        let root = std::env::temp_dir().join(format!("kdyno-pgod-{name}.{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("gcov/build/mm")).unwrap();
        for number in 0..OBJECTS {
            let content = format!("adcg{number}").repeat(2000 + number);
            fs::write(root.join(format!("gcov/build/mm/object{number}.gcda")), content).unwrap();
        }
        fs::write(root.join("gcov/reset"), "").unwrap();
        Place { root }
    }

    fn command(&self, verb: &str, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kdyno-pgod"));
        command.arg(verb).arg("--directory").arg(self.root.join("state")).args(more);
        if verb == "run" {
            command.arg("--gcov").arg(self.root.join("gcov"));
        }
        command
    }

    /// Start it, and wait until it reports that it runs.
    fn start(&self, more: &[&str]) -> Running {
        let mut child = self.command("run", more).stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut first = String::new();
        errors.read_line(&mut first).unwrap();
        assert!(first.contains(" into "), "{first}");
        Running { child, errors, first }
    }

    fn output(&self, verb: &str, more: &[&str]) -> Output {
        self.command(verb, more).output().unwrap()
    }

    fn status(&self) -> serde_json::Value {
        serde_json::from_slice(&self.output("status", &["--json"]).stdout).unwrap()
    }

    /// Return all files of the store, below it, sorted.
    fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        for entry in fs::read_dir(self.root.join("state")).unwrap().flatten() {
            if entry.path().is_dir() {
                let below = fs::read_dir(entry.path()).unwrap().flatten();
                files.extend(below.map(|file| file.path().display().to_string()));
            } else {
                files.push(entry.path().display().to_string());
            }
        }
        files.sort();
        files
    }

    fn snapshots(&self) -> Vec<String> {
        self.files().into_iter().filter(|path| path.ends_with(".tar.gz")).collect()
    }

    fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < Duration::from_secs(20), "no {what} in 20 s: {:?}", self.files());
            sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

struct Running {
    child: Child,
    errors: BufReader<std::process::ChildStderr>,
    first: String,
}

impl Running {
    fn signal(&self, signal: nix::sys::signal::Signal) {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Return its exit code, and what it printed after its first line.
    fn end(mut self, signal: nix::sys::signal::Signal) -> (Option<i32>, String) {
        self.signal(signal);
        let mut rest = String::new();
        self.errors.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }
}

use nix::sys::signal::Signal::{SIGKILL, SIGTERM, SIGUSR1, SIGUSR2};

/// Check what `tar` prints about a snapshot: it has to be whole, and have every object, as it was.
fn require_whole(snapshot: &str, place: &Place, scratch: &str) {
    let to = place.root.join(scratch);
    fs::create_dir(&to).unwrap();
    let done = Command::new("tar").args(["-xzf", snapshot, "-C"]).arg(&to).output().unwrap();
    assert!(done.status.success() && done.stderr.is_empty(), "{snapshot}: {}", String::from_utf8_lossy(&done.stderr));
    for number in 0..OBJECTS {
        let name = format!("build/mm/object{number}.gcda");
        assert_eq!(fs::read(to.join(&name)).unwrap(), fs::read(place.root.join("gcov").join(&name)).unwrap());
    }
    fs::remove_dir_all(&to).unwrap();
}

#[test]
fn snapshots_are_taken_at_once_on_a_timer_on_sigusr1_and_at_the_end() {
    let place = Place::new("times");
    let running = place.start(&["--every", "1s", "--keep", "100"]);
    place.until("second snapshot of the timer", || place.snapshots().len() == 2);
    running.signal(SIGUSR1);
    place.until("snapshot for the signal", || place.snapshots().len() == 3);
    assert_eq!(place.status()["running"], true);
    assert_eq!(running.end(SIGTERM), (Some(0), String::new()));
    let snapshots = place.snapshots();
    assert!(snapshots.len() == 4 || snapshots.len() == 5, "{snapshots:?}");
    require_whole(&snapshots[3], &place, "unpacked");
    let status = place.status();
    assert_eq!((&status["running"], &status["runs"][0]["objects"]), (&false.into(), &OBJECTS.into()));
    assert!(String::from_utf8(place.output("status", &[]).stdout).unwrap().contains("no kdyno-pgod runs"));
}

#[test]
fn killed_at_any_moment_it_leaves_whole_snapshots_and_one_file_more_that_the_next_start_removes() {
    let place = Place::new("killed");
    let mut kept = 0;
    for round in 0..30u64 {
        let running = place.start(&["--every", "1h", "--keep", "100000"]);
        // It writes its first snapshot by now, to a file of that name.
        let is_left = |path: &String| path.ends_with(".writing") && fs::read(path).is_ok_and(|content| content == LEFT);
        assert!(!place.files().iter().any(is_left));
        assert!(running.first.contains(if kept == 0 { "begins" } else { "goes on" }), "{}", running.first);
        let until = Instant::now() + Duration::from_micros(1000 + 2971 * round);
        while Instant::now() < until {
            running.signal(SIGUSR1);
            sleep(Duration::from_micros(200));
        }
        running.end(SIGKILL);
        let more: Vec<_> = place.files().into_iter().filter(|path| !path.ends_with(".tar.gz")).collect();
        assert!(more.len() <= 2 && more.iter().all(|path| path.ends_with("/lock") || path.ends_with("/.writing")));
        if let Some(unfinished) = more.iter().find(|path| path.ends_with("/.writing")) {
            fs::write(unfinished, LEFT).unwrap();
        }
        let now = place.snapshots();
        assert!(now.len() >= kept, "none goes");
        kept = now.len();
    }
    assert!(kept >= 20, "{kept}: it was killed before it did anything");
    for (number, snapshot) in place.snapshots().iter().enumerate() {
        assert!(snapshot.ends_with(&format!("/0001-{:06}.tar.gz", number + 1)), "{snapshot}");
        require_whole(snapshot, &place, "unpacked");
    }
}

#[test]
fn a_run_ends_with_a_snapshot_and_a_reset_and_keeps_its_last() {
    let place = Place::new("runs");
    let running = place.start(&["--every", "1h", "--keep", "1"]);
    place.until("first snapshot", || place.snapshots().len() == 1);
    running.signal(SIGUSR2);
    let written = || fs::read_to_string(place.root.join("gcov/reset")).unwrap() == "1";
    place.until("reset", written);
    let (code, errors) = running.end(SIGTERM);
    assert_eq!(code, Some(0));
    assert!(errors.contains("run 2 begins"), "{errors}");
    let runs = place.status()["runs"].clone();
    let of = |number: usize| (runs[number]["run"].clone(), runs[number]["sequence"].clone());
    assert_eq!([of(0), of(1)], [(1.into(), 2.into()), (2.into(), 3.into())]);
}

#[test]
fn a_reset_that_was_announced_is_done_by_the_next_start_and_one_that_fails_begins_no_run() {
    let place = Place::new("announced");
    place.start(&["--every", "1h"]).end(SIGTERM);
    let folder = Path::new(&place.snapshots()[0]).parent().unwrap().to_path_buf();
    fs::write(folder.join("run"), "2 reset\n").unwrap();
    let running = place.start(&["--every", "1h"]);
    assert_eq!(fs::read_to_string(folder.join("run")).unwrap(), "2\n");
    assert_eq!(fs::read_to_string(place.root.join("gcov/reset")).unwrap(), "1");
    fs::remove_file(place.root.join("gcov/reset")).unwrap();
    running.signal(SIGUSR2);
    let (_, errors) = running.end(SIGTERM);
    assert!(errors.contains("can't reset the counters"), "{errors}");
    assert_eq!(fs::read_to_string(folder.join("run")).unwrap(), "2\n");
}

#[test]
fn what_cannot_be_done_is_one_line_with_a_way_out_and_an_exit_code() {
    let place = Place::new("wrong");
    let running = place.start(&["--every", "1h"]);
    let nowhere = place.root.join("nowhere");
    let cases = [
        (place.output("run", &["--every", "1s"]), 1, "another kdyno-pgod writes to"),
        (place.output("status", &["--directory", nowhere.to_str().unwrap()]), 1, "there is no directory"),
        (place.output("send", &["--boot", "ffff-no-such"]), 1, "there is no snapshot of that boot"),
    ];
    for (output, code, expected) in cases {
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), errors.lines().count()), (Some(code), 1), "{errors}");
        assert!(errors.contains(expected) && errors.contains("; "), "{errors}");
    }
    running.end(SIGTERM);
    fs::set_permissions(place.root.join("state"), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let refused = place.output("run", &["--every", "1s"]);
    assert!(String::from_utf8(refused.stderr).unwrap().contains("others may write to it"));
    fs::remove_dir_all(place.root.join("gcov/build")).unwrap();
    let empty = place.output("run", &[]);
    assert_eq!(empty.status.code(), Some(3));
    assert!(String::from_utf8(empty.stderr).unwrap().contains("CONFIG_GCOV_PROFILE_ALL"));
}

#[test]
fn what_is_sent_is_an_archive_of_the_listing_and_the_last_snapshot_of_each_run() {
    let place = Place::new("sent");
    place.start(&["--every", "1h"]).end(SIGTERM);
    let sent = place.root.join("sent.tar");
    fs::write(&sent, place.output("send", &[]).stdout).unwrap();
    let listed = Command::new("tar").arg("-tf").arg(&sent).output().unwrap();
    assert!(listed.status.success() && listed.stderr.is_empty());
    let names = String::from_utf8(listed.stdout).unwrap();
    let last = place.snapshots().pop().unwrap();
    assert_eq!(names.lines().next(), Some("listing.json"));
    assert!(last.ends_with(names.lines().nth(1).unwrap()), "{names} {last}");
    assert_eq!(names.lines().count(), 2);
}

#[test]
fn pipes_and_links_in_the_place_of_its_files_keep_nobody_waiting() {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    for name in ["lock", "run", "0001-999999.tar.gz"] {
        for kind in ["pipe", "link"] {
            let place = Place::new(&format!("{kind}-{name}"));
            assert_eq!(place.start(&[]).end(SIGTERM), (Some(0), String::new()));
            let state = place.root.join("state");
            let path = if name == "lock" { state.join(name) } else { state.join(boot.trim()).join(name) };
            let _ = fs::remove_file(&path);
            match kind {
                "pipe" => nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap(),
                _ => std::os::unix::fs::symlink("/dev/zero", &path).unwrap(),
            }
            for (verb, more) in [("status", &["--json"][..]), ("send", &[])] {
                within_seconds(place.command(verb, more));
            }
            if !name.ends_with(".tar.gz") {
                let said = within_seconds(place.command("run", &[]));
                assert!(said.contains(name), "{said}");
            } else {
                let file = format!("{}/{name}", boot.trim());
                assert_eq!(place.status()["unreadable"], serde_json::json!([file]));
            }
        }
    }
}

/// Return what a command prints, which must end by itself.
fn within_seconds(mut command: Command) -> String {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            panic!("{command:?} waits");
        }
        sleep(Duration::from_millis(5));
    }
    let mut said = String::new();
    child.stderr.unwrap().read_to_string(&mut said).unwrap();
    said
}
