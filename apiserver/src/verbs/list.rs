//! `GET` of a collection: a concatenation of stored bytes.
//!
//! Nothing is parsed unless a selector or another form than JSON needs it.

use super::asked::Asked;
use crate::Api;
use crate::options::{ListOptions, Match};
use crate::registry;
use crate::respond::{Form, document, json_bytes, protobuf_or};
use crate::tunnel::Body;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use coracle_api::object::Object;
use coracle_api::protobuf::{ListEncoder, ProtobufError};
use coracle_api::status::Status;
use coracle_api::table;
use coracle_store::{Revision, Snapshot, SnapshotError};
use http::{Response, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What `continue` carries: the revision of all pages, and where the next begins.
#[derive(Debug, Deserialize, Serialize)]
struct Token {
    v: String,
    rv: u64,
    start: String,
}

const TOKEN_FORM: &str = "coracle/v1";

/// One page, before it has a form.
struct Page {
    revision: Revision,
    items: Vec<Bytes>,
    next: Option<String>,
    remaining: Option<usize>,
}

pub fn list(api: &Api, asked: &Asked<'_>) -> Result<Response<Body>, Status> {
    let options = ListOptions::parse(asked.resource, &asked.query, &asked.info.name)?;
    let wanted = options.list_match()?;
    let (snapshot, after) = snapshot(api, asked, &options, wanted)?;
    let page = page(asked, &options, &snapshot, &after);
    Ok(answer(asked, page))
}

fn snapshot(
    api: &Api,
    asked: &Asked<'_>,
    options: &ListOptions,
    wanted: Match,
) -> Result<(Snapshot, String), Status> {
    let newest = || api.registry.snapshot(asked.resource);
    let at = |revision| {
        let partition = registry::partition(asked.resource);
        api.registry
            .store
            .snapshot_at(&partition, revision)
            .map_err(expired)
    };
    if !options.continue_token.is_empty() {
        let token = read_token(&options.continue_token)?;
        let snapshot = at(Revision(token.rv)).map_err(|status| match status.code {
            410 => Status::expired(
                "The provided continue parameter is too old to display a consistent list result. \
                 You can start a new list without the continue parameter.",
            ),
            _ => status,
        })?;
        return Ok((snapshot, token.start));
    }
    match wanted {
        Match::Newest => Ok((newest(), String::new())),
        Match::Exact(revision) => Ok((at(revision)?, String::new())),
        Match::NotOlderThan(revision) => {
            let snapshot = newest();
            if revision > snapshot.revision() {
                return Err(too_new(revision, snapshot.revision()));
            }
            Ok((snapshot, String::new()))
        }
    }
}

pub fn too_new(asked: Revision, current: Revision) -> Status {
    let mut status = Status::timeout(
        format!("Too large resource version: {asked}, current: {current}"),
        1,
    );
    status.details["causes"] = json!([{
        "reason": "ResourceVersionTooLarge",
        "message": "Too large resource version",
    }]);
    status
}

fn expired(error: SnapshotError) -> Status {
    match error {
        SnapshotError::Compacted { asked, oldest } => {
            Status::expired(format!("too old resource version: {asked} ({oldest})"))
        }
        SnapshotError::Future { asked, current } => too_new(asked, current),
        SnapshotError::Backend(why) => Status::internal(why),
    }
}

fn read_token(text: &str) -> Result<Token, Status> {
    let bad = |why: String| {
        Status::bad_request(format!(
            "invalid continue token: continue key is not valid: {why}"
        ))
    };
    let bytes = URL_SAFE_NO_PAD
        .decode(text)
        .map_err(|error| bad(error.to_string()))?;
    let token: Token = serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
    if token.v == TOKEN_FORM {
        Ok(token)
    } else {
        Err(bad(format!(
            "server does not recognize this encoded version {:?}",
            token.v
        )))
    }
}

fn page(asked: &Asked<'_>, options: &ListOptions, snapshot: &Snapshot, after: &str) -> Page {
    let selection = &options.selection;
    let prefix = registry::prefix(asked.namespace());
    let limit = options.limit.unwrap_or(usize::MAX);
    let mut items: Vec<Bytes> = Vec::new();
    let mut last = String::new();
    let mut range = snapshot.range_from(after, &prefix);
    let mut more = false;
    // A selector of one name in one namespace needs no walk.
    let one = selection
        .fields
        .exact("metadata.name")
        .filter(|_| asked.resource.is_namespaced() != asked.namespace().is_empty());
    if let Some(name) = one.filter(|_| after.is_empty()) {
        let entry = snapshot.get(&registry::key(asked.namespace(), name));
        items.extend(
            entry.and_then(|entry| {
                chosen(asked, options, &entry.value).then(|| entry.value.clone())
            }),
        );
        return Page {
            revision: snapshot.revision(),
            items,
            next: None,
            remaining: None,
        };
    }
    for (key, entry) in range.by_ref() {
        if !selection.is_all() && !chosen(asked, options, &entry.value) {
            continue;
        }
        if items.len() == limit {
            more = true;
            break;
        }
        items.push(entry.value.clone());
        last.clear();
        last.push_str(key);
    }
    let remaining = (more && selection.is_all()).then(|| range.count() + 1);
    let next = more.then(|| {
        let token = Token {
            v: TOKEN_FORM.to_owned(),
            rv: snapshot.revision().0,
            start: last.clone(),
        };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).unwrap_or_default())
    });
    Page {
        revision: snapshot.revision(),
        items,
        next,
        remaining,
    }
}

