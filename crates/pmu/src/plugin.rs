//! What QEMU calls: at its start and end here, when it translates code and while code runs in the files below. All of it
//! runs on the thread of the one virtual CPU, or while that stands still.

mod execution;
mod translation;

use self::translation::{Translated, on_translation};
use crate::block::Blocks;
use crate::counter::Counter;
use crate::geometry::Geometry;
use crate::options::{Options, Scope};
use crate::record::{self, About};
use crate::symbols::Symbols;
use qemu_plugin_sys as qemu;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

/// The version of the API that this plugin wants; QEMU looks at it before it calls anything.
///
/// Every QEMU accepts a range, and those of 7.2 (0 to 1) and 10 (2 and more) don't overlap. What is used here is in all
/// of them, but for one changed function (see [`bytes_of`]); so the version is chosen when the plugin is loaded.
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

struct Plugin {
    scope: Scope,
    api: c_int,
    record: PathBuf,
    about: About,
    counter: Counter,
    translated: Translated,
    /// More than one virtual CPU was seen.
    is_shared: bool,
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
            register(id);
            0
        }
        Err(why) => {
            eprintln!("kdyno-pmu: {why}");
            1
        }
    }
}

fn configure(info: &qemu::qemu_info_t, words: &[String]) -> Result<Plugin, String> {
    let options = Options::parse(words.iter().map(String::as_str)).map_err(|error| error.to_string())?;
    // SAFETY: a C string.
    let target = unsafe { CStr::from_ptr(info.target_name) }.to_string_lossy();
    if target != "x86_64" {
        return Err(format!("x86_64 guests only, not {target}"));
    }
    if info.system_emulation != options.scope.has_kernel() {
        return Err(
            "scope=kernel and scope=all require system emulation, and scope=user requires user-mode emulation".into()
        );
    }
    let cpus = if info.system_emulation {
        // SAFETY: this half of the union goes with system emulation.
        unsafe { info.__bindgen_anon_1.system.smp_vcpus }
    } else {
        1
    };
    if cpus != 1 {
        return Err(format!("the guest has {cpus} virtual CPUs, but the plugin counts one"));
    }
    let geometry = match &options.geometry {
        Some(path) => {
            let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            Some(Geometry::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?)
        }
        None => None,
    };
    let symbols = match &options.symbols {
        Some(path) => {
            let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            Symbols::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?
        }
        None => Symbols::none(),
    };
    if options.scope.has_kernel() {
        symbols.require_kernel_roles().map_err(|error| format!("symbols: {error}"))?;
    }
    let about = About {
        qemu_api: info.version.cur,
        scope: options.scope,
        events: match (geometry.is_some(), options.is_traced) {
            (false, _) => "edges",
            (true, false) => "all",
            (true, true) => "trace",
        },
        image: options.image,
        family: geometry.as_ref().map(|geometry| geometry.name.clone()),
    };
    Ok(Plugin {
        scope: options.scope,
        api: info.version.cur,
        record: options.record,
        about,
        counter: Counter::new(
            Blocks::new(symbols, geometry.is_some()),
            geometry.as_ref(),
            options.is_traced,
            options.scope == Scope::All,
        ),
        translated: Translated::default(),
        is_shared: false,
    })
}

fn register(id: qemu::qemu_plugin_id_t) {
    // SAFETY: the callbacks have the types that QEMU expects.
    unsafe {
        qemu::qemu_plugin_register_vcpu_init_cb(id, Some(on_cpu));
        qemu::qemu_plugin_register_vcpu_tb_trans_cb(id, Some(on_translation));
        qemu::qemu_plugin_register_atexit_cb(id, Some(on_exit), std::ptr::null_mut());
    }
}

unsafe extern "C" fn on_cpu(_: qemu::qemu_plugin_id_t, cpu: c_uint) {
    // SAFETY: a callback.
    unsafe { plugin() }.is_shared |= cpu > 0;
}

unsafe extern "C" fn on_exit(_: qemu::qemu_plugin_id_t, _: *mut c_void) {
    // SAFETY: a callback.
    let plugin = unsafe { plugin() };
    if plugin.is_shared {
        return eprintln!("kdyno-pmu: no record is written: more than one thread ran, but the plugin counts one");
    }
    if let Err(error) = record::write(&plugin.record, &plugin.about, &plugin.counter.finish()) {
        eprintln!("kdyno-pmu: {}: {error}", plugin.record.display());
    }
}
