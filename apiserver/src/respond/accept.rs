//! Content negotiation: what the Accept header asks for and can be made.
//!
//! In two steps, as upstream: the route must produce one of the named types, whatever their
//! parameters; then the best clause by quality is taken whose parameters can be met.

use coracle_api::protobuf;
use coracle_api::status::Status;

/// How what goes out is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Json,
    Yaml,
    /// For what has no such form, JSON: every client of it reads that too.
    Protobuf,
}

/// What is made of the objects before they are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Nothing: they go out as they are.
    Object,
    Table,
    /// PartialObjectMetadata, for one object or the events of a watch.
    Metadata,
    /// PartialObjectMetadataList, for a list.
    MetadataList,
}

/// The version of meta.k8s.io in which a table or partial metadata is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaVersion {
    V1,
    V1Beta1,
}

impl MetaVersion {
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// What a header was found to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub form: Form,
    pub target: Target,
    pub version: MetaVersion,
    pub pretty: bool,
}

/// What an endpoint can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// False for what is answered and never stored: reviews, bindings.
    pub table: bool,
    pub route: Route,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    One,
    List,
    Watch,
    /// A document about the API, which is shown in one way.
    Document,
}

/// A header of more choices than this is cut off.
const CHOICES_MAX: usize = 32;
const TYPES: [(Form, &str); 3] = [
    (Form::Json, "application/json"),
    (Form::Yaml, "application/yaml"),
    (Form::Protobuf, protobuf::MEDIA_TYPE),
];
const PLAIN: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
const STREAMS: &str =
    "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

impl Served {
    fn refused(self) -> Status {
        let streams_alone = self.route == Route::Watch;
        let types = if streams_alone { STREAMS } else { PLAIN };
        Status::not_acceptable(format!(
            "only the following media types are accepted: {types}"
        ))
    }

    /// The refusal of the route itself.
    fn unknown(self) -> Status {
        let more = match self.route {
            Route::One | Route::Document => String::new(),
            Route::List | Route::Watch => format!(", {STREAMS}"),
        };
        not_produced(&format!("{PLAIN}{more}"))
    }

    fn takes(self, form: Form, target: Target) -> bool {
        match target {
            Target::Object => true,
            _ if self.route == Route::Document => false,
            Target::Table => self.table && form != Form::Protobuf,
            _ => true,
        }
    }
}

/// What a route makes of a header: first whether it produces anything that is asked for.
pub fn negotiate(accept: &str, served: Served) -> Result<Accepted, Status> {
    let is_produced = TYPES.iter().map(|(_, name)| *name);
    if !accept.is_empty() && !names_any(accept, is_produced) {
        return Err(served.unknown());
    }
    best(accept, served)
}

/// That a route for documents of these types alone produces one that is asked for.
pub fn check_produced(accept: &str, types: &[&str]) -> Result<(), Status> {
    if accept.is_empty() || names_any(accept, types.iter().copied()) {
        return Ok(());
    }
    Err(not_produced(&types.join(", ")))
}

/// As upstream's router reads a header: names alone, and no other wildcard than for all.
fn names_any<'t>(accept: &str, types: impl Iterator<Item = &'t str> + Clone) -> bool {
    accept.split(',').any(|one| {
        let name = one.split(';').next().unwrap_or("").trim_matches(' ');
        name == "*/*" || types.clone().any(|own| own == name)
    })
}

fn not_produced(types: &str) -> Status {
    Status {
        details: serde_json::json!({}),
        ..Status::not_acceptable(format!(
            "406: Not Acceptable\n\nAvailable representations: {types}"
        ))
    }
}

