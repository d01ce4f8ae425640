//! Small kernels, executed by hand: a list of blocks in the order in which QEMU would run them.

use super::*;
use crate::events::CONTEXTS;
use crate::events::Counts;
use crate::symbols::Symbols;
use crate::trace::{Step, Way};

const KERNEL: &str = "\
1000 100 syscall entry_SYSCALL_64
2000 100 - work
2100 100 - callee
2200 40 - __x86_indirect_thunk_rax
3000 100 exception asm_exc_page_fault
3100 100 interrupt asm_sysvec_apic_timer_interrupt
4000 100 switch __switch_to_asm
5000 100 fork ret_from_fork_asm
6000 100 huge do_huge_pmd_anonymous_page
";

const NOP: u8 = 0x90;
const RET: u8 = 0xc3;
const IRET: [u8; 2] = [0x48, 0xcf];

struct Kernel {
    counter: Counter,
}

impl Kernel {
    fn new() -> Kernel {
        Kernel::build(false)
    }

    /// Return a counter with user code's accesses, or without.
    fn build(sees_user_accesses: bool) -> Kernel {
        let symbols = Symbols::parse(KERNEL).unwrap();
        let geometry = Geometry::parse(crate::geometry::SMALL).unwrap();
        let mut counter = Counter::new(Blocks::new(symbols, true), Some(&geometry), true, sees_user_accesses);
        announce(&mut counter, 0, 0);
        counter.open();
        Kernel { counter }
    }

    fn run(&mut self, start: u64, bytes: &[u8]) -> &mut Kernel {
        let block = self.counter.intern(start, bytes).unwrap();
        // SAFETY: interned just now.
        unsafe { self.counter.block(block) };
        self
    }

    fn user(&mut self, addresses: &[u64], bytes: &[u8]) -> &mut Kernel {
        let block = self.counter.intern_user(addresses, bytes).unwrap();
        // SAFETY: blocks are never freed.
        self.counter.user_block(unsafe { &*block });
        self
    }

    /// Access memory by the block that ran last.
    fn access(&mut self, address: u64, is_store: bool) -> &mut Kernel {
        let access = Access { place: 0, rep: None };
        // SAFETY: blocks are never freed.
        unsafe { self.counter.access(access, address, 8, is_store, || Place::Memory(address)) };
        self
    }

    /// Enter work() from user code.
    fn enter(&mut self) -> &mut Kernel {
        self.user(&[0x400000], &[NOP]).run(0x1000, &call(0x1000, 0x2000))
    }

    fn totals(&mut self) -> [Counts; CONTEXTS] {
        self.counter.close();
        let finished = self.counter.finish();
        finished.regions.by_benchmark[&0].iterations[&0]
    }

    fn count(&mut self, context: Context, event: Event) -> u64 {
        self.totals()[context as usize][event as usize]
    }

    /// Return `a;b;c instructions` for each stack.
    fn stacks(&mut self) -> Vec<String> {
        fn walk(node: *const Node, path: &str, symbols: &Symbols, lines: &mut Vec<String>) {
            // SAFETY: nodes are never freed.
            let node = unsafe { &*node };
            for child in &node.children {
                // SAFETY: as above.
                let (function, instructions) = unsafe { ((**child).function, (**child).instructions) };
                let path = format!("{path};{}", symbols.get(function).name);
                lines.push(format!("{} {instructions}", &path[1..]));
                walk(*child, &path, symbols, lines);
            }
        }
        self.counter.close();
        let finished = self.counter.finish();
        let mut lines = Vec::new();
        walk(finished.regions.by_benchmark[&0].root, "", finished.symbols, &mut lines);
        lines
    }
}

fn announce(counter: &mut Counter, benchmark: u32, iteration: u32) {
    let word = benchmark << 16 | iteration;
    (0..32).rev().for_each(|bit| counter.announce(word >> bit & 1));
}

fn relative(opcode: &[u8], source: u64, target: u64) -> Vec<u8> {
    let end = source + opcode.len() as u64 + 4;
    [opcode, &(target.wrapping_sub(end) as u32).to_le_bytes()].concat()
}

fn call(source: u64, target: u64) -> Vec<u8> {
    relative(&[0xe8], source, target)
}

fn jump_if_not_zero(source: u64, target: u64) -> Vec<u8> {
    relative(&[0x0f, 0x85], source, target)
}

