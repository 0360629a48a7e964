//! The modes of impersonation, and what each asks the authorizer. Source of the rules: KEP-5284.

use crate::authenticate::user::{
    MASTERS, NODE_PREFIX, NODES, SERVICE_ACCOUNTS, User, service_account,
};
use crate::authorize::{Authorizer, forbidden};
use crate::request_info::RequestInfo;
use crate::tokens::EXTRA_NODE_NAME;
use coracle_api::field::Path;
use coracle_api::kinds::checks;
use coracle_api::names;
use coracle_api::status::Status;
use std::collections::BTreeMap;

const AUTHENTICATION: &str = "authentication.k8s.io";
const LEGACY_VERB: &str = "impersonate";
/// From so many groups or values on it is asked first whether all are allowed at once.
const MANY: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A pod acts as the node that it runs on.
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    /// Anybody else.
    UserInfo,
    /// The verb `impersonate`, whatever is done then.
    Legacy,
}

impl Mode {
    pub const ALL: [Self; 5] = [
        Self::AssociatedNode,
        Self::ArbitraryNode,
        Self::ServiceAccount,
        Self::UserInfo,
        Self::Legacy,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Legacy => "legacy",
        }
    }

    /// The verb by which it was allowed, as the audit log tells it; none for the older mode.
    pub fn constraint(self) -> Option<String> {
        (self != Self::Legacy).then(|| self.verb())
    }

    fn verb(self) -> String {
        match self {
            Self::Legacy => LEGACY_VERB.to_owned(),
            constrained => format!("{LEGACY_VERB}:{}", constrained.name()),
        }
    }

    /// Whether the mode has anything to say about these two.
    pub fn is_for(self, wanted: &User, real: &User) -> bool {
        let has_name_only =
            wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let node = node(&wanted.name);
        let account = service_account(&wanted.name);
        match self {
            Self::AssociatedNode => {
                let own = real.extra.get(EXTRA_NODE_NAME).map(Vec::as_slice);
                let is_own = node.is_some_and(|node| matches!(own, Some([one]) if one == node));
                has_name_only && is_own && service_account(&real.name).is_some()
            }
            Self::ArbitraryNode => has_name_only && node.is_some(),
            Self::ServiceAccount => has_name_only && account.is_some(),
            Self::UserInfo => node.is_none() && account.is_none(),
            Self::Legacy => true,
        }
    }

    /// The groups of a user whose groups nobody named.
    pub fn groups(self, name: &str) -> Vec<String> {
        if let Some((namespace, _)) = service_account(name) {
            return vec![
                SERVICE_ACCOUNTS.to_owned(),
                format!("{SERVICE_ACCOUNTS}:{namespace}"),
            ];
        }
        match self {
            Self::AssociatedNode | Self::ArbitraryNode => vec![NODES.to_owned()],
            _ => Vec::new(),
        }
    }

    pub fn check(
        self,
        authorizer: &Authorizer,
        real: &User,
        wanted: &User,
        info: &RequestInfo,
    ) -> Result<(), Status> {
        let asking = Asking {
            mode: self,
            authorizer,
            real,
        };
        if self != Self::Legacy {
            let verb = format!("impersonate-on:{}:{}", self.name(), info.verb);
            let doing = RequestInfo {
                verb,
                ..info.clone()
            };
            authorizer.check(real, &doing)?;
        }
        asking.name(&wanted.name)?;
        if !wanted.uid.is_empty() {
            asking.may(&asking.about("uids", &wanted.uid))?;
        }
        asking.groups(&wanted.groups)?;
        asking.extra(&wanted.extra)
    }
}

struct Asking<'a> {
    mode: Mode,
    authorizer: &'a Authorizer,
    real: &'a User,
}

impl Asking<'_> {
    fn may(&self, info: &RequestInfo) -> Result<(), Status> {
        self.authorizer.check(self.real, info)
    }

    fn about(&self, resource: &str, name: &str) -> RequestInfo {
        // The older mode asks about users and groups as if they were of the core group.
        let is_core =
            self.mode == Mode::Legacy && matches!(resource, "users" | "groups" | "serviceaccounts");
        RequestInfo {
            verb: self.mode.verb(),
            group: if is_core { "" } else { AUTHENTICATION }.to_owned(),
            version: "v1".to_owned(),
            resource: resource.to_owned(),
            name: name.to_owned(),
            is_resource_request: true,
            ..RequestInfo::default()
        }
    }

    fn name(&self, name: &str) -> Result<(), Status> {
        if let Some((namespace, account)) = service_account(name) {
            return self.may(&RequestInfo {
                namespace: namespace.to_owned(),
                ..self.about("serviceaccounts", account)
            });
        }
        match (self.mode, node(name)) {
            (Mode::AssociatedNode, _) => self.may(&self.about("nodes", "*")),
            (Mode::ArbitraryNode, Some(node)) => self.may(&self.about("nodes", node)),
            _ => self.may(&self.about("users", name)),
        }
    }

    fn groups(&self, groups: &[String]) -> Result<(), Status> {
        if self.mode != Mode::Legacy {
            let refused =
                |name: &str, why: &str| Err(forbidden(self.real, &self.about("groups", name), why));
            if groups.iter().any(String::is_empty) {
                return refused("", "impersonating the empty string group is not allowed");
            }
            if groups.iter().any(|group| group == MASTERS) {
                let why = "impersonating the system:masters group is not allowed";
                return refused(MASTERS, why);
            }
            if groups.len() >= MANY && self.may(&self.about("groups", "*")).is_ok() {
                return Ok(());
            }
        }
        groups
            .iter()
            .try_for_each(|group| self.may(&self.about("groups", group)))
    }

    fn extra(&self, extra: &BTreeMap<String, Vec<String>>) -> Result<(), Status> {
        let about = |key: &str, value: &str| RequestInfo {
            subresource: key.to_owned(),
            ..self.about("userextras", value)
        };
        if self.mode != Mode::Legacy {
            if let Some(why) = extra.iter().find_map(|(key, values)| fault(key, values)) {
                return Err(forbidden(self.real, &about("", ""), &why));
            }
            let values: usize = extra.values().map(Vec::len).sum();
            if values.max(extra.len()) >= MANY && self.may(&about("*", "*")).is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            for value in values {
                self.may(&about(key, value))?;
            }
        }
        Ok(())
    }
}

/// Why a key of extra cannot be taken on in a constrained mode.
fn fault(key: &str, values: &[String]) -> Option<String> {
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed".to_owned());
    }
    let mut errors = Vec::new();
    checks::domain_prefixed_path(&mut errors, key, &Path::root("extra").child("key"));
    if !errors.is_empty() {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let all = match texts.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        return Some(format!(
            "impersonating an invalid key in extra is not allowed: {all}"
        ));
    }
    if key.chars().any(char::is_uppercase) {
        return Some(format!(
            "impersonating a non-lowercase key in extra is not allowed: {key:?}"
        ));
    }
    let has_empty = values.iter().any(String::is_empty);
    has_empty.then(|| "impersonating the empty string value in extra is not allowed".to_owned())
}

/// The node of a node's user name.
fn node(name: &str) -> Option<&str> {
    let node = name.strip_prefix(NODE_PREFIX)?;
    names::dns_subdomain(node).is_empty().then_some(node)
}
