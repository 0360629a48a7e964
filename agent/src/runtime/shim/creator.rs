//! Creates and starts the container, in a process that ends when that is done.

use super::confinement::Confinement;
use super::executor::Become;
use super::{ShimError, binds, devices, host, mapped, rootfs};
use crate::runtime::ContainerUser;
use crate::runtime::cgroups::Hierarchies;
use crate::runtime::record::ContainerRecord;
use crate::runtime::{Mount, app_armor, image_volume, process, spec, user};
use libcontainer::container::builder::ContainerBuilder;
use libcontainer::syscall::syscall::SyscallType;
use nix::fcntl::OFlag;
use nix::sys::stat::{Mode, umask};
use std::borrow::Cow;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// libcontainer's own state, below the container's directory.
pub const STATE: &str = "oci";
pub const CONSOLE: &str = "console.sock";

/// The container's ends of its standard streams; None with a terminal.
pub type Streams = Option<[OwnedFd; 3]>;

/// Answers with the process id. The working directory is the container's.
pub fn create(
    directory: &Path,
    record: &ContainerRecord,
    streams: Streams,
) -> Result<(i32, ContainerUser), ShimError> {
    umask(Mode::from_bits_truncate(0o022));
    let taken = binds::take(record)?;
    rootfs::leave_mounts()?;
    let namespace = user_namespace(record)?;
    let layers = match &namespace {
        Some(namespace) => mapped::map_layers(record.layers_count, namespace)?,
        None => "l",
    };
    rootfs::mount_here(record.layers_count, layers)?;
    let passwd = rootfs::read_inside(Path::new("rootfs"), "etc/passwd", user::FILE_BYTES_MAX);
    let group = rootfs::read_inside(Path::new("rootfs"), "etc/group", user::FILE_BYTES_MAX);
    let user = user::resolve(&record.config.security, &record.image.user, &passwd, &group)?;
    let arguments = process::arguments(&record.config, &record.image)
        .ok_or_else(|| ShimError::Failed("no command specified".into()))?;
    let working_directory = process::working_directory(&record.config, &record.image);
    let sandbox = &record.sandbox.config;
    let owner = ShimError::user_on_node(sandbox, user.uid)?;
    let first_id = sandbox.id_range.map_or(0, |range| range.first);
    rootfs::make_inside(Path::new("rootfs"), &working_directory, first_id)?;
    let hierarchies =
        Hierarchies::of_host().map_err(ShimError::io("cannot read the mounted cgroups"))?;
    let mut host = host::find(&hierarchies, record);
    host.given = host::given(record)?;
    host.app_armor_profile =
        app_armor::profile(&record.config.security).map_err(ShimError::Failed)?;
    let (mut staged, devices) = binds::hold(directory, &*with_image_volumes(record)?, taken)?;
    binds::add_devices(directory, &mut staged, &host.given)?;
    let mut root = PathBuf::from("rootfs");
    if let Some(namespace) = &namespace {
        (staged, root) = mapped::stage(directory, &staged, namespace)?;
    }
    host.pid_namespace = host::pid_namespace(&staged)?;
    if host.pid_namespace.is_some() {
        host.own_groups = hierarchies.v1_groups(&record.cgroup());
    }
    let spec = spec::build(&staged, &root, &user, &arguments, &host);
    let confinement = Confinement::make(
        record,
        spec::capabilities(record, &host.capabilities),
        spec::no_new_privileges(record),
    )?;
    write_json("config.json", &spec)?;
    own(streams.as_ref(), owner)?;
    keep_from_devices(&hierarchies, record, &host.given)?;
    adjust_oom_score(record.config.resources.oom_score_adj);
    let become_it = Become {
        confinement: Rc::new(confinement),
        devices: devices.map(Rc::new),
        failure: None,
    };
    let pid = start(directory, record, streams, become_it)?;
    let user = ContainerUser {
        uid: user.uid,
        gid: user.gid,
        groups: user.groups,
    };
    Ok((pid, user))
}

/// The pod's own, whose ids its files are shown with.
fn user_namespace(record: &ContainerRecord) -> Result<Option<File>, ShimError> {
    if record.sandbox.config.id_range.is_none() {
        return Ok(None);
    }
    let path = record.sandbox_directory.join("ns/user");
    let opened = File::open(path).map_err(ShimError::io("cannot open the user namespace"));
    opened.map(Some)
}

