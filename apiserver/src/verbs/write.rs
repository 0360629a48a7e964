//! What create, update and patch share: the order of a write.
//!
//! Decode and default come before; here it is who manages what, mutating admission, prepare,
//! validate, validating admission, commit. The order is part of the contract.

mod insert; // How an object comes to be.

pub use insert::{New, check_name, create, generate_name, may_create};

use super::asked::Asked;
use super::references;
use super::write_options::WriteOptions;
use crate::Api;
use crate::admission::resource_quota::Charge;
use crate::admission::{Attributes, Operation};
use crate::registry::{self, Refusal, Stored};
use crate::routes;
use coracle_api::apply::{self, Writer};
use coracle_api::field::{FieldError, Path};
use coracle_api::meta_validate;
use coracle_api::object::Object;
use coracle_api::resource::{Part, Requester, Resource};
use coracle_api::status::Status;
use coracle_api::timestamp::format_time;
use coracle_store::{CommitError, Expect, Revision};
use jiff::Timestamp;
use serde_json::{Map, Value};
use tokio::runtime::{Handle, RuntimeFlavor};

/// A write that somebody else got ahead of is decided anew this often.
pub const ATTEMPTS_MAX: usize = 64;
fn invalid(resource: &Resource, name: &str, errors: &[FieldError]) -> Result<(), Status> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(
        registry::kind_subject(resource, name),
        errors,
    ))
}

fn set_revision(object: &mut Object, revision: Revision) {
    object.set(
        &["metadata", "resourceVersion"],
        revision.to_string().into(),
    );
}

/// Calls `act`, which validates an object. Where that may take long, what else the worker has to do
/// goes to another thread.
fn validated<T>(resource: &Resource, act: impl FnOnce() -> T) -> T {
    let has_others = Handle::current().runtime_flavor() != RuntimeFlavor::CurrentThread;
    if has_others && resource.rules.is_slow_to_validate() {
        tokio::task::block_in_place(act)
    } else {
        act()
    }
}

/// Calls `act` with the user as the rules of kinds know one.
fn with_requester<T>(asked: &Asked<'_>, act: impl FnOnce(&Requester<'_>) -> T) -> T {
    let user = asked.user;
    let extra = (!user.extra.is_empty()).then(|| {
        let pairs = user
            .extra
            .iter()
            .map(|(key, values)| (key.clone(), Value::from(values.clone())));
        Value::Object(pairs.collect::<Map<_, _>>())
    });
    act(&Requester {
        name: &user.name,
        uid: &user.uid,
        groups: &user.groups,
        extra: extra.as_ref(),
    })
}

/// Sets or removes `metadata.managedFields`.
fn put_list(object: &mut Object, list: Option<Value>) {
    apply::put_managed_fields(object.root_mut(), list);
}

/// What an update makes of the stored object.
#[derive(Debug)]
pub struct Wanted {
    object: Object,
    /// The object says who manages it.
    is_managed: bool,
}

impl Wanted {
    pub fn unmanaged(object: Object) -> Self {
        Self {
            object,
            is_managed: false,
        }
    }

    pub fn managed(object: Object) -> Self {
        Self {
            object,
            is_managed: true,
        }
    }
}

/// How an update went.
#[derive(Debug)]
pub struct Updated {
    pub object: Object,
    pub created: bool,
}

/// Updates the named object to what `want` makes of it; `want` is called anew when somebody else
/// got ahead, unless it insists on a `resourceVersion`.
pub async fn update(
    api: &Api,
    asked: &Asked<'_>,
    name: &str,
    options: &WriteOptions,
    want: impl Fn(&Stored) -> Result<Wanted, Status> + Sync,
) -> Result<Updated, Status> {
    routes::check_name(asked.info)?;
    for _ in 0..ATTEMPTS_MAX {
        let stored = api.get(asked.resource, asked.namespace(), name).await?;
        let wanted = want(&stored)?;
        let version = wanted.object.resource_version().to_owned();
        let insists = version_of(&version)? != 0;
        if insists && version != stored.revision.to_string() {
            return Err(Status::modified(asked.subject(name)));
        }
        match once(api, asked, options, &stored, wanted).await {
            Ok(object) => {
                return Ok(Updated {
                    object,
                    created: false,
                });
            }
            Err(Failure::Overtaken) if insists_on_client(asked, insists) => {
                return Err(Status::modified(asked.subject(name)));
            }
            Err(Failure::Overtaken) => {}
            Err(Failure::Refused(status)) => return Err(status),
        }
    }
    Err(Status::modified(asked.subject(name)))
}

