//! Lints on an object that was just made, before objtool has its turn.

use std::fs;
use std::path::Path;

use kdyno_lint::{Finding, Level, Settings, lint_object};

/// Print and return what the lints find in an object. An object that can't be read is an error.
pub fn findings(path: &Path, source: &str) -> Result<Vec<Finding>, String> {
    let data = fs::read(path).map_err(|error| format!("can't read {}: {error}", path.display()))?;
    let mut findings = lint_object(&data, &path.to_string_lossy(), &Settings::default())?;
    findings.retain(|finding| finding.level != Level::Note);
    for finding in &findings {
        let line = finding.line.map_or(String::new(), |line| format!(":{line}"));
        let place = finding.source.as_deref().unwrap_or(source);
        eprintln!("ccd: warning: {place}{line}: {}: {}: {}", finding.function, finding.lint, finding.message);
    }
    Ok(findings)
}
