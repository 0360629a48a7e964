use super::architecture::Architecture;
use super::program::{self, Instruction};
use super::rules::{self, Outcome};
use super::{Circumstances, Filter, Profile, SeccompError, compile, default, runtime_default};
use proptest::prelude::*;
use serde_json::json;

const ALLOW: u32 = 0x7fff_0000;
const EPERM: u32 = 0x0005_0001;
const ENOSYS: u32 = 0x0005_0026;
const KILLED: u32 = 0x8000_0000;

/// What the kernel would answer.
fn run(program: &[Instruction], architecture: u32, number: u32, arguments: [u64; 6]) -> u32 {
    let mut data = vec![number, architecture, 0, 0];
    for argument in arguments {
        data.push(u32::try_from(argument & 0xffff_ffff).unwrap());
        data.push(u32::try_from(argument >> 32).unwrap());
    }
    let (mut at, mut value) = (0, 0);
    loop {
        let Instruction {
            code,
            if_true,
            if_false,
            operand,
        } = program[at];
        at += 1;
        let skip = |holds: bool| usize::from(if holds { if_true } else { if_false });
        match code {
            program::LOAD => value = data[operand as usize / 4],
            program::AND => value &= operand,
            program::JUMP => at += operand as usize,
            program::IF_EQUAL => at += skip(value == operand),
            program::IF_GREATER => at += skip(value > operand),
            program::IF_GREATER_OR_EQUAL => at += skip(value >= operand),
            program::RETURN => return operand,
            other => panic!("instruction {other:#x}"),
        }
    }
}

fn on(native: Architecture, profile: &Profile, capabilities: &[&str]) -> Vec<Instruction> {
    let capabilities: Vec<String> = capabilities.iter().map(|one| (*one).to_owned()).collect();
    let circumstances = Circumstances {
        capabilities: &capabilities,
        kernel: (6, 1),
    };
    let resolved = profile.resolve(native, &circumstances).unwrap();
    let sections: Vec<_> = resolved
        .architectures
        .iter()
        .map(|one| rules::of_architecture(*one, &resolved))
        .collect();
    program::write(&sections)
}

fn parse(profile: serde_json::Value) -> Profile {
    Profile::parse(profile.to_string().as_bytes()).unwrap()
}

/// The default profile of an x86-64 machine.
fn default_of(capabilities: &[&str]) -> Profile {
    let capabilities: Vec<String> = capabilities.iter().map(|one| (*one).to_owned()).collect();
    runtime_default(&Circumstances {
        capabilities: &capabilities,
        kernel: (6, 1),
    })
    .unwrap()
}