/// The version that an update is made from; 0 for none.
pub fn version_of(text: &str) -> Result<u64, Status> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        let why = "invalid syntax";
        Status::failed(format!("strconv.ParseUint: parsing {text:?}: {why}"))
    })
}

/// A patch carries the version of what it was applied to, which is no wish of the client's.
fn insists_on_client(asked: &Asked<'_>, insists: bool) -> bool {
    insists && asked.info.verb != "patch"
}

enum Failure {
    Overtaken,
    Refused(Status),
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::Refused(status)
    }
}

async fn once(
    api: &Api,
    asked: &Asked<'_>,
    options: &WriteOptions,
    stored: &Stored,
    wanted: Wanted,
) -> Result<Object, Failure> {
    let (resource, part, old) = (asked.resource, asked.part(), &stored.object);
    let (name, dry_run) = (old.name(), options.dry_run);
    let now = format_time(asked.now);
    let mut new = wanted.object;
    check_version(asked, name, &new)?;
    if !wanted.is_managed {
        let version = resource.api_version();
        let (subresource, manager) = (asked.info.subresource.as_str(), options.manager.as_str());
        let writer = Writer::of(resource, &version, part, subresource, manager, &now);
        let list = writer.update(Some(old), &new);
        put_list(&mut new, list);
    }
    let attributes = asked.attributes(Operation::Update, name, Some(old), dry_run);
    api.access.admission.mutate(&mut new, &attributes).await?;
    let mut hold = api.allocator.hold_for(resource).await;
    let list = new.remove(&["metadata", "managedFields"]);
    prepare(asked, &mut new, old, &now);
    put_list(&mut new, list);
    set_revision(&mut new, stored.revision);
    if let Some(hold) = &mut hold {
        hold.assign(&api.registry.store, &mut new, Some(old), dry_run)?;
    }
    let of_metadata = meta_validate::validate_metadata_update(&new, old);
    let of_rules = validated(resource, || resource.rules.validate_update(&new, old, part));
    let errors = references::validate(api, asked, &new, Some(old), of_metadata, of_rules);
    invalid(resource, name, &errors)?;
    if part != Part::Status {
        asked
            .warnings
            .add(resource.rules.warnings_on_update(&new, old));
    }
    keep_times(&mut new, old);
    api.access.admission.validate(&new, &attributes).await?;
    let mut charge = charge(api, &new, attributes, asked.now).await?;
    if dry_run || same(&new, old) {
        return Ok(new);
    }
    if let Some(hold) = &mut hold {
        hold.claim(&api.registry, &new, &now).await?;
    }
    let committed = commit(api, asked, stored, &mut new, &mut charge).await;
    if let Some(hold) = &mut hold {
        hold.finish(&api.registry, &new, committed.is_ok()).await;
    }
    if committed.is_ok() && super::delete::is_finished(&new) {
        api.allocator.release(&api.registry, resource, &new).await;
    }
    committed.map(|()| new)
}

/// What writing the object is charged with: nothing where quotas are not asked.
async fn charge<'a>(
    api: &'a Api,
    object: &Object,
    attributes: Attributes<'a>,
    now: Timestamp,
) -> Result<Charge<'a>, Status> {
    let charge = api.quotas.charge(&api.registry, object, attributes, now);
    let charge = api.access.admission.quotas(&attributes, charge).await?;
    Ok(charge.unwrap_or_else(|| Charge::free(&api.registry)))
}

