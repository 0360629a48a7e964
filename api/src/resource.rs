//! One row a resource, and the rules behind a kind.
//!
//! Discovery, routing, authorization, validation and OpenAPI all read these rows; no verb of the
//! API server names a kind.

use crate::custom::Version;
use crate::field::ErrorList;
use crate::json;
use crate::object::Object;
use serde_json::Value;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Cluster,
    Namespaced,
}

/// How soon a write must be on disk. `Lazy` is for what is worthless after a crash or comes again
/// by itself; `Renewal` besides for what is written over and over, each time saying no more than that
/// somebody is still there: of several that wait only the last reaches the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    Synced,
    Lazy,
    Renewal,
}

/// What kind of endpoint a subresource is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubresourceKind {
    /// get, patch, update of the same object, only `status` may change.
    Status,
    /// An autoscaling/v1 Scale seen through the object.
    Scale,
    /// Same object, another part of it may change (`approval`, `finalize`, `ephemeralcontainers`,
    /// `resize`): the kind's rules decide by the subresource's name.
    Part,
    /// create of a small object that acts on this one (`binding`, `eviction`, `token`).
    Action,
    /// A stream or a proxied request to the node (`log`, `exec`, `attach`, `portforward`, `proxy`).
    Connect,
}

#[derive(Clone, Copy, Debug)]
pub struct Subresource {
    pub name: &'static str,
    pub kind: SubresourceKind,
    /// Group, version and kind of the body where it is not the parent's.
    pub body: Option<(&'static str, &'static str, &'static str)>,
    pub verbs: &'static [&'static str],
}

/// A resource of one group version. Identity is the group, version and plural.
#[derive(Clone, Copy)]
pub struct Resource {
    /// Empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub singular: &'static str,
    pub short_names: &'static [&'static str],
    pub categories: &'static [&'static str],
    pub scope: Scope,
    pub verbs: &'static [&'static str],
    pub subresources: &'static [Subresource],
    /// Field selectors beyond `metadata.name` and `metadata.namespace`.
    pub selectable_fields: &'static [&'static str],
    /// Schema name in OpenAPI v2 form: `io.k8s.api.apps.v1.Deployment`.
    pub schema: &'static str,
    /// Where its objects are stored: group and plural of the resource that owns them. Differs from
    /// this row's own for a second view on the same objects (events.k8s.io on core events).
    pub stored_as: (&'static str, &'static str),
    /// True for a version or group that shows objects which another row stores: its rules turn
    /// them from the stored form and back.
    pub is_second_view: bool,
    pub rules: &'static dyn Rules,
}

impl std::fmt::Debug for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.api_version(), self.plural)
    }
}

impl Resource {
    /// `v1` or `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The object as upstream has it when a client sent it: defaults, and what Go writes of fields
    /// that nobody set.
    pub fn default(&self, object: &mut Object) {
        self.rules.default(object);
        crate::go_zero::complete(self.schema, object);
    }

    /// Drops what a gate keeps out, when an object is prepared.
    pub fn drop_gated(&self, object: &mut Object) {
        crate::pod_spec::gates::drop(self.group, self.plural, object);
    }

    pub fn subresource(&self, name: &str) -> Option<&'static Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }

    /// The kind of its lists.
    pub fn list_kind(&self) -> String {
        match self.rules.custom() {
            Some(custom) => custom.list_kind.clone(),
            None => format!("{}List", self.kind),
        }
    }

    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }
}

/// One printed column, as in a Table's `columnDefinitions`.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub name: &'static str,
    /// `string`, `integer`, `date` ...
    pub kind: &'static str,
    /// `name` or empty.
    pub format: &'static str,
    /// 0 is shown always, 1 with `-o wide`.
    pub priority: u8,
    pub description: &'static str,
}

/// Which part of the object a write is allowed to change: the main resource or a subresource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    Main,
    Status,
    Other(&'a str),
}

/// Who sends a request, as far as a kind keeps it in its objects.
#[derive(Clone, Copy, Debug, Default)]
pub struct Requester<'a> {
    pub name: &'a str,
    pub uid: &'a str,
    pub groups: &'a [String],
    /// A JSON object of lists of strings, or null.
    pub extra: Option<&'a Value>,
}

/// The knowledge of one kind: defaulting, preparing, validating, printing. Pure.
///
/// The API server does what is the same for all kinds itself: identity metadata (uid,
/// creationTimestamp, generation numbers), metadata validation, finalizers, deletion timestamps.
pub trait Rules: Sync {
    /// What a definition says of the kind, where users brought it.
    fn custom(&self) -> Option<Arc<Version>> {
        None
    }

