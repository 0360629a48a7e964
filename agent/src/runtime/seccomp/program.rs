//! Sections of rules as a program of classic BPF. Pure.
//!
//! The architecture first, then a binary search over the ranges of numbers; all jumps go
//! forward and every path ends in a return, so that parts can be put behind each other.

use super::architecture::{Architecture, X32_BIT};
use super::profile::{Action, Comparison, Operator};
use super::rules::{Outcome, Section};

/// `struct sock_filter`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Instruction {
    pub code: u16,
    /// How many to skip.
    pub if_true: u8,
    pub if_false: u8,
    pub operand: u32,
}

pub(super) const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
pub(super) const AND: u16 = 0x54; // BPF_ALU | BPF_AND | BPF_K
pub(super) const JUMP: u16 = 0x05; // BPF_JMP | BPF_JA
pub(super) const IF_EQUAL: u16 = 0x15;
pub(super) const IF_GREATER: u16 = 0x25;
pub(super) const IF_GREATER_OR_EQUAL: u16 = 0x35;
pub(super) const RETURN: u16 = 0x06;

/// Offsets in `struct seccomp_data`; all machines that are known have the low half first.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

pub fn write(sections: &[Section]) -> Vec<Instruction> {
    let mut program = vec![load(ARCHITECTURE)];
    for (at, section) in sections.iter().enumerate() {
        let architecture = section.architecture;
        if architecture == Architecture::X32 {
            continue; // Inside of the section of x86-64.
        }
        let mut body = vec![load(NUMBER)];
        if architecture == Architecture::X86_64 {
            let x32 = sections[at..]
                .iter()
                .find(|other| other.architecture == Architecture::X32);
            let x32 = x32.map_or_else(killed_but_skipped, |other| search(&other.ranges));
            body.extend(unless(IF_GREATER_OR_EQUAL, X32_BIT, &x32));
        }
        body.extend(search(&section.ranges));
        program.extend(unless(IF_EQUAL, architecture.audit_code(), &body));
    }
    program.push(give(Action::KILL_PROCESS));
    program
}

/// For calls by a way that the profile does not name. Number -1 is no call: a tracer skips one so,
/// and it goes on to what is not known.
fn killed_but_skipped() -> Vec<Instruction> {
    vec![branch(IF_EQUAL, u32::MAX, 1, 0), give(Action::KILL_PROCESS)]
}

/// `body` when the comparison holds, else what comes behind it.
fn unless(code: u16, operand: u32, body: &[Instruction]) -> Vec<Instruction> {
    let mut all = vec![
        branch(code, operand, 1, 0),
        Instruction {
            code: JUMP,
            if_true: 0,
            if_false: 0,
            operand: length(body),
        },
    ];
    all.extend_from_slice(body);
    all
}

fn search(ranges: &[(u32, Outcome)]) -> Vec<Instruction> {
    match ranges {
        [] => Vec::new(),
        [(_, outcome)] => outcome_of(outcome),
        _ => {
            let (lower, upper) = ranges.split_at(ranges.len() / 2);
            let start = upper[0].0;
            let (lower, upper) = (search(lower), search(upper));
            let mut all = match u8::try_from(lower.len()) {
                Ok(skip) => vec![branch(IF_GREATER_OR_EQUAL, start, skip, 0)],
                Err(_) => {
                    let far = Instruction {
                        code: JUMP,
                        if_true: 0,
                        if_false: 0,
                        operand: length(&lower),
                    };
                    vec![branch(IF_GREATER_OR_EQUAL, start, 0, 1), far]
                }
            };
            all.extend(lower);
            all.extend(upper);
            all
        }
    }
}

fn outcome_of(outcome: &Outcome) -> Vec<Instruction> {
    match outcome {
        Outcome::Always(action) => vec![give(*action)],
        Outcome::First(rules, otherwise) => {
            let mut all: Vec<_> = rules
                .iter()
                .flat_map(|(comparisons, action)| all_hold(comparisons, *action))
                .collect();
            all.push(give(*otherwise));
            all
        }
    }
}

/// Gives the action when all hold, else goes on behind. Six comparisons have at most 31
/// instructions: every jump fits.
fn all_hold(comparisons: &[Comparison], action: Action) -> Vec<Instruction> {
    let mut body = vec![give(action)];
    for comparison in comparisons.iter().rev() {
        let skip = u8::try_from(body.len()).unwrap_or(u8::MAX);
        let mut with = compare(comparison, skip);
        with.append(&mut body);
        body = with;
    }
    body
}

/// Goes on when it holds, else skips `skip` of what follows. 64 bits in two halves.
fn compare(comparison: &Comparison, skip: u8) -> Vec<Instruction> {
    let low_at = ARGUMENTS + 8 * u32::from(comparison.index);
    let (low, high) = halves(comparison.value);
    let high_first = |rest: Vec<Instruction>| {
        let mut all = vec![load(low_at + 4)];
        all.extend(rest);
        all
    };
    match comparison.operator {
        Operator::Equal => high_first(vec![
            branch(IF_EQUAL, high, 0, skip + 2),
            load(low_at),
            branch(IF_EQUAL, low, 0, skip),
        ]),
        Operator::NotEqual => high_first(vec![
            branch(IF_EQUAL, high, 0, 2),
            load(low_at),
            branch(IF_EQUAL, low, skip, 0),
        ]),
        Operator::Greater | Operator::GreaterOrEqual => {
            let code = match comparison.operator {
                Operator::Greater => IF_GREATER,
                _ => IF_GREATER_OR_EQUAL,
            };
            high_first(vec![
                branch(IF_GREATER, high, 3, 0),
                branch(IF_EQUAL, high, 0, skip + 2),
                load(low_at),
                branch(code, low, 0, skip),
            ])
        }
        Operator::Less | Operator::LessOrEqual => {
            let code = match comparison.operator {
                Operator::Less => IF_GREATER_OR_EQUAL,
                _ => IF_GREATER,
            };
            high_first(vec![
                branch(IF_GREATER, high, skip + 3, 0),
                branch(IF_EQUAL, high, 0, 2),
                load(low_at),
                branch(code, low, skip, 0),
            ])
        }
        Operator::MaskedEqual => {
            let (low_wanted, high_wanted) = halves(comparison.value_two);
            high_first(vec![
                and(high),
                branch(IF_EQUAL, high_wanted, 0, skip + 3),
                load(low_at),
                and(low),
                branch(IF_EQUAL, low_wanted, 0, skip),
            ])
        }
    }
}

fn halves(value: u64) -> (u32, u32) {
    #[allow(clippy::cast_possible_truncation)] // The low half is what is meant.
    let low = value as u32;
    (low, u32::try_from(value >> 32).unwrap_or(u32::MAX))
}

fn load(operand: u32) -> Instruction {
    branch(LOAD, operand, 0, 0)
}

fn and(operand: u32) -> Instruction {
    branch(AND, operand, 0, 0)
}

fn give(action: Action) -> Instruction {
    branch(RETURN, action.0, 0, 0)
}

fn branch(code: u16, operand: u32, if_true: u8, if_false: u8) -> Instruction {
    Instruction {
        code,
        if_true,
        if_false,
        operand,
    }
}

fn length(instructions: &[Instruction]) -> u32 {
    u32::try_from(instructions.len()).unwrap_or(u32::MAX)
}