fn call(program: &[Instruction], architecture: Architecture, name: &str, first: u64) -> u32 {
    let number = architecture.number(name).unwrap();
    let code = architecture.audit_code();
    run(program, code, number, [first, 0, 0, 0, 0, 0])
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_default_lets_programs_run_and_keeps_the_kernel_apart() {
    let program = on(Architecture::X86_64, &default_of(&[]), &[]);
    for architecture in [Architecture::X86_64, Architecture::X86, Architecture::X32] {
        let of = |name: &str, first| call(&program, architecture, name, first);
        for name in [
            "read",
            "execve",
            "futex",
            "capset",
            "prctl",
            "seccomp",
            "rt_sigreturn",
        ] {
            assert_eq!(of(name, 0), ALLOW, "{name} on {architecture:?}");
        }
        for name in [
            "mount",
            "unshare",
            "setns",
            "keyctl",
            "add_key",
            "bpf",
            "reboot",
            "chroot",
            "io_uring_setup",
            "kexec_load",
            "userfaultfd",
            "init_module",
            "swapon",
        ] {
            assert_eq!(of(name, 0), EPERM, "{name} on {architecture:?}");
        }
        assert_eq!(of("clone3", 0), ENOSYS);
        assert_eq!(of("clone", 0x0001_2011), ALLOW); // What fork does.
        assert_eq!(of("clone", 0x1000_0011), EPERM); // CLONE_NEWUSER
        assert_eq!(of("personality", 0x2_0008), ALLOW);
        assert_eq!(of("personality", 0x4_0000), EPERM); // ADDR_NO_RANDOMIZE
        assert_eq!(of("socket", 2), ALLOW);
        assert_eq!(of("socket", 16), ALLOW); // Netlink.
        assert_eq!(of("socket", 32), EPERM); // AF_IUCV
        assert_eq!(of("socket", 34), ALLOW); // AF_ISDN
        assert_eq!(of("socket", 38), EPERM); // AF_ALG
        assert_eq!(of("socket", 40), EPERM); // AF_VSOCK
    }
    let x86_64 = Architecture::X86_64.audit_code();
    assert_eq!(run(&program, x86_64, 900, [0; 6]), ENOSYS);
    let aarch64 = Architecture::Aarch64.audit_code();
    assert_eq!(run(&program, aarch64, 0, [0; 6]), KILLED);
}

#[test]
fn a_capability_brings_its_calls_back() {
    let program = on(
        Architecture::X86_64,
        &default_of(&["CAP_SYS_ADMIN", "CAP_SYS_CHROOT"]),
        &[],
    );
    let of = |name: &str| call(&program, Architecture::X86_64, name, u64::MAX);
    for name in ["mount", "unshare", "clone", "clone3", "chroot", "bpf"] {
        assert_eq!(of(name), ALLOW, "{name}");
    }
    assert_eq!(of("reboot"), EPERM);
    assert_eq!(of("keyctl"), EPERM);
}

#[test]
fn every_name_of_the_default_is_a_call_of_some_machine() {
    let by_capability = default::WITH_CAPABILITY.iter().map(|(_, names)| *names);
    let of_machines = Architecture::ALL.map(default::of_machine);
    let all = default::ALWAYS
        .into_iter()
        .chain(by_capability)
        .chain(of_machines);
    let mut unknown: Vec<&str> = all
        .flat_map(str::split_whitespace)
        .filter(|name| {
            Architecture::ALL
                .iter()
                .all(|one| one.number(name).is_none())
        })
        .collect();
    unknown.sort_unstable();
    assert_eq!(unknown, Vec::<&str>::new());
}

#[test]
fn default_programs_fit_the_kernel() {
    for native in Architecture::ALL {
        let program = on(native, &default_of(&[]), &[]);
        assert!(program.len() < 1500, "{native:?}: {}", program.len());
    }
}

#[test]
fn it_is_read_as_docker_writes_it() {
    let profile = parse(json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "archMap": [
            { "architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86"] },
            { "architecture": "SCMP_ARCH_AARCH64", "subArchitectures": ["SCMP_ARCH_ARM"] },
            { "architecture": "SCMP_ARCH_RISCV64", "subArchitectures": null },
        ],
        "syscalls": [
            { "names": ["read", "no_such_call"], "action": "SCMP_ACT_ALLOW" },
            { "name": "write", "action": "SCMP_ACT_ERRNO", "errnoRet": 5 },
            { "names": ["mount"], "action": "SCMP_ACT_ALLOW",
              "includes": { "caps": ["CAP_SYS_ADMIN"] } },
            { "names": ["ptrace"], "action": "SCMP_ACT_ALLOW",
              "includes": { "minKernel": "4.8" } },
            { "names": ["kcmp"], "action": "SCMP_ACT_ALLOW", "includes": { "minKernel": "7.0" } },
            { "names": ["clone"], "action": "SCMP_ACT_ALLOW",
              "excludes": { "arches": ["amd64"] } },
            { "names": ["chroot"], "action": "SCMP_ACT_ALLOW",
              "excludes": { "caps": ["CAP_SYS_ADMIN"] } },
            { "names": ["zzz"], "action": "SCMP_ACT_ALLOW", "args": null, "comment": "" },
        ],
    }));
    let program = on(Architecture::X86_64, &profile, &["CAP_SYS_ADMIN"]);
    let of = |name: &str| call(&program, Architecture::X86_64, name, 0);
    assert_eq!(of("read"), ALLOW);
    assert_eq!(of("write"), 0x0005_0005);
    assert_eq!(of("mount"), ALLOW);
    assert_eq!(of("ptrace"), ALLOW);
    assert_eq!(of("clone"), EPERM);
    assert_eq!(of("chroot"), EPERM);
    assert_eq!(call(&program, Architecture::X86, "read", 0), ALLOW);
    // Newer than all that the profile names: not there at all.
    assert_eq!(of("kcmp"), ENOSYS);
    // The machine's own 64-bit calls by the third way, which the profile did not name.
    assert_eq!(call(&program, Architecture::X32, "read", 0), KILLED);
}

