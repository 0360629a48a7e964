//! Levels and their versions, and what the labels of a namespace ask for. Pure.

use coracle_api::field::{FieldError, Path};
use std::fmt;

const PREFIX: &str = "pod-security.kubernetes.io/";

/// From the most to the least that is let in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    #[default]
    Privileged,
    Baseline,
    Restricted,
}

impl Level {
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        match text {
            "privileged" => Ok(Self::Privileged),
            "baseline" => Ok(Self::Baseline),
            "restricted" => Ok(Self::Restricted),
            _ => Err("must be one of privileged, baseline, restricted"),
        }
    }
}

/// The release whose rules apply: `v1.MINOR`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    #[default]
    Latest,
    Minor(u32),
}

impl Version {
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const WHY: &str = "must be \"latest\" or \"v1.x\"";
        if text == "latest" {
            return Ok(Self::Latest);
        }
        let minor = text.strip_prefix("v1.").ok_or(WHY)?;
        let is_plain = minor.bytes().all(|byte| byte.is_ascii_digit())
            && (minor == "0" || !minor.starts_with('0'));
        if !is_plain {
            return Err(WHY);
        }
        minor.parse().map(Self::Minor).map_err(|_| WHY)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelVersion {
    pub level: Level,
    pub version: Version,
}

impl LevelVersion {
    fn is_equivalent(self, other: Self) -> bool {
        self == other || [self.level, other.level] == [Level::Privileged; 2]
    }
}

impl fmt::Display for LevelVersion {
    /// `restricted:v1.25`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        };
        match self.version {
            Version::Latest => write!(f, "{level}:latest"),
            Version::Minor(minor) => write!(f, "{level}:v1.{minor}"),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    pub enforce: LevelVersion,
    pub audit: LevelVersion,
    pub warn: LevelVersion,
}

impl Policy {
    pub fn is_privileged(&self) -> bool {
        let levels = [self.enforce.level, self.audit.level, self.warn.level];
        levels == [Level::Privileged; 3]
    }

    pub fn is_equivalent(self, other: Self) -> bool {
        self.enforce.is_equivalent(other.enforce)
            && self.audit.is_equivalent(other.audit)
            && self.warn.is_equivalent(other.warn)
    }
}

pub fn label(mode: &str) -> String {
    format!("{PREFIX}{mode}")
}

pub fn version_label(mode: &str) -> String {
    format!("{PREFIX}{mode}-version")
}

/// What labels ask for beyond the defaults. Of a label that cannot be read, `enforce` takes the
/// strictest level, the other two the laxest, and each the latest version.
pub fn policy<'a>(
    label_of: impl Fn(&str) -> Option<&'a str>,
    defaults: Policy,
) -> (Policy, Vec<FieldError>) {
    let mut policy = defaults;
    let mut errors = Vec::new();
    let mut refuse = |label: String, value: &str, why: &str| {
        let path = Path::root("metadata").child("labels").key(&label);
        errors.push(FieldError::invalid(&path, value, why));
    };
    let mut has_enforce_level = false;
    for (mode, wanted, fallback) in [
        ("enforce", &mut policy.enforce, Level::Restricted),
        ("audit", &mut policy.audit, Level::Privileged),
        ("warn", &mut policy.warn, Level::Privileged),
    ] {
        if let Some(text) = label_of(&label(mode)) {
            let level = Level::parse(text);
            has_enforce_level |= mode == "enforce" && level.is_ok();
            wanted.level = level.unwrap_or_else(|why| {
                refuse(label(mode), text, why);
                fallback
            });
        }
        if let Some(text) = label_of(&version_label(mode)) {
            wanted.version = Version::parse(text).unwrap_or_else(|why| {
                refuse(version_label(mode), text, why);
                Version::Latest
            });
        }
    }
    // Who enforces a level wants to hear of it for workloads too.
    let has_warn_level = label_of(&label("warn")).is_some();
    if !has_warn_level && has_enforce_level && policy.enforce.level > policy.warn.level {
        policy.warn.level = policy.enforce.level;
        if label_of(&version_label("warn")).is_none() {
            policy.warn.version = policy.enforce.version;
        }
    }
    (policy, errors)
}
