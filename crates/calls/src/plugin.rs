//! What QEMU calls: at its start and end, when it translates code and while code runs. All of it runs on the thread of the
//! one virtual CPU, or while that stands still.

use crate::calls::Calls;
use crate::code::{Target, effect};
use crate::routines::{Owners, Routines};
use kdyno_marker::{CLOSE, OPEN, XCHG};
use qemu_plugin_sys as qemu;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs;
use std::path::PathBuf;
use std::ptr::without_provenance_mut;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

/// The version of the API that this plugin wants. Later ones copy the bytes of an instruction: QEMU 7.2 to 9 have this one
/// or the next.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static qemu_plugin_version: AtomicI32 = AtomicI32::new(1);

#[used]
#[unsafe(link_section = ".init_array")]
static CHOOSE_VERSION: extern "C" fn() = choose_version;

extern "C" fn choose_version() {
    // Scoreboards came with version 2 of the API.
    // SAFETY: looks a name up among what is loaded.
    let scoreboards = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"qemu_plugin_scoreboard_new".as_ptr()) };
    if !scoreboards.is_null() {
        qemu_plugin_version.store(2, Ordering::Relaxed);
    }
}

/// From here on QEMU copies an instruction's bytes instead of pointing to them.
const COPIES_BYTES: c_int = 3;
const LONGEST_INSTRUCTION: usize = 15;

struct Plugin {
    api: c_int,
    out: PathBuf,
    routines: Routines,
    calls: Calls,
}

static PLUGIN: AtomicPtr<Plugin> = AtomicPtr::new(std::ptr::null_mut());

/// # Safety
/// Only from callbacks, which come after install and one at a time.
#[inline(always)]
unsafe fn plugin() -> &'static mut Plugin {
    // SAFETY: install has put it there for good.
    unsafe { &mut *PLUGIN.load(Ordering::Relaxed) }
}

/// Install the plugin: called once by QEMU, with the words after `-plugin FILE,`. Anything but 0 ends QEMU.
///
/// # Safety
/// As QEMU's documentation of plugins says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: qemu::qemu_plugin_id_t,
    info: *const qemu::qemu_info_t,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: QEMU passes its description and `argc` strings.
    let (info, words) = unsafe {
        let word = |place: c_int| CStr::from_ptr(*argv.add(place as usize)).to_string_lossy().into_owned();
        (&*info, (0..argc).map(word).collect::<Vec<_>>())
    };
    match configure(info, &words) {
        Ok(plugin) => {
            PLUGIN.store(Box::leak(Box::new(plugin)), Ordering::Relaxed);
            // SAFETY: the callbacks have the types that QEMU expects.
            unsafe {
                qemu::qemu_plugin_register_vcpu_tb_trans_cb(id, Some(on_translation));
                qemu::qemu_plugin_register_atexit_cb(id, Some(on_exit), std::ptr::null_mut());
            }
            0
        }
        Err(why) => {
            eprintln!("kdyno-calls: {why}");
            1
        }
    }
}

fn configure(info: &qemu::qemu_info_t, words: &[String]) -> Result<Plugin, String> {
    // SAFETY: a C string.
    let target = unsafe { CStr::from_ptr(info.target_name) }.to_string_lossy();
    if target != "x86_64" {
        return Err(format!("x86_64 guests only, not {target}"));
    }
    // SAFETY: this half of the union goes with system emulation.
    if info.system_emulation && unsafe { info.__bindgen_anon_1.system.smp_vcpus } != 1 {
        return Err("more than one virtual CPU: calls are those of one".into());
    }
    let (out, path) = parse(words)?;
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let routines = Routines::parse(&text).map_err(|error| format!("{path}: {error}"))?;
    Ok(Plugin { api: info.version.cur, out: out.into(), routines, calls: Calls::default() })
}

/// Return the file of the counts, and that of the routines: `out=FILE` and `routines=FILE`.
fn parse(words: &[String]) -> Result<(String, String), String> {
    let value = |key: &str| {
        let mut values = words.iter().filter_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        match (values.next(), values.next()) {
            (Some(value), None) if !value.is_empty() => Ok(value.to_owned()),
            _ => Err(format!("the option {key}= is needed once")),
        }
    };
    let options = (value("out")?, value("routines")?);
    if words.len() == 2 { Ok(options) } else { Err("the options are out= and routines=".into()) }
}

unsafe extern "C" fn on_exit(_: qemu::qemu_plugin_id_t, _: *mut c_void) {
    // SAFETY: a callback.
    let plugin = unsafe { plugin() };
    if let Err(error) = fs::write(&plugin.out, plugin.calls.report(&plugin.routines.names)) {
        eprintln!("kdyno-calls: {}: {error}", plugin.out.display());
    }
}

