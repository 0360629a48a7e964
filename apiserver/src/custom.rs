//! Which kinds are served beside the built-in ones: those of the established definitions in the
//! store.
//!
//! Nothing runs here and nothing is told: whoever asks gets the kinds of the newest definitions,
//! which are read again when one of them changed. So what is established is served from then on,
//! and after a restart at once. [`settle`] is the loop that establishes definitions and takes
//! those apart that go.

pub mod convert; // From one version to another, by a webhook.
pub mod settle; // The conditions of definitions, and what their deletion does.

use crate::view;
use convert::Converter;
use coracle_api::catalogue;
use coracle_api::custom::{self, Kinds, Rows, Served, TooMany};
use coracle_api::object::Object;
use coracle_api::resource::Resource;
use coracle_store::{Revision, Store};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, OnceLock};
use tokio_util::sync::CancellationToken;

/// Where definitions are stored.
static PARTITION: LazyLock<String> =
    LazyLock::new(|| view::partition(custom::GROUP, custom::PLURAL));

/// The kinds that a server has.
#[derive(Debug, Default)]
pub struct Customs {
    /// The kinds, and the revision of the definitions that they are of.
    current: RwLock<(Revision, Arc<Kinds>)>,
    state: Mutex<State>,
    /// What brings objects from one version to another; absent where nothing is to be called.
    converter: OnceLock<Converter>,
}

#[derive(Debug, Default)]
struct State {
    rows: Rows,
    /// By the key of the definition, with the revision at which it was read.
    known: BTreeMap<Arc<str>, (Revision, Option<Served>)>,
    /// Ends what goes on with objects of a kind, by its group and plural, when the kind changes.
    lives: HashMap<(&'static str, &'static str), CancellationToken>,
}

impl Customs {
    /// All kinds as of the newest definitions.
    pub fn kinds(&self, store: &Store) -> Arc<Kinds> {
        let changed = store.changed(&PARTITION);
        {
            let current = self.current.read();
            if current.0 == changed {
                return Arc::clone(&current.1);
            }
        }
        let mut state = self.state.lock();
        // Somebody may have done it meanwhile.
        let changed = store.changed(&PARTITION);
        if self.current.read().0 == changed {
            return Arc::clone(&self.current.read().1);
        }
        let kinds = Arc::new(state.read(store));
        // What changes while they are read is read again by the next who asks.
        *self.current.write() = (changed, Arc::clone(&kinds));
        kinds
    }

    /// From now on webhooks of definitions are called.
    pub fn convert_by(&self, converter: Converter) {
        // Whoever was first stays.
        drop(self.converter.set(converter));
    }

    pub fn converter(&self) -> Option<&Converter> {
        self.converter.get()
    }

    /// The row of a resource. Built-in ones are found without a look at the definitions.
    pub fn find(
        &self,
        store: &Store,
        group: &str,
        version: &str,
        plural: &str,
    ) -> Option<&'static Resource> {
        catalogue::find(group, version, plural)
            .or_else(|| self.kinds(store).find(group, version, plural))
    }

    /// Ends when the kind changes; `None` for built-in ones, which never do.
    pub fn life(&self, resource: &'static Resource) -> Option<CancellationToken> {
        resource.rules.custom()?;
        let mut state = self.state.lock();
        let place = (resource.group, resource.plural);
        Some(state.lives.entry(place).or_default().clone())
    }
}

impl State {
    fn read(&mut self, store: &Store) -> Kinds {
        let snapshot = store.snapshot(&PARTITION);
        let gone = self.known.keys().filter(|key| snapshot.get(key).is_none());
        for key in gone.cloned().collect::<Vec<_>>() {
            if let Some((_, Some(served))) = self.known.remove(&key) {
                self.forget(&served.rows, &[]);
                self.end(&served.rows);
            }
        }
        for (key, entry) in snapshot.iter() {
            let before = self.known.get(key);
            if before.is_some_and(|(read_at, _)| *read_at == entry.modified) {
                continue;
            }
            let before = before.and_then(|(_, served)| served.clone());
            let served = view::decode(&entry.value).and_then(|one| self.served(&one));
            let rows = served.as_ref().map_or(&[][..], |served| &served.rows);
            let old = before.as_ref().map_or(&[][..], |served| &served.rows);
            self.forget(old, rows);
            if before.as_ref().map(|served| &served.identity)
                != served.as_ref().map(|served| &served.identity)
            {
                self.end(old);
            }
            self.known.insert(Arc::clone(key), (entry.modified, served));
        }
        let served = self
            .known
            .values()
            .filter_map(|(_, served)| served.as_ref());
        let kinds = Kinds::with(served, &mut self.rows);
        for group in &kinds.left_out {
            let error = TooMany;
            tracing::error!(group, %error, "custom resources are not served");
        }
        kinds
    }

    fn served(&mut self, definition: &Object) -> Option<Served> {
        Served::of(definition, &mut self.rows).unwrap_or_else(|error| {
            let name = definition.name();
            tracing::error!(definition = name, %error, "a custom resource is not served");
            None
        })
    }

    /// Lets go of rows that have no successor.
    fn forget(&mut self, before: &[&'static Resource], after: &[&'static Resource]) {
        for row in before {
            let place = |one: &Resource| (one.version, one.plural);
            if !after.iter().any(|one| place(one) == place(row)) {
                self.rows.forget(row);
            }
        }
    }

    /// Ends what goes on with objects of a kind that is another now.
    fn end(&mut self, rows: &[&'static Resource]) {
        for row in rows {
            if let Some(life) = self.lives.remove(&(row.group, row.plural)) {
                life.cancel();
            }
        }
    }
}