#[test]
fn branches_calls_and_instructions_follow_from_the_order_of_blocks() {
    let mut kernel = Kernel::new();
    kernel.enter();
    for _ in 0..3 {
        kernel.run(0x2000, &jump_if_not_zero(0x2000, 0x2000));
    }
    kernel.run(0x2006, &[NOP, RET]).run(0x1005, &[NOP]).user(&[0x400001], &[NOP]);
    let [task, exception, interrupt] = kernel.totals();
    let count = |event: Event| task[event as usize];
    assert_eq!([count(Event::instructions), count(Event::user_instructions)], [1 + 3 + 2 + 1, 2]);
    assert_eq!([count(Event::taken_branches), count(Event::not_taken_branches)], [2, 1]);
    assert_eq!([count(Event::calls), count(Event::returns), count(Event::privilege_switches)], [1, 1, 1]);
    assert_eq!((exception, interrupt), ([0; crate::events::EVENTS], [0; crate::events::EVENTS]));
}

#[test]
fn an_interrupt_is_counted_apart_and_what_it_broke_off_goes_on() {
    let mut kernel = Kernel::new();
    kernel.enter().run(0x2000, &call(0x2000, 0x2100));
    kernel.run(0x3100, &[NOP, NOP]).run(0x3102, &IRET);
    kernel.run(0x2100, &[NOP, RET]).run(0x2005, &[NOP]);
    let [task, _, interrupt] = kernel.totals();
    assert_eq!(task[Event::instructions as usize], 1 + 1 + 2 + 1);
    assert_eq!(task[Event::calls as usize], 2);
    assert_eq!(interrupt[Event::instructions as usize], 3);
    let stacks = kernel.stacks();
    assert!(stacks.contains(&"entry_SYSCALL_64;work;callee 2".into()), "{stacks:?}");
}

#[test]
fn waiting_for_an_interrupt_is_not_counted_and_the_interrupt_is_one() {
    let mut kernel = Kernel::new();
    kernel.enter().run(0x2000, &call(0x2000, 0x2100));
    kernel.counter.wait(); // 0x2100 and what else the loop has
    kernel.run(0x3100, &[NOP, NOP]).run(0x3102, &IRET);
    kernel.counter.wait();
    kernel.run(0x3100, &[NOP, NOP]).run(0x3102, &IRET);
    kernel.counter.wait();
    kernel.run(0x2005, &[NOP, NOP, NOP]);
    let [task, _, interrupt] = kernel.totals();
    assert_eq!(task[Event::instructions as usize], 1 + 1 + 3);
    assert_eq!(interrupt[Event::instructions as usize], 6);
}

#[test]
fn a_block_that_faulted_is_counted_as_far_as_it_ran() {
    let mut kernel = Kernel::new();
    kernel.enter().run(0x2000, &[NOP, NOP, NOP, RET]);
    kernel.run(0x3000, &IRET).run(0x2002, &[NOP, RET]).run(0x1005, &[NOP]);
    let [task, exception, _] = kernel.totals();
    assert_eq!(task[Event::instructions as usize], 1 + 2 + 2 + 1);
    assert_eq!(task[Event::returns as usize], 1);
    assert_eq!(exception[Event::instructions as usize], 1);
}

#[test]
fn a_fault_of_user_code_is_an_exception_from_user_code() {
    let mut kernel = Kernel::new();
    kernel.user(&[0x400000, 0x400001, 0x400002], &[NOP; 3]).run(0x3000, &IRET).user(&[0x400001, 0x400002], &[NOP; 2]);
    let [task, exception, _] = kernel.totals();
    assert_eq!(task[Event::user_instructions as usize], 3);
    assert_eq!([exception[Event::instructions as usize], exception[Event::privilege_switches as usize]], [1, 1]);
}

#[test]
fn a_block_that_was_left_at_a_device_is_counted_once() {
    let mut kernel = Kernel::new();
    // QEMU runs the access itself where nobody sees it, then goes on behind it.
    kernel.enter().run(0x2000, &[NOP, NOP, RET]).run(0x2002, &[RET]).run(0x1005, &[NOP]);
    assert_eq!(kernel.count(Context::Task, Event::instructions), 1 + 3 + 1);
    assert_eq!(kernel.stacks(), ["entry_SYSCALL_64 2", "entry_SYSCALL_64;work 4"]);
}

