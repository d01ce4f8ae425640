//! Sources by their paths in the kernel's tree.

use std::env;
use std::path::{Path, PathBuf};

/// The kernel's tree, as Kbuild exports it: `..`, `.` or an absolute path.
const TREE: &str = "srctree";

/// Return the kernel's tree; None where Kbuild doesn't name it.
pub fn tree() -> Option<PathBuf> {
    env::var_os(TREE).filter(|tree| !tree.is_empty()).map(PathBuf::from)
}

/// Return the path of a source in the kernel's tree; a generated file keeps its path in the object directory.
pub fn in_tree(source: &Path) -> String {
    relative(source, tree().as_deref().unwrap_or(Path::new("")))
}

fn relative(source: &Path, tree: &Path) -> String {
    let path = if tree.as_os_str().is_empty() { source } else { source.strip_prefix(tree).unwrap_or(source) };
    let text = path.to_string_lossy();
    let mut rest: &str = &text;
    while let Some(after) = rest.strip_prefix("./").or(rest.strip_prefix("../")) {
        rest = after;
    }
    rest.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_named_by_its_path_in_the_tree_however_kbuild_calls_the_tree() {
        for (source, tree) in [
            ("../kernel/fork.c", ".."),
            ("kernel/fork.c", "."),
            ("./kernel/fork.c", "."),
            ("/usr/src/linux/kernel/fork.c", "/usr/src/linux"),
            ("../kernel/fork.c", ""),
            ("kernel/fork.c", ".."),
        ] {
            assert_eq!(relative(Path::new(source), Path::new(tree)), "kernel/fork.c", "{source} in {tree}");
        }
    }
}