unsafe extern "C" fn on_translation(_: qemu::qemu_plugin_id_t, tb: *mut qemu::qemu_plugin_tb) {
    // SAFETY: a callback; `tb` is valid until it returns.
    unsafe {
        let plugin = plugin();
        for place in 0..qemu::qemu_plugin_tb_n_insns(tb) {
            let instruction = qemu::qemu_plugin_tb_get_insn(tb, place);
            let address = qemu::qemu_plugin_insn_vaddr(instruction);
            let owners = plugin.routines.at(address);
            if owners != 0 {
                let bytes = bytes_of(instruction, plugin.api);
                watch(&plugin.routines, owners, instruction, address, &bytes);
            } else if qemu::qemu_plugin_insn_size(instruction) == XCHG.len() + 1 {
                watch_marker(instruction, &bytes_of(instruction, plugin.api));
            }
        }
    }
}

/// # Safety
/// `instruction` is one of a translation callback.
unsafe fn bytes_of(instruction: *const qemu::qemu_plugin_insn, api: c_int) -> Vec<u8> {
    type Copy = unsafe extern "C" fn(*const qemu::qemu_plugin_insn, *mut c_void, usize) -> usize;
    // SAFETY: as promised; until version 2 the function has one argument and returns a pointer, later it has three.
    unsafe {
        let size = qemu::qemu_plugin_insn_size(instruction).min(LONGEST_INSTRUCTION);
        if api < COPIES_BYTES {
            return std::slice::from_raw_parts(qemu::qemu_plugin_insn_data(instruction).cast::<u8>(), size).to_vec();
        }
        let copy: Copy = std::mem::transmute(qemu::qemu_plugin_insn_data as *const ());
        let mut buffer = vec![0; size];
        let copied = copy(instruction, buffer.as_mut_ptr().cast(), size).min(size);
        buffer.truncate(copied);
        buffer
    }
}

/// # Safety
/// Of a translation callback.
unsafe fn watch(
    routines: &Routines,
    owners: Owners,
    instruction: *mut qemu::qemu_plugin_insn,
    address: u64,
    bytes: &[u8],
) {
    let effect = effect(address, bytes);
    // SAFETY: as promised.
    unsafe {
        if let Some(routine) = routines.entered_at(address) {
            on_execution(instruction, on_entry, routine);
        }
        if effect.accesses {
            qemu::qemu_plugin_register_vcpu_mem_cb(
                instruction,
                Some(on_access),
                qemu::qemu_plugin_cb_flags::QEMU_PLUGIN_CB_NO_REGS,
                qemu::qemu_plugin_mem_rw::QEMU_PLUGIN_MEM_RW,
                without_provenance_mut(owners as usize),
            );
        }
        let leaves = match effect.leaves {
            Some(Target::Unknown) => true,
            Some(Target::Address(target)) => routines.at(target) & owners == 0,
            None => false,
        };
        if leaves {
            on_execution(instruction, on_return, owners as usize);
        }
    }
}

/// # Safety
/// Of a translation callback.
unsafe fn watch_marker(instruction: *mut qemu::qemu_plugin_insn, bytes: &[u8]) {
    if let [register @ (OPEN | CLOSE)] = *bytes.strip_prefix(&XCHG).unwrap_or_default() {
        // SAFETY: as promised.
        unsafe { on_execution(instruction, on_marker, usize::from(register == OPEN)) };
    }
}

/// # Safety
/// Of a translation callback.
unsafe fn on_execution(
    instruction: *mut qemu::qemu_plugin_insn,
    callback: unsafe extern "C" fn(c_uint, *mut c_void),
    data: usize,
) {
    let flags = qemu::qemu_plugin_cb_flags::QEMU_PLUGIN_CB_NO_REGS;
    // SAFETY: as promised.
    unsafe {
        qemu::qemu_plugin_register_vcpu_insn_exec_cb(instruction, Some(callback), flags, without_provenance_mut(data));
    }
}

unsafe extern "C" fn on_entry(_: c_uint, routine: *mut c_void) {
    // SAFETY: a callback.
    unsafe { plugin() }.calls.enter(routine.addr());
}

unsafe extern "C" fn on_return(_: c_uint, owners: *mut c_void) {
    // SAFETY: a callback.
    unsafe { plugin() }.calls.leave(owners.addr() as Owners);
}

unsafe extern "C" fn on_marker(_: c_uint, is_open: *mut c_void) {
    // SAFETY: a callback.
    unsafe { plugin() }.calls.set_measured(is_open.addr() == 1);
}

unsafe extern "C" fn on_access(_: c_uint, info: qemu::qemu_plugin_meminfo_t, address: u64, owners: *mut c_void) {
    // SAFETY: a callback.
    unsafe {
        let size = 1 << qemu::qemu_plugin_mem_size_shift(info);
        plugin().calls.access(owners.addr() as Owners, address, size, qemu::qemu_plugin_mem_is_store(info));
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    fn parsed(words: &[&str]) -> Result<(String, String), String> {
        parse(&words.iter().map(|word| word.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn both_files_are_named_once_and_nothing_else_is() {
        assert_eq!(parsed(&["out=a", "routines=b=c"]), Ok(("a".into(), "b=c".into())));
        for words in [vec![], vec!["out=a"], vec!["out=a", "out=b", "routines=c"], vec!["out=", "routines=c"]] {
            assert!(parsed(&words).unwrap_err().ends_with("is needed once"), "{words:?}");
        }
        assert!(parsed(&["out=a", "routines=c", "more=d"]).is_err());
    }
}
