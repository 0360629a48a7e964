//! `up` needs root: started by another user it says so and runs itself again through sudo.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// Returns when this process is root already; otherwise becomes `sudo coracle ...` or fails.
#[allow(clippy::print_stderr)]
pub fn ensure_root() -> Result<(), String> {
    if nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    let program = std::env::current_exe()
        .map_err(|error| format!("cannot find the path of this program: {error}"))?;
    eprintln!("coracle up runs containers, which needs root: starting again through sudo");
    let error = Command::new("sudo")
        .arg("--preserve-env=CORACLE_LOG")
        .arg(program)
        .args(std::env::args_os().skip(1))
        .exec();
    Err(format!(
        "sudo could not be started ({error}): run this command as root"
    ))
}
