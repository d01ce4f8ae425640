//! What of an instruction decides when it can start and when its result is there. Latencies are of the order of recent
//! processors' (Fog, Instruction tables).

use crate::instruction::{has_memory, is_locked, is_rep, number};
use crate::pipeline::{FLAGS, Kind, LoadUse, NOTHING, NOWHERE, Op, RDX, Strings};
use crate::system::System;
use crate::units::{ALU, BRANCH, CONDITION, MULTIPLY, Needs, SHIFT};
use iced_x86::{ConditionCode, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

/// Return the ops; `systems` is the part of the instructions that only kernels need.
pub fn ops(instructions: &[Instruction], systems: &[Option<System>]) -> Vec<Op> {
    let mut factory = InstructionInfoFactory::new();
    let mut ops: Vec<Op> = instructions.iter().map(|instruction| op(instruction, &mut factory)).collect();
    for (op, system) in ops.iter_mut().zip(systems) {
        if system.is_some_and(|system| system.is_serializing) {
            op.kind = Kind::Fence;
        }
    }
    for place in 1..ops.len() {
        if is_fused(&instructions[place - 1], &instructions[place]) {
            (ops[place].slots, ops[place].latency) = (0, 0);
        } else if is_nop(&instructions[place]) && is_nop(&instructions[place - 1]) && ops[place - 1].slots > 0 {
            ops[place].slots = 0;
        }
    }
    ops
}

/// Return whether the jump is fused: comparisons and simple arithmetic go together with the conditional jump behind
/// them.
fn is_fused(first: &Instruction, second: &Instruction) -> bool {
    let sets_flags =
        is_simple_arithmetic(first.mnemonic()) || matches!(first.mnemonic(), Mnemonic::Cmp | Mnemonic::Test);
    sets_flags && first.op0_kind() == OpKind::Register && second.flow_control() == FlowControl::ConditionalBranch
}

fn is_nop(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Nop
}

fn is_simple_arithmetic(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::Add | Mnemonic::Sub | Mnemonic::Inc | Mnemonic::Dec | Mnemonic::And | Mnemonic::Or | Mnemonic::Xor
    )
}

