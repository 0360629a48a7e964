//! The profile `RuntimeDefault`: what containerd and Docker let a container do by default.
//!
//! What is not listed is refused with `EPERM`. Left out on purpose: keyrings, namespaces, mounts,
//! kernel modules, `io_uring`, `userfaultfd`, NUMA policies and what sets the clock; a capability
//! brings back the calls that are its own.

use super::SeccompError;
use super::architecture::{Architecture, native};
use super::profile::{Circumstances, Profile};
use serde_json::{Value, json};

const FILES: &str = "access cachestat chdir chmod chown chown32 close close_range \
    copy_file_range creat dup dup2 dup3 faccessat faccessat2 fadvise64 fadvise64_64 fallocate \
    fchdir fchmod fchmodat fchmodat2 fchown fchown32 fchownat fcntl fcntl64 fdatasync fgetxattr \
    flistxattr flock fremovexattr fsetxattr fstat fstat64 fstatat64 fstatfs fstatfs64 fsync \
    ftruncate ftruncate64 futimesat getcwd getdents getdents64 getxattr getxattrat ioctl lchown \
    lchown32 lgetxattr link linkat listmount listxattr listxattrat llistxattr _llseek \
    lremovexattr lseek lsetxattr lstat lstat64 mkdir mkdirat mknod mknodat name_to_handle_at \
    newfstatat open openat openat2 pipe pipe2 pread64 preadv preadv2 pwrite64 pwritev pwritev2 \
    read readahead readlink readlinkat readv removexattr removexattrat rename renameat renameat2 \
    rmdir sendfile sendfile64 setxattr setxattrat splice stat stat64 statfs statfs64 statmount \
    statx symlink symlinkat sync sync_file_range syncfs tee truncate truncate64 umask unlink \
    unlinkat utime utimensat utimensat_time64 utimes vmsplice write writev";
const WAITING: &str = "epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait \
    epoll_pwait2 epoll_wait epoll_wait_old eventfd eventfd2 fanotify_mark inotify_add_watch \
    inotify_init inotify_init1 inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents \
    io_pgetevents_time64 io_setup io_submit _newselect pause poll ppoll ppoll_time64 pselect6 \
    pselect6_time64 select signalfd signalfd4";
const MEMORY: &str = "brk madvise map_shadow_stack membarrier memfd_create memfd_secret mincore \
    mlock mlock2 mlockall mmap mmap2 mprotect mremap mseal msync munlock munlockall munmap \
    pkey_alloc pkey_free pkey_mprotect process_mrelease remap_file_pages";
const NETWORK: &str = "accept accept4 bind connect getpeername getsockname getsockopt listen recv \
    recvfrom recvmmsg recvmmsg_time64 recvmsg send sendmmsg sendmsg sendto setsockopt shutdown \
    socketcall socketpair";
const MESSAGES: &str = "ipc mq_getsetattr mq_notify mq_open mq_timedreceive \
    mq_timedreceive_time64 mq_timedsend mq_timedsend_time64 mq_unlink msgctl msgget msgrcv msgsnd \
    semctl semget semop semtimedop semtimedop_time64 shmat shmctl shmdt shmget";
const PROCESSES: &str = "capget capset execve execveat exit exit_group fork futex futex_requeue \
    futex_time64 futex_wait futex_waitv futex_wake get_robust_list get_thread_area getcpu getpgid \
    getpgrp getpid getppid getpriority getrlimit getrusage getsid gettid ioprio_get ioprio_set \
    kill landlock_add_rule landlock_create_ruleset landlock_restrict_self pidfd_open \
    pidfd_send_signal prctl prlimit64 process_vm_readv process_vm_writev ptrace restart_syscall \
    riscv_hwprobe rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn \
    rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo sched_getaffinity \
    sched_getattr sched_getparam sched_get_priority_max sched_get_priority_min sched_getscheduler \
    sched_rr_get_interval sched_rr_get_interval_time64 sched_setaffinity sched_setattr \
    sched_setparam sched_setscheduler sched_yield seccomp set_robust_list set_thread_area \
    set_tid_address setpgid setpriority setrlimit setsid sigaltstack sigprocmask sigreturn tgkill \
    tkill ugetrlimit uretprobe vfork wait4 waitid waitpid";
const IDENTITY: &str = "getegid getegid32 geteuid geteuid32 getgid getgid32 getgroups getgroups32 \
    getresgid getresgid32 getresuid getresuid32 getuid getuid32 setfsgid setfsgid32 setfsuid \
    setfsuid32 setgid setgid32 setgroups setgroups32 setregid setregid32 setresgid setresgid32 \
    setresuid setresuid32 setreuid setreuid32 setuid setuid32";
const TIME: &str = "adjtimex alarm clock_adjtime clock_adjtime64 clock_getres \
    clock_getres_time64 clock_gettime clock_gettime64 clock_nanosleep clock_nanosleep_time64 \
    getitimer gettimeofday nanosleep setitimer time timer_create timer_delete timer_getoverrun \
    timer_gettime timer_gettime64 timer_settime timer_settime64 timerfd_create timerfd_gettime \
    timerfd_gettime64 timerfd_settime timerfd_settime64 times";
const MACHINE: &str = "getrandom sysinfo uname";

