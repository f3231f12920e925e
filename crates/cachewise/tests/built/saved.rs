//! What belongs to the caller is as it was at every return: callee-saved registers and the stack.
//!
//! A test by running sees only what the compiled code around a routine has not saved for itself.

use super::image::{Image, destination_register, registers};
use super::step::writes;
use iced_x86::{FlowControl, Instruction, Mnemonic, Register};
use std::collections::BTreeSet;

#[cfg(target_arch = "x86_64")]
const SAVED: [Register; 6] =
    [Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];
#[cfg(target_arch = "x86")]
const SAVED: [Register; 4] = [Register::EBX, Register::EBP, Register::ESI, Register::EDI];

const STACK_POINTER: Register =
    if cfg!(target_arch = "x86_64") { Register::RSP } else { Register::ESP };

/// The caller's registers and the stack since the entry, somewhere on a path.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    /// Indices into [`SAVED`] of those that hold something else.
    lost: BTreeSet<usize>,
    /// Word by word: the register whose value at entry it holds.
    stack: Vec<Option<usize>>,
}

fn saved(register: Register) -> Option<usize> {
    let word = if cfg!(target_arch = "x86_64") {
        register.full_register()
    } else {
        register.full_register32()
    };
    SAVED.iter().position(|&saved| saved == word)
}

impl State {
    fn step(&mut self, instruction: &Instruction, place: &str) {
        let register = destination_register(instruction).unwrap_or(Register::None);
        match instruction.mnemonic() {
            Mnemonic::Push => {
                let kept = saved(register).filter(|register| !self.lost.contains(register));
                self.stack.push(kept);
            }
            Mnemonic::Pop => {
                let popped = self.stack.pop().unwrap_or_else(|| panic!("{place}: pops too much"));
                if let Some(register) = saved(register) {
                    self.lost.remove(&register);
                    if popped != Some(register) {
                        self.lost.insert(register);
                    }
                }
            }
            Mnemonic::Sub if register == STACK_POINTER => {
                let words = instruction.immediate(1) as usize / size_of::<usize>();
                self.stack.extend(std::iter::repeat_n(None, words));
            }
            Mnemonic::Add if register == STACK_POINTER => {
                let words = instruction.immediate(1) as usize / size_of::<usize>();
                let left = self.stack.len().checked_sub(words);
                self.stack.truncate(left.unwrap_or_else(|| panic!("{place}: drops too much")));
            }
            _ => {
                for (register, access) in registers(instruction) {
                    let moves_stack = register == STACK_POINTER
                        && writes(access)
                        && !matches!(instruction.mnemonic(), Mnemonic::Call | Mnemonic::Ret);
                    assert!(!moves_stack, "{place}: the stack pointer");
                    if let Some(register) = saved(register).filter(|_| writes(access)) {
                        self.lost.insert(register);
                    }
                }
            }
        }
    }
}

/// Follows every path from the entry, faults included, to its returns; how many states that took.
pub(crate) fn check(image: &Image, entry: u64) -> usize {
    let mut seen = BTreeSet::new();
    let mut open = vec![(entry, State::default())];
    while let Some((at, state)) = open.pop() {
        if !seen.insert((at, state.clone())) {
            continue;
        }
        let place = image.place(at);
        let instruction = &image.instructions[&at];
        if let Some(fixup) = image.fixup(at) {
            let mut told = state.clone();
            // What the fault handler writes to.
            told.lost.extend(saved(Register::EBP).filter(|_| cfg!(target_arch = "x86")));
            open.push((fixup, told));
        }
        let mut after = state;
        after.step(instruction, &place);
        match instruction.flow_control() {
            FlowControl::UnconditionalBranch => {
                open.push((instruction.near_branch_target(), after));
            }
            FlowControl::ConditionalBranch => {
                open.push((instruction.near_branch_target(), after.clone()));
                open.push((instruction.next_ip(), after));
            }
            FlowControl::Return => {
                assert!(after.stack.is_empty(), "{place}: returns with the stack in disorder");
                let lost: Vec<_> = after.lost.iter().map(|&register| SAVED[register]).collect();
                assert!(lost.is_empty(), "{place}: returns without the caller's {lost:?}");
            }
            // A callee is a function of ours, followed for itself.
            _ => open.push((instruction.next_ip(), after)),
        }
    }
    seen.len()
}
