//! The last walls around a process before it becomes the program: its system calls and its
//! capabilities.
//!
//! libcontainer is given no capabilities to drop, since without `no_new_privs` the kernel takes a
//! filter only from those who have `CAP_SYS_ADMIN`. The order is runc's: with `no_new_privs`
//! first the capabilities go and then the filter comes, without it the other way around.
#![allow(unsafe_code)] // seccomp(2) and prctl(2) have no safe form.

use super::ShimError;
use crate::runtime::record::{self, ContainerRecord};
use crate::runtime::seccomp::{self, Circumstances, Filter, PROFILE_BYTES_MAX, Profile};
use crate::runtime::{Seccomp, record::SECCOMP_PROFILE};
use libcontainer::oci_spec::runtime::LinuxCapabilities;
use libcontainer::syscall::syscall::create_syscall;
use nix::errno::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// Of the container's directory, for the commands that are executed in it later.
const CONFINEMENT: &str = "confinement.json";
const FILTER: &str = "seccomp.bpf";
/// The longest program and its flags.
const FILTER_BYTES_MAX: u64 = 8 + 8 * 4096;

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Confinement {
    /// With `CAP_`.
    pub capabilities: Vec<String>,
    pub no_new_privileges: bool,
    #[serde(skip)]
    pub filter: Option<Filter>,
}

impl Confinement {
    /// Makes it, and leaves it in the container's directory, which is the working one.
    pub fn make(
        record: &ContainerRecord,
        capabilities: Vec<String>,
        no_new_privileges: bool,
    ) -> Result<Self, ShimError> {
        let filter = filter(record, &capabilities)?;
        let made = Self {
            capabilities,
            no_new_privileges,
            filter,
        };
        if let Some(filter) = &made.filter {
            fs::write(FILTER, filter.to_bytes())
                .map_err(ShimError::io(format!("cannot write {FILTER}")))?;
        }
        record::write(Path::new(CONFINEMENT), &made)
            .map_err(ShimError::io(format!("cannot write {CONFINEMENT}")))?;
        Ok(made)
    }

    /// That of the container that runs already. Fails rather than run a command without walls.
    pub fn load(record: &ContainerRecord) -> Result<Self, ShimError> {
        let mut kept: Self = record::read(Path::new(CONFINEMENT))
            .map_err(ShimError::io("cannot read the container's confinement"))?;
        if has_filter(record) {
            let bytes = read(FILTER, FILTER_BYTES_MAX)?;
            let filter = Filter::from_bytes(&bytes)
                .ok_or_else(|| ShimError::Failed("the container's filter is damaged".into()))?;
            kept.filter = Some(filter);
        }
        Ok(kept)
    }

    /// Called last of all, with what libcontainer left: every capability that this process has.
    pub fn enter(&self) -> Result<(), String> {
        // Until it has become the program, nobody inside may look into this one: its memory and
        // its executable are the host's.
        // SAFETY: changes a flag of this process.
        unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
        if self.no_new_privileges {
            self.drop_capabilities()?;
            return self.install();
        }
        self.install()?;
        self.drop_capabilities()
    }

    fn drop_capabilities(&self) -> Result<(), String> {
        let failed = |error: &dyn std::fmt::Display| format!("cannot drop capabilities: {error}");
        let set = serde_json::json!({
            "bounding": self.capabilities, "effective": self.capabilities,
            "permitted": self.capabilities, "inheritable": [], "ambient": [],
        });
        let set: LinuxCapabilities = serde_json::from_value(set).map_err(|error| failed(&error))?;
        libcontainer::capabilities::drop_privileges(&set, create_syscall().as_ref())
            .map_err(|error| failed(&error))
    }

    fn install(&self) -> Result<(), String> {
        let Some(filter) = &self.filter else {
            return Ok(());
        };
        match load(filter, filter.flags) {
            // A kernel before 4.17 knows no flags but the first.
            Err(Errno::EINVAL) if filter.flags != 0 => load(filter, 0),
            loaded => loaded,
        }
        .map_err(|errno| format!("error loading seccomp filter into kernel: {}", errno.desc()))
    }
}

fn load(filter: &Filter, flags: u64) -> Result<(), Errno> {
    let mut instructions: Vec<libc::sock_filter> = filter
        .instructions
        .iter()
        .map(|one| libc::sock_filter {
            code: one.code,
            jt: one.if_true,
            jf: one.if_false,
            k: one.operand,
        })
        .collect();
    let program = libc::sock_fprog {
        len: u16::try_from(instructions.len()).map_err(|_| Errno::EINVAL)?,
        filter: instructions.as_mut_ptr(),
    };
    // SAFETY: the program and what it points to live until the call returns; the kernel copies.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const program,
        )
    };
    Errno::result(answer).map(drop)
}

fn has_filter(record: &ContainerRecord) -> bool {
    let security = &record.config.security;
    !security.privileged && security.seccomp != Seccomp::Unconfined
}

fn filter(record: &ContainerRecord, capabilities: &[String]) -> Result<Option<Filter>, ShimError> {
    if !has_filter(record) {
        return Ok(None);
    }
    let circumstances = Circumstances {
        capabilities,
        kernel: crate::kernel::version(),
    };
    let failed = |error: seccomp::SeccompError| ShimError::Failed(error.to_string());
    let profile = match record.config.security.seccomp {
        Seccomp::Localhost(_) => Profile::parse(&read(SECCOMP_PROFILE, PROFILE_BYTES_MAX)?),
        _ => seccomp::runtime_default(&circumstances),
    };
    let profile = profile.map_err(failed)?;
    seccomp::compile(&profile, &circumstances)
        .map(Some)
        .map_err(failed)
}

fn read(path: &str, bytes_max: u64) -> Result<Vec<u8>, ShimError> {
    let read = || {
        let mut bytes = Vec::new();
        File::open(path)?.take(bytes_max).read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(bytes)
    };
    read().map_err(ShimError::io(format!("cannot read {path}")))
}
