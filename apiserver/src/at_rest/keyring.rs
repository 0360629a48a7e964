//! Which key seals what, and opens.
//!
//! Rules in order: the first that is about a resource decides what seals it. What is sealed names
//! its key, and every key at hand may open it.

use super::sealed::{Key, head};
use coracle_store::{Seal, SealError};
use parking_lot::RwLock;
use std::path::PathBuf;

/// Where Secrets are stored.
const SECRETS: &str = "/secrets";

/// What a rule says of some resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) resources: Vec<Resources>,
    /// Keys in order of their providers; `None` is `identity`.
    pub(super) keys: Vec<Option<Key>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Resources {
    All,
    Group(String),
    One { group: String, plural: String },
}

#[derive(Debug)]
pub(super) struct Keyring {
    rules: Vec<Rule>,
    /// The server's own keys: the first seals Secrets unless there are rules.
    own: RwLock<Vec<Key>>,
    is_configured: bool,
    file: PathBuf,
}

impl Keyring {
    pub(super) fn of_own(keys: Vec<Key>, file: PathBuf) -> Self {
        Self {
            rules: Vec::new(),
            own: RwLock::new(keys),
            is_configured: false,
            file,
        }
    }

    /// `own` opens what it sealed before there was a configuration.
    pub(super) fn of_configuration(rules: Vec<Rule>, own: Vec<Key>, file: PathBuf) -> Self {
        Self {
            rules,
            own: RwLock::new(own),
            is_configured: true,
            file,
        }
    }

    pub(super) fn own_keys(&self) -> Vec<Key> {
        self.own.read().clone()
    }

    pub(super) fn set_own_keys(&self, keys: Vec<Key>) {
        *self.own.write() = keys;
    }

    /// Calls with the key that seals the partition, if one does.
    fn with_sealing<T>(&self, partition: &str, act: impl FnOnce(Option<&Key>) -> T) -> T {
        if self.is_configured {
            let rule = self.rules.iter().find(|rule| rule.is_about(partition));
            return act(rule.and_then(|rule| rule.keys.first()?.as_ref()));
        }
        if partition != SECRETS {
            return act(None);
        }
        act(self.own.read().first())
    }
}

impl Rule {
    fn is_about(&self, partition: &str) -> bool {
        let (own_group, own_plural) = partition.split_once('/').unwrap_or(("", partition));
        self.resources.iter().any(|resources| match resources {
            Resources::All => true,
            Resources::Group(group) => group == own_group,
            Resources::One { group, plural } => group == own_group && plural == own_plural,
        })
    }
}

impl Seal for Keyring {
    fn seal(&self, partition: &str, key: &str, plain: &[u8]) -> Result<Option<Vec<u8>>, SealError> {
        self.with_sealing(partition, |sealing| match sealing {
            None => Ok(None),
            Some(own) => match own.seal(partition, key, plain) {
                Some(sealed) => Ok(Some(sealed)),
                None => Err(SealError("the system gives no random numbers".to_owned())),
            },
        })
    }

    fn open(&self, partition: &str, key: &str, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let Some(head) = head(sealed) else {
            return Err(SealError("it is encrypted in an unknown form".to_owned()));
        };
        let own = self.own.read();
        let configured = self
            .rules
            .iter()
            .flat_map(|rule| rule.keys.iter().flatten());
        let mut fitting = configured
            .chain(own.iter())
            .filter(|key| key.is_of(&head))
            .peekable();
        let file = self.file.display();
        if fitting.peek().is_none() {
            return Err(SealError(format!(
                "it is encrypted with the key {:?}, which is not in {file}: {}",
                head.name,
                // Names of a configuration's keys begin with their provider's.
                match head.name.contains(':') {
                    true => "start with the --encryption-provider-config that holds it",
                    false => "put the file back that the server had",
                }
            )));
        }
        fitting
            .find_map(|own| own.open(partition, key, sealed))
            .ok_or_else(|| {
                SealError(format!(
                    "it cannot be decrypted with the key {:?} of {file}: the key is another one, \
                     or the value was changed",
                    head.name
                ))
            })
    }

    fn is_current(&self, partition: &str, sealed: Option<&[u8]>) -> bool {
        self.with_sealing(partition, |sealing| match (sealing, sealed) {
            (None, None) => true,
            (Some(own), Some(sealed)) => head(sealed).is_some_and(|head| own.is_of(&head)),
            _ => false,
        })
    }
}
