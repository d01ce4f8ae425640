//! What a call of a compiler is about.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::response::expanded;

/// Options whose value is the next word (GCC's manual, and clang's -mllvm, -Xclang and -target).
const SEPARATE: [&str; 36] = [
    "--param",
    "-A",
    "-B",
    "-D",
    "-I",
    "-L",
    "-MF",
    "-MQ",
    "-MT",
    "-T",
    "-U",
    "-Xassembler",
    "-Xclang",
    "-Xlinker",
    "-Xpreprocessor",
    "-arch",
    "-aux-info",
    "-dumpbase",
    "-dumpbase-ext",
    "-dumpdir",
    "-idirafter",
    "-imacros",
    "-imultilib",
    "-include",
    "-iprefix",
    "-iquote",
    "-isysroot",
    "-isystem",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-l",
    "-mllvm",
    "-target",
    "-u",
    "-wrapper",
    "-z",
];

/// Options that answer a question, whatever else a call says.
const QUESTIONS: [&str; 10] = [
    "-###",
    "-E",
    "-M",
    "-MM",
    "--help",
    "--version",
    "-dumpfullversion",
    "-dumpmachine",
    "-dumpspecs",
    "-dumpversion",
];

/// What a call's words are.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    Option(OsString),
    /// An option and its value, in two words.
    Valued(OsString, OsString),
    /// `-x LANGUAGE` in one word or two: the language, and the words.
    Language(OsString, Vec<OsString>),
    /// `-o FILE` in one word or two: the file, and the words.
    Output(OsString, Vec<OsString>),
    Input(OsString),
}

impl Item {
    /// Return an option and its value as one text, `--param x=1`; other items have none.
    pub fn option(&self) -> Option<OsString> {
        match self {
            Self::Option(word) => Some(word.clone()),
            Self::Valued(word, value) => {
                Some([word.as_os_str(), OsStr::new(" "), value.as_os_str()].into_iter().collect())
            }
            _ => None,
        }
    }

    pub fn words(&self) -> Vec<OsString> {
        match self {
            Self::Option(word) | Self::Input(word) => vec![word.clone()],
            Self::Valued(word, value) => vec![word.clone(), value.clone()],
            Self::Language(_, words) | Self::Output(_, words) => words.clone(),
        }
    }

    pub fn is(&self, option: &str) -> bool {
        matches!(self, Self::Option(word) if word == option)
    }

    pub fn starts_with(&self, prefix: &str) -> bool {
        matches!(self, Self::Option(word) | Self::Valued(word, _) if word.as_bytes().starts_with(prefix.as_bytes()))
    }
}

/// A call of a compiler, understood word by word.
#[derive(Debug, PartialEq)]
pub struct Call {
    pub items: Vec<Item>,
    /// Some of its words come from files.
    pub has_response_file: bool,
}

#[derive(Debug, PartialEq, Clone, Copy)]
pub enum Language {
    C,
    Assembly,
    Other,
}

/// One source that is compiled into one object.
#[derive(Debug, PartialEq)]
pub struct Compile {
    pub source: PathBuf,
    pub object: PathBuf,
    pub language: Language,
}

impl Call {
    pub fn read(arguments: &[OsString]) -> Self {
        let words = expanded(arguments);
        let mut items = Vec::new();
        let mut rest = words.iter().cloned();
        while let Some(word) = rest.next() {
            items.push(item(word, &mut rest));
        }
        Self { items, has_response_file: words != arguments }
    }

    pub fn inputs(&self) -> Vec<&OsStr> {
        self.items
            .iter()
            .filter_map(|item| if let Item::Input(word) = item { Some(word.as_os_str()) } else { None })
            .collect()
    }

    pub fn output(&self) -> Option<&OsStr> {
        self.items
            .iter()
            .rev()
            .find_map(|item| if let Item::Output(file, _) = item { Some(file.as_os_str()) } else { None })
    }

    pub fn has(&self, option: &str) -> bool {
        self.items.iter().any(|item| item.is(option))
    }

    /// Return whether the call asks for something about the compiler, or for text.
    pub fn is_question(&self) -> bool {
        QUESTIONS.iter().any(|option| self.has(option))
            || self.items.iter().any(|item| item.starts_with("-print-") || item.starts_with("--print-"))
    }

    /// Return the call as a compile of one source into one object; `None` if it is anything else.
    pub fn compile(&self) -> Option<Compile> {
        let inputs = self.inputs();
        let [source] = inputs[..] else { return None };
        let makes_object = self.has("-c") && !self.has("-S") && !self.has("-fsyntax-only") && !self.is_question();
        if !makes_object || is_nothing(source) || self.output().is_some_and(is_nothing) {
            return None;
        }
        let source = PathBuf::from(source);
        let object = match self.output() {
            Some(output) => PathBuf::from(output),
            None => Path::new(source.file_name()?).with_extension("o"),
        };
        let language = self.language(&source);
        Some(Compile { source, object, language })
    }

    /// Return the language of a source: the last `-x` before it, or the end of its name.
    pub fn language(&self, source: &Path) -> Language {
        let given =
            self.items.iter().take_while(|item| !matches!(item, Item::Input(_))).filter_map(|item| match item {
                Item::Language(language, _) => Some(language.as_os_str()),
                _ => None,
            });
        let language = given.last().filter(|language| *language != "none");
        match language.or(source.extension()).and_then(OsStr::to_str) {
            Some("c" | "i" | "cpp-output") => Language::C,
            Some("S" | "s" | "sx" | "assembler" | "assembler-with-cpp") => Language::Assembly,
            _ => Language::Other,
        }
    }