#[test]
fn a_way_that_the_profile_does_not_name_leads_nowhere() {
    let profile = parse(json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{ "names": ["mount"], "action": "SCMP_ACT_ERRNO" }],
    }));
    let program = on(Architecture::X86_64, &profile, &[]);
    assert_eq!(call(&program, Architecture::X86_64, "mount", 0), EPERM);
    assert_eq!(call(&program, Architecture::X86_64, "read", 0), ALLOW);
    for name in ["mount", "read"] {
        assert_eq!(call(&program, Architecture::X32, name, 0), KILLED);
    }
    // How a tracer skips a call.
    let code = Architecture::X86_64.audit_code();
    assert_eq!(run(&program, code, u32::MAX, [0; 6]), ALLOW);
}

#[test]
fn a_rule_that_says_the_default_hides_no_other() {
    let profile = parse(json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "syscalls": [
            { "names": ["socket"], "action": "SCMP_ACT_ERRNO" },
            { "names": ["socket"], "action": "SCMP_ACT_ALLOW",
              "args": [{ "index": 0, "value": 2, "op": "SCMP_CMP_EQ" }] },
            { "names": ["bind"], "action": "SCMP_ACT_ERRNO", "errnoRet": 13 },
            { "names": ["bind"], "action": "SCMP_ACT_ALLOW",
              "args": [{ "index": 0, "value": 2, "op": "SCMP_CMP_EQ" }] },
            { "names": ["kcmp"], "action": "SCMP_ACT_ERRNO" },
        ],
    }));
    let program = on(Architecture::X86_64, &profile, &[]);
    let of = |name, first| call(&program, Architecture::X86_64, name, first);
    assert_eq!(of("socket", 2), ALLOW);
    assert_eq!(of("socket", 3), EPERM);
    assert_eq!(of("bind", 2), 0x0005_000d); // Another error is another action.
    assert_eq!(of("kcmp", 0), EPERM); // Known, though nothing new was said of it.
}

#[test]
fn newer_calls_do_not_exist_for_a_profile_that_refuses() {
    for (action, newer) in [
        ("SCMP_ACT_KILL", ENOSYS),
        ("SCMP_ACT_KILL_PROCESS", ENOSYS),
        ("SCMP_ACT_TRAP", ENOSYS),
        ("SCMP_ACT_ERRNO", ENOSYS),
        ("SCMP_ACT_TRACE", 0x7ff0_0001),
        ("SCMP_ACT_LOG", 0x7ffc_0000),
        ("SCMP_ACT_ALLOW", ALLOW),
    ] {
        let profile = parse(json!({
            "defaultAction": action,
            "syscalls": [{ "names": ["mount"], "action": "SCMP_ACT_ALLOW" }],
        }));
        let program = on(Architecture::X86_64, &profile, &[]);
        let of = |name| call(&program, Architecture::X86_64, name, 0);
        assert_eq!(of("clone3"), newer, "{action}");
    }
}

#[test]
fn what_cannot_be_done_is_refused() {
    let refused = |profile: serde_json::Value| {
        compile(&parse(profile), &Circumstances::default()).unwrap_err()
    };
    let with =
        |call: serde_json::Value| json!({ "defaultAction": "SCMP_ACT_ALLOW", "syscalls": [call] });
    assert_eq!(refused(json!({})), SeccompError::Action(String::new()));
    assert_eq!(
        refused(with(
            json!({ "names": ["read"], "action": "SCMP_ACT_NOTIFY" })
        )),
        SeccompError::Notify
    );
    assert_eq!(
        refused(with(json!({
            "names": ["read"], "action": "SCMP_ACT_LOG",
            "args": [{ "index": 6, "value": 0, "op": "SCMP_CMP_EQ" }],
        }))),
        SeccompError::Index(6)
    );
    assert_eq!(
        refused(json!({ "defaultAction": "SCMP_ACT_ALLOW", "flags": ["X"] })),
        SeccompError::Flag("X".into())
    );
    let endless: Vec<_> = (0..2000)
        .map(|value| {
            json!({
                "names": ["read"], "action": "SCMP_ACT_LOG",
                "args": [{ "index": 0, "value": value, "op": "SCMP_CMP_EQ" }],
            })
        })
        .collect();
    let endless = json!({ "defaultAction": "SCMP_ACT_ALLOW", "syscalls": endless });
    assert!(matches!(refused(endless), SeccompError::TooLong(_)));
    assert!(Profile::parse(b"{").is_err());
    assert!(Profile::parse(b"3").is_err());
}

