//! Which system calls a container may make: from a profile to a program for the kernel. Pure but
//! for `read`.
//!
//! A profile is the runtime's default (`default`) or a file in the format of the OCI and of
//! Docker (`profile`); `rules` says what it means for one architecture, `program` writes that as
//! classic BPF. Installing it is the shim's. An architecture that the profile does not name ends
//! the process that calls through it.

mod architecture;
mod default;
mod profile;
mod program;
mod rules;

pub use default::runtime_default;
pub use profile::{Circumstances, Profile};
pub use program::Instruction;

use nix::errno::Errno;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The kernel takes no longer program (`BPF_MAXINSNS`).
const INSTRUCTIONS_MAX: usize = 4096;
/// A profile of a thousand rules has some 100 KiB.
pub const PROFILE_BYTES_MAX: u64 = 4 << 20;

#[derive(Debug, Eq, PartialEq, thiserror::Error)]
pub enum SeccompError {
    #[error("{0}")]
    Malformed(String),
    #[error("action {0:?} is not one that this runtime knows")]
    Action(String),
    #[error("SCMP_ACT_NOTIFY needs a listener, which this runtime has not")]
    Notify,
    #[error("operator {0:?} is not one that this runtime knows")]
    Operator(String),
    #[error("flag {0:?} is not one that this runtime knows")]
    Flag(String),
    #[error("a system call has arguments 0 to 5, not {0}")]
    Index(u64),
    #[error("the profile needs {0} instructions, more than the {INSTRUCTIONS_MAX} of the kernel")]
    TooLong(usize),
    #[error("there are no filters of system calls for this machine's architecture")]
    Machine,
}

/// What the kernel is given.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Filter {
    /// Of `seccomp(2)`.
    pub flags: u64,
    pub instructions: Vec<Instruction>,
}

/// The text of a profile on this host, which can be used. Errors in the words of containerd.
pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    let shown = path.display();
    let unread =
        |error: &str| format!("cannot load seccomp profile {shown:?}: open {shown}: {error}");
    let file = File::open(path).map_err(|error| unread(&go_text(&error)))?;
    let mut text = Vec::new();
    file.take(PROFILE_BYTES_MAX)
        .read_to_end(&mut text)
        .map_err(|error| unread(&go_text(&error)))?;
    let undecoded =
        |error: SeccompError| format!("decoding seccomp profile failed {shown:?}: {error}");
    let profile = Profile::parse(&text).map_err(undecoded)?;
    compile(&profile, &Circumstances::default()).map_err(undecoded)?;
    Ok(text)
}

/// `no such file or directory`, without the number that Rust adds.
fn go_text(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => Errno::from_raw(number).desc().to_lowercase(),
        None => error.to_string(),
    }
}

/// The program for this machine and the architectures that the profile adds.
pub fn compile(
    profile: &Profile,
    circumstances: &Circumstances<'_>,
) -> Result<Filter, SeccompError> {
    let native = architecture::native().ok_or(SeccompError::Machine)?;
    let resolved = profile.resolve(native, circumstances)?;
    let sections: Vec<_> = resolved
        .architectures
        .iter()
        .map(|one| rules::of_architecture(*one, &resolved))
        .collect();
    let instructions = program::write(&sections);
    if instructions.len() > INSTRUCTIONS_MAX {
        return Err(SeccompError::TooLong(instructions.len()));
    }
    Ok(Filter {
        flags: resolved.flags,
        instructions,
    })
}

impl Filter {
    /// As the exec shim reads it again: the flags, then eight bytes an instruction.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.flags.to_le_bytes().to_vec();
        for one in &self.instructions {
            bytes.extend_from_slice(&one.code.to_le_bytes());
            bytes.extend_from_slice(&[one.if_true, one.if_false]);
            bytes.extend_from_slice(&one.operand.to_le_bytes());
        }
        bytes
    }

    /// None when the bytes are not those of a filter.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (flags, rest) = bytes.split_first_chunk::<8>()?;
        let (instructions, &[]) = rest.as_chunks::<8>() else {
            return None;
        };
        let instructions = instructions
            .iter()
            .map(|[a, b, c, d, e, f, g, h]| Instruction {
                code: u16::from_le_bytes([*a, *b]),
                if_true: *c,
                if_false: *d,
                operand: u32::from_le_bytes([*e, *f, *g, *h]),
            });
        Some(Self {
            flags: u64::from_le_bytes(*flags),
            instructions: instructions.collect(),
        })
    }
}

#[cfg(test)]
mod tests;