/// What libcontainer does on version 1 alone.
fn keep_from_devices(
    hierarchies: &Hierarchies,
    record: &ContainerRecord,
    given: &[spec::Given],
) -> Result<(), ShimError> {
    if record.config.security.privileged {
        return Ok(());
    }
    let group = hierarchies.make_unified(&record.cgroup());
    let group = group.map_err(ShimError::io("cannot make the container's control group"))?;
    let confine = |group: &Path| devices::confine(group, given);
    let confined = group.as_deref().map_or(Ok(()), confine);
    confined.map_err(ShimError::io(
        "cannot keep the host's devices from the container",
    ))
}

/// So that the process can open them again by /dev/stdout, as runc has it.
fn own(streams: Option<&[OwnedFd; 3]>, user: u32) -> Result<(), ShimError> {
    for stream in streams.into_iter().flatten() {
        give(stream, user).map_err(ShimError::io("cannot hand over the standard streams"))?;
    }
    Ok(())
}

/// Pipes alone: a file or a device is somebody's already.
pub fn give(stream: impl AsFd, user: u32) -> std::io::Result<()> {
    let stat = rustix::fs::fstat(&stream)?;
    if rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Fifo {
        rustix::fs::fchown(&stream, Some(rustix::fs::Uid::from_raw(user)), None)?;
    }
    Ok(())
}

/// Mounts what is shown of images, and says where.
fn with_image_volumes(record: &ContainerRecord) -> Result<Cow<'_, ContainerRecord>, ShimError> {
    let mut record = Cow::Borrowed(record);
    let is_image = |mount: &Mount| !mount.image.is_empty();
    if !record.config.mounts.iter().any(is_image) {
        return Ok(record);
    }
    let mounts = record.to_mut().config.mounts.iter_mut();
    for (number, asked) in mounts.filter(|mount| is_image(mount)).enumerate() {
        let volume = image_volume::directory(number);
        let failed = || ShimError::io(format!("cannot mount the image {}", asked.image));
        image_volume::mount(&volume).map_err(failed())?;
        let part = std::mem::take(&mut asked.sub_path);
        let shown = image_volume::resolve(&volume, &Path::new(".").join(part));
        asked.host_path = shown.map_err(failed())?;
    }
    Ok(record)
}

fn write_json(path: &str, value: &serde_json::Value) -> Result<(), ShimError> {
    fs::write(path, value.to_string()).map_err(ShimError::io(format!("cannot write {path}")))
}

/// Not by the specification: there a refusal would be fatal, and lowering it is a privilege.
fn adjust_oom_score(score: Option<i32>) {
    if let Some(score) = score {
        let _ = fs::write("/proc/self/oom_score_adj", score.to_string());
    }
}

fn start(
    directory: &Path,
    record: &ContainerRecord,
    streams: Streams,
    become_it: Become,
) -> Result<i32, ShimError> {
    let (reader, writer) =
        nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(ShimError::io("cannot make a pipe"))?;
    let told = Rc::new(File::from(writer));
    let failed = |error: libcontainer::error::LibcontainerError| ShimError::container(&error);
    let mut builder = ContainerBuilder::new(record.id.0.clone(), SyscallType::default())
        .with_executor(Become {
            failure: Some(told.clone()),
            ..become_it
        })
        .with_root_path(directory.join(STATE))
        .map_err(failed)?;
    match streams {
        Some([stdin, stdout, stderr]) => {
            builder = builder
                .with_stdin(stdin)
                .with_stdout(stdout)
                .with_stderr(stderr);
        }
        None => builder = builder.with_console_socket(Some(directory.join(CONSOLE))),
    }
    let mut container = builder
        .as_init(directory)
        .with_systemd(false)
        .with_detach(true)
        .build()
        .map_err(failed)?;
    let pid = container
        .pid()
        .ok_or_else(|| ShimError::Failed("no process id".into()))?;
    container.start().map_err(failed)?;
    drop(told);
    let mut failure = String::new();
    // Ends when execve closes the container's end; with text when it could not.
    let _ = File::from(reader).read_to_string(&mut failure);
    match failure.is_empty() {
        true => Ok(pid.as_raw()),
        false => Err(ShimError::Container(failure)),
    }
}