#[test]
fn a_string_instruction_is_one_however_often_it_repeats() {
    let mut kernel = Kernel::new();
    let rep_movsq = [0xf3, 0x48, 0xa5];
    kernel.enter().run(0x2000, &[NOP, 0xf3, 0x48, 0xa5]);
    for _ in 0..9 {
        kernel.run(0x2001, &rep_movsq);
    }
    kernel.run(0x2004, &[RET]);
    let [task, ..] = kernel.totals();
    let count = |event: Event| task[event as usize];
    assert_eq!(
        [count(Event::instructions), count(Event::rep_instructions), count(Event::rep_iterations)],
        [1 + 2 + 1, 1, 9]
    );
    assert_eq!(kernel.stacks()[1], "entry_SYSCALL_64;work 3");
}

#[test]
fn a_task_that_sleeps_in_an_interrupt_does_not_drag_the_next_one_into_it() {
    let mut kernel = Kernel::new();
    kernel.enter().run(0x3100, &call(0x3100, 0x4000));
    kernel.run(0x4000, &[NOP, RET]);
    kernel.counter.switch(0xa000, true);
    kernel.counter.switch(0xb000, false);
    kernel.run(0x5000, &[NOP; 4]); // the other task has just begun
    kernel.run(0x5004, &call(0x5004, 0x4000)).run(0x4000, &[NOP, RET]);
    kernel.counter.switch(0xb000, true);
    kernel.counter.switch(0xa000, false);
    kernel.run(0x3105, &IRET); // back in the interrupt
    let [task, _, interrupt] = kernel.totals();
    assert_eq!(task[Event::instructions as usize], 1 + 4 + 1 + 2);
    assert_eq!(interrupt[Event::instructions as usize], 1 + 2 + 1);
}

#[test]
fn a_retpoline_is_a_call_of_what_it_returns_to() {
    let mut kernel = Kernel::new();
    kernel.enter().run(0x2000, &call(0x2000, 0x2200));
    kernel.run(0x2200, &call(0x2200, 0x2210)).run(0x2210, &[0x48, 0x89, 0x04, 0x24, RET]);
    kernel.run(0x2100, &[NOP, NOP, RET]).run(0x2005, &[NOP]);
    let stacks = kernel.stacks();
    assert!(stacks.contains(&"entry_SYSCALL_64;work;callee 3".into()), "{stacks:?}");
    assert!(stacks.contains(&"entry_SYSCALL_64;work 2".into()), "{stacks:?}");
}

#[test]
fn an_open_region_is_named_and_a_warm_up_is_none() {
    let mut kernel = Kernel::new();
    warm_up(&mut kernel);
    assert_eq!(kernel.counter.finish().unclosed, None);
    kernel.counter.close();
    announce(&mut kernel.counter, 0, u32::from(u16::MAX - 1));
    kernel.counter.open();
    assert!(!kernel.counter.active, "an earlier warm-up isn't looked at");
    announce(&mut kernel.counter, 7, 2);
    kernel.counter.open();
    let finished = kernel.counter.finish();
    assert_eq!(finished.unclosed, Some(Identity { benchmark: 7, iteration: 2 }));
    assert_eq!(finished.regions_opened, 2);
}

/// Warm up from here on, until the region is closed.
fn warm_up(kernel: &mut Kernel) {
    kernel.counter.close();
    announce(&mut kernel.counter, 0, u32::from(u16::MAX));
    kernel.counter.open();
}

#[test]
fn warm_ups_fill_caches_and_teach_the_predictor_and_are_not_counted() {
    let enter_and_work = |kernel: &mut Kernel| {
        kernel.enter().access(0x7000_0000, false);
        for _ in 0..3 {
            kernel.run(0x2000, &jump_if_not_zero(0x2000, 0x2000));
        }
        kernel.run(0x2006, &[NOP, RET]).run(0x1005, &IRET).user(&[0x400001], &[NOP]);
    };
    let count = |kernel: &mut Kernel| {
        let [task, ..] = kernel.totals();
        use Event::*;
        let misses = [l1i_misses, l1d_misses, itlb_misses, stlb_misses, mispredicted_conditional];
        (misses.map(|event| task[event as usize]), task[instructions as usize], task[user_instructions as usize])
    };
    let mut cold = Kernel::new();
    enter_and_work(&mut cold);
    let (misses, instructions, user) = count(&mut cold);
    assert_eq!((misses[..4].to_vec(), instructions, user), (vec![2, 1, 2, 3], 1 + 3 + 2 + 1, 2));
    let mut warm = Kernel::new();
    for _ in 0..20 {
        warm_up(&mut warm);
        enter_and_work(&mut warm);
    }
    count_once(&mut warm, 0, 0);
    enter_and_work(&mut warm);
    assert_eq!(count(&mut warm), ([0, 0, 0, 0, 0], instructions, user));
}