#[test]
fn a_filter_comes_back_from_its_file() {
    let filter = compile(&default_of(&[]), &Circumstances::default()).unwrap();
    let bytes = filter.to_bytes();
    assert_eq!(Filter::from_bytes(&bytes), Some(filter));
    assert_eq!(Filter::from_bytes(&bytes[1..]), None);
    assert_eq!(Filter::from_bytes(b""), None);
}

/// What the comparison says of 64-bit numbers.
fn holds(operator: &str, argument: u64, value: u64, value_two: u64) -> bool {
    match operator {
        "SCMP_CMP_NE" => argument != value,
        "SCMP_CMP_LT" => argument < value,
        "SCMP_CMP_LE" => argument <= value,
        "SCMP_CMP_EQ" => argument == value,
        "SCMP_CMP_GE" => argument >= value,
        "SCMP_CMP_GT" => argument > value,
        _ => argument & value == value_two,
    }
}

const OPERATORS: [&str; 7] = [
    "SCMP_CMP_NE",
    "SCMP_CMP_LT",
    "SCMP_CMP_LE",
    "SCMP_CMP_EQ",
    "SCMP_CMP_GE",
    "SCMP_CMP_GT",
    "SCMP_CMP_MASKED_EQ",
];

/// Few different halves, so that equal ones are met.
fn word() -> impl Strategy<Value = u64> {
    let half = || prop_oneof![Just(0_u64), Just(1), Just(0xffff_ffff), 0..4_u64];
    (half(), half()).prop_map(|(high, low)| high << 32 | low)
}

proptest! {
    #[test]
    fn comparisons_are_those_of_64_bit_numbers(
        rules in prop::collection::vec(
            prop::collection::vec((0..7_usize, word(), word()), 1..=6), 1..4),
        arguments in prop::array::uniform6(word()),
        number in 0..6_u32,
    ) {
        let names = ["read", "write", "open"];
        let calls: Vec<_> = rules.iter().enumerate().map(|(at, rule)| {
            let args: Vec<_> = rule.iter().enumerate().map(|(index, (operator, value, two))| json!({
                "index": index, "op": OPERATORS[*operator], "value": value, "valueTwo": two,
            })).collect();
            json!({ "names": [names[at % 2]], "action": "SCMP_ACT_ERRNO", "errnoRet": at + 10,
                    "args": args })
        }).collect();
        let profile = parse(json!({ "defaultAction": "SCMP_ACT_ALLOW", "syscalls": calls }));
        let program = on(Architecture::X86_64, &profile, &[]);
        let first = rules.iter().enumerate().find(|(at, rule)| {
            Architecture::X86_64.number(names[at % 2]) == Some(number)
                && rule.iter().enumerate().all(|(index, (operator, value, two))| {
                    holds(OPERATORS[*operator], arguments[index], *value, *two)
                })
        });
        let expected = first.map_or(ALLOW, |(at, _)| 0x0005_0000 | (u32::try_from(at).unwrap() + 10));
        let code = Architecture::X86_64.audit_code();
        prop_assert_eq!(run(&program, code, number, arguments), expected);
    }

    #[test]
    fn the_search_finds_the_range(
        names in prop::collection::btree_set("[a-z]{3,8}", 0..3),
        number in 0..600_u32,
    ) {
        let mut names: Vec<String> = names.into_iter().collect();
        names.extend(["getpid", "kill", "uname", "mount"].map(str::to_owned));
        let profile = parse(json!({ "defaultAction": "SCMP_ACT_ERRNO",
            "syscalls": [{ "names": names, "action": "SCMP_ACT_ALLOW" }] }));
        let resolved = profile.resolve(Architecture::X86_64, &Circumstances::default()).unwrap();
        let section = rules::of_architecture(Architecture::X86_64, &resolved);
        let (_, expected) = section.ranges.iter().rev().find(|(start, _)| *start <= number).unwrap();
        let program = program::write(std::slice::from_ref(&section));
        let found = run(&program, Architecture::X86_64.audit_code(), number, [0; 6]);
        prop_assert_eq!(&Outcome::Always(super::profile::Action(found)), expected);
    }
}
