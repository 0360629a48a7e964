//! Content negotiation: the first form of the Accept header, by quality, that we can make.

use coracle_api::protobuf;
use coracle_api::status::Status;

/// What goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Json,
    Yaml,
    /// For what has no such form, JSON: every client of it reads that too.
    Protobuf,
    /// meta.k8s.io/v1 Table.
    Table,
    /// meta.k8s.io/v1 PartialObjectMetadata, or its list.
    Metadata,
}

/// A header of more choices than this is cut off.
const CHOICES_MAX: usize = 32;

/// `has_table` is false for what is answered and never stored: reviews, bindings.
pub fn negotiate(accept: &str, has_table: bool) -> Result<Form, Status> {
    if accept.trim().is_empty() {
        return Ok(Form::Json);
    }
    let mut choices: Vec<(f32, &str)> = accept
        .split(',')
        .take(CHOICES_MAX)
        .map(|choice| (quality(choice), choice.trim()))
        .filter(|(quality, _)| *quality > 0.0)
        .collect();
    // Stable: equals stay in the order in which the client wrote them.
    choices.sort_by(|a, b| b.0.total_cmp(&a.0));
    choices
        .iter()
        .filter_map(|(_, choice)| form(choice))
        .find(|form| has_table || *form != Form::Table)
        .ok_or_else(|| {
            Status::not_acceptable(
                "only the following media types are accepted: application/json, application/yaml, \
                 application/vnd.kubernetes.protobuf",
            )
        })
}

fn parameters(choice: &str) -> impl Iterator<Item = (&str, &str)> {
    choice.split(';').skip(1).filter_map(|part| {
        let (name, value) = part.split_once('=')?;
        Some((name.trim(), value.trim().trim_matches('"')))
    })
}

fn quality(choice: &str) -> f32 {
    let given = parameters(choice).find(|(name, _)| *name == "q");
    given.map_or(1.0, |(_, value)| value.parse().unwrap_or(0.0))
}

fn form(choice: &str) -> Option<Form> {
    let value = |name: &str| {
        parameters(choice)
            .find(|(own, _)| *own == name)
            .map(|(_, v)| v)
    };
    let kind = choice.split(';').next().unwrap_or("").trim();
    let is_meta = value("g") == Some("meta.k8s.io") && value("v") == Some("v1");
    match (kind, value("as")) {
        ("application/json" | "application/*" | "*/*", None) => Some(Form::Json),
        ("application/yaml", None) => Some(Form::Yaml),
        (protobuf::MEDIA_TYPE, None) => Some(Form::Protobuf),
        ("application/json", Some("Table")) if is_meta => Some(Form::Table),
        ("application/json", Some("PartialObjectMetadata" | "PartialObjectMetadataList"))
            if is_meta =>
        {
            Some(Form::Metadata)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_form_that_can_be_made_is_taken() {
        let take = |accept| negotiate(accept, true).ok();
        assert_eq!(take(""), Some(Form::Json));
        assert_eq!(take("*/*"), Some(Form::Json));
        assert_eq!(
            take("application/yaml, application/json;q=0.5"),
            Some(Form::Yaml)
        );
        assert_eq!(
            take("application/yaml;q=0.4, application/json;q=0.5"),
            Some(Form::Json)
        );
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,\
                       application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(take(kubectl), Some(Form::Table));
        let informer = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        assert_eq!(take(informer), Some(Form::Metadata));
        let client = "application/vnd.kubernetes.protobuf,application/json";
        assert_eq!(take(client), Some(Form::Protobuf));
        let metadata_client = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;\
                               g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;\
                               g=meta.k8s.io;v=v1,application/json";
        assert_eq!(take(metadata_client), Some(Form::Metadata));
        assert_eq!(take("application/json;as=Table;v=v9;g=meta.k8s.io"), None);
        assert_eq!(take("application/json;q=0"), None);
    }

    #[test]
    fn what_has_no_table_is_refused_as_one_or_taken_in_the_next_form() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        assert_eq!(negotiate(table, false).unwrap_err().code, 406);
        let either = format!("{table},application/json");
        assert_eq!(negotiate(&either, false).ok(), Some(Form::Json));
        assert_eq!(negotiate(&either, true).ok(), Some(Form::Table));
    }
}