fn op(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Op {
    let (mut address, mut sources, mut targets) = (Registers::default(), Registers::default(), Registers::default());
    if has_memory(instruction) && instruction.mnemonic() != Mnemonic::Lea {
        address.add(instruction.memory_base());
        address.add(instruction.memory_index());
    }
    let is_zero = is_zeroing(instruction);
    if instruction.op0_kind() == OpKind::Register && instruction.op0_register().size() < 4 {
        // The rest of the register stays as it was.
        sources.add(instruction.op0_register());
    }
    let info = factory.info(instruction);
    for register_use in info.used_registers() {
        let (reads, writes) = match register_use.access() {
            OpAccess::Read | OpAccess::CondRead => (true, false),
            OpAccess::Write => (false, true),
            // What may stay as it was is read.
            OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
            _ => (false, false),
        };
        if reads
            && !is_zero
            && (!address.has(register_use.register()) || is_operand(instruction, register_use.register()))
        {
            sources.add(register_use.register());
        }
        if writes {
            targets.add(register_use.register());
        }
    }
    if instruction.rflags_read() != 0 {
        sources.0.push(FLAGS);
    }
    if instruction.rflags_modified() != 0 {
        targets.0.push(FLAGS);
    }
    let needs = needs(instruction);
    Op {
        address: address.first(NOTHING),
        sources: sources.first(NOTHING),
        targets: targets.first(NOWHERE),
        latency: if needs & ALU != 0 { latency(instruction) } else { 0 },
        load_use: load_use(instruction),
        slots: slots(instruction),
        late: late(instruction),
        needs,
        kind: kind(instruction),
    }
}

/// The stack pointer's value never waits: processors follow pushes and pops while they decode.
#[derive(Default)]
struct Registers(Vec<u8>);

impl Registers {
    fn add(&mut self, register: Register) {
        self.0
            .extend(number(register).filter(|_| register.full_register() != Register::RSP).map(|number| number as u8));
    }

    fn has(&self, register: Register) -> bool {
        number(register).is_some_and(|number| self.0.contains(&(number as u8)))
    }

    fn first<const N: usize>(&self, else_: u8) -> [u8; N] {
        std::array::from_fn(|place| self.0.get(place).copied().unwrap_or(else_))
    }
}

/// Read for itself, not only as part of an address.
fn is_operand(instruction: &Instruction, register: Register) -> bool {
    (0..instruction.op_count()).any(|operand| {
        let only_written = operand == 0 && matches!(instruction.mnemonic(), Mnemonic::Mov | Mnemonic::Movzx);
        instruction.op_kind(operand) == OpKind::Register
            && instruction.op_register(operand).full_register() == register.full_register()
            && !only_written
    })
}

fn kind(instruction: &Instruction) -> Kind {
    match instruction.mnemonic() {
        _ if is_rep(instruction) => Kind::Rep(string_kind(instruction)),
        _ if instruction.is_string_instruction() => Kind::Microcode,
        Mnemonic::Pushfq | Mnemonic::Popfq | Mnemonic::Rdtsc | Mnemonic::Rdtscp | Mnemonic::Pause => Kind::Microcode,
        Mnemonic::Div | Mnemonic::Idiv => Kind::Divide,
        Mnemonic::Bsf | Mnemonic::Bsr | Mnemonic::Tzcnt | Mnemonic::Lzcnt | Mnemonic::Popcnt => Kind::Scan,
        Mnemonic::Mfence | Mnemonic::Lfence => Kind::Fence,
        _ if is_locked(instruction) => Kind::Locked,
        _ => Kind::Plain,
    }
}

fn string_kind(instruction: &Instruction) -> Strings {
    match instruction.mnemonic() {
        Mnemonic::Stosb | Mnemonic::Stosw => Strings::Stored,
        Mnemonic::Stosd | Mnemonic::Stosq => Strings::StoredByWords,
        Mnemonic::Movsq => Strings::MovedByWords,
        _ => Strings::Moved,
    }
}

/// Return the register whose value comes a cycle after the others: the high half of a product.
fn late(instruction: &Instruction) -> u8 {
    match instruction.mnemonic() {
        Mnemonic::Mul | Mnemonic::Imul if instruction.op_count() == 1 => RDX,
        _ => NOWHERE,
    }
}

/// Return how many operations it is.
fn slots(instruction: &Instruction) -> u8 {
    let is_pair = match instruction.mnemonic() {
        Mnemonic::Leave => true,
        Mnemonic::Xchg => !has_memory(instruction),
        Mnemonic::Mul | Mnemonic::Imul => instruction.op_count() == 1,
        // A set to memory.
        _ => instruction.condition_code() != ConditionCode::None && instruction.op0_kind() == OpKind::Memory,
    };
    if is_pair { 2 } else { 1 }
}

/// Return whether it clears a register whatever was in it: that is done where registers are renamed.
fn is_zeroing(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Xor | Mnemonic::Sub)
        && instruction.op0_kind() == OpKind::Register
        && instruction.op1_kind() == OpKind::Register
        && instruction.op0_register() == instruction.op1_register()
        && instruction.op0_register().size() >= 4
}

/// Return what it does with what it loads.
fn load_use(instruction: &Instruction) -> LoadUse {
    let into_memory = instruction.op0_kind() == OpKind::Memory && instruction.memory_size().size() >= 4;
    match instruction.mnemonic() {
        Mnemonic::Leave => LoadUse::Moved,
        Mnemonic::Mov | Mnemonic::Pop if !into_memory && instruction.op0_register().size() >= 4 => LoadUse::Moved,
        Mnemonic::Neg | Mnemonic::Not if into_memory => LoadUse::Updated,
        mnemonic if into_memory && is_simple_arithmetic(mnemonic) => LoadUse::Updated,
        _ => LoadUse::Used,
    }
}

