//! Profiles: what a compile is told of how its code ran. Each source gets the part of a profile that is about it, in a
//! file named by its content, so that an object changes only with its own part; a source that no profile is about keeps
//! its plain flags.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::hash::Hasher;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::process;

use serde::Deserialize;
use siphasher::sip128::{Hasher128, SipHasher13};

use super::compile::{Call, Compile, Language};
use super::family::Family;

/// Where parts are stored, in the object directory.
const PARTS: &str = ".kdyno-profiles";
/// Begins the line that says which sources the lines up to the next such line are about.
const OF_FILES: &[u8] = b"# file ";
/// Begins the line before the counters of an object.
const OF_OBJECT: &[u8] = b"# object ";

/// A profile, and how a compiler is told of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub name: String,
    /// From the object directory.
    pub file: PathBuf,
    /// Whose compilers read it.
    pub family: Family,
    #[serde(default)]
    pub cut: Cut,
    /// What stands before the path of the part: `-fprofile-sample-use=`.
    pub option: String,
    /// Further words for the same sources.
    #[serde(default)]
    pub add: Vec<String>,
}

/// How a profile is cut.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cut {
    /// Text, with lines that say which sources what follows is about.
    #[default]
    Sources,
    /// A `.gcda` file for each object: a line that names it, and a line of hexadecimal digits.
    Objects,
    /// Not at all.
    Whole,
}

/// Begins a line of Propeller's that says which file the functions after it are of. A part has those of one file, and
/// clang knows the file's name only by debug information.
const OF_MODULE: &[u8] = b"m ";

/// What the profiles add to the command of a compile.
#[derive(Debug, Default)]
pub struct ProfileWords {
    pub words: Vec<OsString>,
    /// The names of the profiles that are about the source.
    pub names: Vec<String>,
}

/// Return the words by which the profiles of a plan apply to one source; empty for code that doesn't belong to the
/// running kernel.
pub fn words_for(
    profiles: &[Profile],
    family: Family,
    call: &Call,
    compile: &Compile,
    source: &str,
) -> Result<ProfileWords, String> {
    let mut result = ProfileWords::default();
    if compile.language != Language::C || !call.is_kernel_code() {
        return Ok(result);
    }
    for profile in profiles.iter().filter(|profile| profile.family == family) {
        let text =
            fs::read(&profile.file).map_err(|error| format!("can't read {}: {error}", profile.file.display()))?;
        let path = match profile.cut {
            // Each object says what counts its profile has (ProfileSummary), and ld.lld takes only one of them.
            Cut::Sources if call.is_for_lto() => part_of(&text, source).map(|_| profile.file.clone()),
            Cut::Sources => part_of(&text, source).map(|part| kept(&named(&profile.name, &part), &part)).transpose()?,
            Cut::Objects => counters_of(&text, &compile.object)?
                .map(|counters| {
                    let directory = named(&profile.name, &counters);
                    kept(&directory.join(looked_for(&working_directory()?, &compile.object)), &counters)?;
                    Ok::<_, String>(directory)
                })
                .transpose()?,
            Cut::Whole => Some(profile.file.clone()),
        };
        let Some(path) = path else { continue };
        let mut word = OsString::from(&profile.option);
        word.push(path);
        result.words.push(word);
        result.words.extend(profile.add.iter().map(OsString::from));
        result.names.push(profile.name.clone());
    }
    Ok(result)
}

/// Return the lines of a profile that are about a source, after those that precede all sources, without comments;
/// `None` if there are none. A profile without lines that name sources is about all of them, as it is.
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

/// Return the `.gcda` file of an object, if there is one.
fn counters_of(text: &[u8], object: &Path) -> Result<Option<Vec<u8>>, String> {
    let mut lines = text.split(|byte| *byte == b'\n');
    let name = object.to_string_lossy();
    if !lines.any(|line| line.strip_prefix(OF_OBJECT) == Some(name.as_bytes())) {
        return Ok(None);
    }
    let digits = lines.next().unwrap_or_default();
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let bytes = digits.chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    });
    bytes.collect::<Option<_>>().map(Some).ok_or(format!("the profile has no counters for {name}, but other text"))
}

/// Return the name by which gcc looks for the counters of an object in the directory of `-fprofile-use=`: its absolute
/// path with another separator (coverage_init() and mangle_path() of gcc 12).
fn looked_for(working_directory: &Path, object: &Path) -> String {
    let path = working_directory.join(object).with_extension("gcda");
    let parts = path.components().filter_map(|part| match part {
        Component::ParentDir => Some("^".into()),
        Component::Normal(name) => Some(name.to_string_lossy()),
        _ => None,
    });
    parts.map(|part| format!("#{part}")).collect()
}

/// Return the working directory as gcc determines it (getpwd() of libiberty): $PWD, if that is the same directory.
fn working_directory() -> Result<PathBuf, String> {
    let here = |path: &Path| fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino())).ok();
    if let Some(named) = env::var_os("PWD").map(PathBuf::from)
        && named.is_absolute()
        && here(&named).is_some_and(|metadata| Some(metadata) == here(Path::new(".")))
    {
        return Ok(named);
    }
    env::current_dir().map_err(|error| format!("there is no working directory: {error}"))
}

/// Return the path of the file that keeps a part, by its content.
fn named(name: &str, part: &[u8]) -> PathBuf {
    let mut hasher = SipHasher13::new();
    hasher.write(part);
    Path::new(PARTS).join(format!("{name}-{:032x}", hasher.finish128().as_u128()))
}

/// Put a part where compilers find it, unless it is there; returns its path. It is written beside, then renamed.
fn kept(path: &Path, part: &[u8]) -> Result<PathBuf, String> {
    let of = |error: std::io::Error| format!("can't write {}: {error}", path.display());
    match fs::symlink_metadata(path) {
        Ok(_) => return Ok(path.to_owned()),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(of(error)),
        Err(_) => {}
    }
    fs::create_dir_all(path.parent().expect("it lies in a directory")).map_err(of)?;
    let partial = path.with_extension(format!("{}.partial", process::id()));
    let written = fs::write(&partial, part).and_then(|()| fs::rename(&partial, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&partial);
        of(error)
    })?;
    Ok(path.to_owned())
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

    #[test]
    fn an_object_gets_its_counters() {
        let text = b"# object fs/open.o\n61646367\n# object fs/x.o\n6g\n# object fs/y.o";
        let of = |object: &str| counters_of(text, Path::new(object));
        assert_eq!(of("fs/open.o"), Ok(Some(b"adcg".to_vec())));
        assert_eq!(of("open.o"), Ok(None));
        assert!(of("fs/x.o").unwrap_err().contains("no counters for fs/x.o"));
        assert_eq!(of("fs/y.o"), Ok(Some(Vec::new())));
    }

    #[test]
    fn counters_lie_where_gcc_looks_for_them() {
        let named = |object: &str| looked_for(Path::new("/tmp/objects"), Path::new(object));
        assert_eq!(named("fs/open.o"), "#tmp#objects#fs#open.gcda");
        assert_eq!(named("./a/../b.o"), "#tmp#objects#a#^#b.gcda");
    }

    proptest! {
        #[test]
        fn any_text_is_cut_without_a_panic(text in proptest::collection::vec(any::<u8>(), 0..200), source in ".{0,9}") {
            if let Some(part) = part_of(&text, &source) {
                prop_assert!(part.len() <= text.len());
            }
            let _ = counters_of(&text, Path::new(&source));
        }
    }
}
