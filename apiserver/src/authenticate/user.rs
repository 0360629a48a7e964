//! A user as authenticators give it, and the user names and groups that Kubernetes knows.

use std::collections::BTreeMap;

pub const MASTERS: &str = "system:masters";
pub const AUTHENTICATED: &str = "system:authenticated";
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
pub const ANONYMOUS: &str = "system:anonymous";
pub const NODES: &str = "system:nodes";
pub const NODE_PREFIX: &str = "system:node:";
pub const BOOTSTRAP_PREFIX: &str = "system:bootstrap:";
pub const BOOTSTRAPPERS: &str = "system:bootstrappers";
pub const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";
pub const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";

/// Who a request acts as.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user of this process, with the groups that its name brings: the groups of a service
    /// account or of a node, and `system:authenticated`.
    pub fn named(name: &str) -> Self {
        let mut groups = groups_of_name(name);
        groups.push(AUTHENTICATED.to_owned());
        Self {
            name: name.to_owned(),
            groups,
            ..Self::default()
        }
    }

    pub fn anonymous() -> Self {
        Self {
            name: ANONYMOUS.to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            ..Self::default()
        }
    }

    pub fn is_anonymous(&self) -> bool {
        self.name == ANONYMOUS
    }

    /// Every user that proved who it is gets `system:authenticated`, once.
    pub fn add_authenticated(&mut self) {
        if !self.in_group(AUTHENTICATED) && !self.in_group(UNAUTHENTICATED) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
    }

    pub fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// The node that this user is; empty when the name is `system:node:` and nothing more.
    pub fn node_name(&self) -> Option<&str> {
        let name = self.name.strip_prefix(NODE_PREFIX)?;
        self.in_group(NODES).then_some(name)
    }
}

/// Namespace and name of a service account's user name.
pub fn service_account(user_name: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user_name
        .strip_prefix(SERVICE_ACCOUNT_PREFIX)?
        .split_once(':')?;
    (!namespace.is_empty() && !name.is_empty() && !name.contains(':')).then_some((namespace, name))
}

fn groups_of_name(name: &str) -> Vec<String> {
    if let Some((namespace, _)) = service_account(name) {
        return vec![
            SERVICE_ACCOUNTS.to_owned(),
            format!("{SERVICE_ACCOUNTS}:{namespace}"),
        ];
    }
    if name.starts_with(NODE_PREFIX) {
        return vec![NODES.to_owned()];
    }
    Vec::new()
}