#[test]
fn a_switch_of_address_spaces_costs_the_translations_of_user_pages() {
    let mov_to_cr3 = [0x0f, 0x22, 0xd8];
    let mut kernel = Kernel::new();
    let (user, direct_map) = (0x7000_0000, 0xffff_8880_0000_0000);
    for _ in 0..10 {
        kernel.enter().access(user, false).access(direct_map, true);
        kernel.run(0x2000, &mov_to_cr3).run(0x2003, &[RET]).access(user, false).access(direct_map, false);
        kernel.run(0x1005, &IRET);
    }
    let [task, ..] = kernel.totals();
    // Two pages of code, the user's and the direct map; after each switch all but the last. (The code of this kernel lies
    // low, where pages are not global.)
    assert_eq!(task[Event::stlb_misses as usize], 4 + 10 * 3);
    assert_eq!([task[Event::cr3_writes as usize], task[Event::irets as usize]], [10, 10]);
}

#[test]
fn isolated_page_tables_are_noticed_and_cost_the_kernels_own_translations_at_each_entry() {
    // or $0x1000,%rdi; mov %rdi,%cr3
    let to_user = [0x48, 0x81, 0xcf, 0x00, 0x10, 0x00, 0x00, 0x0f, 0x22, 0xdf];
    let direct_map = 0xffff_8880_0000_0000;
    let mut kernel = Kernel::new();
    for _ in 0..10 {
        kernel.enter().access(direct_map, true).run(0x2000, &to_user).run(0x200a, &[0x0f, 0x01, 0xf8]);
    }
    let [task, ..] = kernel.totals();
    // Two pages of code and the direct map; after each exit the page that it goes on in, and the others when they are
    // needed again.
    assert_eq!(task[Event::stlb_misses as usize], 3 + 10 + 9 * 2);
    assert_eq!(task[Event::swapgs as usize], 10);
}

#[test]
fn parts_of_an_iteration_are_added_up_and_iterations_are_not() {
    let mut kernel = Kernel::new();
    for iteration in [0, 0, 1] {
        kernel.counter.close();
        announce(&mut kernel.counter, 0, iteration);
        kernel.counter.open();
        kernel.enter().run(0x2000, &[NOP; 5]);
    }
    kernel.counter.close();
    let finished = kernel.counter.finish();
    let region = &finished.regions.by_benchmark[&0];
    let count = |iteration: u16| region.iterations[&iteration][0][Event::instructions as usize];
    assert_eq!([count(0), count(1)], [12, 6]);
    assert_eq!(region.contexts[0].blocks.values().sum::<u64>(), 6);
}

/// Return what a guest makes grow, with less room for it, and the first of what it did that was too much.
fn gives_up(thing: Thing, limit: usize, attack: impl Fn(&mut Kernel, u64)) -> u64 {
    let mut kernel = Kernel::new();
    kernel.counter.blocks.room.set_limit(thing, limit);
    for number in 0..100 {
        attack(&mut kernel, number);
        if kernel.counter.has_given_up() {
            assert!(!kernel.counter.active);
            announce(&mut kernel.counter, 77, 0);
            kernel.counter.open();
            assert!(!kernel.counter.active, "{thing:?}: nothing is counted again");
            let finished = kernel.counter.finish();
            assert_eq!(finished.gave_up.map(|excess| (excess.thing.to_owned(), excess.limit)), {
                Some((format!("{thing:?}"), limit))
            });
            return number;
        }
    }
    panic!("{thing:?} grow without end");
}

fn count_once(kernel: &mut Kernel, benchmark: u64, iteration: u64) {
    kernel.counter.close();
    announce(&mut kernel.counter, benchmark as u32, iteration as u32);
    kernel.counter.open();
}

/// Run like [`Kernel::run`], when there may be no room for the block.
fn runs(kernel: &mut Kernel, start: u64, bytes: &[u8]) {
    if let Some(block) = kernel.counter.intern(start, bytes)
        && kernel.counter.active
    {
        // SAFETY: interned just now.
        unsafe { kernel.counter.block(block) };
    }
}

