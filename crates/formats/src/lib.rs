//! For tests of the crates at a process boundary. Each says in its `formats.json` what the other side must have alike:
//! names of fields, numbers, words. A test here keeps the file true; a test in Python compares the file with its models.

#![forbid(unsafe_code)]

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor, value};
use serde_json::Value;
use std::path::Path;

/// Fail unless `formats.json` in the crate's directory holds `formats`; with KDYNO_WRITE_FORMATS set, write it.
pub fn compare(crate_directory: &str, formats: &Value) {
    let path = Path::new(crate_directory).join("formats.json");
    if std::env::var_os("KDYNO_WRITE_FORMATS").is_some() {
        let text = serde_json::to_string_pretty(formats).expect("a value is JSON") + "\n";
        std::fs::write(&path, text).expect("the crate's directory can be written to");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let is_kept = serde_json::from_str::<Value>(&kept).is_ok_and(|kept| kept == *formats);
    assert!(is_kept, "{} is stale: KDYNO_WRITE_FORMATS=1 cargo test formats", path.display());
}

/// Return the names of a struct's fields, as they are read: those that the derived `Deserialize` asks for.
pub fn fields<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    let mut names: &[&str] = &[];
    let _ = T::deserialize(Asked(&mut names));
    names
}

/// Return the keys of an object as it is written, sorted.
pub fn keys(value: &impl serde::Serialize) -> Vec<String> {
    let value = serde_json::to_value(value).expect("what is compared is JSON");
    let mut keys: Vec<_> = value.as_object().expect("what has keys is an object").keys().cloned().collect();
    keys.sort();
    keys
}

/// Is asked for a struct, keeps its names, and has no values.
struct Asked<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Asked<'_> {
    type Error = value::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, value::Error> {
        *self.0 = fields;
        Err(value::Error::custom("only the names were requested"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, value::Error> {
        Err(value::Error::custom("no struct"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct
        seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Pair {
        first: u8,
        #[serde(default, rename = "second")]
        other: Option<u8>,
    }

    #[test]
    fn the_fields_of_a_struct_have_the_names_that_are_read() {
        assert_eq!(fields::<Pair>(), ["first", "second"]);
    }
}
