//! Who manages which field, and server-side apply.
//!
//! Every write goes through a [`Writer`]: an update gets new `metadata.managedFields`, an apply a
//! merged object with them. Pure: the time is an argument. Behaves as upstream's
//! `structured-merge-diff` and `managedfields`; `docs/apply.md` says how the pieces fit.

mod compare; // What changed between two values.
mod conflict; // What an apply would take from others.
mod conform; // Sets that were written under another schema.
mod element; // One step of a path.
mod fields; // All fields that a value names.
mod last_applied; // The annotation of client-side apply.
mod managed; // The entries of `managedFields`.
mod merge; // A configuration over an object.
pub mod order; // `managedFields` as bytes.
mod overlay; // A configuration of a mutating policy.
mod prune; // What an applier no longer applies.
mod remove; // Fields out of a value.
mod reset; // Fields that an endpoint does not write.
pub mod scale; // The managers of a Scale.
mod set; // Sets of fields.
mod types; // What the schema says of merging.
mod validate; // Whether a configuration is of its type.
pub(crate) mod value; // Values compared and written as Go does.
mod versions; // One object in several versions.
mod zero; // Objects before anything is set.

pub use managed::is_reset;
pub use reset::Filter;

use crate::custom::Family;
use crate::object::Object;
use crate::resource::{Part, Resource};
use crate::schema::schema;
use crate::status::Status;
use compare::Comparison;
use conflict::Conflicts;
use managed::{Entry, Managed, Operation};
use serde_json::{Map, Value};
use set::Set;
use std::sync::{Arc, OnceLock};
use types::{Place, Types};
use versions::{Comparisons, Versions};

const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// The manager for which client-side apply and server-side apply are the same user.
const KUBECTL: &str = "kubectl";
/// Fields that nobody manages.
const UNMANAGED: &[&[&str]] = &[
    &["apiVersion"],
    &["kind"],
    &["metadata"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "creationTimestamp"],
    &["metadata", "selfLink"],
    &["metadata", "uid"],
    &["metadata", "clusterName"],
    &["metadata", "generation"],
    &["metadata", "managedFields"],
    &["metadata", "resourceVersion"],
];

/// One write, as far as managers matter.
#[derive(Clone, Debug)]
pub struct Writer<'w> {
    pub api_version: &'w str,
    pub kind: &'w str,
    /// The schema name of the kind.
    pub type_name: &'w str,
    /// The types of the kind in all its versions, where a definition brought it.
    pub family: Option<Arc<Family>>,
    /// Empty for the main resource.
    pub subresource: &'w str,
    pub filter: Filter,
    pub manager: &'w str,
    /// RFC 3339, in UTC.
    pub now: &'w str,
}

/// What an apply makes of an object, `managedFields` included.
#[derive(Clone, Debug)]
pub struct Applied {
    pub object: Map<String, Value>,
    /// False when the object is as it was, bar its managers.
    pub is_changed: bool,
}

impl<'w> Writer<'w> {
    /// A writer of a part of a resource, in the resource's version.
    pub fn of(
        resource: &'w Resource,
        api_version: &'w str,
        part: Part<'_>,
        subresource: &'w str,
        manager: &'w str,
        now: &'w str,
    ) -> Self {
        Self {
            api_version,
            kind: resource.kind,
            type_name: resource.schema,
            family: resource.rules.custom().map(|own| Arc::clone(&own.family)),
            subresource,
            filter: Filter::of(resource, part),
            manager,
            now,
        }
    }

