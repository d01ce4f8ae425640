//! An ELF file in memory, and the content of its sections.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use object::{CompressionFormat, Object, ObjectSection};

use crate::limits::{MOST_FILE, MOST_UNPACKED};

/// Return the whole file.
pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    let unreadable = |error: std::io::Error| format!("it can't be read: {error}");
    let file = File::open(path).map_err(unreadable)?;
    let about = file.metadata().map_err(unreadable)?;
    if !about.is_file() {
        return Err("it is not a regular file".into());
    }
    if about.len() > MOST_FILE {
        return Err(format!("it has {} bytes, more than {MOST_FILE}", about.len()));
    }
    let mut data = Vec::with_capacity(about.len() as usize);
    file.take(about.len()).read_to_end(&mut data).map_err(unreadable)?;
    Ok(data)
}

pub struct Binary<'data> {
    pub elf: object::File<'data>,
}

impl<'data> Binary<'data> {
    /// Read a file whose sections are all in it.
    pub fn parse(data: &'data [u8]) -> Result<Binary<'data>, String> {
        let elf = object::File::parse(data).map_err(said)?;
        for section in elf.sections() {
            let (start, size) = section.file_range().unwrap_or_default();
            let end = u128::from(start) + u128::from(size);
            if end > data.len() as u128 {
                return Err(format!("its sections reach to byte {end}, but it has {}", data.len()));
            }
        }
        Ok(Binary { elf })
    }

    /// Return the unpacked content of the section of this name; empty if there is no such section.
    pub fn content(&self, name: &str) -> Result<Cow<'data, [u8]>, String> {
        let Some(section) = self.elf.section_by_name(name) else {
            return Ok(Cow::Borrowed(&[]));
        };
        let packed = section.compressed_data().map_err(said)?;
        if packed.uncompressed_size > MOST_UNPACKED && packed.format != CompressionFormat::None {
            return Err(format!("{name} has {} bytes, more than {MOST_UNPACKED}", packed.uncompressed_size));
        }
        let unpacked = match packed.format {
            CompressionFormat::None => return Ok(Cow::Borrowed(packed.data)),
            CompressionFormat::Zlib => all(flate2::bufread::ZlibDecoder::new(packed.data), packed.uncompressed_size),
            CompressionFormat::Zstandard => ruzstd::decoding::StreamingDecoder::new(packed.data)
                .map_err(|error| error.to_string())
                .and_then(|decoder| all(decoder, packed.uncompressed_size)),
            _ => Err("how isn't known".into()),
        };
        unpacked.map(Cow::Owned).map_err(|why| format!("{name} is compressed, and can't be unpacked: {why}"))
    }
}

/// Return all that a decoder gives, which must be as many bytes as this.
fn all(decoder: impl Read, size: u64) -> Result<Vec<u8>, String> {
    let mut unpacked = Vec::new();
    decoder.take(size).read_to_end(&mut unpacked).map_err(|error| error.to_string())?;
    if unpacked.len() as u64 == size { Ok(unpacked) } else { Err(format!("it has {} bytes of {size}", unpacked.len())) }
}

/// Describe what is wrong with a file, in one sentence.
pub fn said(error: object::Error) -> String {
    format!("it can't be read as an ELF file: {error}")
}
