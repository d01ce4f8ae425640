//! The last snapshot of each run as one tar archive on standard output, `listing.json` first.

use crate::failure::{Failure, OfFile};
use crate::listing::Listing;
use crate::regular;
use crate::store::Store;
use crate::tar;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::Path;

/// While it looks, the program that takes snapshots may remove some: then it looks again.
const TRIES: usize = 10;

pub fn send(directory: &Path, boots: &[String]) -> Result<(), Failure> {
    if io::stdout().is_terminal() {
        return Err(Failure::of_user(
            "an archive cannot be printed on a terminal",
            "`kdyno profile pull HOST` calls this by ssh",
        ));
    }
    let store = Store::open(directory)?;
    let (listing, files) = open_files(&store, directory, boots)?;
    let result = write(&mut BufWriter::new(io::stdout().lock()), &listing, files);
    result.map_err(|error| Failure::of_surroundings(format!("can't send: {error}"), ""))
}

/// Open the files to be sent, so that they stay whatever is removed.
fn open_files(store: &Store, directory: &Path, boots: &[String]) -> Result<(Listing, Vec<File>), Failure> {
    for _ in 0..TRIES {
        let mut listing = Listing::read(store, directory)?;
        listing.runs.retain(|run| boots.is_empty() || boots.iter().any(|start| run.boot.starts_with(start.as_str())));
        if listing.runs.is_empty() {
            let message = format!(
                "there is no snapshot {}in {}",
                if boots.is_empty() { "" } else { "of that boot " },
                directory.display()
            );
            return Err(Failure::of_user(message, "`kdyno-pgod status` lists what there is"));
        }
        let files: io::Result<Vec<File>> =
            listing.runs.iter().map(|run| regular::open(&directory.join(&run.file))).collect();
        match files {
            Ok(files) => return Ok((listing, files)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(Failure::of_file("read a snapshot in", directory, &error)),
        }
    }
    Err(Failure::of_surroundings(
        format!("snapshots in {} are removed faster than they can be read", directory.display()),
        "use a larger --keep",
    ))
}

fn write(output: &mut impl Write, listing: &Listing, files: Vec<File>) -> io::Result<()> {
    tar::file(output, b"listing.json", &serde_json::to_vec(listing).expect("strings and numbers"))?;
    for (run, file) in listing.runs.iter().zip(files) {
        tar::begin(output, run.file.as_bytes(), run.file_bytes)?;
        if io::copy(&mut file.take(run.file_bytes), output)? != run.file_bytes {
            return Err(io::Error::other(format!("{} was cut off", run.file)));
        }
        tar::pad(output, run.file_bytes)?;
    }
    tar::end(output)?;
    output.flush()
}