/// What the kind's rules make of the new state, and what no client changes.
fn prepare(asked: &Asked<'_>, new: &mut Object, old: &Object, now: &str) {
    let (resource, part) = (asked.resource, asked.part());
    resource.drop_gated(new);
    resource.rules.prepare_update(new, old, part);
    keep_identity(new, old);
    with_requester(asked, |by| {
        resource.rules.stamp(new, Some(old), part, by, now);
    });
    // A status is no change of what is wanted, even where it takes annotations along.
    let raised = part != Part::Status && resource.rules.raises_generation(new, old);
    if resource.rules.counts_generations() {
        let generation = old.generation() + i64::from(raised);
        if generation > 0 {
            new.set(&["metadata", "generation"], generation.into());
        }
    }
}

/// Writes the new state; its revision goes into it.
async fn commit(
    api: &Api,
    asked: &Asked<'_>,
    stored: &Stored,
    new: &mut Object,
    charge: &mut Charge<'_>,
) -> Result<(), Failure> {
    let (resource, registry) = (asked.resource, &api.registry);
    let durability = resource
        .rules
        .durability(new, Some(&stored.object), asked.part());
    let expect = Expect::At(stored.revision);
    let mut written = if super::delete::is_finished(new) {
        registry.delete(resource, new, expect, durability).await
    } else {
        charge.put(resource, new, expect, durability).await
    };
    if matches!(written, Err(Refusal::Failed(CommitError::TooLarge { .. }))) {
        // Who manages what can be large, and is worth less than the object.
        put_list(new, None);
        written = charge.put(resource, new, expect, durability).await;
    }
    match written {
        Ok(revision) => {
            set_revision(new, revision);
            Ok(())
        }
        Err(Refusal::Changed) => Err(Failure::Overtaken),
        Err(refusal) => Err(refusal.status(resource, new.name()).into()),
    }
}

/// Nothing to write. Exact: an empty selector says something else than none, and so does an empty
/// mark of a field that has a manager. `old` carries its own revision.
fn same(new: &Object, old: &Object) -> bool {
    new.root() == old.root()
}

/// Gives the managers their old times back when nothing but those would change.
fn keep_times(new: &mut Object, old: &Object) {
    const PATH: &[&str] = &["metadata", "managedFields"];
    let (of_new, of_old) = (new.list(PATH), old.list(PATH));
    let differ_in_time = of_new.len() == of_old.len()
        && of_new != of_old
        && of_new.iter().zip(of_old).all(|(a, b)| same_bar_time(a, b));
    if !differ_in_time {
        return;
    }
    let with_new_times = new.remove(PATH);
    put_list(new, old.get(PATH).cloned());
    if !same(new, old) {
        put_list(new, with_new_times);
    }
}

fn same_bar_time(a: &Value, b: &Value) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else {
        return false;
    };
    let names = a.keys().chain(b.keys()).filter(|name| *name != "time");
    names.into_iter().all(|name| a.get(name) == b.get(name))
}

/// Kinds of which an update must say what it was made from.
fn check_version(asked: &Asked<'_>, name: &str, new: &Object) -> Result<(), Status> {
    let is_said = !matches!(new.resource_version(), "" | "0");
    if is_said || asked.resource.rules.unconditional_update() {
        return Ok(());
    }
    let path = Path::root("metadata").child("resourceVersion");
    let error = FieldError::invalid(&path, 0, "must be specified for an update");
    Err(Status::invalid(
        registry::subject(asked.resource, name),
        &[error],
    ))
}

/// What no client changes. A deletion that has begun stays as it is; one that has not is no wish
/// that an update can have, which validation says.
fn keep_identity(new: &mut Object, old: &Object) {
    for field in ["creationTimestamp", "generation"] {
        match old.get(&["metadata", field]) {
            Some(value) => new.set(&["metadata", field], value.clone()),
            None => drop(new.remove(&["metadata", field])),
        }
    }
    if let Some(at) = old.get(&["metadata", "deletionTimestamp"]) {
        new.set(&["metadata", "deletionTimestamp"], at.clone());
    }
    let grace = &["metadata", "deletionGracePeriodSeconds"];
    if let (Some(seconds), None) = (old.get(grace), new.get(grace)) {
        new.set(grace, seconds.clone());
    }
    if new.uid().is_empty() {
        new.set(&["metadata", "uid"], old.uid().into());
    }
    new.remove(&["metadata", "selfLink"]);
}
