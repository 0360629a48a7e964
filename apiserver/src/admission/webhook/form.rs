//! The object of a request as a webhook sees it: in the version that its rule means, the Scale of a
//! `scale`, the options of a connection. Pure, but for kinds whose versions a webhook converts.

use crate::admission::{Attributes, How, Operation};
use crate::custom::convert::Converter;
use crate::query::Query;
use coracle_api::catalogue;
use coracle_api::decode::{self, FieldValidation};
use coracle_api::object::Object;
use coracle_api::resource::{Resource, SubresourceKind};
use coracle_api::scale;
use coracle_api::status::Status;
use serde_json::{Map, Value, json};

/// A resource, and the kind of what is sent to it or to a subresource of it.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    pub resource: &'static Resource,
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    /// The object is no resource's, but one that a subresource has of its own.
    own_body: Option<SubresourceKind>,
}

impl PartialEq for Form {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.resource, other.resource)
    }
}

impl Form {
    fn of(resource: &'static Resource, subresource: &str) -> Self {
        let found = resource.subresource(subresource);
        let own = found.and_then(|one| Some((one.kind, one.body?)));
        let (group, version, kind) = match own {
            Some((_, body)) => body,
            None => (resource.group, resource.version, resource.kind),
        };
        Self {
            resource,
            group,
            version,
            kind,
            own_body: own.map(|(kind, _)| kind),
        }
    }

    /// As it was asked for.
    pub fn asked(asked: &Attributes<'_>) -> Self {
        Self::of(asked.resource, asked.subresource)
    }

    /// The same objects in other versions and groups, with the subresource.
    pub fn equivalents<'a>(asked: &Attributes<'a>) -> impl Iterator<Item = Self> + use<'a> {
        let (own, subresource) = (asked.resource, asked.subresource);
        let all = catalogue::all().iter().chain(own.rules.siblings());
        let others = all.filter(move |row| {
            let is_other = (row.group, row.version) != (own.group, own.version);
            row.stored_as == own.stored_as
                && is_other
                && (subresource.is_empty() || row.subresource(subresource).is_some())
        });
        others.map(move |row| Self::of(row, subresource))
    }

    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// An object of the request, shown.
    pub async fn show(
        &self,
        converter: &Converter,
        asked: &Attributes<'_>,
        object: &Object,
    ) -> Result<Object, Status> {
        match self.own_body {
            Some(SubresourceKind::Scale) => Ok(scale::read(asked.resource, object)),
            Some(_) => Ok(object.clone()),
            None => {
                let object = object.clone();
                let turned = self.turned(converter, asked.resource, self.resource, object);
                turned.await
            }
        }
    }

    /// Puts what was shown and then changed back into the request's object.
    pub async fn take_back(
        &self,
        converter: &Converter,
        asked: &Attributes<'_>,
        shown: Object,
        object: &mut Object,
    ) -> Result<(), Status> {
        match self.own_body {
            Some(SubresourceKind::Scale) => scale::write(asked.resource, object, &shown),
            Some(_) => *object = shown,
            None => {
                let own = Self::asked(asked);
                let turned = own.turned(converter, self.resource, asked.resource, shown);
                *object = turned.await?;
            }
        }
        Ok(())
    }

    /// An object of one version in another, which is this form's.
    async fn turned(
        &self,
        converter: &Converter,
        from: &Resource,
        to: &Resource,
        mut object: Object,
    ) -> Result<Object, Status> {
        if (from.group, from.version) == (to.group, to.version) {
            return Ok(object);
        }
        if Converter::is_needed(to) {
            // As upstream, what cannot be shown stops the request, whatever failures mean.
            let turned = converter.turned(to, vec![object]).await;
            let mut turned = turned.map_err(|status| Status::internal(status.message))?;
            return turned
                .pop()
                .ok_or_else(|| Status::internal("the conversion left no object"));
        }
        if from.is_second_view {
            from.rules.to_stored(&mut object);
        }
        if to.is_second_view {
            to.rules.from_stored(&mut object);
        }
        object.set(&["apiVersion"], self.api_version().into());
        object.set(&["kind"], self.kind.into());
        Ok(object)
    }

    /// A patched document as an object of this form. Fields that nobody knows are dropped, or an
    /// error.
    pub fn conform(&self, mut value: Value, unknown: FieldValidation) -> Result<Object, String> {
        let custom = self.resource.rules.custom();
        let custom = custom.filter(|_| self.own_body.is_none());
        let object = if let Some(custom) = custom {
            let admitted = custom.admit(value, Vec::new(), unknown);
            admitted.map_err(|error| error.to_string())?.0
        } else {
            let type_name = self.type_name();
            decode::conform(&mut value, &type_name, unknown).map_err(|error| error.to_string())?;
            Object::from_value(value).ok_or("the patch left no object")?
        };
        decode::check_nesting(object.root()).map_err(|error| error.to_string())?;
        Ok(object)
    }

    pub fn default(&self, object: &mut Object) {
        object.set(&["apiVersion"], self.api_version().into());
        object.set(&["kind"], self.kind.into());
        if self.own_body.is_none() {
            self.resource.default(object);
        }
    }

    pub fn type_name(&self) -> String {
        if self.own_body.is_none() {
            return self.resource.schema.to_owned();
        }
        let package = match self.group {
            "" => "core",
            other => other.split('.').next().unwrap_or(other),
        };
        format!("io.k8s.api.{package}.{}.{}", self.version, self.kind)
    }

    /// What of an object has labels that selectors look at: a Scale shows none.
    pub fn labelled<'a>(&self, object: Option<&'a Object>) -> Option<&'a Object> {
        object.filter(|_| self.own_body != Some(SubresourceKind::Scale))
    }

    /// The options of a connection, which stand for its object.
    fn of_connection(&self, asked: &Attributes<'_>) -> Option<Object> {
        let How::Connection { query, path } = asked.how else {
            return None;
        };
        let mut options = Object::new(&self.api_version(), self.kind);
        let fields = connection_options(self.kind, query, path);
        options.root_mut().extend(fields);
        Some(options)
    }
}

