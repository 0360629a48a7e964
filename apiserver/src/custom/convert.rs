//! Objects of kinds whose definition has a webhook for it, brought from the version in which they
//! are stored into that of a request, and back.
//!
//! Everything that reads or writes such objects passes here first; what follows finds them in its
//! own version. Of kinds without a webhook nothing is looked at.

use crate::Api;
use crate::registry::{self, Stored};
use crate::view;
use crate::webhook::{CallError, Caller, ClientConfig};
use bytes::Bytes;
use coracle_api::custom::Conversion;
use coracle_api::object::Object;
use coracle_api::resource::Resource;
use coracle_api::status::Status;
use coracle_store::Event;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// Objects that a webhook is asked for at a time.
const OBJECTS_PER_REVIEW_MAX: usize = 100;
/// And about so much of them as they are stored: an answer may be four times as large before it is
/// refused. One object is asked for however large it is.
const BYTES_PER_REVIEW_MAX: usize = 2 * 1024 * 1024;
/// As upstream's client for webhooks.
const WITHIN: Duration = Duration::from_secs(30);

/// What asks webhooks. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Converter(Arc<Caller>);

impl Api {
    /// [`crate::registry::Registry::get`], whatever version the object is stored in.
    pub async fn get(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Stored, Status> {
        if wanted(resource).is_none() {
            return self.registry.get(resource, namespace, name);
        }
        let entry = self.registry.entry(resource, namespace, name);
        let entry = entry.ok_or_else(|| Status::not_found(registry::subject(resource, name)))?;
        let values = vec![entry.value];
        let mut values = self.converter.in_version(resource, values).await?;
        let object = values
            .pop()
            .and_then(|one| registry::decode(resource, &one));
        let object = object.ok_or_else(|| {
            Status::internal(format!("the stored object {name:?} cannot be read"))
        })?;
        Ok(Stored {
            object,
            revision: entry.modified,
        })
    }
}

impl Converter {
    /// Its calls share the connections of others.
    pub fn new(caller: Arc<Caller>) -> Self {
        Self(caller)
    }

    /// Objects of any version in that of a resource.
    pub async fn turned(&self, to: &Resource, objects: Vec<Object>) -> Result<Vec<Object>, Status> {
        if wanted(to).is_none() {
            return Ok(objects);
        }
        let values = objects.iter().map(|one| one.to_value().to_string().into());
        let values = self.in_version(to, values.collect()).await?;
        let made = values.iter().map(|value| {
            let lost = || Status::internal("the conversion left no object");
            let mut object = view::decode(value).ok_or_else(lost)?;
            to.rules.from_stored(&mut object);
            Ok(object)
        });
        made.collect()
    }

    /// Stored objects in the version of a resource.
    pub async fn in_version(
        &self,
        resource: &Resource,
        values: Vec<Bytes>,
    ) -> Result<Vec<Bytes>, Status> {
        let Some((conversion, to)) = wanted(resource) else {
            return Ok(values);
        };
        let mut made = Vec::with_capacity(values.len());
        let mut rest = values.as_slice();
        while !rest.is_empty() {
            let (some, later) = rest.split_at(review_len(rest));
            rest = later;
            let objects: Vec<Value> = some
                .iter()
                .filter_map(|value| view::decode(value))
                .map(Object::into_value)
                .collect();
            let converted = converted(&self.0, &conversion, objects, &to).await?;
            made.extend(converted.iter().map(|one| Bytes::from(one.to_string())));
        }
        Ok(made)
    }

    /// Whether objects of a resource are to be converted at all.
    pub fn is_needed(resource: &Resource) -> bool {
        wanted(resource).is_some()
    }

