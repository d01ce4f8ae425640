//! A file is written, and read back: through the page cache, or past it with O_DIRECT.

use crate::area::{Advice, Area};
use crate::clock::{Timing, measure};
use crate::failure::{self, Failure};
use crate::load::{Load, Program};
use crate::outcome::{Facts, Reading, Repetition};
use crate::parameters::{Kind, Parameters, Setting};
use crate::scramble::scramble;
use kdyno_processors::Processors;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::sync;
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub const LOOPIO: Program = Program {
    name: "loopio",
    summary: "writes --bytes into a new file, reads them back, removes it; seconds, MB/s",
    settings: &[
        Setting { name: "file", kind: Kind::Text, default: None },
        Setting { name: "bytes", kind: Kind::Bytes { least: UNIT as u64, most: 1 << 42 }, default: Some("64M") },
        Setting { name: "mode", kind: Kind::Word(&["buffered", "direct"]), default: Some("buffered") },
        Setting { name: "caches", kind: Kind::Word(&["kept", "dropped"]), default: Some("kept") },
    ],
    check,
    prepare,
};

/// What places and sizes are multiples of for O_DIRECT.
const UNIT: usize = 4096;
/// Bytes of one call.
const CALL: usize = 1 << 20;
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

struct Loopio {
    path: PathBuf,
    bytes: usize,
    is_direct: bool,
    /// Whether all that the machine keeps of files is dropped before the file is read.
    drops_caches: bool,
    /// The buffer of one call. Each unit of it begins with its number in the file; all other bytes are the same in each
    /// call.
    buffer: Area<u8>,
    facts: Facts,
}

fn check(parameters: &Parameters) -> Result<(), Failure> {
    match parameters.number("bytes") % UNIT {
        0 => Ok(()),
        _ => Err(Failure::of_usage("--bytes has to be a multiple of 4096", "O_DIRECT moves whole blocks only")),
    }
}

fn prepare(parameters: &Parameters) -> Result<Box<dyn Load>, Failure> {
    let mut buffer = Area::new(CALL, Advice::Nothing)?;
    fill(&mut buffer);
    Ok(Box::new(Loopio {
        path: parameters.text_of("file").into(),
        bytes: parameters.number("bytes"),
        is_direct: parameters.text_of("mode") == "direct",
        drops_caches: parameters.text_of("caches") == "dropped",
        buffer,
        facts: Facts::new(),
    }))
}

fn fill(buffer: &mut [u8]) {
    buffer.iter_mut().zip(0..).for_each(|(byte, index)| *byte = scramble(index) as u8);
}

/// Write the numbers of a call's units.
fn number(call: &mut [u8], offset: usize) {
    for (place, unit) in call.chunks_exact_mut(UNIT).enumerate() {
        unit[..8].copy_from_slice(&(offset / UNIT + place).to_le_bytes());
    }
}

fn has_numbers(call: &[u8], offset: usize) -> bool {
    call.chunks_exact(UNIT).enumerate().all(|(place, unit)| unit[..8] == (offset / UNIT + place).to_le_bytes())
}

/// Return where the calls begin, and how much each moves.
fn calls(bytes: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..bytes).step_by(CALL).map(move |offset| (offset, CALL.min(bytes - offset)))
}

/// A file that goes with the value.
struct NewFile<'a> {
    path: &'a Path,
    file: File,
}

impl NewFile<'_> {
    fn make(path: &Path, is_direct: bool) -> Result<NewFile<'_>, Failure> {
        let flags = if is_direct { OFlag::O_DIRECT.bits() } else { 0 };
        let new_file = OpenOptions::new().read(true).write(true).create_new(true).custom_flags(flags).open(path);
        let new_file = new_file.map(|file| NewFile { path, file }).map_err(|error| refused(path, is_direct, &error))?;
        match has_flag(&new_file.file)? {
            has if has == is_direct => Ok(new_file),
            _ => Err(Failure::of_surroundings(
                format!("O_DIRECT was requested, but fcntl(F_GETFL) reports that {} lacks it", path.display()),
                "put the file on a file system that has it, such as ext4 or xfs",
            )),
        }
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.path);
    }
}

fn refused(path: &Path, is_direct: bool, error: &io::Error) -> Failure {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EEXIST) => Failure::of_usage(
            format!("{} exists already", path.display()),
            "name a file that isn't: it is written, and removed",
        ),
        Some(Errno::EINVAL) if is_direct => {
            // Some file systems make the file before they refuse the flag.
            let _ = fs::remove_file(path);
            Failure::of_surroundings(
                format!("the file system of {} has no O_DIRECT", path.display()),
                "put the file on one that has it, such as ext4 or xfs",
            )
        }
        _ => failure::io_failure(&format!("make {}", path.display()), error),
    }
}

