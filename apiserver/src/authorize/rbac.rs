//! RBAC: roles and bindings in memory, and the rules that apply to a user.
//!
//! The index follows the store through `apply`; it is never behind by more than the watch is.
//! Missing roles grant nothing and are named in the reason, as upstream names them.

use super::Decision;
use super::rule::{self, Rule};
use crate::authenticate::User;
use crate::authenticate::user::service_account;
use crate::request_info::RequestInfo;
use coracle_api::object::{Object, ObjectKey};
use coracle_api::status::aggregate;
use parking_lot::RwLock;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

pub const GROUP: &str = "rbac.authorization.k8s.io";

#[derive(Debug, Default)]
pub struct Rbac {
    index: RwLock<Index>,
}

#[derive(Debug, Default)]
struct Index {
    /// Rules by role; cluster roles have no namespace.
    roles: BTreeMap<ObjectKey, Arc<[Rule]>>,
    /// By namespace, cluster role bindings under the empty one.
    bindings: BTreeMap<String, BTreeMap<String, Binding>>,
}

#[derive(Clone, Debug)]
struct Binding {
    subjects: Vec<Subject>,
    role_kind: String,
    role_name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Subject {
    pub kind: String,
    pub name: String,
    pub namespace: String,
}

/// Why a role that is bound grants nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoleError {
    #[error("{}.{GROUP} {name:?} not found", if *.is_cluster_role { "clusterrole" } else { "role" })]
    NotFound { is_cluster_role: bool, name: String },
    #[error("unsupported role reference kind: {0:?}")]
    Kind(String),
}

/// What grants a rule: a binding, through one of its subjects.
#[derive(Debug)]
struct Source<'a> {
    namespace: &'a str,
    binding: &'a str,
    role_kind: &'a str,
    role_name: &'a str,
    subject: &'a Subject,
}

impl Rbac {
    /// Takes over one object of `plural`: its new state, or none when it is gone.
    pub fn apply(&self, plural: &str, key: &ObjectKey, object: Option<&Object>) {
        let mut index = self.index.write();
        match (plural, object) {
            ("roles" | "clusterroles", Some(role)) => {
                index.roles.insert(key.clone(), rule::of_role(role).into());
            }
            ("roles" | "clusterroles", None) => {
                index.roles.remove(key);
            }
            (_, Some(binding)) => {
                let bindings = index.bindings.entry(key.namespace.clone()).or_default();
                bindings.insert(key.name.clone(), Binding::of(binding));
            }
            (_, None) => {
                if let Some(bindings) = index.bindings.get_mut(&key.namespace) {
                    bindings.remove(&key.name);
                    if bindings.is_empty() {
                        index.bindings.remove(&key.namespace);
                    }
                }
            }
        }
    }

    pub fn authorize(&self, user: &User, info: &RequestInfo) -> Decision {
        let mut errors: Vec<String> = Vec::new();
        let allowed = self.visit(user, &info.namespace, |found| match found {
            Ok((source, rule)) if rule.allows(info) => {
                ControlFlow::Break(format!("RBAC: allowed by {source}"))
            }
            Ok(_) => ControlFlow::Continue(()),
            Err(error) => {
                errors.push(error.to_string());
                ControlFlow::Continue(())
            }
        });
        match allowed {
            Some(reason) => Decision::Allowed { reason },
            None => Decision::NoOpinion {
                reason: denied(&errors),
            },
        }
    }

    /// All rules that apply to the user in a namespace, and what was not found on the way.
    pub fn rules_for(&self, user: &User, namespace: &str) -> (Vec<Rule>, Vec<RoleError>) {
        let (mut rules, mut errors) = (Vec::new(), Vec::new());
        let _: Option<()> = self.visit(user, namespace, |found| {
            match found {
                Ok((_, rule)) => rules.push(rule.clone()),
                Err(error) => errors.push(error),
            }
            ControlFlow::Continue(())
        });
        (rules, errors)
    }

