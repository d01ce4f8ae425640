//! general_build: a make that runs compilers, several at a time, then a linker, then has nothing to do.
//!
//! The compiler is this program: see compiler.rs. Half of the processes are made as posix_spawn(3) does it, half by fork.

use super::compiler::{self, HEADERS, PLACES};
use super::load::{self, Named};
use super::mix::Mix;
use crate::measure::Recorder;
use crate::params::Params;
use crate::processes::{self, Death};
use crate::sys::{Failure, Stop, fd};
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub static TEST: Test = Test {
    name: "general_build",
    suite: Some(Suite::General),
    description: "train: a build of many short processes",
    params: &[],
    metrics: &[Metric {
        suffix: "",
        kind: Kind::Latency,
        description: "compile, link, look again, clean",
        model_operations: 1,
        run,
    }],
};

const SOURCES: usize = 12;
const AT_ONCE: usize = 3;

fn run(recorder: &Recorder, _: &Params) -> Result<(), Stop> {
    let tree = Tree::new(recorder.scratch)?;
    load::measure(recorder, |mix| {
        tree.compile(mix)?;
        tree.link()?;
        // Nothing is to be done now, which make finds out by looking at everything.
        if !tree.stale()?.is_empty() {
            return Err(Stop::Broken("what was just compiled is out of date".into()));
        }
        tree.clean()
    })
}

/// Sources, headers in some of the places where headers are looked for, and a compiler in the last place of the PATH.
struct Tree {
    root: PathBuf,
    path: String,
}

impl Tree {
    fn new(scratch: &Path) -> Result<Tree, Failure> {
        let root = scratch.join("tree");
        let mut mix = Mix::new(1);
        for place in PLACES.iter().chain(&["src", "obj", "bin", "local/bin"]) {
            fs::create_dir_all(root.join(place)).named("mkdir(scratch directory)")?;
        }
        for header in 0..HEADERS {
            let text = text_of(&mut mix, header);
            let place = PLACES[mix.below(PLACES.len())];
            fs::write(root.join(format!("{place}/h{header}.h")), text).named("write(scratch file)")?;
        }
        for source in 0..SOURCES {
            let text = text_of(&mut mix, HEADERS);
            fs::write(root.join(format!("src/s{source}.c")), text).named("write(scratch file)")?;
        }
        symlink(compiler::own_path(), root.join("bin/cc")).named("symlink(scratch file)")?;
        let path = ["local/bin", "missing/bin", "bin"].map(|place| root.join(place).display().to_string()).join(":");
        Ok(Tree { root, path })
    }

    fn object(&self, source: usize) -> PathBuf {
        self.root.join(format!("obj/s{source}.o"))
    }

    /// Return the sources whose object is missing or older, as make finds them.
    fn stale(&self) -> Result<Vec<usize>, Failure> {
        let listed = fs::read_dir(self.root.join("src")).named("readdir(scratch directory)")?.count();
        let is_stale = |source: &usize| {
            let changed = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified());
            let text = changed(&self.root.join(format!("src/s{source}.c")));
            let object = changed(&self.object(*source));
            !matches!((text, object), (Ok(text), Ok(object)) if text <= object)
        };
        Ok((0..listed).filter(is_stale).collect())
    }

    /// Compile what is out of date, a few at a time: a pipe holds a token for each that may run.
    fn compile(&self, mix: &mut Mix) -> Result<(), Stop> {
        let (tokens, returned) = fd::pipe()?;
        fd::write_all("write(tokens)", returned.as_raw_fd(), &[b'+'; AT_ONCE])?;
        let mut sources = self.stale()?;
        mix.shuffle(&mut sources);
        let mut running = 0;
        for source in sources {
            if running == AT_ONCE {
                reap_one(&returned)?;
                running -= 1;
            }
            fd::read_exact("read(tokens)", tokens.as_raw_fd(), &mut [0])?;
            self.start(source)?;
            running += 1;
        }
        for _ in 0..running {
            reap_one(&returned)?;
        }
        Ok(())
    }

    fn start(&self, source: usize) -> Result<(), Failure> {
        // Found by the PATH in its last place; the standard library makes the process as posix_spawn(3) does.
        let mut command = Command::new("cc");
        command.arg0("cc").arg(compiler::ARGUMENT).arg(format!("src/s{source}.c")).arg(format!("obj/s{source}.o"));
        command.current_dir(&self.root).env("PATH", &self.path).stdin(Stdio::null());
        if source.is_multiple_of(2) {
            // SAFETY: does nothing; but with it the standard library forks.
            unsafe { command.pre_exec(|| Ok(())) };
        }
        command.spawn().named("execve(compiler)")?;
        Ok(())
    }

    /// Put all objects behind each other into a program, header last.
    fn link(&self) -> Result<(), Failure> {
        let new = self.root.join("program.new");
        let mut program = File::create(&new).named("open(scratch file)")?;
        program.seek(SeekFrom::Start(4096)).named("lseek(scratch file)")?;
        for source in 0..SOURCES {
            let object = File::open(self.object(source)).named("open(object)")?;
            let mut part = vec![0; object.metadata().named("fstat(object)")?.len() as usize];
            object.read_exact_at(&mut part, 0).named("pread(object)")?;
            program.write_all(&part).named("write(program)")?;
        }
        program.write_all_at(b"header", 0).named("pwrite(program)")?;
        program.set_permissions(fs::Permissions::from_mode(0o755)).named("fchmod(program)")?;
        drop(program);
        fs::rename(new, self.root.join("program")).named("rename(program)")
    }

    fn clean(&self) -> Result<(), Stop> {
        for entry in fs::read_dir(self.root.join("obj")).named("readdir(scratch directory)")? {
            fs::remove_file(entry.named("readdir(scratch directory)")?.path()).named("unlink(object)")?;
        }
        Ok(())
    }
}

/// Return a text that includes a few headers with a number below `headers`, so that none includes itself.
fn text_of(mix: &mut Mix, headers: usize) -> String {
    let includes = if headers == 0 { 0 } else { mix.below(4) };
    let mut text: String = (0..includes).map(|_| format!("#include \"h{}.h\"\n", mix.below(headers))).collect();
    for line in 0..mix.size(256) {
        text += &format!("int value_{line} = {};\n", mix.next());
    }
    text
}

/// Wait for one of the compilers, which gives its token back.
fn reap_one(returned: &OwnedFd) -> Result<(), Stop> {
    match processes::reap(0) {
        Some((_, Death::Exit(0))) => Ok(fd::write_all("write(tokens)", returned.as_raw_fd(), b"+")?),
        Some((_, death)) => Err(Stop::Broken(format!("a compiler {death}"))),
        None => Err(Failure::last("waitpid()").into()),
    }
}
