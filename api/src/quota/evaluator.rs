//! One kind of object: what it uses, and which scopes it is in.

use super::{DeviceClasses, Scope, claims, pods, services, volume_claims};
use crate::amounts::Amounts;
use crate::object::Object;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// What usage depends on beside the object itself.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Seconds since 1970.
    pub now: i64,
    pub classes: &'a DeviceClasses,
    /// The pod of this namespace and name.
    pub pod: &'a (dyn Fn(&str, &str) -> Option<Cow<'a, Object>> + Sync),
    /// The claims of devices of this namespace.
    pub claims: &'a (dyn Fn(&str) -> Cow<'a, [Object]> + Sync),
}

impl std::fmt::Debug for Surroundings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings")
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// How the objects of a resource are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evaluator {
    Pods,
    Services,
    VolumeClaims,
    ResourceClaims,
    /// Objects are counted and nothing else, by this name, and some by an older one.
    Count {
        name: String,
        alias: Option<&'static str>,
    },
}

/// Kinds that were counted before all could be, by their plurals.
const COUNTED_BY_ALIAS: [&str; 4] = [
    "configmaps",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
];

/// What is not stored, and events, which no quota has ever counted.
const IGNORED: [(&str, &str); 10] = [
    ("", "bindings"),
    ("", "componentstatuses"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("", "events"),
    ("events.k8s.io", "events"),
];

const CLAIMS_GROUP: &str = "resource.k8s.io";

impl Evaluator {
    /// `None` for what no quota counts.
    pub fn of(group: &str, plural: &str) -> Option<Self> {
        if IGNORED.contains(&(group, plural)) {
            return None;
        }
        let special = match (group, plural) {
            ("", "pods") => Self::Pods,
            ("", "services") => Self::Services,
            ("", "persistentvolumeclaims") => Self::VolumeClaims,
            (CLAIMS_GROUP, "resourceclaims") => Self::ResourceClaims,
            _ => {
                let mut aliases = COUNTED_BY_ALIAS.into_iter();
                Self::Count {
                    name: count_name(group, plural),
                    alias: aliases.find(|alias| group.is_empty() && *alias == plural),
                }
            }
        };
        Some(special)
    }

    /// Whether a quota's resource of this name counts such objects.
    pub fn counts(&self, name: &str, classes: &DeviceClasses) -> bool {
        match self {
            Self::Pods => pods::counts(name),
            Self::Services => services::counts(name),
            Self::VolumeClaims => volume_claims::counts(name),
            Self::ResourceClaims => claims::counts(name, classes),
            Self::Count { name: own, alias } => own == name || *alias == Some(name),
        }
    }

    /// The same whatever device classes there are, or come to be.
    pub fn may_count(&self, name: &str) -> bool {
        let by_class = *self == Self::ResourceClaims && claims::depends_on_classes(name);
        by_class || self.counts(name, &DeviceClasses::default())
    }

    /// Whether creating such an object is charged, or this update of it, by the part updated.
    pub fn charges(&self, subresource: &str, new: &Object, old: Option<&Object>) -> bool {
        match (self, subresource, old) {
            (_, "", None) | (Self::Services | Self::VolumeClaims, "", _) => true,
            (Self::ResourceClaims, "", _) | (Self::Pods, "resize", Some(_)) => true,
            // It changes scopes.
            (Self::Pods, "", Some(old)) => pods::has_deadline(new) != pods::has_deadline(old),
            (Self::VolumeClaims, "status", Some(old)) => volume_claims::status_matters(new, old),
            _ => false,
        }
    }

    pub fn usage(&self, object: &Object, around: &Surroundings<'_>) -> Amounts {
        match self {
            Self::Pods => pods::usage(object, around.now),
            Self::Services => services::usage(object),
            Self::VolumeClaims => volume_claims::usage(object),
            Self::ResourceClaims => claims::usage(object, around),
            Self::Count { .. } => self.usage_of_each(),
        }
    }

    /// What every object uses that is counted and nothing else.
    pub fn usage_of_each(&self) -> Amounts {
        let mut usage = Amounts::default();
        if let Self::Count { name, alias } = self {
            usage.set_count(name.as_str(), 1);
            if let Some(alias) = alias {
                usage.set_count(*alias, 1);
            }
        }
        usage
    }

    /// Scopes are for pods and for claims of volumes: nothing else is in any.
    pub fn is_in(&self, scope: &Scope, object: &Object) -> bool {
        match self {
            Self::Pods => pods::is_in(scope, object),
            Self::VolumeClaims => volume_claims::is_in(scope, object),
            _ => false,
        }
    }

    /// Says what the object leaves out that quotas on these resources oblige it to say.
    pub fn missing<'a>(
        &self,
        object: &Object,
        restricted: impl Iterator<Item = &'a str>,
    ) -> Result<(), String> {
        match self {
            Self::Pods => pods::missing(object, restricted),
            _ => Ok(()),
        }
    }
}

fn count_name(group: &str, plural: &str) -> String {
    if group.is_empty() {
        format!("count/{plural}")
    } else {
        format!("count/{plural}.{group}")
    }
}

/// The kinds, by group and plural, whose objects a quota's resource of this name counts.
pub fn kinds_behind(name: &str, classes: &DeviceClasses) -> BTreeSet<(String, String)> {
    kinds(name, |evaluator| evaluator.counts(name, classes))
}

/// The same whatever device classes there are, or come to be.
pub fn kinds_maybe_behind(name: &str) -> BTreeSet<(String, String)> {
    kinds(name, |evaluator| evaluator.may_count(name))
}

fn kinds(name: &str, counts: impl Fn(&Evaluator) -> bool) -> BTreeSet<(String, String)> {
    let counted = name.strip_prefix("count/").map(|resource| {
        let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
        (group.to_owned(), plural.to_owned())
    });
    let special = [
        ("", "pods"),
        ("", "services"),
        ("", "persistentvolumeclaims"),
        (CLAIMS_GROUP, "resourceclaims"),
    ];
    let aliases = COUNTED_BY_ALIAS.iter().map(|plural| ("", *plural));
    let known = special.into_iter().chain(aliases);
    let known = known.map(|(group, plural)| (group.to_owned(), plural.to_owned()));
    let all = counted.into_iter().chain(known);
    all.filter(|(group, plural)| Evaluator::of(group, plural).is_some_and(|one| counts(&one)))
        .collect()
}