    /// An object in the version in which it is stored.
    pub async fn to_be_stored<'o>(
        &self,
        resource: &Resource,
        object: &'o Object,
    ) -> Result<Cow<'o, Object>, Status> {
        let Some(custom) = resource.rules.custom() else {
            return Ok(Cow::Borrowed(object));
        };
        let Some(conversion) = &custom.conversion else {
            return Ok(Cow::Borrowed(object));
        };
        let objects = vec![object.to_value()];
        let to = &custom.storage_version;
        let mut made = converted(&self.0, conversion, objects, to).await?;
        let made = made.pop().and_then(Object::from_value);
        made.map(Cow::Owned)
            .ok_or_else(|| Status::internal("the conversion left no object"))
    }

    /// Events with objects in the version of a resource, and with what was there before when a
    /// selection has to be told whether it chose that.
    pub async fn events_in_version(
        &self,
        resource: &Resource,
        events: Vec<Arc<Event>>,
        with_previous: bool,
    ) -> Result<Vec<Arc<Event>>, Status> {
        if wanted(resource).is_none() {
            return Ok(events);
        }
        let mut values: Vec<Bytes> = events.iter().map(|event| event.value.clone()).collect();
        if with_previous {
            let previous = events.iter().filter_map(|event| event.previous.as_ref());
            values.extend(previous.map(|entry| entry.value.clone()));
        }
        let wanted = values.len();
        let values = self.in_version(resource, values).await?;
        if values.len() != wanted {
            return Err(Status::internal("an object of a watch cannot be read"));
        }
        let mut values = values.into_iter();
        let now: Vec<Bytes> = values.by_ref().take(events.len()).collect();
        let made = events.iter().zip(now).map(|(event, value)| {
            let mut event = Event::clone(event);
            event.value = value;
            if with_previous
                && let Some(previous) = &mut event.previous
                && let Some(value) = values.next()
            {
                previous.value = value;
            }
            Arc::new(event)
        });
        Ok(made.collect())
    }
}

/// What a resource's objects have to pass, and in which version they are wanted.
fn wanted(resource: &Resource) -> Option<(Conversion, String)> {
    let custom = resource.rules.custom()?;
    let conversion = custom.conversion.clone()?;
    Some((conversion, custom.api_version.clone()))
}

/// Only what is in another version is asked for.
async fn converted(
    caller: &Caller,
    conversion: &Conversion,
    mut objects: Vec<Value>,
    to: &str,
) -> Result<Vec<Value>, Status> {
    let mut places = Vec::new();
    let mut asked = Vec::new();
    for (index, object) in objects.iter_mut().enumerate() {
        if object.get("apiVersion").and_then(Value::as_str) != Some(to) {
            places.push(index);
            asked.push(object.take());
        }
    }
    if asked.is_empty() {
        return Ok(objects);
    }
    let made = ask(caller, conversion, &asked, to).await;
    let made = made.map_err(Status::failed)?;
    for (index, object) in places.into_iter().zip(made) {
        objects[index] = object;
    }
    Ok(objects)
}

/// How many of the first values are asked for together.
fn review_len(values: &[Bytes]) -> usize {
    let mut bytes = 0_usize;
    let fit = values
        .iter()
        .take(OBJECTS_PER_REVIEW_MAX)
        .take_while(|one| {
            bytes = bytes.saturating_add(one.len());
            bytes <= BYTES_PER_REVIEW_MAX
        });
    fit.count().max(1)
}

async fn ask(
    caller: &Caller,
    conversion: &Conversion,
    asked: &[Value],
    to: &str,
) -> Result<Vec<Value>, String> {
    let uid = uuid::Uuid::new_v4().to_string();
    let review = conversion.review(&uid, asked, to)?;
    let config = ClientConfig::read(&conversion.client_config)?;
    let review = Bytes::from(review.to_string());
    let answer = caller.post(&config, review, WITHIN).await;
    let failed = |error: CallError| {
        let [version, kind] = ["apiVersion", "kind"].map(|name| {
            let first = asked.first().and_then(|one| one[name].as_str());
            first.unwrap_or("")
        });
        format!("conversion webhook for {version}, Kind={kind} failed: {error}")
    };
    let answer = answer.map_err(failed)?;
    let answer: Value = serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
    conversion.converted(&uid, &answer, asked, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_has_an_end_in_objects_and_in_bytes() {
        let values = |count: usize, bytes: usize| vec![Bytes::from(vec![b'x'; bytes]); count];
        assert_eq!(review_len(&values(3, 10)), 3);
        assert_eq!(review_len(&values(250, 10)), OBJECTS_PER_REVIEW_MAX);
        let some = values(100, 90 * 1024);
        assert_eq!(review_len(&some), 22);
        assert_eq!(review_len(&some[95..]), 5);
        assert_eq!(review_len(&values(2, BYTES_PER_REVIEW_MAX / 2)), 2);
        assert_eq!(review_len(&values(3, BYTES_PER_REVIEW_MAX + 1)), 1);
    }
}