    fn types(&self) -> Types<'_> {
        let own = self.family.as_deref().map(Family::schema);
        Types {
            schema: own.unwrap_or_else(|| schema()),
        }
    }

    fn root(&self) -> Option<Place<'_>> {
        let id = match &self.family {
            Some(family) => family.root(self.api_version)?,
            None => schema().find(self.type_name)?,
        };
        Some(Place::Bare(crate::schema::Shape::Type(id)))
    }

    fn entry<'a>(&self, manager: &'a str, operation: Operation, set: Set<'a>) -> Entry<'a>
    where
        'w: 'a,
    {
        Entry {
            manager: if manager.is_empty() {
                "unknown".into()
            } else {
                manager.into()
            },
            operation,
            api_version: self.api_version.into(),
            subresource: self.subresource.into(),
            time: None,
            set,
        }
    }

    /// `managedFields` of an object after a write that makes `new` of `live`, or creates it.
    /// `None` when the object is to have none.
    pub fn update(&self, live: Option<&Object>, new: &Object) -> Option<Value> {
        let live_list = live.and_then(managed_fields);
        let given = managed_fields(new).filter(|_| self.subresource.is_empty());
        // What is the same as before is read only when it is needed.
        let (list, read) = match given {
            Some(given) if is_reset(given) => (None, Some(Managed::default())),
            Some(given) if Some(given) != live_list => match Managed::read(Some(given)) {
                Ok(managed) if !managed.is_empty() => (Some(given), Some(managed)),
                _ => (live_list, None),
            },
            _ => (live_list, None),
        };
        if live.is_some() && list.is_none() {
            return None;
        }
        let root = self.root()?;
        let before = live.map_or_else(|| zero::of(self.type_name), Object::root);
        let compared = self.filtered(self.types().compare(root, before, new.root()));
        if list.is_some() && list == live_list && compared.is_only(unmanaged()) {
            return list.cloned();
        }
        let managed = read.unwrap_or_else(|| Managed::read(list).unwrap_or_default());
        if live.is_some() && managed.is_empty() {
            return None;
        }
        self.updated(managed, self.manager, before, new.root(), compared)
            .into_value()
    }

    /// The managers after an update.
    fn updated<'a>(
        &'a self,
        mut managed: Managed<'a>,
        manager: &'a str,
        before: &Map<String, Value>,
        after: &Map<String, Value>,
        compared: Comparison<'a>,
    ) -> Managed<'a> {
        if !managed.is_empty() {
            let versions = Versions::of(self, &managed, before, after);
            managed = versions.conformed(managed);
            let comparisons = versions.comparisons(self, &compared);
            managed = yield_to(managed, &comparisons, None).0;
        }
        let own = compared.modified.union(compared.added);
        let own = own.difference(unmanaged());
        if !own.is_empty() {
            let mut entry = self.entry(manager, Operation::Update, own);
            if let Some(before) = managed.take(&entry) {
                entry.set = entry.set.union(before.set);
            }
            entry.time = Some(self.now.into());
            managed.put(entry);
        }
        managed.cap();
        managed
    }

    fn filtered<'a>(&self, compared: Comparison<'a>) -> Comparison<'a> {
        Comparison {
            added: self.filter.keep(compared.added),
            modified: self.filter.keep(compared.modified),
            removed: self.filter.keep(compared.removed),
        }
    }

    /// Lays `patch` over the object, or makes one of it.
    pub fn apply(
        &self,
        live: Option<&Object>,
        patch: &Map<String, Value>,
        force: bool,
    ) -> Result<Applied, Status> {
        self.check(patch)?;
        let live_list = live.and_then(managed_fields);
        let managed = Managed::read(live_list)
            .map_err(|error| Status::failed(format!("failed to decode managed fields: {error}")))?;
        let zero = zero::of(self.type_name);
        let before = live.map_or(zero, Object::root);
        let (types, root) = (self.types(), self.expect_root()?);
        let managed = if managed.is_empty() {
            let compared = self.filtered(types.compare(root, zero, before));
            self.updated(managed, BEFORE_FIRST_APPLY, zero, before, compared)
        } else {
            managed
        };
        let wrong = types.validate(root, patch);
        if !wrong.is_empty() {
            return Err(Status::failed(format!(
                "failed to create typed patch object ({}): {}",
                shown(self.api_version, self.kind, patch),
                validate::message(&wrong)
            )));
        }
        let mut applied = match self.merged(managed.clone(), before, patch, force) {
            Err(conflicts) if self.manager == KUBECTL => {
                let known = last_applied::unchanged_fields(&types, root, self.api_version, before);
                let left = known.map_or(conflicts.clone(), |set| conflicts.without(&set));
                if !left.is_empty() {
                    return Err(left.into_status());
                }
                self.merged(managed, before, patch, true)
            }
            other => other,
        }
        .map_err(Conflicts::into_status)?;
        if self.manager == KUBECTL {
            last_applied::renew(&mut applied.object, patch);
        }
        Ok(applied)
    }

    fn expect_root(&self) -> Result<Place<'_>, Status> {
        self.root().ok_or_else(|| {
            Status::failed(format!(
                "no corresponding type for {}",
                gvk(self.api_version, self.kind)
            ))
        })
    }

    /// Refuses what is no configuration of this kind.
    fn check(&self, patch: &Map<String, Value>) -> Result<(), Status> {
        let text = |name: &str| patch.get(name).and_then(Value::as_str).unwrap_or("");
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if api_version != self.api_version || kind != self.kind {
            let gvk = gvk(api_version, kind);
            return Err(Status::bad_request(format!("invalid object type: {gvk}")));
        }
        let listed = patch
            .get("metadata")
            .and_then(|metadata| metadata.get("managedFields"))
            .and_then(Value::as_array);
        if listed.is_some() {
            return Err(Status::bad_request("metadata.managedFields must be nil"));
        }
        Ok(())
    }

    fn merged(
        &self,
        managed: Managed<'_>,
        before: &Map<String, Value>,
        patch: &Map<String, Value>,
        force: bool,
    ) -> Result<Applied, Conflicts> {
        let Some(root) = self.root() else {
            return Err(Conflicts::default());
        };
        let types = self.types();
        let merged = types.merge(root, before, patch);
        let mut me = self.entry(self.manager, Operation::Apply, Set::default());
        let last = managed.find(&me).cloned();
        me.set = self.filter.keep(types.fields_of(root, patch));
        me.time = last.as_ref().and_then(|entry| entry.time.clone());
        let mut managed = managed;
        managed.put(me.clone());
        let after = self.pruned(merged, &managed, last.as_ref());
        let versions = Versions::of(self, &managed, before, &after);
        let mut managed = versions.conformed(managed);
        managed.put(me.clone());
        let compared = self.filtered(types.compare(root, before, &after));
        let comparisons = versions.comparisons(self, &compared);
        let (left, conflicts) = yield_to(managed, &comparisons, Some(&me));
        if !force && !conflicts.is_empty() {
            return Err(conflicts);
        }
        let mut managed = left;
        let is_changed = !equal_bar_managers(before, &after);
        if let Some(mut entry) = managed.take(&me) {
            entry.set = entry.set.difference(unmanaged());
            if is_changed {
                entry.time = Some(self.now.into());
            }
            managed.put(entry);
        }
        managed.drop_empty();
        let list = managed.into_value();
        let mut object = after;
        put_managed_fields(&mut object, list);
        Ok(Applied { object, is_changed })
    }
}

