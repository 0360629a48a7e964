//! The architectures a process of this machine can call the kernel by, and their call numbers.

use std::str::FromStr;

/// Added to the number of a call by the x32 ABI, which shares its audit code with x86-64.
pub const X32_BIT: u32 = 0x4000_0000;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Architecture {
    X86_64,
    X86,
    X32,
    Aarch64,
    Arm,
    Riscv64,
}

pub fn native() -> Option<Architecture> {
    match std::env::consts::ARCH {
        "x86_64" => Some(Architecture::X86_64),
        "x86" => Some(Architecture::X86),
        "aarch64" => Some(Architecture::Aarch64),
        "arm" => Some(Architecture::Arm),
        "riscv64" => Some(Architecture::Riscv64),
        _ => None,
    }
}

/// Calls whose x32 number is not that of x86-64.
const X32_OWN: [(&str, u32); 36] = [
    ("rt_sigaction", 512),
    ("rt_sigreturn", 513),
    ("ioctl", 514),
    ("readv", 515),
    ("writev", 516),
    ("recvfrom", 517),
    ("sendmsg", 518),
    ("recvmsg", 519),
    ("execve", 520),
    ("ptrace", 521),
    ("rt_sigpending", 522),
    ("rt_sigtimedwait", 523),
    ("rt_sigqueueinfo", 524),
    ("sigaltstack", 525),
    ("timer_create", 526),
    ("mq_notify", 527),
    ("kexec_load", 528),
    ("waitid", 529),
    ("set_robust_list", 530),
    ("get_robust_list", 531),
    ("vmsplice", 532),
    ("move_pages", 533),
    ("preadv", 534),
    ("pwritev", 535),
    ("rt_tgsigqueueinfo", 536),
    ("recvmmsg", 537),
    ("sendmmsg", 538),
    ("process_vm_readv", 539),
    ("process_vm_writev", 540),
    ("setsockopt", 541),
    ("getsockopt", 542),
    ("io_setup", 543),
    ("io_submit", 544),
    ("execveat", 545),
    ("preadv2", 546),
    ("pwritev2", 547),
];

/// The calls that the kernel of 32-bit ARM keeps to itself, and a second name of one.
const ARM_OWN: [(&str, u32); 7] = [
    ("sync_file_range2", 341),
    ("breakpoint", 0xf_0001),
    ("cacheflush", 0xf_0002),
    ("usr26", 0xf_0003),
    ("usr32", 0xf_0004),
    ("set_tls", 0xf_0005),
    ("get_tls", 0xf_0006),
];

impl Architecture {
    pub const ALL: [Self; 6] = [
        Self::X86_64,
        Self::X86,
        Self::X32,
        Self::Aarch64,
        Self::Arm,
        Self::Riscv64,
    ];

    pub fn profile_name(self) -> &'static str {
        match self {
            Self::X86_64 => "SCMP_ARCH_X86_64",
            Self::X86 => "SCMP_ARCH_X86",
            Self::X32 => "SCMP_ARCH_X32",
            Self::Aarch64 => "SCMP_ARCH_AARCH64",
            Self::Arm => "SCMP_ARCH_ARM",
            Self::Riscv64 => "SCMP_ARCH_RISCV64",
        }
    }

    /// None for those of other machines.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.profile_name() == name)
    }

    /// As `includes` and `excludes` of Docker's profiles name it, after Go.
    pub fn go_name(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::X86 => "386",
            Self::X32 => "x32",
            Self::Aarch64 => "arm64",
            Self::Arm => "arm",
            Self::Riscv64 => "riscv64",
        }
    }

    /// Those a process can switch to, which a default profile covers too.
    pub fn with_sub_architectures(self) -> &'static [Self] {
        match self {
            Self::X86_64 => &[Self::X86_64, Self::X86, Self::X32],
            Self::X86 => &[Self::X86],
            Self::X32 => &[Self::X32],
            Self::Aarch64 => &[Self::Aarch64, Self::Arm],
            Self::Arm => &[Self::Arm],
            Self::Riscv64 => &[Self::Riscv64],
        }
    }

    /// `AUDIT_ARCH_*` of the kernel: the ELF machine with bits for 64 bits and little endian.
    pub fn audit_code(self) -> u32 {
        match self {
            Self::X86_64 | Self::X32 => 0xc000_003e,
            Self::X86 => 0x4000_0003,
            Self::Aarch64 => 0xc000_00b7,
            Self::Arm => 0x4000_0028,
            Self::Riscv64 => 0xc000_00f3,
        }
    }

    /// Arguments have 32 bits; the upper half is none of theirs.
    pub fn is_narrow(self) -> bool {
        matches!(self, Self::X86 | Self::Arm)
    }

    /// The number of a call; None when this architecture has none of that name.
    pub fn number(self, call: &str) -> Option<u32> {
        let own = |table: &[(&str, u32)]| {
            let found = table.iter().find(|(name, _)| *name == call);
            found.map(|(_, number)| *number)
        };
        let id = match self {
            Self::X86_64 => syscalls::x86_64::Sysno::from_str(call).ok()?.id(),
            Self::X86 => syscalls::x86::Sysno::from_str(call).ok()?.id(),
            // This table has the kernel's name, profiles have the C library's.
            Self::Aarch64 if call == "newfstatat" => 79,
            Self::Aarch64 => syscalls::aarch64::Sysno::from_str(call).ok()?.id(),
            Self::Riscv64 => syscalls::riscv64::Sysno::from_str(call).ok()?.id(),
            Self::X32 => {
                let number = own(&X32_OWN).or_else(|| Self::X86_64.number(call))?;
                return Some(number | X32_BIT);
            }
            Self::Arm => match own(&ARM_OWN) {
                Some(number) => return Some(number),
                None => syscalls::arm::Sysno::from_str(call).ok()?.id(),
            },
        };
        u32::try_from(id).ok()
    }
}
