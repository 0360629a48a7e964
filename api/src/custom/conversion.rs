//! Conversion of objects by a webhook: what it is asked, and what is made of its answer. Pure: who
//! asks it is not known here.

use crate::json;
use crate::object::Object;
use serde_json::{Value, json};

const GROUP: &str = "apiextensions.k8s.io";
/// Versions of reviews that are spoken.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// How a definition wants its objects converted.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversion {
    /// `clientConfig`.
    pub client_config: Value,
    review_version: Option<&'static str>,
}

impl Conversion {
    /// `None` where versions differ by their names alone.
    pub fn of(definition: &Object) -> Option<Self> {
        let conversion = definition.get(&["spec", "conversion"])?;
        if json::text(conversion, "strategy") != "Webhook" {
            return None;
        }
        let webhook = json::get(conversion, "webhook");
        let mut asked = json::list(webhook, "conversionReviewVersions").iter();
        let review_version =
            asked.find_map(|one| VERSIONS.into_iter().find(|version| one == version));
        Some(Self {
            client_config: json::get(webhook, "clientConfig").clone(),
            review_version,
        })
    }

    /// The review that asks for `objects` in a version.
    pub fn review(&self, uid: &str, objects: &[Value], to: &str) -> Result<Value, String> {
        let version = self.review_version;
        let version = version.ok_or("no supported conversion review versions")?;
        Ok(json!({
            "kind": "ConversionReview", "apiVersion": format!("{GROUP}/{version}"),
            "request": { "uid": uid, "desiredAPIVersion": to, "objects": objects },
        }))
    }

    /// The objects of an answer, in the order in which they were asked for, each with the metadata
    /// that it had, labels and annotations aside.
    pub fn converted(
        &self,
        uid: &str,
        answer: &Value,
        asked: &[Value],
        to: &str,
    ) -> Result<Vec<Value>, String> {
        let kind = kind_of(asked.first().unwrap_or(&json::NULL));
        let failed = |why: String| format!("conversion webhook for {kind} failed: {why}");
        let objects = self.objects(uid, answer).map_err(failed)?;
        if objects.len() != asked.len() {
            return Err(format!(
                "conversion webhook for {kind} returned {} objects, expected {}",
                objects.len(),
                asked.len()
            ));
        }
        let each = objects.iter().zip(asked).enumerate();
        each.map(|(index, (object, original))| {
            same_object(object, original, to).map_err(|why| {
                format!(
                    "conversion webhook for {kind} returned invalid converted object at index \
                     {index}: {why}"
                )
            })
        })
        .collect()
    }

    fn objects<'a>(&self, uid: &str, answer: &'a Value) -> Result<&'a [Value], String> {
        let response = json::some(answer, "response").ok_or("no response provided")?;
        if self.review_version == Some("v1") {
            let found = kind_of(answer);
            let wanted = format!("{GROUP}/v1, Kind=ConversionReview");
            if found != wanted {
                return Err(format!(
                    "expected webhook response of {wanted}, got {found}"
                ));
            }
            let own = json::text(response, "uid");
            if own != uid {
                return Err(format!("expected response.uid={uid:?}, got {own:?}"));
            }
        }
        let result = json::get(response, "result");
        let status = json::text(result, "status");
        if status != "Success" {
            return Err(match json::text(result, "message") {
                "" => format!("response.result.status was '{status}', not 'Success'"),
                message => message.to_owned(),
            });
        }
        Ok(json::list(response, "convertedObjects"))
    }
}

/// `group/version, Kind=Kind`.
fn kind_of(value: &Value) -> String {
    let (version, kind) = (json::text(value, "apiVersion"), json::text(value, "kind"));
    format!("{version}, Kind={kind}")
}

fn same_object(object: &Value, original: &Value, to: &str) -> Result<Value, String> {
    let version = json::text(object, "apiVersion");
    if version != to {
        return Err(format!(
            "invalid groupVersion (expected {to}, received {version})"
        ));
    }
    let (kind, own) = (json::text(object, "kind"), json::text(original, "kind"));
    if kind != own {
        return Err(format!("invalid kind (expected {own}, received {kind})"));
    }
    let [new, old] = [object, original].map(|one| json::get(one, "metadata"));
    if !new.is_object() {
        return Err("missing metadata in converted object".to_owned());
    }
    for (field, shown) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (was, is) = (json::text(old, field), json::text(new, field));
        if was != is {
            return Err(format!("must have the same {shown}: {was} != {is}"));
        }
    }
    let mut made = object.clone();
    let mut metadata = old.clone();
    if let Some(fields) = metadata.as_object_mut() {
        for field in ["labels", "annotations"] {
            match json::some(new, field) {
                Some(changed) => drop(fields.insert(field.to_owned(), changed.clone())),
                None => drop(fields.remove(field)),
            }
        }
    }
    made["metadata"] = metadata;
    Ok(made)
}

#[cfg(test)]
mod tests;