/// Return whether an open file has O_DIRECT, as the kernel reports it.
fn has_flag(file: &File) -> Result<bool, Failure> {
    let flags =
        fcntl(file, FcntlArg::F_GETFL).map_err(|errno| failure::call_failure("ask for a file's flags", errno))?;
    Ok(OFlag::from_bits_retain(flags).contains(OFlag::O_DIRECT))
}

/// Return what this process had storage read and write, in bytes; None where the kernel lacks
/// CONFIG_TASK_IO_ACCOUNTING.
fn storage() -> Option<(u64, u64)> {
    let io = fs::read_to_string("/proc/self/io").ok()?;
    let bytes = |name: &str| io.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    Some((bytes("read_bytes:")?, bytes("write_bytes:")?))
}

impl Loopio {
    fn write(&mut self, file: &File) -> io::Result<()> {
        for (offset, length) in calls(self.bytes) {
            number(&mut self.buffer[..length], offset);
            file.write_all_at(&self.buffer[..length], offset as u64)?;
        }
        file.sync_data()
    }

    /// Return whether every unit that was read has its number.
    fn read(&mut self, file: &File) -> io::Result<bool> {
        for (offset, length) in calls(self.bytes) {
            file.read_exact_at(&mut self.buffer[..length], offset as u64)?;
            if !has_numbers(&self.buffer[..length], offset) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Read all once more and compare every byte; not timed.
    fn compare(&mut self, file: &File) -> Result<(), Failure> {
        let mut expected: Area<u8> = Area::new(CALL, Advice::Nothing)?;
        fill(&mut expected);
        for (offset, length) in calls(self.bytes) {
            let read = file.read_exact_at(&mut self.buffer[..length], offset as u64);
            read.map_err(|error| failure::io_failure("read the file again", &error))?;
            number(&mut expected[..length], offset);
            if self.buffer[..length] != expected[..length] {
                return Err(failure::wrong_result(format!(
                    "the file differs from what was written, from byte {offset} on"
                )));
            }
        }
        Ok(())
    }
}

/// Write out and drop what the machine keeps of files, of those below a loop device, too.
fn drop_caches(switch: &str) -> Result<(), Failure> {
    sync();
    fs::write(switch, "3").map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            Failure::of_surroundings(format!("this user may not write {switch}"), "only root may: --caches kept")
        }
        _ => failure::io_failure(&format!("write {switch}"), &error),
    })
}

/// What a part of the load took this process, and all processors of the machine.
struct Part {
    timing: Timing,
    /// Seconds in the kernel, and all in which a processor worked; None where the kernel doesn't say.
    machine: Option<(f64, f64)>,
}

fn part<T>(work: impl FnOnce() -> T) -> (T, Part) {
    let first = Processors::now();
    let (result, timing) = measure(work);
    let machine = first.zip(Processors::now()).map(|(first, last)| last.since(first)).map(|processor_time| {
        (processor_time.system.as_secs_f64(), processor_time.busy(timing.elapsed()).as_secs_f64())
    });
    (result, Part { timing, machine })
}

fn readings(direction: &str, bytes: usize, Part { timing, machine }: &Part) -> Vec<Reading> {
    let mut readings = vec![
        Reading::higher(&format!("{direction}_rate"), bytes as f64 / timing.seconds() / 1e6, "MB/s"),
        Reading::lower(&format!("{direction}_seconds"), timing.seconds(), "s"),
        Reading::lower(&format!("{direction}_user_seconds"), timing.user, "s"),
        Reading::lower(&format!("{direction}_system_seconds"), timing.system, "s"),
    ];
    if let Some((system, busy)) = machine {
        readings.push(Reading::lower(&format!("{direction}_machine_system_seconds"), *system, "s"));
        readings.push(Reading::lower(&format!("{direction}_machine_busy_seconds"), *busy, "s"));
    }
    readings
}