/// The best that can be made, for what has no route and for failures too.
pub fn best(accept: &str, served: Served) -> Result<Accepted, Status> {
    let mut accepted = Accepted {
        form: Form::Json,
        target: Target::Object,
        version: MetaVersion::V1,
        pretty: false,
    };
    if accept.is_empty() {
        return Ok(accepted);
    }
    let mut clauses: Vec<Clause<'_>> = clauses(accept).collect();
    // Stable: equals stay in the order in which the client wrote them.
    clauses.sort_by(|a, b| {
        let by_quality = b.quality.total_cmp(&a.quality);
        by_quality.then_with(|| b.is_exact().cmp(&a.is_exact()))
    });
    for clause in &clauses {
        for (form, name) in TYPES {
            accepted.form = form;
            if clause.names(name) && clause.meets(served, &mut accepted) {
                return Ok(accepted);
            }
        }
    }
    Err(served.refused())
}

/// The choices of a header in the order in which the client wrote them.
pub fn clauses(accept: &str) -> impl Iterator<Item = Clause<'_>> {
    accept
        .split(',')
        .take(CHOICES_MAX)
        .filter_map(Clause::parse)
}

/// One choice of the header.
#[derive(Clone, Debug, PartialEq)]
pub struct Clause<'a> {
    pub kind: &'a str,
    pub subkind: &'a str,
    pub quality: f32,
    /// All but the quality.
    pub parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';');
        let name = parts.next()?.trim();
        let (kind, subkind) = match name.split_once('/') {
            None if name == "*" => ("*", "*"),
            None => return None,
            Some((_, rest)) if rest.contains('/') => return None,
            Some((kind, subkind)) => (kind.trim(), subkind.trim()),
        };
        let mut clause = Self {
            kind,
            subkind,
            quality: 1.0,
            parameters: Vec::new(),
        };
        for part in parts {
            let Some((name, value)) = part.split_once('=') else {
                continue;
            };
            let (name, value) = (name.trim(), value.trim());
            match name {
                _ if value.is_empty() || value.contains('=') => {}
                // What is no number has no place among the others.
                "q" => {
                    let quality = value.parse().ok();
                    clause.quality = quality.filter(|q: &f32| q.is_finite()).unwrap_or(0.0);
                }
                _ => clause.parameters.push((name, value)),
            }
        }
        Some(clause)
    }

    /// The last of that name; empty without one.
    pub fn parameter(&self, name: &str) -> &'a str {
        let mut named = self.parameters.iter().rev();
        let found = named.find(|(own, _)| *own == name);
        found.map_or("", |(_, value)| value)
    }

    fn is_exact(&self) -> (bool, bool) {
        (self.kind != "*", self.subkind != "*")
    }

    fn names(&self, name: &str) -> bool {
        match (self.kind, self.subkind) {
            ("*", "*") => true,
            ("application", "*") => true,
            (kind, subkind) => name.split_once('/') == Some((kind, subkind)),
        }
    }

    fn meets(&self, served: Served, accepted: &mut Accepted) -> bool {
        let (mut kind, mut group, mut version) = (None, None, None);
        accepted.pretty = false;
        for (name, value) in &self.parameters {
            match *name {
                "as" => kind = Some(*value),
                "g" => group = Some(*value),
                "v" => version = Some(*value),
                "stream" if *value != "watch" || accepted.form == Form::Yaml => return false,
                "sv" if *value != "v1" => return false,
                "pretty" => accepted.pretty = *value == "1",
                _ => {}
            }
        }
        // Nothing of YAML streams.
        if served.route == Route::Watch && accepted.form == Form::Yaml {
            return false;
        }
        if (kind, group, version) == (None, None, None) {
            accepted.target = Target::Object;
            return true;
        }
        accepted.target = match kind {
            Some("Table") => Target::Table,
            Some("PartialObjectMetadata") => Target::Metadata,
            Some("PartialObjectMetadataList") => Target::MetadataList,
            _ => return false,
        };
        accepted.version = match version {
            Some("v1") => MetaVersion::V1,
            Some("v1beta1") => MetaVersion::V1Beta1,
            _ => return false,
        };
        group == Some("meta.k8s.io") && served.takes(accepted.form, accepted.target)
    }
}

#[cfg(test)]
mod tests;
