//! From bytes to findings, for one object and for a set.

use std::fs;

use serde::Serialize;

use crate::binary::Binary;
use crate::finding::Finding;
use crate::lines::Lines;
use crate::lints::{LINTS, Lint, Look, MOST_FINDINGS, findings};
use crate::settings::Settings;
use crate::shared::Shared;

/// What is told of a set of files, one after the other.
#[derive(Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Told {
    Finding(Finding),
    /// This file is looked through now.
    Begun {
        begun: String,
        bytes: u64,
    },
    /// A file that wasn't looked through.
    Refused {
        refused: String,
        why: String,
    },
    /// A file of which these lints know nothing, since where its functions begin isn't known.
    WithoutFunctions {
        without_functions: String,
        lints: Vec<&'static str>,
    },
    /// A kernel that is a program: so many functions are a C library's, and weren't looked through.
    LeftOut {
        with_library: String,
        functions: usize,
    },
}

/// Return everything that the lints find in one object or linked kernel.
///
/// `name` stands in the findings. The error is one line: why the file can't be read. `settings.files` isn't read.
pub fn lint_object(data: &[u8], name: &str, settings: &Settings) -> Result<Vec<Finding>, String> {
    let binary = Binary::parse(data, &[])?;
    let mut shared = Shared::new(settings);
    shared.add(&binary, settings);
    shared.finish();
    let look = Look { binary: &binary, lines: Lines::of(&binary), settings, shared: &shared, file: 0 };
    Ok(looked_through(&look, name).collect())
}

/// Look through all files of the settings; `tell` is given what there is to say of each.
pub fn lint_files(settings: &Settings, tell: &mut dyn FnMut(Told)) {
    let mut shared = Shared::new(settings);
    let mut readable = Vec::new();
    for file in &settings.files {
        match with_binary(file, settings, &mut |binary, _| shared.add(binary, settings)) {
            Ok(()) => readable.push(file),
            Err(why) => tell(Told::Refused { refused: file.clone(), why }),
        }
    }
    shared.finish();
    let mut left = MOST_FINDINGS + 1;
    for (position, file) in readable.into_iter().enumerate() {
        let mut look_through = |binary: &Binary, bytes: u64| {
            tell(Told::Begun { begun: file.clone(), bytes });
            let without = LINTS.iter().filter(|lint| lint.needs_functions && settings.asks_for(lint.name));
            let lints: Vec<&str> = without.map(|lint| lint.name).collect();
            if !binary.has_functions && !lints.is_empty() {
                tell(Told::WithoutFunctions { without_functions: file.clone(), lints });
            }
            if binary.left_out > 0 {
                tell(Told::LeftOut { with_library: file.clone(), functions: binary.left_out });
            }
            let look = Look { binary, lines: Lines::of(binary), settings, shared: &shared, file: position };
            for finding in looked_through(&look, file) {
                left = left.saturating_sub(1);
                if left == 0 {
                    let why =
                        format!("more than {MOST_FINDINGS} findings: name fewer files, or fewer lints with --only");
                    tell(Told::Refused { refused: file.clone(), why });
                    break;
                }
                tell(Told::Finding(finding));
            }
        };
        if let Err(why) = with_binary(file, settings, &mut look_through) {
            tell(Told::Refused { refused: file.clone(), why });
        }
    }
}

fn with_binary(file: &str, settings: &Settings, act: &mut dyn FnMut(&Binary, u64)) -> Result<(), String> {
    let data = fs::read(file).map_err(|error| format!("it can't be read: {error}"))?;
    let named = settings.functions.get(file).map_or(&[][..], Vec::as_slice);
    act(&Binary::parse(&data, named)?, data.len() as u64);
    Ok(())
}

fn looked_through<'a>(look: &'a Look, name: &'a str) -> impl Iterator<Item = Finding> + 'a {
    let can_run = |lint: &&Lint| !lint.needs_functions || look.binary.has_functions;
    let asked = LINTS.iter().filter(|lint| look.settings.asks_for(lint.name)).filter(can_run);
    asked.flat_map(move |lint| findings(lint, look, name))
}