    /// Return whether it is code of the running kernel or of a module: on x86 the vDSO, the boot code, the real mode
    /// code and purgatory have other models of code, or move. A kernel that is a program (ARCH=um) has the model of
    /// programs. Its files that talk to the host (-D__UM_HOST__) are its own code, too: they block and unblock what it
    /// has for interrupts.
    pub fn is_kernel_code(&self) -> bool {
        let model = self.items.iter().rev().find(|item| item.starts_with("-mcmodel="));
        let is_program = ["-D__arch_um__", "-D__UM_HOST__"].iter().any(|option| self.has(option));
        let is_kernel = is_program || model.is_some_and(|item| item.is("-mcmodel=kernel"));
        is_kernel && self.has("-D__KERNEL__") && !self.is_for_other_code()
    }

    /// Return whether the link compiles its object: the last option about that decides.
    pub fn is_for_lto(&self) -> bool {
        let last = self.items.iter().rev().find(|item| item.starts_with("-flto") || item.is("-fno-lto"));
        last.is_some_and(|item| !item.is("-fno-lto"))
    }

    /// Return whether its words are those of code that doesn't belong to the running kernel: code of 16 or 32 bits, or
    /// code that can be moved.
    pub fn is_for_other_code(&self) -> bool {
        ["-m16", "-m32", "-fPIC", "-fpic", "-fPIE", "-fpie"].iter().any(|option| self.has(option))
    }
}

/// Return the words of items, as they are given to a compiler.
pub fn words(items: &[Item]) -> Vec<OsString> {
    items.iter().flat_map(Item::words).collect()
}

/// Return whether a path is standard input or output, or a device: `-`, /dev/null.
pub fn is_nothing(path: &OsStr) -> bool {
    path == "-" || path.as_bytes().starts_with(b"/dev/")
}

fn item(word: OsString, rest: &mut impl Iterator<Item = OsString>) -> Item {
    let bytes = word.as_bytes();
    if !bytes.starts_with(b"-") || bytes == b"-" {
        return Item::Input(word);
    }
    for (option, make) in [("-x", Item::Language as fn(OsString, Vec<OsString>) -> Item), ("-o", Item::Output)] {
        let Some(joined) = bytes.strip_prefix(option.as_bytes()) else { continue };
        if !joined.is_empty() {
            return make(OsString::from_vec(joined.to_vec()), vec![word.clone()]);
        }
        return match rest.next() {
            Some(value) => make(value.clone(), vec![word, value]),
            None => Item::Option(word),
        };
    }
    if SEPARATE.iter().any(|option| word == *option) {
        return match rest.next() {
            Some(value) => Item::Valued(word, value),
            None => Item::Option(word),
        };
    }
    Item::Option(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(line: &str) -> Call {
        Call::read(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn an_object_is_compiled_by_the_link_if_the_last_word_about_that_says_so() {
        let is_for_lto = |line: &str| call(line).is_for_lto();
        assert!(is_for_lto("-c -flto=thin -fsplit-lto-unit a.c") && is_for_lto("-c -fno-lto -flto a.c"));
        assert!(!is_for_lto("-c a.c") && !is_for_lto("-c -flto=thin -fno-lto a.c"));
    }

    #[test]
    fn a_compile_has_one_source_and_one_object() {
        for (line, source, object) in [
            ("-c -o kernel/fork.o ../kernel/fork.c", "../kernel/fork.c", "kernel/fork.o"),
            ("-c a/b.c", "a/b.c", "b.o"),
            ("-oa.o -c -include x.h -I y -D z -MF d a.c", "a.c", "a.o"),
            ("-c -o a.o -o b.o a.c", "a.c", "b.o"),
        ] {
            let compile = call(line).compile().unwrap();
            assert_eq!((compile.source.to_str(), compile.object.to_str()), (Some(source), Some(object)), "{line}");
        }
        for line in ["-c a.c b.c", "-c", "a.c -o a", "-c -E a.c", "-c -x c -", "-c -o /dev/null a.c", "-print-x -c a.c"]
        {
            assert_eq!(call(line).compile(), None, "{line}");
        }
    }

    #[test]
    fn the_language_is_what_stands_before_the_source_or_its_name() {
        let language = |line| call(line).compile().unwrap().language;
        assert_eq!(language("-c a.c"), Language::C);
        assert_eq!(language("-c a.S"), Language::Assembly);
        assert_eq!(language("-xc -c a.S"), Language::C);
        assert_eq!(language("-x assembler-with-cpp -c a.c"), Language::Assembly);
        assert_eq!(language("-x c -x none -c a.S"), Language::Assembly);
        assert_eq!(language("-c a.c -x assembler"), Language::C);
        assert_eq!(language("-c a.rs"), Language::Other);
    }

    #[test]
    fn the_last_model_of_code_counts() {
        assert!(call("-D__KERNEL__ -mcmodel=kernel -fno-PIE -m64 -c a.c").is_kernel_code());
        assert!(!call("-D__KERNEL__ -mcmodel=kernel -mcmodel=small -c a.c").is_kernel_code());
        assert!(!call("-D__KERNEL__ -mcmodel=kernel -fPIC -c a.c").is_kernel_code());
        assert!(!call("-mcmodel=kernel -c a.c").is_kernel_code());
    }

    #[test]
    fn the_own_files_of_a_kernel_that_is_a_program_are_kernel_code() {
        assert!(call("-D__KERNEL__ -D__arch_um__ -mcmodel=large -mcmodel=small -c a.c").is_kernel_code());
        assert!(call("-D__KERNEL__ -mcmodel=small -D__UM_HOST__ -c a.c").is_kernel_code());
        assert!(!call("-D__KERNEL__ -D__arch_um__ -mcmodel=small -fPIC -c a.c").is_kernel_code());
    }
}