    /// The rules behind a role reference.
    pub fn role_rules(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<[Rule]>, RoleError> {
        self.index.read().resolve(kind, namespace, name)
    }

    /// Cluster role bindings first, then the namespace's role bindings, each by name.
    fn visit<B>(
        &self,
        user: &User,
        namespace: &str,
        mut visitor: impl FnMut(Result<(&Source<'_>, &Rule), RoleError>) -> ControlFlow<B>,
    ) -> Option<B> {
        let index = self.index.read();
        let scopes = [Some(""), (!namespace.is_empty()).then_some(namespace)];
        for scope in scopes.into_iter().flatten() {
            for (name, binding) in index.bindings.get(scope).into_iter().flatten() {
                let Some(subject) = binding.subject_of(user, scope) else {
                    continue;
                };
                let source = Source {
                    namespace: scope,
                    binding: name,
                    role_kind: &binding.role_kind,
                    role_name: &binding.role_name,
                    subject,
                };
                let rules = match index.resolve(&binding.role_kind, scope, &binding.role_name) {
                    Ok(rules) => rules,
                    Err(error) => match visitor(Err(error)) {
                        ControlFlow::Break(value) => return Some(value),
                        ControlFlow::Continue(()) => continue,
                    },
                };
                for rule in rules.iter() {
                    if let ControlFlow::Break(value) = visitor(Ok((&source, rule))) {
                        return Some(value);
                    }
                }
            }
        }
        None
    }
}

impl Index {
    fn resolve(&self, kind: &str, namespace: &str, name: &str) -> Result<Arc<[Rule]>, RoleError> {
        let (namespace, is_cluster_role) = match kind {
            "Role" => (namespace, false),
            "ClusterRole" => ("", true),
            other => return Err(RoleError::Kind(other.to_owned())),
        };
        let found = self.roles.get(&ObjectKey::new(namespace, name)).cloned();
        found.ok_or_else(|| RoleError::NotFound {
            is_cluster_role,
            name: name.to_owned(),
        })
    }
}

impl Binding {
    fn of(object: &Object) -> Self {
        Self {
            subjects: object
                .list(&["subjects"])
                .iter()
                .filter_map(|subject| Subject::deserialize(subject).ok())
                .collect(),
            role_kind: object.str(&["roleRef", "kind"]).to_owned(),
            role_name: object.str(&["roleRef", "name"]).to_owned(),
        }
    }

    fn subject_of(&self, user: &User, namespace: &str) -> Option<&Subject> {
        self.subjects
            .iter()
            .find(|subject| subject.applies(user, namespace))
    }
}

impl Subject {
    /// A service account without a namespace is one of the binding's own.
    fn applies(&self, user: &User, binding_namespace: &str) -> bool {
        match self.kind.as_str() {
            "User" => self.name == user.name,
            "Group" => user.in_group(&self.name),
            "ServiceAccount" => {
                let namespace = match self.namespace.as_str() {
                    "" => binding_namespace,
                    own => own,
                };
                service_account(&user.name) == Some((namespace, self.name.as_str()))
            }
            _ => false,
        }
    }
}

impl std::fmt::Display for Source<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "ClusterRoleBinding {:?}", self.binding)?;
        } else {
            let name = format!("{}/{}", self.binding, self.namespace);
            write!(f, "RoleBinding {name:?}")?;
        }
        let subject = match self.subject.kind.as_str() {
            "ServiceAccount" => {
                let own = match self.subject.namespace.as_str() {
                    "" => self.namespace,
                    own => own,
                };
                format!("{}/{own}", self.subject.name)
            }
            _ => self.subject.name.clone(),
        };
        write!(
            f,
            " of {} {:?} to {} {subject:?}",
            self.role_kind, self.role_name, self.subject.kind
        )
    }
}

fn denied(errors: &[String]) -> String {
    match errors {
        [] => String::new(),
        errors => format!("RBAC: {}", aggregate(errors)),
    }
}
