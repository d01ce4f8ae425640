//! The last step of every delegate: become the real tool.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Replace this process by the tool that the environment names (a path, or a name on the PATH). Returns why it can't.
pub fn become_tool(variable: &str, arguments: &[OsString]) -> String {
    let Some(tool) = std::env::var_os(variable) else {
        return format!("{variable} is not set: it names the real tool");
    };
    let error = Command::new(&tool).args(arguments).exec();
    format!("can't run {} ({variable}): {error}", tool.to_string_lossy())
}