fn chosen(asked: &Asked<'_>, options: &ListOptions, value: &Bytes) -> bool {
    registry::decode(asked.resource, value)
        .is_some_and(|object| options.selection.matches(asked.resource, &object))
}

impl Page {
    fn metadata(&self) -> Value {
        let mut metadata = json!({ "resourceVersion": self.revision.to_string() });
        if let Some(next) = &self.next {
            metadata["continue"] = next.as_str().into();
        }
        if let Some(remaining) = self.remaining {
            metadata["remainingItemCount"] = remaining.into();
        }
        metadata
    }

    fn objects<'a>(&'a self, asked: &'a Asked<'_>) -> impl Iterator<Item = Object> + 'a {
        self.items
            .iter()
            .filter_map(|value| registry::decode(asked.resource, value))
    }

    fn whole(&self, asked: &Asked<'_>, kind: &str, api_version: &str) -> Value {
        let items: Vec<Value> = self.objects(asked).map(Object::into_value).collect();
        json!({
            "kind": kind, "apiVersion": api_version, "metadata": self.metadata(),
            "items": items,
        })
    }

    fn protobuf(
        &self,
        asked: &Asked<'_>,
        kind: &str,
        api_version: &str,
    ) -> Result<Vec<u8>, ProtobufError> {
        let mut list = ListEncoder::new(asked.resource.schema)?;
        for object in self.objects(asked) {
            list.push(object.root())?;
        }
        let metadata = Object::from_value(self.metadata()).unwrap_or_else(|| Object::new("", ""));
        list.finish(api_version, kind, metadata.root())
    }
}

fn answer(asked: &Asked<'_>, page: Page) -> Response<Body> {
    let (kind, api_version) = (
        format!("{}List", asked.resource.kind),
        asked.resource.api_version(),
    );
    match asked.shape.form {
        Form::Json if !registry::is_second_view(asked.resource) => {
            json_bytes(StatusCode::OK, concatenated(&kind, &api_version, &page))
        }
        Form::Json | Form::Yaml => {
            let list = page.whole(asked, &kind, &api_version);
            document(StatusCode::OK, &list, asked.shape.form)
        }
        Form::Protobuf => {
            let encoded = page.protobuf(asked, &kind, &api_version);
            let json = || page.whole(asked, &kind, &api_version).to_string();
            protobuf_or(StatusCode::OK, encoded, json)
        }
        Form::Table => {
            let objects: Vec<Object> = page.objects(asked).collect();
            let (include, now) = (asked.shape.include, asked.shape.now);
            let table = table::build(
                asked.resource,
                &objects,
                page.metadata(),
                include,
                true,
                now,
            );
            json_bytes(StatusCode::OK, table.to_string())
        }
        Form::Metadata => {
            let items: Vec<Value> = page
                .objects(asked)
                .map(|object| table::partial_metadata(&object))
                .collect();
            let list = json!({
                "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                "metadata": page.metadata(), "items": items,
            });
            json_bytes(StatusCode::OK, list.to_string())
        }
    }
}

fn concatenated(kind: &str, api_version: &str, page: &Page) -> Vec<u8> {
    let head = format!(
        "{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{},\"items\":[",
        page.metadata()
    );
    let length: usize = page.items.iter().map(|item| item.len() + 1).sum();
    let mut out = Vec::with_capacity(head.len() + length + 2);
    out.extend_from_slice(head.as_bytes());
    for (place, item) in page.items.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        out.extend_from_slice(item);
    }
    out.extend_from_slice(b"]}");
    out
}
