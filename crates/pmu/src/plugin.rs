//! What QEMU calls. Everything here runs on the thread of the one virtual CPU, or while that stands still.

use crate::block::{Block, Blocks, UserBlock};
use crate::counter::Counter;
use crate::decode::{Access, is_cut};
use crate::geometry::Geometry;
use crate::hardware::{Place, scattered};
use crate::options::{Options, Scope};
use crate::record::{self, About};
use crate::symbols::{Role, Symbols};
use kdyno_marker::{CLOSE, ONE, OPEN, XCHG, ZERO};
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

/// From here on QEMU copies an instruction's bytes instead of pointing to them.
const COPIES_BYTES: c_int = 3;

/// x86 instructions are not longer.
const LONGEST_INSTRUCTION: usize = 15;

struct Plugin {
    scope: Scope,
    api: c_int,
    out: PathBuf,
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

/// Called once by QEMU, with the words after `-plugin FILE,`. Anything but 0 ends QEMU.
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
        return Err("scope=kernel and scope=all go with system emulation, scope=user with user-mode emulation".into());
    }
    let cpus = if info.system_emulation {
        // SAFETY: this half of the union goes with system emulation.
        unsafe { info.__bindgen_anon_1.system.smp_vcpus }
    } else {
        1
    };
    if cpus != 1 {
        return Err(format!("{cpus} virtual CPUs: counts are those of one"));
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
        out: options.out,
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
        return eprintln!("kdyno-pmu: no record: more than one thread ran, and counts are those of one");
    }
    if let Err(error) = record::write(&plugin.out, &plugin.about, &plugin.counter.finish()) {
        eprintln!("kdyno-pmu: {}: {error}", plugin.out.display());
    }
}

/// A block as QEMU has translated it. Used for one after another.
#[derive(Default)]
struct Translated {
    instructions: Vec<*mut qemu::qemu_plugin_insn>,
    addresses: Vec<u64>,
    bytes: Vec<u8>,
    /// Where each instruction's bytes begin.
    offsets: Vec<usize>,
}

impl Translated {
    /// # Safety
    /// `tb` is the block of a translation callback.
    unsafe fn read(&mut self, tb: *mut qemu::qemu_plugin_tb, api: c_int) {
        self.instructions.clear();
        self.addresses.clear();
        self.bytes.clear();
        self.offsets.clear();
        // SAFETY: as promised.
        unsafe {
            for place in 0..qemu::qemu_plugin_tb_n_insns(tb) {
                let instruction = qemu::qemu_plugin_tb_get_insn(tb, place);
                self.instructions.push(instruction);
                self.addresses.push(qemu::qemu_plugin_insn_vaddr(instruction));
                self.offsets.push(self.bytes.len());
                bytes_of(instruction, api, &mut self.bytes);
            }
        }
        self.forget_undone();
    }

    /// An instruction that reaches into another page is only ever the first of its block (QEMU, target/i386/tcg/translate.c):
    /// where it came later it was undone, and the next block begins with it. QEMU 7.2 tells plugins of it all the same,
    /// but only of its bytes in the first page.
    fn forget_undone(&mut self) {
        if let (Some(&address), Some(&offset)) = (self.addresses.last(), self.offsets.last())
            && self.addresses.len() > 1
            && is_cut(address, &self.bytes[offset..])
        {
            self.instructions.pop();
            self.addresses.pop();
            self.offsets.pop();
            self.bytes.truncate(offset);
        }
    }
}

/// # Safety
/// `instruction` is one of a translation callback.
unsafe fn bytes_of(instruction: *const qemu::qemu_plugin_insn, api: c_int, bytes: &mut Vec<u8>) {
    type Copy = unsafe extern "C" fn(*const qemu::qemu_plugin_insn, *mut c_void, usize) -> usize;
    // SAFETY: as promised; until version 2 the function has one argument and returns a pointer, later it has three.
    unsafe {
        let size = qemu::qemu_plugin_insn_size(instruction).min(LONGEST_INSTRUCTION);
        if api < COPIES_BYTES {
            let data = qemu::qemu_plugin_insn_data(instruction).cast::<u8>();
            bytes.extend_from_slice(std::slice::from_raw_parts(data, size));
        } else {
            let copy: Copy = std::mem::transmute(qemu::qemu_plugin_insn_data as *const ());
            let mut buffer = [0; LONGEST_INSTRUCTION];
            let copied = copy(instruction, buffer.as_mut_ptr().cast(), size).min(size);
            bytes.extend_from_slice(&buffer[..copied]);
        }
    }
}