/// Takes from all managers but `me` what changed: they no longer manage it. What they did manage
/// of it are the conflicts.
fn yield_to<'a>(
    managed: Managed<'a>,
    comparisons: &Comparisons<'_>,
    me: Option<&Entry<'_>>,
) -> (Managed<'a>, Conflicts) {
    let mut conflicts = Conflicts::default();
    let mut left = Vec::with_capacity(managed.0.len());
    for mut entry in managed.0 {
        if me.is_some_and(|me| me.is_same_manager(&entry)) {
            left.push(entry);
            continue;
        }
        // Whose version is no more, manages no more.
        let Some(compared) = comparisons.of(&entry.api_version) else {
            continue;
        };
        let modified = entry.set.intersection(&compared.modified);
        let taken = modified.union(entry.set.intersection(&compared.added));
        if !taken.is_empty() {
            if me.is_some() {
                conflicts.add(&entry, &taken);
            }
            entry.set = entry.set.difference(&taken);
        }
        if !compared.removed.is_empty() {
            entry.set = entry.set.difference(&compared.removed);
        }
        if !entry.set.is_empty() {
            left.push(entry);
        }
    }
    (Managed(left), conflicts)
}

/// [`UNMANAGED`] as a set.
fn unmanaged() -> &'static Set<'static> {
    static SET: OnceLock<Set<'static>> = OnceLock::new();
    SET.get_or_init(|| Set::of_fields(UNMANAGED))
}

fn managed_fields(object: &Object) -> Option<&Value> {
    object.get(&["metadata", "managedFields"])
}

/// Sets or removes the list.
pub fn put_managed_fields(object: &mut Map<String, Value>, list: Option<Value>) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        match list {
            Some(list) => drop(metadata.insert("managedFields".to_owned(), list)),
            None => drop(metadata.remove("managedFields")),
        }
    }
}

fn equal_bar_managers(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    compare::zip_maps(Some(a), Some(b)).all(|(key, values)| match values {
        (Some(Value::Object(a)), Some(Value::Object(b))) if key == "metadata" => {
            compare::zip_maps(Some(a), Some(b)).all(|(key, values)| {
                key == "managedFields" || matches!(values, (Some(a), Some(b)) if value::equal(a, b))
            })
        }
        (Some(a), Some(b)) => value::equal(a, b),
        _ => false,
    })
}

/// A configuration as messages name it: `default/web; apps/v1, Kind=Deployment`.
pub fn shown(api_version: &str, kind: &str, patch: &Map<String, Value>) -> String {
    let text = |name: &str| {
        patch
            .get("metadata")
            .and_then(|metadata| metadata.get(name))
            .and_then(Value::as_str)
            .unwrap_or("")
    };
    let gvk = gvk(api_version, kind);
    format!("{}/{}; {gvk}", text("namespace"), text("name"))
}

/// `apps/v1, Kind=Deployment`
pub fn gvk(api_version: &str, kind: &str) -> String {
    if api_version.contains('/') {
        format!("{api_version}, Kind={kind}")
    } else {
        format!("/{api_version}, Kind={kind}")
    }
}

#[cfg(test)]
mod tests;
