//! The first process of a PID namespace that the containers of a pod share.
//!
//! It does nothing: that it is there keeps the namespace open, and orphans that become its
//! children vanish by themselves. It sees nothing of the host (its root is an empty directory),
//! has no rights, and cannot be killed from inside. It ends with its control group.

use super::{ShimError, process, sandbox};
use crate::runtime::cgroups::Hierarchies;
use crate::runtime::record::{self, REAPER, SandboxRecord};
use nix::fcntl::OFlag;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

/// A user that nobody else is, as of upstream's pause container.
const USER: u32 = 65535;
/// Begins what went wrong.
const FAILURE: &str = "!";
/// The last to go when memory runs out, as upstream's.
const OOM_SCORE: &str = "-998";

/// The working directory is the sandbox's. The namespace belongs to the pod's user namespace, if
/// it has one of its own.
pub fn start(record: &SandboxRecord) -> Result<(), ShimError> {
    let (reader, writer) =
        nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(ShimError::io("cannot make a pipe"))?;
    let (mut reader, mut writer) = (File::from(reader), Some(File::from(writer)));
    // This process may not leave its own namespaces: another one does, and ends.
    let maker = process::spawn(|| {
        let Some(told) = writer.take() else { return 1 };
        let made = make(record, &told);
        let line = match &made {
            Ok(pid) => format!("{pid}\n"),
            Err(error) => format!("{}{}\n", FAILURE, crate::error::chain(error)),
        };
        i32::from((&told).write_all(line.as_bytes()).is_err())
    });
    let maker = maker.map_err(ShimError::io("cannot fork"))?;
    drop(writer);
    let mut said = String::new();
    let heard = reader.read_to_string(&mut said);
    heard.map_err(ShimError::io("cannot hear the first process"))?;
    process::wait(maker).map_err(ShimError::io("cannot wait for the first process"))?;
    if let Some(error) = said.lines().find_map(|line| line.strip_prefix(FAILURE)) {
        return Err(ShimError::Failed(error.to_owned()));
    }
    let pid: i32 = said
        .trim()
        .parse()
        .map_err(|_| ShimError::Failed("the first process did not come to be".into()))?;
    sandbox::pin("pid", &format!("/proc/{pid}/ns/pid"))?;
    record::write(Path::new(REAPER), &pid)
        .map_err(ShimError::io("cannot write the sandbox's state"))
}

/// Answers with the process id of the namespace's first process.
fn make(record: &SandboxRecord, told: &File) -> Result<Pid, ShimError> {
    let hierarchies =
        Hierarchies::of_host().map_err(ShimError::io("cannot read the mounted cgroups"))?;
    hierarchies.enter(&record.own_cgroup());
    let _ = fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    leave_streams().map_err(ShimError::io("cannot leave the standard streams"))?;
    if record.config.id_range.is_some() {
        let user =
            File::open("ns/user").map_err(ShimError::io("cannot open the user namespace"))?;
        setns(user, CloneFlags::CLONE_NEWUSER)
            .map_err(ShimError::io("cannot enter the user namespace"))?;
    }
    unshare(CloneFlags::CLONE_NEWPID).map_err(ShimError::io("cannot make a PID namespace"))?;
    let first = process::spawn(|| {
        if let Err(error) = retire() {
            let line = format!("{FAILURE}{}\n", crate::error::chain(&error));
            let mut told = told;
            let _ = told.write_all(line.as_bytes());
            return 1;
        }
        let _ = nix::unistd::close(told.as_raw_fd());
        loop {
            nix::unistd::pause();
        }
    });
    first.map_err(ShimError::io("cannot fork"))
}

/// Lets go of everything that a process of the pod could reach through this one.
fn retire() -> Result<(), ShimError> {
    let failed = |what: &'static str| ShimError::io::<nix::errno::Errno>(what);
    let _ = nix::unistd::setsid();
    process::ignore_children();
    unshare(CloneFlags::CLONE_NEWNS).map_err(failed("cannot make a mount namespace"))?;
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_PRIVATE | MsFlags::MS_REC, none)
        .map_err(failed("cannot detach the mount namespace"))?;
    let flags = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("none"), "ns", Some("tmpfs"), flags, Some("size=4k"))
        .map_err(failed("cannot mount an empty directory"))?;
    nix::unistd::chdir("ns").map_err(failed("cannot enter an empty directory"))?;
    // The old root is mounted over the new one, and goes.
    nix::unistd::pivot_root(".", ".").map_err(failed("cannot leave the root"))?;
    umount2(".", MntFlags::MNT_DETACH).map_err(failed("cannot let go of the root"))?;
    nix::unistd::chdir("/").map_err(failed("cannot enter the root"))?;
    nix::unistd::setgroups(&[]).map_err(failed("cannot drop the groups"))?;
    nix::unistd::setgid(USER.into()).map_err(failed("cannot drop the group"))?;
    nix::unistd::setuid(USER.into()).map_err(failed("cannot drop the user"))?;
    nix::sys::prctl::set_no_new_privs().map_err(failed("cannot drop rights"))?;
    // Neither memory nor the program's file can be read by others of this user.
    nix::sys::prctl::set_dumpable(false).map_err(failed("cannot close the memory"))
}

fn leave_streams() -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    for stream in 0..3 {
        nix::unistd::dup2(null.as_raw_fd(), stream)?;
    }
    Ok(())
}