    /// The rows of all versions of the kind, where users brought it.
    fn siblings(&self) -> Vec<&'static Resource> {
        Vec::new()
    }

    /// Fills in what upstream's defaulting fills in. Runs on every decode from the wire.
    fn default(&self, object: &mut Object);

    /// On create: drops what a client may not set (as a rule `status`), sets initial state.
    fn prepare_create(&self, object: &mut Object) {
        object.remove(&["status"]);
    }

    /// On update: copies from `old` what this write may not change (main keeps old status, status
    /// keeps old spec and metadata bar what upstream lets through).
    fn prepare_update(&self, new: &mut Object, old: &Object, part: Part<'_>) {
        prepare_update_by_part(new, old, part);
    }

    /// True when the kind counts its specs in `metadata.generation`: 1 on create, and one more
    /// with each update that raises it.
    fn counts_generations(&self) -> bool {
        false
    }

    /// `metadata.generation` of a new object; 0 shows none, where only changes are counted.
    fn first_generation(&self) -> i64 {
        1
    }

    /// True when this update raises `metadata.generation`: as a rule, `spec` changed.
    fn raises_generation(&self, new: &Object, old: &Object) -> bool {
        let [new, old] = [new, old].map(|object| object.get(&["spec"]).unwrap_or(&json::NULL));
        self.counts_generations() && !json::same(new, old)
    }

    /// Writes in what only the server knows: who asks, and when (`now`, RFC 3339). Runs after
    /// `prepare_create` (`old` is `None`) or `prepare_update`, when a generated name is known.
    fn stamp(
        &self,
        _object: &mut Object,
        _old: Option<&Object>,
        _part: Part<'_>,
        _by: &Requester<'_>,
        _now: &str,
    ) {
    }

    fn validate_create(&self, object: &Object) -> ErrorList;

    fn validate_update(&self, new: &Object, old: &Object, part: Part<'_>) -> ErrorList;

    /// Extra validation of `metadata.name` beyond the default DNS subdomain rule.
    fn name_rule(&self) -> NameRule {
        NameRule::DnsSubdomain
    }

    /// What every request for the kind is warned of, where upstream would have it used no more.
    fn deprecation(&self) -> Option<&'static str> {
        None
    }

    /// True when an update may create the object (`PUT` of a name that is not there).
    fn create_on_update(&self) -> bool {
        false
    }

    /// True when an update without `resourceVersion` is accepted.
    fn unconditional_update(&self) -> bool {
        true
    }

    /// Seconds of grace on delete: `None` when the kind is deleted at once. `asked` is
    /// `gracePeriodSeconds` of the request.
    fn grace_seconds(&self, _object: &Object, _asked: Option<i64>) -> Option<i64> {
        None
    }

    /// What the first deletion does before anything else: what is to hold the object, as a rule
    /// nothing.
    fn announce_delete(&self, _object: &mut Object, _now: &str) {}

    /// When a deletion begins that has to wait: what changes beside the deletion timestamp.
    fn begin_delete(&self, _object: &mut Object) {}

    /// True for an object whose first deletion only tells that it is to end: others take it
    /// apart, and it ends with the last entry of `spec.finalizers`.
    fn is_taken_apart(&self) -> bool {
        false
    }

    fn columns(&self) -> &'static [Column];

    /// One cell a column, in order. `now` in seconds since the epoch, for ages.
    fn cells(&self, object: &Object, now: i64) -> Vec<Value>;

    /// What rows of a list's Table are sorted by, before their names; `None` for those that are in
    /// the order of names alone.
    fn row_rank(&self) -> Option<fn(&Object) -> i64> {
        None
    }

    /// `conditions` of the object's row in a Table: null, or a list.
    fn row_conditions(&self, _object: &Object) -> Value {
        Value::Null
    }

    /// The value of a selectable field; absent fields select as the empty string.
    fn field(&self, object: &Object, name: &str) -> String {
        let path: Vec<&str> = name.split('.').collect();
        match object.get(&path) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        }
    }

    /// The selectable field that an older name stands for.
    fn field_alias(&self, _name: &str) -> Option<&'static str> {
        None
    }

    fn durability(&self, _new: &Object, _old: Option<&Object>, _part: Part<'_>) -> Durability {
        Durability::Synced
    }

    /// Wire form of this version into the stored form, and back: differs for second views only.
    fn to_stored(&self, _object: &mut Object) {}
    #[allow(clippy::wrong_self_convention)] // The rules turn the object, not themselves.
    fn from_stored(&self, _object: &mut Object) {}

    /// Whether looking at an object may take long, as patterns and expressions do.
    fn is_slow_to_validate(&self) -> bool {
        false
    }

    /// Warnings for the `Warning` header (deprecated fields and the like).
    fn warnings(&self, _object: &Object) -> Vec<String> {
        Vec::new()
    }

    /// Warnings about what a create asks for before the kind's rules prepare it, said even when the
    /// object is refused.
    fn early_warnings(&self, _object: &Object) -> Vec<String> {
        Vec::new()
    }

    /// Warnings of an update: for most kinds those of a create.
    fn warnings_on_update(&self, new: &Object, _old: &Object) -> Vec<String> {
        self.warnings(new)
    }
}

/// The rule that `metadata.name` follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    DnsSubdomain,
    DnsLabel,
    /// RFC 1035: begins with a letter (Services).
    Rfc1035Label,
    /// Any path segment (RBAC).
    PathSegment,
    /// An IP address in canonical form (IPAddress).
    CanonicalIp,
}

/// What most kinds do on update: the main resource keeps the old status; the status subresource
/// keeps everything but the new status (and, as upstream, labels and annotations are kept old).
pub fn prepare_update_by_part(new: &mut Object, old: &Object, part: Part<'_>) {
    match part {
        Part::Main | Part::Other(_) => match old.get(&["status"]) {
            Some(status) => new.set(&["status"], status.clone()),
            None => drop(new.remove(&["status"])),
        },
        Part::Status => {
            let status = new.remove(&["status"]);
            let resource_version = new.remove(&["metadata", "resourceVersion"]);
            let managed_fields = new.remove(&["metadata", "managedFields"]);
            *new = old.clone();
            if let Some(version) = resource_version {
                new.set(&["metadata", "resourceVersion"], version);
            }
            if let Some(fields) = managed_fields {
                new.set(&["metadata", "managedFields"], fields);
            }
            match status {
                Some(status) => new.set(&["status"], status),
                None => drop(new.remove(&["status"])),
            }
        }
    }
}
