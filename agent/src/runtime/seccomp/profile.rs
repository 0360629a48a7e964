//! A profile as written: JSON of the OCI runtime specification, or Docker's, which adds
//! conditions on architecture, capabilities and kernel. Unknown keys and names of calls are
//! passed over, as other runtimes do: a profile serves many kernels.

use super::SeccompError;
use super::architecture::Architecture;
use serde::Deserialize;
use std::collections::BTreeSet;

/// `EPERM`, what a refused call gets when the profile does not say.
const ERRNO_DEFAULT: u32 = 1;
/// The kernel keeps errors in 12 bits, and cuts what is more to this.
const ERRNO_MAX: u32 = 4095;

const FLAG_TSYNC: u64 = 1;
const FLAG_LOG: u64 = 1 << 1;
const FLAG_SPEC_ALLOW: u64 = 1 << 2;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Profile {
    default_action: String,
    default_errno_ret: Option<u32>,
    architectures: Vec<String>,
    arch_map: Option<Vec<ArchitectureMap>>,
    flags: Option<Vec<String>>,
    syscalls: Option<Vec<Call>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ArchitectureMap {
    architecture: String,
    sub_architectures: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Call {
    /// Docker's older profiles have one name an entry.
    name: String,
    names: Vec<String>,
    action: String,
    errno_ret: Option<u32>,
    args: Option<Vec<Argument>>,
    includes: Option<Filter>,
    excludes: Option<Filter>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Argument {
    index: u64,
    value: u64,
    value_two: u64,
    op: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Filter {
    caps: Option<Vec<String>>,
    arches: Option<Vec<String>>,
    min_kernel: Option<String>,
}

/// What the conditions of a profile look at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Circumstances<'a> {
    /// With `CAP_`.
    pub capabilities: &'a [String],
    /// Major and minor version.
    pub kernel: (u32, u32),
}

/// What a call gets: the kernel's `SECCOMP_RET_*`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Action(pub u32);

impl Action {
    pub const ALLOW: Self = Self(0x7fff_0000);
    pub const KILL_PROCESS: Self = Self(0x8000_0000);

    pub fn errno(number: u32) -> Self {
        Self(0x0005_0000 | number.min(ERRNO_MAX))
    }

    /// The call is not made: all but allowing, logging and asking a tracer.
    pub fn is_refusal(self) -> bool {
        let kind = self.0 & 0xffff_0000;
        !matches!(kind, 0x7fff_0000 | 0x7ffc_0000 | 0x7ff0_0000)
    }

    fn parse(name: &str, errno: Option<u32>) -> Result<Self, SeccompError> {
        let data = errno.unwrap_or(ERRNO_DEFAULT);
        Ok(match name {
            "SCMP_ACT_KILL" | "SCMP_ACT_KILL_THREAD" => Self(0),
            "SCMP_ACT_KILL_PROCESS" => Self::KILL_PROCESS,
            "SCMP_ACT_TRAP" => Self(0x0003_0000),
            "SCMP_ACT_ERRNO" => Self::errno(data),
            "SCMP_ACT_TRACE" => Self(0x7ff0_0000 | (data & 0xffff)),
            "SCMP_ACT_LOG" => Self(0x7ffc_0000),
            "SCMP_ACT_ALLOW" => Self::ALLOW,
            "SCMP_ACT_NOTIFY" => return Err(SeccompError::Notify),
            other => return Err(SeccompError::Action(other.to_owned())),
        })
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Operator {
    NotEqual,
    Less,
    LessOrEqual,
    Equal,
    GreaterOrEqual,
    Greater,
    /// The value is a mask, the second value what is left under it.
    MaskedEqual,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Comparison {
    /// Of the argument, 0 to 5.
    pub index: u8,
    pub operator: Operator,
    pub value: u64,
    pub value_two: u64,
}

/// Calls that get an action when all comparisons hold.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rule {
    pub names: Vec<String>,
    pub action: Action,
    pub comparisons: Vec<Comparison>,
}

/// A profile on one machine for one container.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Resolved {
    pub default_action: Action,
    pub flags: u64,
    /// The machine's own first.
    pub architectures: Vec<Architecture>,
    pub rules: Vec<Rule>,
}

impl Profile {
    pub fn parse(text: &[u8]) -> Result<Self, SeccompError> {
        serde_json::from_slice(text).map_err(|error| SeccompError::Malformed(error.to_string()))
    }

    pub(super) fn resolve(
        &self,
        native: Architecture,
        circumstances: &Circumstances<'_>,
    ) -> Result<Resolved, SeccompError> {
        let mut rules = Vec::new();
        for call in self.syscalls.iter().flatten() {
            if call.applies(native, circumstances)? {
                rules.extend(call.rules()?);
            }
        }
        Ok(Resolved {
            default_action: Action::parse(&self.default_action, self.default_errno_ret)?,
            flags: self.flags()?,
            architectures: self.architectures(native),
            rules,
        })
    }

    fn flags(&self) -> Result<u64, SeccompError> {
        let Some(flags) = &self.flags else {
            return Ok(FLAG_SPEC_ALLOW); // As runc has it where nothing is said.
        };
        flags.iter().try_fold(0, |all, flag| match flag.as_str() {
            "SECCOMP_FILTER_FLAG_TSYNC" => Ok(all | FLAG_TSYNC),
            "SECCOMP_FILTER_FLAG_LOG" => Ok(all | FLAG_LOG),
            "SECCOMP_FILTER_FLAG_SPEC_ALLOW" => Ok(all | FLAG_SPEC_ALLOW),
            other => Err(SeccompError::Flag(other.to_owned())),
        })
    }

    fn architectures(&self, native: Architecture) -> Vec<Architecture> {
        let mut found = vec![native];
        let mapped = self
            .arch_map
            .iter()
            .flatten()
            .filter(|map| Architecture::of_name(&map.architecture) == Some(native));
        let mapped = mapped.flat_map(|map| map.sub_architectures.iter().flatten());
        for name in self.architectures.iter().chain(mapped) {
            let known = Architecture::of_name(name);
            let usable = known.filter(|one| native.with_sub_architectures().contains(one));
            found.extend(usable.filter(|one| !found.contains(one)));
        }
        found
    }
}

impl Call {
    /// One rule; where an argument is compared twice, one for each comparison, as runc has it.
    fn rules(&self) -> Result<Vec<Rule>, SeccompError> {
        let names: BTreeSet<&String> = self.names.iter().chain([&self.name]).collect();
        let names = names.into_iter().filter(|name| !name.is_empty()).cloned();
        let names: Vec<String> = names.collect();
        let action = Action::parse(&self.action, self.errno_ret)?;
        let comparisons = self.args.iter().flatten().map(Argument::comparison);
        let comparisons: Vec<_> = comparisons.collect::<Result<_, _>>()?;
        let indexes: BTreeSet<u8> = comparisons.iter().map(|one| one.index).collect();
        let is_plain = indexes.len() == comparisons.len();
        let all: Vec<Vec<Comparison>> = match is_plain {
            true => vec![comparisons],
            false => comparisons.into_iter().map(|one| vec![one]).collect(),
        };
        let rule = |comparisons| Rule {
            names: names.clone(),
            action,
            comparisons,
        };
        Ok(all.into_iter().map(rule).collect())
    }

    fn applies(
        &self,
        native: Architecture,
        circumstances: &Circumstances<'_>,
    ) -> Result<bool, SeccompError> {
        let has = |cap: &String| circumstances.capabilities.contains(cap);
        let is_native = |name: &String| name == native.go_name();
        if let Some(filter) = &self.includes {
            let caps = filter.caps.as_deref().unwrap_or_default();
            let arches = filter.arches.as_deref().unwrap_or_default();
            let is_old = match &filter.min_kernel {
                Some(version) => circumstances.kernel < kernel_version(version)?,
                None => false,
            };
            let lacks = !caps.is_empty() && !caps.iter().all(has);
            if is_old || lacks || (!arches.is_empty() && !arches.iter().any(is_native)) {
                return Ok(false);
            }
        }
        if let Some(filter) = &self.excludes {
            let caps = filter.caps.as_deref().unwrap_or_default();
            let arches = filter.arches.as_deref().unwrap_or_default();
            let is_new = match &filter.min_kernel {
                Some(version) => circumstances.kernel >= kernel_version(version)?,
                None => false,
            };
            if is_new || caps.iter().any(has) || arches.iter().any(is_native) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Argument {
    fn comparison(&self) -> Result<Comparison, SeccompError> {
        let index = u8::try_from(self.index).ok().filter(|index| *index < 6);
        Ok(Comparison {
            index: index.ok_or(SeccompError::Index(self.index))?,
            operator: match self.op.as_str() {
                "SCMP_CMP_NE" => Operator::NotEqual,
                "SCMP_CMP_LT" => Operator::Less,
                "SCMP_CMP_LE" => Operator::LessOrEqual,
                "SCMP_CMP_EQ" => Operator::Equal,
                "SCMP_CMP_GE" => Operator::GreaterOrEqual,
                "SCMP_CMP_GT" => Operator::Greater,
                "SCMP_CMP_MASKED_EQ" => Operator::MaskedEqual,
                other => return Err(SeccompError::Operator(other.to_owned())),
            },
            value: self.value,
            value_two: self.value_two,
        })
    }
}

fn kernel_version(text: &str) -> Result<(u32, u32), SeccompError> {
    let mut parts = text.split('.').map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Ok((major, minor)),
        _ => Err(SeccompError::Malformed(format!(
            "{text:?} is no version of a kernel"
        ))),
    }
}