const KERNEL_HALF: u64 = 1 << 63;

unsafe extern "C" fn on_translation(_: qemu::qemu_plugin_id_t, tb: *mut qemu::qemu_plugin_tb) {
    // SAFETY: a callback; `tb` is valid until it returns.
    unsafe {
        let plugin = plugin();
        if plugin.counter.has_given_up() {
            return;
        }
        let is_kernel = qemu::qemu_plugin_tb_vaddr(tb) >= KERNEL_HALF;
        let mut block = std::mem::take(&mut plugin.translated);
        block.read(tb, plugin.api);
        if !is_kernel {
            watch_markers(&block);
        }
        match plugin.scope {
            Scope::Kernel | Scope::All if is_kernel => instrument(plugin, tb, &block),
            Scope::User => instrument(plugin, tb, &block),
            Scope::Kernel | Scope::All => instrument_user(plugin, tb, &block),
        }
        plugin.translated = block;
    }
}

/// # Safety
/// Of a translation callback.
unsafe fn instrument(plugin: &mut Plugin, tb: *mut qemu::qemu_plugin_tb, translated: &Translated) {
    let start = translated.addresses.first().copied();
    let Some(block) = start.and_then(|start| plugin.counter.intern(start, &translated.bytes)) else {
        return;
    };
    // SAFETY: as promised; blocks are never freed.
    unsafe {
        let flags = qemu::qemu_plugin_cb_flags::QEMU_PLUGIN_CB_NO_REGS;
        qemu::qemu_plugin_register_vcpu_tb_exec_cb(tb, Some(on_block), flags, block.cast());
        let symbols = plugin.counter.blocks.symbols();
        let is_switch = symbols.get((*block).function).role == Role::Switch;
        let is_detailed = plugin.counter.is_detailed();
        if !is_switch && !is_detailed {
            return;
        }
        plugin.counter.blocks.prepare(&mut *block);
        let facts = &(*block).facts;
        for (place, instruction) in translated.instructions.iter().enumerate() {
            if is_switch && moves_stack_pointer(&translated.bytes[translated.offsets[place]..]) {
                watch_memory(*instruction, on_switch, std::ptr::null_mut());
            }
            if is_detailed && let Some(facts) = facts.instructions.get(place) {
                watch_memory(*instruction, on_access, std::ptr::without_provenance_mut(facts.access.packed()));
            }
        }
    }
}

/// `mov %rsp,X(%rdi)` and `mov X(%rsi),%rsp`, where X is the place of the stack pointer in a task: what
/// __switch_to_asm exchanges stacks with (arch/x86/entry/entry_64.S). The addresses tell the tasks apart.
fn moves_stack_pointer(bytes: &[u8]) -> bool {
    matches!(bytes, [0x48, 0x89, 0xa7 | 0x67, ..] | [0x48, 0x8b, 0xa6 | 0x66, ..])
}

/// # Safety
/// Of a translation callback.
unsafe fn watch_memory(
    instruction: *mut qemu::qemu_plugin_insn,
    callback: unsafe extern "C" fn(c_uint, qemu::qemu_plugin_meminfo_t, u64, *mut c_void),
    data: *mut c_void,
) {
    // SAFETY: as promised.
    unsafe {
        qemu::qemu_plugin_register_vcpu_mem_cb(
            instruction,
            Some(callback),
            qemu::qemu_plugin_cb_flags::QEMU_PLUGIN_CB_NO_REGS,
            qemu::qemu_plugin_mem_rw::QEMU_PLUGIN_MEM_RW,
            data,
        );
    }
}

/// # Safety
/// Of a translation callback.
unsafe fn instrument_user(plugin: &mut Plugin, tb: *mut qemu::qemu_plugin_tb, translated: &Translated) {
    let Some(block) = plugin.counter.intern_user(&translated.addresses, &translated.bytes) else {
        return;
    };
    // SAFETY: as promised.
    unsafe {
        let flags = qemu::qemu_plugin_cb_flags::QEMU_PLUGIN_CB_NO_REGS;
        qemu::qemu_plugin_register_vcpu_tb_exec_cb(tb, Some(on_user_block), flags, block.cast());
        if plugin.scope == Scope::All {
            for instruction in &translated.instructions {
                watch_memory(*instruction, on_user_access, std::ptr::null_mut());
            }
        }
    }
}

