//! What a request asks for: verb, group, version, resource, subresource, namespace, name.
//!
//! Authorization, admission and the verbs read this and never the URL. Nothing here looks a
//! resource up: an unknown resource has a `RequestInfo` too, so that it can be refused.

use crate::query::{Query, percent_decode};
use coracle_api::names;
use coracle_api::selector::FieldSelector;
use http::{Method, Uri};

/// A request in the words of RBAC. Empty strings stand for what the request does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; the
    /// lower-case HTTP method when this is no resource request.
    pub verb: String,
    pub group: String,
    pub version: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    pub is_resource_request: bool,
    pub path: String,
    /// `fieldSelector` and `labelSelector` of the query, as the client wrote them.
    pub field_selector: String,
    pub label_selector: String,
    pub place: Place,
}

/// The form of a resource's path: what routes are told apart by. It is kept here so that nobody
/// takes the path apart a second time, and otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Under `/apis`, where a group is named, though its name may be empty.
    pub is_below_apis: bool,
    /// `watch/` stands before the rest: the older way to ask for a watch.
    pub is_watch: bool,
    pub is_namespaced: bool,
    /// From the name of the resource on.
    pub parts: usize,
}

/// What may follow a namespace's name and is a part of the namespace itself.
pub const NAMESPACE_SUBRESOURCES: &[&str] = &["status", "finalize"];

impl RequestInfo {
    #[cfg(test)]
    pub fn parse(method: &Method, uri: &Uri) -> Self {
        Self::of(method, uri, &Query::parse(uri.query().unwrap_or("")))
    }

    /// The query is that of the URI.
    pub fn of(method: &Method, uri: &Uri, query: &Query) -> Self {
        let path = percent_decode(uri.path());
        let plain = Self {
            verb: method.as_str().to_ascii_lowercase(),
            path: path.clone(),
            ..Self::default()
        };
        let parts: Vec<&str> = match path.trim_matches('/') {
            "" => Vec::new(),
            trimmed => trimmed.split('/').collect(),
        };
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
            ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
            _ => return plain,
        };
        let (by_path, rest) = match rest {
            ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
            rest => (false, rest),
        };
        let mut info = Self {
            verb: if by_path { "watch" } else { verb(method) }.to_owned(),
            group: group.to_owned(),
            version: version.to_owned(),
            is_resource_request: true,
            place: Place {
                is_below_apis: parts.first() == Some(&"apis"),
                is_watch: by_path,
                ..Place::default()
            },
            ..plain
        };
        info.locate(rest);
        info.select(query);
        info
    }

    /// Namespace, resource, name and subresource.
    fn locate(&mut self, parts: &[&str]) {
        let mut parts = parts;
        if let ["namespaces", namespace, rest @ ..] = parts {
            self.namespace = (*namespace).to_owned();
            if rest
                .first()
                .is_some_and(|next| !NAMESPACE_SUBRESOURCES.contains(next))
            {
                parts = rest;
                self.place.is_namespaced = true;
            }
        }
        self.place.parts = parts.len();
        let text = |index: usize| parts.get(index).copied().unwrap_or("").to_owned();
        self.resource = text(0);
        self.name = text(1);
        self.subresource = text(2);
    }

    /// What the verb is when no name is given, and what it is narrowed to.
    fn select(&mut self, query: &Query) {
        if self.name.is_empty() {
            match self.verb.as_str() {
                "get" if query.flag("watch") => self.verb = "watch".to_owned(),
                "get" => self.verb = "list".to_owned(),
                "delete" => self.verb = "deletecollection".to_owned(),
                _ => {}
            }
        }
        if !matches!(self.verb.as_str(), "list" | "watch" | "deletecollection") {
            return;
        }
        self.field_selector = query.text("fieldSelector").to_owned();
        self.label_selector = query.text("labelSelector").to_owned();
        if self.name.is_empty()
            && self.verb != "deletecollection"
            && let Ok(selector) = FieldSelector::parse(&self.field_selector)
            && let Some(name) = selector.exact("metadata.name")
            && names::path_segment(name).is_empty()
        {
            self.name = name.to_owned();
        }
    }
}

fn verb(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" | "HEAD" => "get",
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
