//! Which devices a container may open on a host of version 2 control groups, where no file says
//! so: a program of the kernel that is asked for each device by the container's group.
//!
//! The same devices as on version 1: those that every container finds in /dev. Any node may be
//! made, as containerd and Docker have it; opening is what is refused.

#![allow(unsafe_code)] // bpf(2) has no safe form.

use crate::runtime::spec::Given;
use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// Commands and kinds of bpf(2).
const PROG_LOAD: libc::c_int = 5;
const PROG_ATTACH: libc::c_int = 8;
const PROG_TYPE_CGROUP_DEVICE: u32 = 15;
const CGROUP_DEVICE: u32 = 6;
/// Programs of the groups above and below are asked too, and each must agree.
const ALLOW_MULTI: u32 = 2;

/// What is asked, as the kernel writes it: the access above the kind.
const ACCESS_AT: i16 = 0;
const MAJOR_AT: i16 = 4;
const MINOR_AT: i16 = 8;
const KIND_BITS: i32 = 16;
const KIND_MASK: i32 = 0xffff;
const MAKE_NODE: i32 = 1;
const WRITE: i32 = 4;
const BLOCK_DEVICE: i32 = 1;
const CHARACTER_DEVICE: i32 = 2;

/// Character devices: null, zero, full, random, urandom; tty, console, ptmx; terminals.
const ALLOWED: [(i32, Option<i32>); 9] = [
    (1, Some(3)),
    (1, Some(5)),
    (1, Some(7)),
    (1, Some(8)),
    (1, Some(9)),
    (5, Some(0)),
    (5, Some(1)),
    (5, Some(2)),
    (136, None),
];

/// An instruction: its code, two registers, how far to jump, and a number.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    number: i32,
}

/// Registers: what is answered, what is asked, and its parts.
const ANSWER: u8 = 0;
const ASKED: u8 = 1;
const ACCESS: u8 = 2;
const KIND: u8 = 3;
const MAJOR: u8 = 4;
const MINOR: u8 = 5;

/// Codes of a word from memory, of 32-bit arithmetic with a number or a register, and of jumps.
const LOAD: u8 = 0x61;
const COPY: u8 = 0xbc;
const SET: u8 = 0xb4;
const AND: u8 = 0x54;
const SHIFT_RIGHT: u8 = 0x74;
const JUMP_EQUAL: u8 = 0x15;
const JUMP_NOT_EQUAL: u8 = 0x55;
const JUMP_ANY_OF: u8 = 0x45;
const EXIT: u8 = 0x95;

const fn with(code: u8, to: u8, from: u8, offset: i16, number: i32) -> Instruction {
    // The lower half is the one that is written to on machines of this byte order.
    let registers = if cfg!(target_endian = "little") {
        to | from << 4
    } else {
        to << 4 | from
    };
    Instruction {
        code,
        registers,
        offset,
        number,
    }
}

fn answer(number: i32) -> [Instruction; 2] {
    [with(SET, ANSWER, 0, 0, number), with(EXIT, 0, 0, 0, 0)]
}

fn program(given: &[Given]) -> Vec<Instruction> {
    let mut program = vec![
        with(LOAD, ACCESS, ASKED, ACCESS_AT, 0),
        with(COPY, KIND, ACCESS, 0, 0),
        with(AND, KIND, 0, 0, KIND_MASK),
        with(SHIFT_RIGHT, ACCESS, 0, 0, KIND_BITS),
        with(LOAD, MAJOR, ASKED, MAJOR_AT, 0),
        with(LOAD, MINOR, ASKED, MINOR_AT, 0),
        // Each condition jumps over an answer of two instructions.
        with(JUMP_NOT_EQUAL, ACCESS, 0, 2, MAKE_NODE),
    ];
    program.extend(answer(1));
    for one in given {
        let kind = if one.kind == 'b' {
            BLOCK_DEVICE
        } else {
            CHARACTER_DEVICE
        };
        let denied = if one.read_only { WRITE } else { 0 };
        let number = |number: u64| i32::try_from(number).unwrap_or(-1);
        // All conditions of a device lead past its answer.
        program.extend([
            with(JUMP_ANY_OF, ACCESS, 0, 5, denied),
            with(JUMP_NOT_EQUAL, KIND, 0, 4, kind),
            with(JUMP_NOT_EQUAL, MAJOR, 0, 3, number(one.major)),
            with(JUMP_NOT_EQUAL, MINOR, 0, 2, number(one.minor)),
        ]);
        program.extend(answer(1));
    }
    program.push(with(JUMP_EQUAL, KIND, 0, 2, CHARACTER_DEVICE));
    program.extend(answer(0));
    for (major, minor) in ALLOWED {
        match minor {
            Some(minor) => {
                program.push(with(JUMP_NOT_EQUAL, MAJOR, 0, 3, major));
                program.push(with(JUMP_NOT_EQUAL, MINOR, 0, 2, minor));
            }
            None => program.push(with(JUMP_NOT_EQUAL, MAJOR, 0, 2, major)),
        }
        program.extend(answer(1));
    }
    program.extend(answer(0));
    program
}

/// The head of what a program is loaded with; the kernel takes the rest for zero.
#[repr(C)]
struct Load {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
}

#[repr(C)]
struct Attach {
    target: u32,
    program: u32,
    kind: u32,
    flags: u32,
}

/// Holds the group to these devices and those that are given, for as long as it is there. Nothing
/// runs in it yet.
pub fn confine(group: &Path, given: &[Given]) -> io::Result<()> {
    let group = File::open(group)?;
    let program = load(&program(given))?;
    let attach = Attach {
        target: raw(&group),
        program: raw(&program),
        kind: CGROUP_DEVICE,
        flags: ALLOW_MULTI,
    };
    bpf(PROG_ATTACH, &attach).map(drop)
}

fn load(program: &[Instruction]) -> io::Result<OwnedFd> {
    let address = |pointer: *const u8| pointer as u64;
    let load = Load {
        kind: PROG_TYPE_CGROUP_DEVICE,
        count: u32::try_from(program.len()).unwrap_or(u32::MAX),
        instructions: address(program.as_ptr().cast()),
        license: address(c"Apache-2.0".as_ptr().cast()),
        log_level: 0,
        log_size: 0,
        log: 0,
    };
    let descriptor = bpf(PROG_LOAD, &load)?;
    // SAFETY: the kernel has just made it, for us.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn bpf<T>(command: libc::c_int, attributes: &T) -> io::Result<libc::c_int> {
    let attributes = std::ptr::from_ref(attributes);
    // SAFETY: what the attributes point to outlives the call, which writes to none of it.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size_of::<T>()) };
    match libc::c_int::try_from(answer) {
        Ok(answer @ 0..) => Ok(answer),
        _ => Err(io::Error::last_os_error()),
    }
}

fn raw(descriptor: &impl AsRawFd) -> u32 {
    u32::try_from(descriptor.as_raw_fd()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
