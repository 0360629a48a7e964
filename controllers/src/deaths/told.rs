//! What a story left behind, and how two tellings of it differ.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use serde_json::{Value, json};

use crate::fake_cluster::FakeCluster;

/// What there is after each step, and how often each object was made and deleted.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) after: Vec<BTreeMap<String, Value>>,
    made: BTreeMap<String, usize>,
    deleted: BTreeMap<String, usize>,
    /// Paths of objects of which the server chose the names, and what was asked for.
    generated: BTreeMap<String, String>,
    /// Creations that were done and said to have failed.
    pub(super) unanswered: usize,
}

impl Told {
    pub(super) fn add_history(&mut self, cluster: &FakeCluster) {
        for (collection, kind, object) in cluster.api.history() {
            if is_left_out(&collection) {
                continue;
            }
            let path = path(&collection, &object, "name");
            if object["metadata"]["generateName"].is_string() {
                let asked = self::path(&collection, &object, "generateName");
                self.generated.insert(path.clone(), asked);
            }
            match kind {
                "ADDED" => *self.made.entry(path).or_default() += 1,
                "DELETED" => *self.deleted.entry(path).or_default() += 1,
                _ => {}
            }
        }
    }

    /// Of this telling without faults and another.
    pub(super) fn differences(&self, mut again: Self, names_vary: bool) -> Vec<String> {
        // Names that the server chooses are compared too, unless the loop could not know of one.
        if again.unanswered == 0 && !names_vary {
            return self.compare(&again);
        }
        let before = self.as_asked();
        again = again.as_asked();
        again.forgive(&before);
        before.compare(&again)
    }

    /// Without the names that the server chose.
    fn as_asked(&self) -> Self {
        let asked = |path: &String| self.generated.get(path).unwrap_or(path).clone();
        let counted = |counts: &BTreeMap<String, usize>| {
            let mut sums = BTreeMap::new();
            for (path, count) in counts {
                *sums.entry(asked(path)).or_default() += count;
            }
            sums
        };
        let nameless = |all: &BTreeMap<String, Value>| {
            let named = |(path, object): (&String, &Value)| {
                let mut object = object.clone();
                if self.generated.contains_key(path) {
                    object["metadata"]["name"] = Value::Null;
                }
                (asked(path), object)
            };
            let mut all: Vec<(String, Value)> = all.iter().map(named).collect();
            all.sort_by_cached_key(|(path, object)| (path.clone(), object.to_string()));
            let mut found = BTreeMap::new();
            for (mut key, object) in all {
                while found.contains_key(&key) {
                    key.push_str(" and another");
                }
                found.insert(key, object);
            }
            found
        };
        Self {
            after: self.after.iter().map(nameless).collect(),
            made: counted(&self.made),
            deleted: counted(&self.deleted),
            generated: self.generated.clone(),
            unanswered: self.unanswered,
        }
    }

    /// Who is told that a creation failed asks once more, and the server has another name for it.
    /// So for each such answer one object may be too much, if it was deleted again.
    fn forgive(&mut self, without_faults: &Self) {
        let of = |counts: &BTreeMap<String, usize>, path| counts.get(path).copied().unwrap_or(0);
        let paths: BTreeSet<&String> = self.generated.values().collect();
        for path in paths {
            let made = of(&self.made, path).saturating_sub(of(&without_faults.made, path));
            let deleted = of(&self.deleted, path).saturating_sub(of(&without_faults.deleted, path));
            let too_much = made.min(deleted).min(self.unanswered);
            self.unanswered -= too_much;
            for counts in [&mut self.made, &mut self.deleted] {
                if let Some(count) = counts.get_mut(path) {
                    *count -= too_much;
                }
                counts.retain(|_, count| *count > 0);
            }
        }
    }

    fn compare(&self, again: &Self) -> Vec<String> {
        let mut all = Vec::new();
        for (number, (before, now)) in self.after.iter().zip(&again.after).enumerate() {
            compare(&format!("after step {number}"), before, now, &mut all);
        }
        compare("made", &self.made, &again.made, &mut all);
        compare("deleted", &self.deleted, &again.deleted, &mut all);
        all
    }
}

fn compare<T: PartialEq + Debug>(
    when: &str,
    before: &BTreeMap<String, T>,
    now: &BTreeMap<String, T>,
    into: &mut Vec<String>,
) {
    let keys: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    for key in keys {
        let (before, now) = (before.get(key), now.get(key));
        if before != now {
            into.push(format!("{when}, {key}: {before:?} without faults, {now:?}"));
        }
    }
}

/// What comes and goes as it likes.
fn is_left_out(collection: &str) -> bool {
    collection.ends_with("/events") || collection.ends_with("/leases")
}

fn path(collection: &str, object: &Value, name: &str) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or("");
    format!("{collection} {}/{}", text("namespace"), text(name))
}

pub(super) fn everything(cluster: &FakeCluster) -> BTreeMap<String, Value> {
    let all = cluster.api.everything().into_iter();
    let all = all.filter(|(collection, _)| !is_left_out(collection));
    all.map(|(collection, mut object)| {
        let path = path(&collection, &object, "name");
        // How many generations there were is chance, and whether the newest was seen is not.
        if let Some(seen) = object["status"].get("observedGeneration") {
            let is_newest = *seen == object["metadata"]["generation"];
            object["status"]["observedGeneration"] = json!(is_newest);
        }
        forget_chance(&mut object);
        (path, object)
    })
    .collect()
}

/// Conditions stand in the order in which they first came.
fn sort_by_type(conditions: &mut Value) {
    if let Some(all) = conditions.as_array_mut() {
        all.sort_by_cached_key(|one| one["type"].to_string());
    }
}

/// Leaves out what no two runs have in common: times, counters and keys.
fn forget_chance(value: &mut Value) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(forget_chance),
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                match key.as_str() {
                    "certificate" => *value = json!("one"),
                    "conditions" => {
                        forget_chance(value);
                        sort_by_type(value);
                    }
                    _ => forget_chance(value),
                }
            }
            fields.retain(|key, value| {
                let is_time = key.ends_with("Time") || key.ends_with("-time") || key == "timeAdded";
                let is_counter = ["resourceVersion", "uid", "generation"].contains(&&**key);
                let is_empty = value.is_null()
                    || value.as_array().is_some_and(Vec::is_empty)
                    || value.as_object().is_some_and(serde_json::Map::is_empty);
                !is_time && !is_counter && !is_empty && key != "request"
            });
        }
        _ => {}
    }
}
