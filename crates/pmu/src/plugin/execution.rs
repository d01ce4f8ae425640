//! What QEMU calls while code runs: at markers, blocks, accesses to memory and switches between tasks.

use super::plugin;
use crate::block::{Block, UserBlock};
use crate::decode::Access;
use crate::hardware::{Place, scattered};
use kdyno_marker::{CLOSE, ONE, OPEN};
use qemu_plugin_sys as qemu;
use std::ffi::{c_uint, c_void};

pub unsafe extern "C" fn on_marker(_: c_uint, data: *mut c_void) {
    // SAFETY: a callback.
    let plugin = unsafe { plugin() };
    match data.addr() as u8 {
        OPEN => plugin.counter.open(),
        CLOSE => plugin.counter.close(),
        ONE => plugin.counter.announce(1),
        _ => plugin.counter.announce(0),
    }
}

pub unsafe extern "C" fn on_block(_: c_uint, data: *mut c_void) {
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

pub unsafe extern "C" fn on_idle_block(_: c_uint, _: *mut c_void) {
    // SAFETY: a callback.
    let counter = unsafe { &mut plugin().counter };
    if counter.active {
        counter.wait();
    }
}

pub unsafe extern "C" fn on_user_block(_: c_uint, data: *mut c_void) {
    // SAFETY: a callback, with the block that was given for it.
    unsafe {
        let counter = &mut plugin().counter;
        if counter.active {
            counter.user_block(&*data.cast::<UserBlock>());
        }
    }
}

pub unsafe extern "C" fn on_access(_: c_uint, info: qemu::qemu_plugin_meminfo_t, address: u64, data: *mut c_void) {
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

pub unsafe extern "C" fn on_user_access(_: c_uint, info: qemu::qemu_plugin_meminfo_t, address: u64, _: *mut c_void) {
    // SAFETY: a callback.
    unsafe {
        let counter = &mut plugin().counter;
        if counter.active {
            counter.user_access(address, qemu::qemu_plugin_mem_is_store(info), || place(info, address));
        }
    }
}

/// Return where an access goes.
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

pub unsafe extern "C" fn on_switch(_: c_uint, info: qemu::qemu_plugin_meminfo_t, address: u64, _: *mut c_void) {
    // SAFETY: a callback.
    unsafe {
        let counter = &mut plugin().counter;
        if counter.active {
            counter.switch(address, qemu::qemu_plugin_mem_is_store(info));
        }
    }
}