/// Return the units that it needs, beside those of its accesses to memory.
fn needs(instruction: &Instruction) -> Needs {
    let is_between_registers = instruction.op_count() == 2 && !has_memory(instruction);
    match instruction.flow_control() {
        FlowControl::Next => {}
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => {
            return BRANCH;
        }
        FlowControl::Call | FlowControl::IndirectCall | FlowControl::Return => return BRANCH,
        _ => return ALU,
    }
    match instruction.mnemonic() {
        Mnemonic::Nop | Mnemonic::Endbr64 | Mnemonic::Push | Mnemonic::Pop | Mnemonic::Leave => 0,
        // A move between whole registers is renamed away; out of memory or into it, the access is all there is.
        Mnemonic::Mov if is_between_registers && instruction.op1_kind() != OpKind::Register => ALU,
        Mnemonic::Mov if is_between_registers && instruction.op0_register().size() < 4 => ALU,
        Mnemonic::Mov => 0,
        Mnemonic::Xchg if is_between_registers => 0,
        Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd if has_memory(instruction) => 0,
        _ if is_zeroing(instruction) => 0,
        Mnemonic::Imul | Mnemonic::Mul | Mnemonic::Mulx | Mnemonic::Crc32 => ALU | MULTIPLY,
        Mnemonic::Shl
        | Mnemonic::Shr
        | Mnemonic::Sar
        | Mnemonic::Rol
        | Mnemonic::Ror
        | Mnemonic::Rorx
        | Mnemonic::Shlx
        | Mnemonic::Shrx
        | Mnemonic::Sarx
        | Mnemonic::Shld
        | Mnemonic::Shrd
        | Mnemonic::Bt
        | Mnemonic::Bts
        | Mnemonic::Btr
        | Mnemonic::Btc
        | Mnemonic::Cdq
        | Mnemonic::Cqo => ALU | SHIFT,
        Mnemonic::Lea if has_three_parts(instruction) => ALU | SHIFT,
        _ if instruction.condition_code() != ConditionCode::None => ALU | CONDITION,
        _ => ALU,
    }
}

/// Return whether the address is the sum of a base, an index and a constant.
fn has_three_parts(instruction: &Instruction) -> bool {
    instruction.memory_base() != Register::None
        && instruction.memory_index() != Register::None
        && instruction.memory_displacement64() != 0
}