pub(super) const ALWAYS: [&str; 9] = [
    FILES, WAITING, MEMORY, NETWORK, MESSAGES, PROCESSES, IDENTITY, TIME, MACHINE,
];

/// The calls that go with a capability.
pub(super) const WITH_CAPABILITY: [(&str, &str); 14] = [
    ("CAP_DAC_READ_SEARCH", "open_by_handle_at"),
    (
        "CAP_SYS_ADMIN",
        "bpf clone clone3 fanotify_init fsconfig fsmount fsopen fspick lookup_dcookie \
         lsm_get_self_attr lsm_list_modules lsm_set_self_attr mount mount_setattr move_mount \
         open_tree perf_event_open quotactl quotactl_fd setdomainname sethostname setns syslog \
         umount umount2 unshare",
    ),
    ("CAP_SYS_BOOT", "reboot"),
    ("CAP_SYS_CHROOT", "chroot"),
    ("CAP_SYS_MODULE", "delete_module finit_module init_module"),
    ("CAP_SYS_PACCT", "acct"),
    (
        "CAP_SYS_PTRACE",
        "kcmp pidfd_getfd process_madvise process_vm_readv process_vm_writev ptrace",
    ),
    ("CAP_SYS_RAWIO", "ioperm iopl"),
    (
        "CAP_SYS_TIME",
        "clock_settime clock_settime64 settimeofday stime",
    ),
    ("CAP_SYS_TTY_CONFIG", "vhangup"),
    (
        "CAP_SYS_NICE",
        "get_mempolicy mbind set_mempolicy set_mempolicy_home_node",
    ),
    ("CAP_SYSLOG", "syslog"),
    ("CAP_BPF", "bpf"),
    ("CAP_PERFMON", "perf_event_open"),
];

/// Of processes that call for another machine of the family too.
pub(super) fn of_machine(native: Architecture) -> &'static str {
    match native {
        Architecture::X86_64 | Architecture::X32 => "arch_prctl modify_ldt",
        Architecture::X86 => "modify_ldt",
        Architecture::Aarch64 | Architecture::Arm => {
            "arm_fadvise64_64 arm_sync_file_range breakpoint cacheflush set_tls sync_file_range2"
        }
        Architecture::Riscv64 => "riscv_flush_icache",
    }
}

/// `PER_LINUX`, `PER_LINUX32`, both with `UNAME26`, and the question which one it is.
const PERSONALITIES: [u64; 5] = [0, 8, 0x2_0000, 0x2_0008, 0xffff_ffff];
/// Each kind of namespace that `clone` could make: mount, cgroup, uts, ipc, user, pid, network.
const NEW_NAMESPACES: u64 = 0x7e02_0000;
/// Kinds of sockets that no container needs and whose code in the kernel few look at:
/// DECnet, Econet, ATM, IrDA, WAN, IUCV, CAIF; crypto and virtual machines.
const SOCKETS_REFUSED: [u64; 9] = [12, 19, 20, 23, 25, 32, 37, 38, 40];
/// SMC and XDP are 43 and 44, MCTP is the last one known.
const SOCKET_LAST: u64 = 45;
const ENOSYS: u32 = 38;

fn allow(names: &str) -> Value {
    let names: Vec<&str> = names.split_whitespace().collect();
    json!({ "names": names, "action": "SCMP_ACT_ALLOW" })
}

fn allow_if(name: &str, value: u64, value_two: u64, operator: &str) -> Value {
    json!({
        "names": [name],
        "action": "SCMP_ACT_ALLOW",
        "args": [{ "index": 0, "value": value, "valueTwo": value_two, "op": operator }],
    })
}

/// The default for a container with these capabilities.
pub fn runtime_default(circumstances: &Circumstances<'_>) -> Result<Profile, SeccompError> {
    let native = native().ok_or(SeccompError::Machine)?;
    let has = |name: &str| circumstances.capabilities.iter().any(|one| one == name);
    let mut calls: Vec<Value> = ALWAYS.iter().map(|names| allow(names)).collect();
    calls.push(allow(of_machine(native)));
    for (_, names) in WITH_CAPABILITY.iter().filter(|(name, _)| has(name)) {
        calls.push(allow(names));
    }
    if !has("CAP_SYS_ADMIN") {
        calls.push(allow_if("clone", NEW_NAMESPACES, 0, "SCMP_CMP_MASKED_EQ"));
        // Its flags are behind a pointer; C libraries fall back to `clone`.
        calls.push(json!({
            "names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": ENOSYS,
        }));
    }
    for personality in PERSONALITIES {
        calls.push(allow_if("personality", personality, 0, "SCMP_CMP_EQ"));
    }
    calls.push(allow_if("socket", SOCKETS_REFUSED[0], 0, "SCMP_CMP_LT"));
    for family in SOCKETS_REFUSED[0]..=SOCKET_LAST {
        if !SOCKETS_REFUSED.contains(&family) {
            calls.push(allow_if("socket", family, 0, "SCMP_CMP_EQ"));
        }
    }
    let profile = json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": 1,
        "architectures": native
            .with_sub_architectures()
            .iter()
            .map(|one| one.profile_name())
            .collect::<Vec<_>>(),
        "syscalls": calls,
    });
    Profile::parse(profile.to_string().as_bytes())
}
