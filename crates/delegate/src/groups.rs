//! Sections in which compilers gather functions by how often they run, beside `.text.<function>`.

/// One of these: what its sections' names start with, and where functions of it belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    pub prefix: &'static str,
    pub is_cold: bool,
    /// What a symbol in one of its sections ends with, where the prefix alone may be that of a function's name.
    pub mark: Option<&'static str>,
}

/// The groups that lkd adds to a script without them. gcc and clang have the first two for attributes and profiles.
/// clang -fsplit-machine-functions and Propeller put the cold part of `split` into `.text.split.split`; without them
/// gcc's `split.part.0` is in `.text.split.part.0`, but no cold part.
pub const GROUPS: [Group; 3] = [
    Group { prefix: ".text.hot.", is_cold: false, mark: None },
    Group { prefix: ".text.unlikely.", is_cold: true, mark: None },
    Group { prefix: ".text.split.", is_cold: true, mark: Some(".cold") },
];

/// Groups from which a function is taken that an order names; the script may have them at places of their own.
const MOVABLE: [&str; 4] = [GROUPS[0].prefix, GROUPS[1].prefix, GROUPS[2].prefix, ".text.unknown."];

/// Return whether a section belongs to one function in such a group.
pub fn is_grouped(section: &str) -> bool {
    MOVABLE.iter().any(|prefix| section.len() > prefix.len() && section.starts_with(prefix))
}

/// Return the group that a section belongs to by its name alone.
pub fn group_of(section: &str) -> Option<Group> {
    GROUPS.into_iter().find(|group| section.len() > group.prefix.len() && section.starts_with(group.prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_functions_and_the_bare_name_is_none() {
        assert_eq!(group_of(".text.hot.vfs_read"), Some(GROUPS[0]));
        assert_eq!(group_of(".text.split.vfs_read"), Some(GROUPS[2]));
        for name in [".text.hot", ".text.hot.", ".text.hotplug", ".text.vfs_read", ".text.unknown.f"] {
            assert_eq!(group_of(name), None, "{name}");
        }
        assert!(is_grouped(".text.unknown.f") && !is_grouped(".text.unknown."));
    }
}