#[test]
fn a_guest_that_makes_anything_grow_without_end_is_given_up() {
    assert_eq!(gives_up(Thing::regions, 8, |kernel, number| count_once(kernel, number, 0)), 8);
    assert_eq!(gives_up(Thing::iterations, 8, |kernel, number| count_once(kernel, 0, number)), 8);
    // Code that changes itself, in memory that the kernel allocates.
    assert_eq!(gives_up(Thing::blocks, 8, |kernel, number| runs(kernel, 0x9000, &[0xb0, number as u8])), 8);
    assert_eq!(gives_up(Thing::code_bytes, 8, |kernel, number| runs(kernel, 0x9000, &[0xb0, number as u8])), 4);
    let user = |kernel: &mut Kernel, number: u64| _ = kernel.counter.intern_user(&[0x400000], &[0xb0, number as u8]);
    assert_eq!(gives_up(Thing::user_blocks, 8, user), 8);
    assert_eq!(gives_up(Thing::user_instructions, 8, user), 8);
    let jumps = |kernel: &mut Kernel, number: u64| {
        runs(kernel, 0x2000 + number % 10, &[0xff, 0xe0]);
        runs(kernel, 0x2010 + number / 10, &[0xff, 0xe0]);
    };
    assert!(gives_up(Thing::links, 8, jumps) < 8);
    let functions = |kernel: &mut Kernel, number: u64| runs(kernel, 0x1000 * (number % 5), &[NOP]);
    assert_eq!(gives_up(Thing::functions, 3, functions), 3);
}

#[test]
fn calls_traps_and_tasks_without_end_are_given_up() {
    let calls = |kernel: &mut Kernel, number: u64| {
        let (source, target) = [(0x2000, 0x2100), (0x2100, 0x2000)][number as usize % 2];
        runs(kernel, source, &call(source, target));
    };
    assert_eq!(gives_up(Thing::stack_depth, 8, calls), 9);
    assert_eq!(gives_up(Thing::stack_nodes, 8, calls), 9);
    let traps = |kernel: &mut Kernel, _| {
        runs(kernel, 0x2000, &[NOP, NOP]);
        runs(kernel, 0x3100, &[NOP]);
    };
    assert_eq!(gives_up(Thing::traps, 8, traps), 8);
    let tasks = |kernel: &mut Kernel, number: u64| {
        kernel.counter.switch(0xa000 + number, true);
        kernel.counter.switch(0xb000 + number, false);
    };
    assert_eq!(gives_up(Thing::tasks, 8, tasks), 8);
    let deep = |kernel: &mut Kernel, number: u64| {
        (0..8).for_each(|number| calls(kernel, number));
        tasks(kernel, number);
    };
    assert!(gives_up(Thing::frames, 100, deep) < 20);
}

#[test]
fn what_ran_in_ever_more_regions_is_given_up() {
    let work = |kernel: &mut Kernel, number: u64| {
        count_once(kernel, number, 0);
        for _ in 0..2 {
            runs(kernel, 0x2000, &jump_if_not_zero(0x2000, 0x2000));
        }
    };
    for thing in [Thing::executed_blocks, Thing::executed_branches, Thing::executed_functions] {
        assert!((8..=10).contains(&gives_up(thing, 8, work)), "{thing:?}");
    }
}

#[test]
fn faults_are_counted_by_place_however_many_there_are() {
    let mut kernel = Kernel::new();
    kernel.enter();
    for _ in 0..10_000 {
        kernel.run(0x2000, &[NOP, NOP, NOP, RET]).run(0x3000, &IRET).run(0x2002, &[NOP, RET]);
    }
    assert_eq!(kernel.counter.counted.aborted.len(), 1);
    assert_eq!(kernel.count(Context::Task, Event::instructions), 1 + 10_000 * (2 + 2));
    let faults = |kernel: &mut Kernel, number: u64| {
        let start = 0x2000 + 4 * number;
        runs(kernel, start, &[NOP, NOP, NOP, RET]);
        runs(kernel, 0x3000, &IRET);
        runs(kernel, start + 2, &[NOP, RET]);
    };
    assert_eq!(gives_up(Thing::broken_off, 8, faults), 8);
}

