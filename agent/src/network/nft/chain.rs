//! Chains: of the kernel's hooks, and plain ones that are jumped to.

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Hook {
    Prerouting,
    Input,
    Forward,
    Output,
    Postrouting,
}

impl Hook {
    pub(super) fn number(self) -> u32 {
        match self {
            Self::Prerouting => 0,
            Self::Input => 1,
            Self::Forward => 2,
            Self::Output => 3,
            Self::Postrouting => 4,
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ChainType {
    Filter,
    /// Sees the first packet of a connection only.
    Nat,
}

impl ChainType {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Nat => "nat",
        }
    }
}

/// What becomes of a packet that no rule of a base chain judged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Policy {
    Accept,
    Drop,
}

impl Policy {
    pub(super) fn number(self) -> u32 {
        match self {
            Self::Drop => 0,
            Self::Accept => 1,
        }
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Chain {
    pub name: String,
    pub(super) base: Option<Base>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Base {
    pub kind: ChainType,
    pub hook: Hook,
    pub priority: i32,
    pub policy: Policy,
}

impl Chain {
    /// One that is jumped to.
    pub fn plain(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            base: None,
        }
    }

    /// One of a hook; lower priorities come first. It lets packets pass.
    pub fn base(name: impl Into<String>, kind: ChainType, hook: Hook, priority: i32) -> Self {
        let base = Base {
            kind,
            hook,
            priority,
            policy: Policy::Accept,
        };
        Self {
            name: name.into(),
            base: Some(base),
        }
    }

    /// Of a base chain; no change to a plain one.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        if let Some(base) = &mut self.base {
            base.policy = policy;
        }
        self
    }
}