/// # Safety
/// Of a translation callback.
unsafe fn watch_markers(translated: &Translated) {
    for (place, instruction) in translated.instructions.iter().enumerate() {
        let bytes = &translated.bytes[translated.offsets[place]..];
        if let [register @ (OPEN | CLOSE | ONE | ZERO), ..] = *bytes.strip_prefix(&XCHG).unwrap_or_default() {
            let data = std::ptr::without_provenance_mut(usize::from(register));
            // SAFETY: as promised.
            unsafe {
                let flags = qemu::qemu_plugin_cb_flags::QEMU_PLUGIN_CB_NO_REGS;
                qemu::qemu_plugin_register_vcpu_insn_exec_cb(*instruction, Some(on_marker), flags, data);
            }
        }
    }
}

unsafe extern "C" fn on_marker(_: c_uint, data: *mut c_void) {
    // SAFETY: a callback.
    let plugin = unsafe { plugin() };
    match data.addr() as u8 {
        OPEN => plugin.counter.open(),
        CLOSE => plugin.counter.close(),
        ONE => plugin.counter.announce(1),
        _ => plugin.counter.announce(0),
    }
}

unsafe extern "C" fn on_block(_: c_uint, data: *mut c_void) {
    // SAFETY: a callback, with the block that was given for it.
    unsafe {
        let counter = &mut plugin().counter;
        let block = data.cast::<Block>();
        if counter.active {
            counter.block(block);
        } else {
            counter.unmeasured(block);
        }
    }
}

unsafe extern "C" fn on_user_block(_: c_uint, data: *mut c_void) {
    // SAFETY: a callback, with the block that was given for it.
    unsafe {
        let counter = &mut plugin().counter;
        if counter.active {
            counter.user_block(&*data.cast::<UserBlock>());
        }
    }
}

unsafe extern "C" fn on_access(_: c_uint, info: qemu::qemu_plugin_meminfo_t, address: u64, data: *mut c_void) {
    // SAFETY: a callback.
    unsafe {
        let counter = &mut plugin().counter;
        if !counter.active {
            return;
        }
        let size = 1 << qemu::qemu_plugin_mem_size_shift(info);
        let is_store = qemu::qemu_plugin_mem_is_store(info);
        counter.access(Access::unpacked(data.addr()), address, size, is_store, || place(info, address));
    }
}

unsafe extern "C" fn on_user_access(_: c_uint, info: qemu::qemu_plugin_meminfo_t, address: u64, _: *mut c_void) {
    // SAFETY: a callback.
    unsafe {
        let counter = &mut plugin().counter;
        if counter.active {
            counter.user_access(address, qemu::qemu_plugin_mem_is_store(info), || place(info, address));
        }
    }
}

/// Where an access goes.
///
/// # Safety
/// Of the callback of that access.
unsafe fn place(info: qemu::qemu_plugin_meminfo_t, address: u64) -> Place {
    // SAFETY: as promised.
    unsafe {
        let physical = qemu::qemu_plugin_get_hwaddr(info, address);
        if physical.is_null() {
            Place::Memory(scattered(address)) // user-mode emulation
        } else if qemu::qemu_plugin_hwaddr_is_io(physical) {
            Place::Device
        } else {
            Place::Memory(qemu::qemu_plugin_hwaddr_phys_addr(physical))
        }
    }
}

unsafe extern "C" fn on_switch(_: c_uint, info: qemu::qemu_plugin_meminfo_t, address: u64, _: *mut c_void) {
    // SAFETY: a callback.
    unsafe {
        let counter = &mut plugin().counter;
        if counter.active {
            counter.switch(address, qemu::qemu_plugin_mem_is_store(info));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_of_which_a_page_s_end_left_a_part_is_none_of_the_block() {
        let mut block = Translated {
            instructions: vec![std::ptr::null_mut(); 2],
            addresses: vec![0x1ffc, 0x1fff],
            bytes: vec![0x4d, 0x89, 0xc2, 0x4d], // mov %r8,%r10; a prefix
            offsets: vec![0, 3],
        };
        block.forget_undone();
        let left = (block.instructions.len(), block.bytes.len(), block.offsets.len());
        assert_eq!((block.addresses, left), (vec![0x1ffc], (1, 3, 1)));
    }
}
