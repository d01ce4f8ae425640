//! Profiles: what a compile is told of how its code ran. Each source gets the part of a profile that is about it, in a
//! file named by its content, so that an object changes only with its own part; a source that no profile is about keeps
//! its plain flags.

use std::ffi::OsString;
use std::fs;
use std::hash::Hasher;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process;

use serde::Deserialize;
use siphasher::sip128::{Hasher128, SipHasher13};

use super::compile::{Call, Compile, Language};
use super::plan::Plan;

/// Where parts lie, in the object directory.
const PARTS: &str = ".kdyno-profiles";
/// Begins the line that says which sources the lines up to the next such line are about.
const OF_FILES: &[u8] = b"# file ";

/// A profile, and how a compiler is told of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub name: String,
    /// From the object directory.
    pub file: PathBuf,
    /// What stands before the path of the part: `-fprofile-sample-use=`.
    pub option: String,
    /// Further words for the same sources.
    #[serde(default)]
    pub add: Vec<String>,
}

/// Begins a line of Propeller's that says which file the functions after it are of. A part has those of one file, and
/// clang knows the file's name only by debug information.
const OF_MODULE: &[u8] = b"m ";

/// What a compile is told.
#[derive(Debug, Default)]
pub struct Told {
    pub words: Vec<OsString>,
    /// The names of the profiles that are about the source.
    pub names: Vec<String>,
}

/// What the profiles of a plan say of one source; nothing of code that isn't the running kernel's.
pub fn told(plan: &Plan, call: &Call, compile: &Compile, source: &str) -> Result<Told, String> {
    let mut told = Told::default();
    if compile.language != Language::C || !call.is_kernel_code() {
        return Ok(told);
    }
    for profile in &plan.profiles {
        let text =
            fs::read(&profile.file).map_err(|error| format!("can't read {}: {error}", profile.file.display()))?;
        let Some(part) = part_of(&text, source) else { continue };
        let mut word = OsString::from(&profile.option);
        word.push(kept(&profile.name, &part)?);
        told.words.push(word);
        told.words.extend(profile.add.iter().map(OsString::from));
        told.names.push(profile.name.clone());
    }
    Ok(told)
}

/// The lines of a profile that are about a source, after those that stand before all, without comments; `None` if there
/// are none. A profile without lines that name sources is about all of them, as it is.
fn part_of(text: &[u8], source: &str) -> Option<Vec<u8>> {
    let mut part = Vec::new();
    let (mut is_meant, mut names_sources, mut is_empty) = (true, false, true);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if let Some(sources) = line.strip_prefix(OF_FILES) {
            names_sources = true;
            is_meant = sources.split(u8::is_ascii_whitespace).any(|name| name == source.as_bytes());
        } else if is_meant && !line.starts_with(b"#") && !line.starts_with(OF_MODULE) {
            is_empty &= !names_sources;
            part.extend_from_slice(line);
        }
    }
    if !names_sources {
        return Some(text.to_vec());
    }
    (!is_empty).then_some(part)
}

/// Put a part where compilers find it, unless it is there; returns its path. It is written beside, then renamed.
fn kept(name: &str, part: &[u8]) -> Result<PathBuf, String> {
    let mut hasher = SipHasher13::new();
    hasher.write(part);
    let path = Path::new(PARTS).join(format!("{name}-{:032x}", hasher.finish128().as_u128()));
    let of = |error: std::io::Error| format!("can't write {}: {error}", path.display());
    match fs::symlink_metadata(&path) {
        Ok(_) => return Ok(path),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(of(error)),
        Err(_) => {}
    }
    fs::create_dir_all(PARTS).map_err(of)?;
    let partial = path.with_extension(format!("{}.partial", process::id()));
    let written = fs::write(&partial, part).and_then(|()| fs::rename(&partial, &path));
    written.map_err(|error| {
        let _ = fs::remove_file(&partial);
        of(error)
    })?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PROFILE: &str =
        "v1\n# 2 functions\n# file fs/open.c fs/read_write.c\ninline:3:1\n 1: 3\n# file fs/open.c\ndo_open:9:9\n";

    fn part(source: &str) -> Option<String> {
        part_of(PROFILE.as_bytes(), source).map(|part| String::from_utf8(part).unwrap())
    }

    #[test]
    fn a_source_gets_what_is_about_it() {
        assert_eq!(part("fs/open.c").unwrap(), "v1\ninline:3:1\n 1: 3\ndo_open:9:9\n");
        assert_eq!(part("fs/read_write.c").unwrap(), "v1\ninline:3:1\n 1: 3\n");
        assert_eq!(part("fs/read"), None);
    }

    #[test]
    fn a_part_of_clusters_names_no_module() {
        let clusters = b"v1\n# file fs/open.c\nm ../fs/open.c\nf do_open\nc 0 2\n";
        assert_eq!(part_of(clusters, "fs/open.c").unwrap(), b"v1\nf do_open\nc 0 2\n");
    }

    #[test]
    fn a_profile_that_names_no_sources_is_about_all() {
        assert_eq!(part_of(b"# by hand\nf:1:1\n", "a.c").unwrap(), b"# by hand\nf:1:1\n");
    }

    proptest! {
        #[test]
        fn any_text_is_cut_without_a_panic(text in proptest::collection::vec(any::<u8>(), 0..200), source in ".{0,9}") {
            if let Some(part) = part_of(&text, &source) {
                prop_assert!(part.len() <= text.len());
            }
        }
    }
}
