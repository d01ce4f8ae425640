//! A snapshot: all counters, compressed, with a description before them.
//!
//! A file of two gzip members. The first is a tar header and the description, `snapshot.json`; the second, the `.gcda`
//! files and the end of the archive. Together they are a `.tar.gz` as any other, and the description is read without
//! the rest. Reading is done when the first byte is written: what writing makes the kernel count is in none of the files.

use crate::failure::Failure;
use crate::gcov::Gcov;
use crate::kernel::Kernel;
use crate::regular;
use crate::tar;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use std::io::{Read, Result as IoResult};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

pub const FORMAT: u32 = 1;
const NAME: &[u8] = b"snapshot.json";
const BLOCK: usize = 512;
/// The maximal length of a description in bytes.
const LONGEST: u64 = 64 << 10;
/// The maximal size of all counters; a tar entry could have 8 GiB.
const MOST_BYTES: u64 = 4 << 30;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    pub v: u32,
    pub boot: String,
    /// Runs of a boot are apart by resets; from 1 on.
    pub run: u32,
    /// The number in the boot, from 1 on.
    pub sequence: u64,
    /// Seconds since 1970 when reading began.
    #[serde(rename = "taken")]
    pub time: u64,
    /// Reading all counters took this long.
    pub milliseconds: u64,
    pub kernel: Kernel,
    pub objects: u64,
    /// The bytes of all `.gcda` files, as they are read from the kernel.
    pub bytes: u64,
}

/// Read all counters; return the file's content.
pub fn take(gcov: &Gcov, kernel: &Kernel, boot: &str, run: u32, sequence: u64) -> Result<Vec<u8>, Failure> {
    let began = Instant::now();
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut body = GzEncoder::new(Vec::new(), Compression::fast());
    let (mut objects, mut bytes, mut buffer) = (0, 0, Vec::new());
    for object in gcov.objects()? {
        if !gcov.read(&object, &mut buffer)? {
            continue;
        }
        (objects, bytes) = (objects + 1, bytes + buffer.len() as u64);
        if bytes > MOST_BYTES {
            return Err(Failure::of_surroundings(format!("the counters have more than {MOST_BYTES} bytes"), ""));
        }
        in_memory(tar::file(&mut body, object.as_os_str().as_bytes(), &buffer));
    }
    in_memory(tar::end(&mut body));
    let milliseconds = began.elapsed().as_millis() as u64;
    let description = Description {
        v: FORMAT,
        boot: boot.into(),
        run,
        sequence,
        time,
        milliseconds,
        kernel: kernel.clone(),
        objects,
        bytes,
    };
    let mut head = GzEncoder::new(Vec::new(), Compression::fast());
    let text = serde_json::to_vec(&description).expect("strings and numbers");
    in_memory(tar::file(&mut head, NAME, &text));
    Ok([in_memory(head.finish()), in_memory(body.finish())].concat())
}

fn in_memory<T>(result: IoResult<T>) -> T {
    result.expect("a vector takes all that is written to it")
}

/// Return the description of a snapshot in a file; None if it has none.
pub fn description(path: &Path) -> Option<Description> {
    let mut head = GzDecoder::new(regular::open(path).ok()?).take(LONGEST);
    let mut header = [0; BLOCK];
    head.read_exact(&mut header).ok()?;
    let size = u64::from_str_radix(std::str::from_utf8(&header[124..135]).ok()?, 8).ok()?;
    if !header.starts_with(NAME) || size > LONGEST {
        return None;
    }
    let mut text = vec![0; size as usize];
    head.read_exact(&mut text).ok()?;
    let description: Description = serde_json::from_slice(&text).ok()?;
    (description.v == FORMAT).then_some(description)
}
