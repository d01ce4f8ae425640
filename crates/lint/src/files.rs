//! From bytes to findings, for one object and for a set.

use std::fs;

use serde::Serialize;

use crate::binary::Binary;
use crate::finding::Finding;
use crate::lints::{LINTS, Look, findings};
use crate::settings::Settings;
use crate::shared::Shared;

/// A file that wasn't looked through.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// Its name.
    pub refused: String,
    pub why: String,
}

/// Everything that the lints find in one object or linked kernel.
///
/// `name` stands in the findings. The error is one line: why the file can't be read. `settings.files` isn't read.
pub fn lint_object(data: &[u8], name: &str, settings: &Settings) -> Result<Vec<Finding>, String> {
    let binary = Binary::parse(data)?;
    let mut shared = Shared::new(settings);
    shared.add(&binary, settings);
    shared.finish();
    Ok(looked_through(&Look { binary: &binary, settings, shared: &shared, file: 0 }, name))
}

/// Look through all files of the settings; `tell` is given each finding, and each file that can't be read.
pub fn lint_files(settings: &Settings, tell: &mut dyn FnMut(Result<Finding, Refused>)) {
    let mut shared = Shared::new(settings);
    let mut readable = Vec::new();
    for file in &settings.files {
        match with_binary(file, &mut |binary| shared.add(binary, settings)) {
            Ok(()) => readable.push(file),
            Err(why) => tell(Err(Refused { refused: file.clone(), why })),
        }
    }
    shared.finish();
    for (position, file) in readable.into_iter().enumerate() {
        let mut look_through = |binary: &Binary| {
            let look = Look { binary, settings, shared: &shared, file: position };
            looked_through(&look, file).into_iter().for_each(|finding| tell(Ok(finding)));
        };
        if let Err(why) = with_binary(file, &mut look_through) {
            tell(Err(Refused { refused: file.clone(), why }));
        }
    }
}

fn with_binary(file: &str, act: &mut dyn FnMut(&Binary)) -> Result<(), String> {
    let data = fs::read(file).map_err(|error| format!("it can't be read: {error}"))?;
    act(&Binary::parse(&data)?);
    Ok(())
}

fn looked_through(look: &Look, name: &str) -> Vec<Finding> {
    let asked = LINTS.iter().filter(|lint| look.settings.asks_for(lint.name));
    asked.flat_map(|lint| findings(lint, look, name)).collect()
}
