//! Acting as somebody else: the Impersonate headers.
//!
//! Runs after authentication and before authorization of the request itself. The constrained modes
//! (KEP-5284) are asked first, each for both rights: to be that user (`impersonate:MODE`), and to
//! do this as that user (`impersonate-on:MODE:VERB`). The older mode, the verb `impersonate` alone,
//! allows everything at once. The refusal is that of the first mode that the user falls under.

mod mode; // What each mode asks for.

use super::user::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User};
use crate::authorize::Authorizer;
use crate::query::percent_decode;
use crate::request_info::RequestInfo;
use coracle_api::status::Status;
use http::{HeaderMap, HeaderValue};
use parking_lot::Mutex;
use std::collections::VecDeque;

pub use mode::Mode;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA_PREFIX: &str = "impersonate-extra-";

/// Whom a request acts as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acting {
    pub user: User,
    /// The mode that allowed it; `None` for whoever acts as themselves.
    pub by: Option<Mode>,
}

/// By which mode users acted last. It is asked first the next time: who uses the older mode pays
/// for no other, and is refused in its words.
#[derive(Debug, Default)]
pub struct LastModes(Mutex<VecDeque<(String, Mode)>>);

/// Programs and people that impersonate are few; for one who is forgotten all modes are asked.
const LAST_MODES_MAX: usize = 64;

impl LastModes {
    fn get(&self, user: &str) -> Option<Mode> {
        let all = self.0.lock();
        let known = all.iter().find(|(name, _)| name == user);
        known.map(|(_, mode)| *mode)
    }

    fn set(&self, user: &str, mode: Mode) {
        let mut all = self.0.lock();
        all.retain(|(name, _)| name != user);
        all.truncate(LAST_MODES_MAX - 1);
        all.push_front((user.to_owned(), mode));
    }
}

/// `real` itself when no header asks for another; `info` is what they want to do.
pub fn acting_as(
    authorizer: &Authorizer,
    last_modes: &LastModes,
    real: User,
    headers: &HeaderMap,
    info: &RequestInfo,
) -> Result<Acting, Status> {
    let Some(wanted) = wanted(headers)? else {
        return Ok(Acting {
            user: real,
            by: None,
        });
    };
    let mut refused = None;
    let last = last_modes.get(&real.name);
    let others = Mode::ALL.into_iter().filter(|one| Some(*one) != last);
    let modes = last.into_iter().chain(others);
    for mode in modes.filter(|one| one.is_for(&wanted, &real)) {
        match mode.check(authorizer, &real, &wanted, info) {
            Ok(()) => {
                if last != Some(mode) {
                    last_modes.set(&real.name, mode);
                }
                return Ok(Acting {
                    user: completed(wanted, mode),
                    by: Some(mode),
                });
            }
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.unwrap_or_else(|| Status::internal("all impersonation modes failed")))
}

fn wanted(headers: &HeaderMap) -> Result<Option<User>, Status> {
    let first = |name| headers.get(name).map_or_else(String::new, text);
    let mut wanted = User {
        name: first(USER),
        uid: first(UID),
        groups: headers.get_all(GROUP).iter().map(text).collect(),
        ..User::default()
    };
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA_PREFIX) {
            let values = wanted.extra.entry(percent_decode(key)).or_default();
            values.push(text(value));
        }
    }
    let asked = wanted != User::default();
    if asked && wanted.name.is_empty() {
        let shown = shown(&wanted);
        let why = format!("requested {shown} without impersonating a user name");
        return Err(Status::bad_request(why));
    }
    Ok(asked.then_some(wanted))
}

fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// As Go shows the structure.
fn shown(user: &User) -> String {
    let list = |values: &[String]| {
        let quoted: Vec<String> = values.iter().map(|one| format!("{one:?}")).collect();
        format!("[]string{{{}}}", quoted.join(", "))
    };
    let groups = match user.groups.as_slice() {
        [] => "[]string(nil)".to_owned(),
        groups => list(groups),
    };
    let extra = if user.extra.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        let pairs = user.extra.iter();
        let pairs: Vec<String> = pairs
            .map(|(key, values)| format!("{key:?}:{}", list(values)))
            .collect();
        format!("map[string][]string{{{}}}", pairs.join(", "))
    };
    format!(
        "&user.DefaultInfo{{Name:{:?}, UID:{:?}, Groups:{groups}, Extra:{extra}}}",
        user.name, user.uid
    )
}

/// With the groups that the name brings.
fn completed(mut user: User, mode: Mode) -> User {
    if user.groups.is_empty() {
        user.groups = mode.groups(&user.name);
    }
    if user.name == ANONYMOUS {
        if !user.in_group(UNAUTHENTICATED) {
            user.groups.push(UNAUTHENTICATED.to_owned());
        }
    } else if !user.in_group(AUTHENTICATED) && !user.in_group(UNAUTHENTICATED) {
        user.groups.push(AUTHENTICATED.to_owned());
    }
    user
}

#[cfg(test)]
mod tests;