/// Return the latency of arithmetic; a load, a division, a search for a bit or a locked instruction takes longer, as the
/// family says.
fn latency(instruction: &Instruction) -> u8 {
    match instruction.mnemonic() {
        Mnemonic::Imul | Mnemonic::Mul | Mnemonic::Mulx | Mnemonic::Crc32 => 3,
        Mnemonic::Lea if has_three_parts(instruction) => 2,
        Mnemonic::Shld | Mnemonic::Shrd | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc => 2,
        // Measured on a Zen 4.
        Mnemonic::Pushfq => 4,
        Mnemonic::Popfq => 13,
        Mnemonic::Rdtsc | Mnemonic::Rdtscp => 34,
        Mnemonic::Pause => 90,
        _ if instruction.is_string_instruction() => 3,
        Mnemonic::Cmpxchg => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::LoadUse::{Moved, Updated, Used};
    use iced_x86::{Decoder, DecoderOptions};

    fn ops_of(bytes: &[u8]) -> Vec<Op> {
        let instructions: Vec<_> = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).into_iter().collect();
        ops(&instructions, &vec![None; instructions.len()])
    }

    #[test]
    fn a_load_waits_for_its_address_and_arithmetic_for_its_operands() {
        // mov (%rax,%rcx),%rax; add 8(%rdx),%rax; lea 4(%rsi,%rdi),%rbx
        let ops = ops_of(&[0x48, 0x8b, 0x04, 0x08, 0x48, 0x03, 0x42, 0x08, 0x48, 0x8d, 0x5c, 0x3e, 0x04]);
        assert_eq!((ops[0].address, ops[0].sources[0], ops[0].targets[0]), ([0, 1], NOTHING, 0));
        assert_eq!((ops[1].address, ops[1].sources[0]), ([2, NOTHING], 0));
        assert_eq!((ops[2].address, ops[2].sources[0], ops[2].sources[1]), ([NOTHING; 2], 6, 7));
    }

    #[test]
    fn a_register_that_is_cleared_waits_for_nothing() {
        // xor %edx,%edx; div %rcx
        let ops = ops_of(&[0x31, 0xd2, 0x48, 0xf7, 0xf1]);
        assert_eq!((ops[0].sources[0], ops[0].targets[0], ops[1].kind), (NOTHING, 2, Kind::Divide));
    }

    #[test]
    fn a_comparison_is_one_with_its_jump() {
        // cmp %rax,%rcx; jne; jne
        let ops = ops_of(&[0x48, 0x39, 0xc1, 0x75, 0xfb, 0x75, 0xf9]);
        assert_eq!(ops.iter().map(|op| op.slots).collect::<Vec<_>>(), [1, 0, 1]);
    }

    #[test]
    fn two_nops_are_one_operation_and_a_wide_product_is_two() {
        // nop; nop; nop; mul %rbx; imul %rbx,%rax; leave
        let ops = ops_of(&[0x90, 0x0f, 0x1f, 0x00, 0x90, 0x48, 0xf7, 0xe3, 0x48, 0x0f, 0xaf, 0xc3, 0xc9]);
        assert_eq!(ops.iter().map(|op| op.slots).collect::<Vec<_>>(), [1, 0, 1, 2, 1, 2]);
    }

    #[test]
    fn instructions_of_microcode_and_strings_of_each_kind_are_known() {
        // pushfq; movsq; rep movsq; rep movsb; rep stosl
        let ops = ops_of(&[0x9c, 0x48, 0xa5, 0xf3, 0x48, 0xa5, 0xf3, 0xa4, 0xf3, 0xab]);
        let kinds: Vec<_> = ops.iter().map(|op| op.kind).collect();
        let reps = [Strings::MovedByWords, Strings::Moved, Strings::StoredByWords].map(Kind::Rep);
        assert_eq!(kinds[..2], [Kind::Microcode; 2]);
        assert_eq!(kinds[2..], reps);
    }

    #[test]
    fn what_needs_no_arithmetic_takes_no_unit_for_it() {
        // mov %rax,%rcx; xor %edx,%edx; mov (%rdi),%eax; movzbl (%rdi),%eax; nop; push %rbx
        let ops = ops_of(&[0x48, 0x89, 0xc1, 0x31, 0xd2, 0x8b, 0x07, 0x0f, 0xb6, 0x07, 0x90, 0x53]);
        assert_eq!(ops.iter().map(|op| op.needs).collect::<Vec<_>>(), [0; 6]);
        // mov %ax,%cx; movzbl %al,%eax; shl %rax; lea 8(%rax,%rcx),%rdx; imul %rcx,%rax; sete %al; je
        let ops = ops_of(&[
            0x66, 0x89, 0xc1, 0x0f, 0xb6, 0xc0, 0x48, 0xd1, 0xe0, 0x48, 0x8d, 0x54, 0x08, 0x08, 0x48, 0x0f, 0xaf, 0xc1,
            0x0f, 0x94, 0xc0, 0x74, 0x00,
        ]);
        let expected = [ALU, ALU, ALU | SHIFT, ALU | SHIFT, ALU | MULTIPLY, ALU | CONDITION, BRANCH];
        assert_eq!(ops.iter().map(|op| op.needs).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_may_stay_as_it_was_is_waited_for() {
        // cmove %rcx,%rax; mov %bl,%al
        let ops = ops_of(&[0x48, 0x0f, 0x44, 0xc1, 0x88, 0xd8]);
        assert!(ops[0].sources.contains(&0) && ops[1].sources.contains(&0));
    }

    #[test]
    fn a_load_is_moved_or_updated_in_place_or_used() {
        // mov (%rdi),%rax; pop %rax; movzbl (%rdi),%eax; add (%rdi),%rax; add %rax,(%rdi); incb (%rdi)
        let ops = ops_of(&[0x48, 0x8b, 0x07, 0x58, 0x0f, 0xb6, 0x07, 0x48, 0x03, 0x07, 0x48, 0x01, 0x07, 0xfe, 0x07]);
        let load_use: Vec<_> = ops.iter().map(|op| op.load_use).collect();
        assert_eq!(load_use, [Moved, Moved, Used, Used, Updated, Used]);
    }
}
