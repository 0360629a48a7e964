//! What another server is told of the user, under the names that the ConfigMap
//! `kube-system/extension-apiserver-authentication` gives it. Pure.

use crate::authenticate::User;
use crate::query;
use http::{HeaderMap, HeaderName, HeaderValue};

pub const USER: &str = "X-Remote-User";
pub const UID: &str = "X-Remote-Uid";
pub const GROUP: &str = "X-Remote-Group";
pub const EXTRA_PREFIX: &str = "X-Remote-Extra-";
const PREFIX: &str = "x-remote-";

/// Takes away what a client said of this itself.
pub fn put_user(headers: &mut HeaderMap, user: &User) {
    let said: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().starts_with(PREFIX))
        .cloned()
        .collect();
    for name in said {
        headers.remove(name);
    }
    let mut append = |name: &str, value: &str| {
        let name = HeaderName::try_from(name.to_ascii_lowercase());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) {
            headers.append(name, value);
        }
    };
    append(USER, &user.name);
    if !user.uid.is_empty() {
        append(UID, &user.uid);
    }
    for group in &user.groups {
        append(GROUP, group);
    }
    for (key, values) in &user.extra {
        // As upstream, what no header's name can have is escaped.
        let name = format!("{EXTRA_PREFIX}{}", query::encode(key));
        for value in values {
            append(&name, value);
        }
    }
}