impl Load for Loopio {
    fn run(&mut self) -> Result<Repetition, Failure> {
        let path = self.path.clone();
        let new_file = NewFile::make(&path, self.is_direct)?;
        let file = &new_file.file;
        fill(&mut self.buffer);
        let first = storage();
        let (result, writing) = part(|| self.write(file));
        result.map_err(|error| failure::io_failure("write the file", &error))?;
        if self.drops_caches {
            drop_caches(DROP_CACHES)?;
        }
        let middle = storage();
        self.buffer.fill(0);
        let (read, reading) = part(|| self.read(file));
        if !read.map_err(|error| failure::io_failure("read the file", &error))? {
            return Err(failure::wrong_result("a block that was read belongs to another place of the file"));
        }
        let last = storage();
        self.compare(file)?;
        let storage_read = middle.zip(last).map(|(middle, last)| last.0 - middle.0);
        let storage_written = first.zip(middle).map(|(first, middle)| middle.1 - first.1);
        self.facts = Facts::from_iter([
            ("o_direct".into(), has_flag(file)?.into()),
            // A file system may take the flag, and use the page cache all the same.
            ("read_from_storage".into(), storage_read.map(|read| read >= self.bytes as u64).into()),
            ("storage_read_bytes".into(), storage_read.map_or(Value::Null, Value::from)),
            ("storage_written_bytes".into(), storage_written.map_or(Value::Null, Value::from)),
        ]);
        let readings = [readings("write", self.bytes, &writing), readings("read", self.bytes, &reading)].concat();
        let (writing, reading) = (writing.timing, reading.timing);
        let timing = Timing {
            start: writing.start,
            end: reading.end,
            user: writing.user + reading.user,
            system: writing.system + reading.system,
            faults: writing.faults + reading.faults,
            large_pages: writing.large_pages.zip(reading.large_pages).map(|(writing, reading)| writing + reading),
        };
        Ok(Repetition { readings, timing })
    }

    /// Return the facts; the content was compared while the file was there.
    fn verify(&mut self) -> Result<Facts, Failure> {
        Ok(self.facts.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loads::test::outcome;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("kdyno-loads-{name}.{}", std::process::id()))
    }

    #[test]
    fn a_file_is_written_read_back_and_removed() {
        let path = path("buffered");
        for bytes in ["4K", "3076K"] {
            let outcome = outcome(&format!("loopio --file {} --bytes {bytes} --repeat 2", path.display())).unwrap();
            assert_eq!((&outcome["verified"], &outcome["facts"]["o_direct"]), (&true.into(), &false.into()));
            for name in ["write_machine_system_seconds", "read_machine_busy_seconds"] {
                assert!(outcome["metrics"].as_array().unwrap().iter().any(|metric| metric["name"] == name), "{name}");
            }
            assert!(!path.exists());
        }
    }

    #[test]
    fn a_file_that_is_there_is_left_alone() {
        let path = path("kept");
        fs::write(&path, "mine").unwrap();
        let failure = outcome(&format!("loopio --file {}", path.display())).unwrap_err();
        assert_eq!((failure.exit_code, fs::read_to_string(&path).unwrap().as_str()), (64, "mine"));
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn direct_has_the_flag_or_is_refused() {
        let path = path("direct");
        match outcome(&format!("loopio --file {} --bytes 2M --mode direct", path.display())) {
            Ok(outcome) => {
                let facts = &outcome["facts"];
                let whole = facts["storage_read_bytes"].as_u64().map(|bytes| bytes >= 2 << 20);
                assert_eq!((&facts["o_direct"], facts["read_from_storage"].as_bool()), (&true.into(), whole));
            }
            Err(failure) => assert!(failure.to_string().contains("O_DIRECT"), "{failure}"),
        }
        assert!(!path.exists());
    }

    #[test]
    fn caches_that_can_not_be_dropped_are_an_error_that_names_the_file() {
        let failure = drop_caches("/nowhere/drop_caches").unwrap_err();
        assert_eq!(failure.exit_code, 3);
        assert!(failure.to_string().contains("can't write /nowhere/drop_caches"), "{failure}");
    }

    #[test]
    fn a_changed_byte_is_found() {
        let path = path("changed");
        let mut loopio = Loopio {
            path: path.clone(),
            bytes: 2 << 20,
            is_direct: false,
            drops_caches: false,
            buffer: Area::new(CALL, Advice::Nothing).unwrap(),
            facts: Facts::new(),
        };
        fill(&mut loopio.buffer);
        let new_file = NewFile::make(&path, false).unwrap();
        loopio.write(&new_file.file).unwrap();
        assert!(loopio.compare(&new_file.file).is_ok());
        new_file.file.write_all_at(&[0, 0, 0, 0], (1 << 20) + 5000).unwrap();
        assert!(loopio.compare(&new_file.file).unwrap_err().to_string().contains("from byte 1048576 on"));
        new_file.file.write_all_at(&[9], 8192).unwrap();
        assert!(!loopio.read(&new_file.file).unwrap());
    }
}