/// The objects of a request in one form.
#[derive(Debug)]
pub struct Shown {
    pub form: Form,
    /// None on delete.
    pub object: Option<Object>,
    pub old: Option<Object>,
}

impl Shown {
    pub async fn of(
        converter: &Converter,
        form: Form,
        asked: &Attributes<'_>,
        object: Option<&Object>,
    ) -> Result<Self, Status> {
        Ok(Self {
            form,
            object: match object {
                Some(object) => Some(form.show(converter, asked, object).await?),
                None => form.of_connection(asked),
            },
            old: match asked.old {
                Some(old) => Some(form.show(converter, asked, old).await?),
                None => None,
            },
        })
    }
}

/// The fields of a kind of options, as upstream reads them from a query.
fn connection_options(kind: &str, query: &Query, path: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    if kind.ends_with("ProxyOptions") {
        if !path.is_empty() {
            fields.insert("path".to_owned(), path.into());
        }
        return fields;
    }
    if kind == "PodPortForwardOptions" {
        let ports = query.all("ports").flat_map(|text| text.split(','));
        let ports: Vec<i64> = ports.filter_map(|port| port.trim().parse().ok()).collect();
        if !ports.is_empty() {
            fields.insert("ports".to_owned(), ports.into());
        }
        return fields;
    }
    for name in ["stdin", "stdout", "stderr", "tty"] {
        if query.flag(name) {
            fields.insert(name.to_owned(), true.into());
        }
    }
    let container = query.text("container");
    if !container.is_empty() {
        fields.insert("container".to_owned(), container.into());
    }
    if kind == "PodExecOptions" {
        let command: Vec<&str> = query.all("command").collect();
        let command = (!command.is_empty()).then(|| json!(command));
        fields.insert("command".to_owned(), command.unwrap_or_default());
    }
    fields
}

/// The options of the operation itself, which a connection has none of.
pub fn operation_options(asked: &Attributes<'_>) -> Value {
    let kind = match asked.operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
        Operation::Connect => return Value::Null,
    };
    let mut options = json!({ "kind": kind, "apiVersion": "meta.k8s.io/v1" });
    match asked.how {
        How::Write(query) => {
            for name in ["fieldManager", "fieldValidation"] {
                if let Some(text) = query.get(name).filter(|text| !text.is_empty()) {
                    options[name] = text.into();
                }
            }
        }
        How::Deletion(deletion) => deletion.show(&mut options),
        How::Connection { .. } | How::Unsaid => {}
    }
    if asked.dry_run {
        options["dryRun"] = json!(["All"]);
    }
    options
}
