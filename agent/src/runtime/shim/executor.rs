//! The last step inside a container: finding the program and becoming it.
//!
//! libcontainer's own executor wants a PATH variable, keeps the environment in no order and
//! tells nobody why execve failed; this one does as a shell would.

use super::confinement::Confinement;
use super::mapped::Tree;
use libcontainer::oci_spec::runtime::Spec;
use libcontainer::workload::ExecutorValidationError;
use libcontainer::workload::{Executor, ExecutorError, ExecutorSetEnvsError};
use nix::errno::Errno;
use std::collections::HashMap;
use std::ffi::CString;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

#[derive(Clone, Debug)]
pub struct Become {
    pub confinement: Rc<Confinement>,
    /// What the container has in the place of its own /dev.
    pub devices: Option<Rc<Tree>>,
    /// Told why execve failed; closed by a successful one.
    pub failure: Option<Rc<File>>,
}

impl Executor for Become {
    fn exec(&self, spec: &Spec) -> Result<(), ExecutorError> {
        let failure = self.become_program(spec);
        if let Some(mut told) = self.failure.as_deref() {
            let _ = told.write_all(failure.as_bytes());
        }
        Err(ExecutorError::Other(failure))
    }

    fn validate(&self, spec: &Spec) -> Result<(), ExecutorValidationError> {
        let (arguments, environment) = words(spec);
        let program = arguments.first().map(String::as_str).unwrap_or_default();
        find(program, &environment)
            .map(|_| ())
            .map_err(ExecutorValidationError::ArgValidationError)
    }

    fn setup_envs(&self, _: HashMap<String, String>) -> Result<(), ExecutorSetEnvsError> {
        Ok(()) // Passed to execve, in the order of the specification.
    }
}

impl Become {
    /// Returns only with what went wrong.
    fn become_program(&self, spec: &Spec) -> String {
        let (arguments, environment) = words(spec);
        let program = arguments.first().map(String::as_str).unwrap_or_default();
        let path = match find(program, &environment) {
            Ok(path) => path,
            Err(text) => return text,
        };
        let passed = |texts: &[String]| -> Vec<CString> {
            texts
                .iter()
                .filter_map(|text| CString::new(text.as_bytes()).ok())
                .collect()
        };
        let Ok(file) = CString::new(path.as_os_str().as_encoded_bytes()) else {
            return format!("exec: {program:?}: invalid argument");
        };
        super::process::reset_signals();
        if let Some(tree) = &self.devices
            && let Err(error) = tree.cover(Path::new("/dev"))
        {
            return format!("cannot mount /dev: {error}");
        }
        if let Err(text) = self.confinement.enter() {
            return text;
        }
        match nix::unistd::execve(&file, &passed(&arguments), &passed(&environment)) {
            Ok(never) => match never {},
            Err(errno) => format!("exec {}: {}", path.display(), lower(errno)),
        }
    }
}

fn words(spec: &Spec) -> (Vec<String>, Vec<String>) {
    let process = spec.process().as_ref();
    let arguments = process.and_then(|process| process.args().clone());
    let environment = process.and_then(|process| process.env().clone());
    (
        arguments.unwrap_or_default(),
        environment.unwrap_or_default(),
    )
}

fn lower(errno: Errno) -> String {
    errno.desc().to_lowercase()
}

/// Go's words, which users of Kubernetes know.
fn find(program: &str, environment: &[String]) -> Result<PathBuf, String> {
    let refused = |why: &str| Err(format!("exec: {program:?}: {why}"));
    if program.contains('/') {
        return match is_program(Path::new(program)) {
            Ok(()) => Ok(program.into()),
            Err(errno) => Err(format!(
                "exec: {program:?}: stat {program}: {}",
                lower(errno)
            )),
        };
    }
    let paths = environment
        .iter()
        .find_map(|variable| variable.strip_prefix("PATH="));
    let mut denied = false;
    for directory in paths
        .unwrap_or_default()
        .split(':')
        .filter(|_| !program.is_empty())
    {
        let candidate = Path::new(if directory.is_empty() { "." } else { directory }).join(program);
        match is_program(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(errno) => denied |= errno == Errno::EACCES,
        }
    }
    match denied {
        true => refused("permission denied"),
        false => refused("executable file not found in $PATH"),
    }
}

fn is_program(path: &Path) -> Result<(), Errno> {
    let found = std::fs::metadata(path)
        .map_err(|error| error.raw_os_error().map_or(Errno::ENOENT, Errno::from_raw))?;
    if found.is_dir() {
        return Err(Errno::EISDIR);
    }
    match found.permissions().mode() & 0o111 {
        0 => Err(Errno::EACCES),
        _ => Ok(()),
    }
}
