//! What expressions ask of the authorizer: `authorizer.group('').resource('pods').check('list')`.
//!
//! A chain of calls puts a request together; `check` decides it as the request itself would be. The
//! types in between are the checker's affair: here they are one.

use super::Authorizer;
use crate::authenticate::User;
use crate::request_info::RequestInfo;
use cel::common::types::{CelBool, CelString, Type};
use cel::common::value::{StaticVal, Val};
use cel::{DeclarationError, Env};
use std::any::Any;
use std::sync::Arc;

static TYPE: Type = Type::new_unspecified_type("kubernetes.authorization.Authorizer");

/// A request in the making, or one that is decided.
#[derive(Clone, Debug)]
pub struct Asking {
    authorizer: Arc<Authorizer>,
    user: Arc<User>,
    info: RequestInfo,
    /// Whether it is allowed, and why.
    decision: Option<(bool, String)>,
}

impl Asking {
    /// The variable `authorizer`.
    pub fn new(authorizer: Arc<Authorizer>, user: Arc<User>) -> Self {
        Self {
            authorizer,
            user,
            info: RequestInfo::default(),
            decision: None,
        }
    }

    /// The variable `authorizer.requestResource`, which is about a resource already.
    #[must_use]
    pub fn about(&self, info: RequestInfo) -> Self {
        Self {
            info,
            ..self.clone()
        }
    }

    fn with(&self, change: impl FnOnce(&mut RequestInfo)) -> Self {
        let mut next = self.clone();
        change(&mut next.info);
        next
    }
}

impl Val for Asking {
    fn get_type(&self) -> &Type {
        <Self as Val>::cel_type()
    }

    fn cel_type() -> &'static Type {
        &TYPE
    }

    fn equals(&self, _other: &dyn Val) -> bool {
        false
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Asking {}

fn path(of: &Asking, path: &CelString<'_>) -> Asking {
    of.with(|info| path.inner().clone_into(&mut info.path))
}

fn service_account(of: &Asking, namespace: &CelString<'_>, name: &CelString<'_>) -> Asking {
    let name = format!(
        "system:serviceaccount:{}:{}",
        namespace.inner(),
        name.inner()
    );
    Asking {
        user: Arc::new(User::named(&name)),
        ..of.clone()
    }
}

fn group(of: &Asking, group: &CelString<'_>) -> Asking {
    of.with(|info| group.inner().clone_into(&mut info.group))
}

fn resource(of: &Asking, resource: &CelString<'_>) -> Asking {
    of.with(|info| {
        resource.inner().clone_into(&mut info.resource);
        "*".clone_into(&mut info.version);
        info.is_resource_request = true;
    })
}

fn subresource(of: &Asking, subresource: &CelString<'_>) -> Asking {
    of.with(|info| subresource.inner().clone_into(&mut info.subresource))
}

fn namespace(of: &Asking, namespace: &CelString<'_>) -> Asking {
    of.with(|info| namespace.inner().clone_into(&mut info.namespace))
}

fn name(of: &Asking, name: &CelString<'_>) -> Asking {
    of.with(|info| name.inner().clone_into(&mut info.name))
}

fn field_selector(of: &Asking, selector: &CelString<'_>) -> Asking {
    of.with(|info| selector.inner().clone_into(&mut info.field_selector))
}

fn label_selector(of: &Asking, selector: &CelString<'_>) -> Asking {
    of.with(|info| selector.inner().clone_into(&mut info.label_selector))
}

fn check(of: &Asking, verb: &CelString<'_>) -> Asking {
    let mut next = of.with(|info| verb.inner().clone_into(&mut info.verb));
    let decision = next.authorizer.authorize(&next.user, &next.info);
    next.decision = Some((decision.is_allowed(), decision.reason().to_owned()));
    next
}

fn allowed(of: &Asking) -> CelBool {
    CelBool::from(of.decision.as_ref().is_some_and(|(allowed, _)| *allowed))
}

fn reason(of: &Asking) -> CelString<'static> {
    let reason = of.decision.as_ref().map(|(_, reason)| reason.clone());
    CelString::from(reason.unwrap_or_default())
}

/// The authorizers of this server do not fail.
fn errored(_of: &Asking) -> CelBool {
    CelBool::from(false)
}

fn error(_of: &Asking) -> CelString<'static> {
    CelString::from(String::new())
}

/// The functions by name, for whoever says which ones can be evaluated.
pub const FUNCTIONS: &[&str] = &[
    "allowed",
    "check",
    "error",
    "errored",
    "fieldSelector",
    "group",
    "labelSelector",
    "name",
    "namespace",
    "path",
    "reason",
    "resource",
    "serviceAccount",
    "subresource",
];

/// Declares the functions.
pub fn extend(env: &mut Env) -> Result<(), DeclarationError> {
    cel::add_member_overload!(env, fn path: (Asking, CelString) -> Asking)?;
    cel::add_member_overload!(
        env, fn service_account: (Asking, CelString, CelString) -> Asking)?;
    cel::add_member_overload!(env, fn group: (Asking, CelString) -> Asking)?;
    cel::add_member_overload!(env, fn resource: (Asking, CelString) -> Asking)?;
    cel::add_member_overload!(env, fn subresource: (Asking, CelString) -> Asking)?;
    cel::add_member_overload!(env, fn namespace: (Asking, CelString) -> Asking)?;
    cel::add_member_overload!(env, fn name: (Asking, CelString) -> Asking)?;
    cel::add_member_overload!(env, fn field_selector: (Asking, CelString) -> Asking)?;
    cel::add_member_overload!(env, fn label_selector: (Asking, CelString) -> Asking)?;
    cel::add_member_overload!(env, fn check: (Asking, CelString) -> Asking)?;
    cel::add_member_overload!(env, fn allowed: (Asking) -> CelBool)?;
    cel::add_member_overload!(env, fn reason: (Asking) -> CelString)?;
    cel::add_member_overload!(env, fn errored: (Asking) -> CelBool)?;
    cel::add_member_overload!(env, fn error: (Asking) -> CelString)
}
