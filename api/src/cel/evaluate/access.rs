//! What the user of the request may do, asked step by step:
//! `authorizer.group('apps').resource('deployments').namespace('a').check('create').allowed()`.

use super::Fault;
use super::machine::Machine;
use super::value::Val;
use crate::names;
use std::fmt;
use std::rc::Rc;

/// As upstream, which lets an expression ask twice.
const CHECK_COST: u64 = 350_000;

/// Whoever authorizes.
pub trait Access {
    fn decide(&self, question: &Question, verb: &str) -> Verdict;

    /// What the request is about.
    fn request_resource(&self) -> Question;
}

impl fmt::Debug for dyn Access + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Access")
    }
}

/// What may or may not be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// The namespace and the name of the service account that is asked about instead of the user.
    pub account: Option<(String, String)>,
    /// Of what is no resource; the rest is empty then.
    pub path: Option<String>,
    pub group: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    pub field_selector: String,
    pub label_selector: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub is_allowed: bool,
    pub reason: String,
    pub error: Option<String>,
}

/// How far a question has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asking {
    Anything(Question),
    OfPath(Question),
    OfGroup(Question),
    OfResource(Question),
    Decided(Verdict),
}

impl Asking {
    pub fn anyone<'a>() -> Val<'a> {
        Val::Asking(Rc::new(Self::Anything(Question::default())))
    }

    pub fn about<'a>(question: Question) -> Val<'a> {
        Val::Asking(Rc::new(Self::OfResource(question)))
    }

    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Anything(_) => "kubernetes.authorization.Authorizer",
            Self::OfPath(_) => "kubernetes.authorization.PathCheck",
            Self::OfGroup(_) => "kubernetes.authorization.GroupCheck",
            Self::OfResource(_) => "kubernetes.authorization.ResourceCheck",
            Self::Decided(_) => "kubernetes.authorization.Decision",
        }
    }
}

impl<'a> Machine<'a> {
    /// One step; `None` where there is no such function.
    pub fn ask(
        &mut self,
        name: &str,
        asking: &Asking,
        rest: &[Val<'a>],
    ) -> Result<Option<Val<'a>>, Fault> {
        if let (
            "check",
            Asking::OfPath(question) | Asking::OfResource(question),
            [Val::Text(verb)],
        ) = (name, asking, rest)
        {
            self.spend(CHECK_COST)?;
            let access = self.given.access.ok_or_else(Fault::overload)?;
            let verdict = access.decide(question, verb);
            return Ok(Some(Val::Asking(Rc::new(Asking::Decided(verdict)))));
        }
        if let (Asking::Decided(verdict), []) = (asking, rest) {
            return Ok(told(name, verdict));
        }
        let texts: Option<Vec<&str>> = rest.iter().map(Val::text).collect();
        let next = texts
            .map(|texts| narrowed(name, asking, &texts))
            .transpose()?;
        Ok(next.flatten().map(|next| Val::Asking(Rc::new(next))))
    }
}

fn told<'a>(name: &str, verdict: &Verdict) -> Option<Val<'a>> {
    Some(match name {
        "allowed" => Val::Bool(verdict.is_allowed),
        "reason" => verdict.reason.as_str().into(),
        "errored" => Val::Bool(verdict.error.is_some()),
        "error" => verdict.error.as_deref().unwrap_or("").into(),
        _ => return None,
    })
}

fn narrowed(name: &str, asking: &Asking, texts: &[&str]) -> Result<Option<Asking>, Fault> {
    let set = |question: &Question, act: fn(&mut Question) -> &mut String| {
        let mut next = question.clone();
        texts.concat().clone_into(act(&mut next));
        next
    };
    Ok(Some(match (name, asking, texts) {
        ("serviceAccount", Asking::Anything(question), [namespace, account]) => {
            if !names::dns_subdomain(account).is_empty() {
                return Err(Fault::new("Invalid service account name"));
            }
            if !names::dns_label(namespace).is_empty() {
                return Err(Fault::new("Invalid service account namespace"));
            }
            Asking::Anything(Question {
                account: Some(((*namespace).to_owned(), (*account).to_owned())),
                ..question.clone()
            })
        }
        ("path", Asking::Anything(question), [path]) => {
            if path.is_empty() {
                return Err(Fault::new("path must not be empty"));
            }
            Asking::OfPath(Question {
                path: Some((*path).to_owned()),
                ..question.clone()
            })
        }
        ("group", Asking::Anything(question), [_]) => {
            Asking::OfGroup(set(question, |next| &mut next.group))
        }
        ("resource", Asking::OfGroup(question), [_]) => {
            Asking::OfResource(set(question, |next| &mut next.resource))
        }
        ("subresource", Asking::OfResource(question), [_]) => {
            Asking::OfResource(set(question, |next| &mut next.subresource))
        }
        ("namespace", Asking::OfResource(question), [_]) => {
            Asking::OfResource(set(question, |next| &mut next.namespace))
        }
        ("name", Asking::OfResource(question), [_]) => {
            Asking::OfResource(set(question, |next| &mut next.name))
        }
        ("fieldSelector", Asking::OfResource(question), [_]) => {
            Asking::OfResource(set(question, |next| &mut next.field_selector))
        }
        ("labelSelector", Asking::OfResource(question), [_]) => {
            Asking::OfResource(set(question, |next| &mut next.label_selector))
        }
        _ => return Ok(None),
    }))
}