#[test]
fn a_trace_has_the_blocks_of_the_last_iteration_and_how_each_was_come_to() {
    let mut kernel = Kernel::new();
    kernel.enter();
    kernel.counter.close();
    announce(&mut kernel.counter, 0, 1);
    kernel.counter.open();
    kernel.enter().run(0x2000, &[NOP]).run(0x2001, &[NOP]).user(&[0x400001], &[NOP]).enter();
    kernel.counter.close();
    let finished = kernel.counter.finish();
    let trace = finished.regions.by_benchmark[&0].trace.as_ref().unwrap();
    // SAFETY: blocks are never freed.
    let start = |step: &Step| unsafe { (*step.block).facts.start };
    let steps: Vec<_> = trace.steps.iter().map(|step| (start(step), step.way)).collect();
    assert_eq!(steps, [(0x1000, Way::Entered), (0x2000, Way::Taken), (0x2001, Way::Through), (0x1000, Way::Entered)]);
    assert_eq!(trace.left_out, 0);
}

#[test]
fn what_runs_outside_of_regions_is_kept_apart() {
    let mut kernel = Kernel::new();
    kernel.enter().run(0x2000, &[NOP, RET]);
    kernel.counter.close();
    let boot = kernel.counter.intern(0x2100, &[NOP, NOP, RET]).unwrap();
    // SAFETY: interned just now.
    unsafe { (kernel.counter.unmeasured(boot), kernel.counter.unmeasured(boot)) };
    announce(&mut kernel.counter, 0, kdyno_marker::WARM_UP.into());
    kernel.counter.open();
    kernel.run(0x2000, &[NOP, RET]).counter.close();
    let finished = kernel.counter.finish();
    let counts: Vec<_> = finished.unmeasured.iter().map(|(range, count)| (range.start, range.end, *count)).collect();
    assert_eq!(counts, [(0x2000, 0x2002, 1), (0x2100, 0x2103, 2)]);
    let blocks = &finished.regions.by_benchmark[&0].contexts[Context::Task as usize].blocks;
    assert!(blocks.values().all(|count| *count == 1) && blocks.keys().all(|range| range.start != 0x2100));
}

#[test]
fn accesses_of_user_code_are_counted_apart_from_the_kernel_s() {
    let mut kernel = Kernel::build(true);
    kernel.user(&[0x400000], &[NOP]);
    for page in 0..4 {
        kernel.counter.user_access(0x4000_0000 + 4096 * page, page == 0, || Place::Memory(0x1234_5000 + 4096 * page));
    }
    kernel.user(&[0x400000], &[NOP]).enter().access(0xffff_8880_0000_0000, false);
    let totals = kernel.totals();
    let task = totals[Context::Task as usize];
    let counts = |events: [Event; 4]| events.map(|event| task[event as usize]);
    let user = [Event::user_stores, Event::user_loads, Event::user_dtlb_misses, Event::user_stlb_misses_2m];
    assert_eq!(counts(user), [1, 3, 4, 0]);
    assert_eq!(counts([Event::stores, Event::loads, Event::dtlb_misses, Event::stlb_misses_2m]), [0, 1, 1, 1]);
    assert_eq!(task[Event::user_itlb_misses as usize], 1);
    assert_eq!(task[Event::user_llc_misses as usize], 4);
}

#[test]
fn a_kernel_s_last_word_to_the_tlbs_comes_before_user_code_goes_on() {
    let walks_after = |bytes: &[u8]| {
        let mut kernel = Kernel::build(true);
        let touch = |kernel: &mut Kernel| kernel.counter.user_access(0x4000_0000, false, || Place::Memory(0));
        kernel.user(&[0x400000], &[NOP]);
        touch(&mut kernel);
        kernel.enter().run(0x2000, bytes).user(&[0x400000], &[NOP]);
        touch(&mut kernel);
        kernel.count(Context::Task, Event::user_stlb_misses)
    };
    assert_eq!(walks_after(&[NOP]), 2); // the code's page, and the data's
    assert_eq!(walks_after(&[0x0f, 0x22, 0xd8]), 4); // mov %rax,%cr3
}

#[test]
fn two_megabytes_in_one_piece_take_one_entry_once_the_kernel_has_made_a_large_page() {
    let misses = |makes_large_pages| {
        let mut kernel = Kernel::build(true);
        if makes_large_pages {
            kernel.counter.intern(0x6000, &[NOP]);
        }
        kernel.user(&[0x400000], &[NOP]);
        for page in 0..512 {
            kernel.counter.user_access(0x4000_0000 + 4096 * page, false, || Place::Memory(0x60_0000 + 4096 * page));
        }
        let totals = kernel.totals();
        [Event::user_dtlb_misses, Event::user_dtlb_misses_2m]
            .map(|event| totals[Context::Task as usize][event as usize])
    };
    assert_eq!(misses(true), [1, 1]);
    assert_eq!(misses(false), [512, 0]);
}
