//! The messages and their fields, read from `facts/protobuf.tsv` when first asked for.
//!
//! Some 500 messages with 2500 fields: less than 300 KB once unpacked, which stay.

use std::collections::HashMap;
use std::sync::OnceLock;

static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/protobuf.deflate"));

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageId(u16);

/// What a message is in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Object,
    /// The one field of the message: a list.
    List,
    Quantity,
    IntOrString,
    Time,
    MicroTime,
    /// Nanoseconds.
    Duration,
    /// JSON text in bytes.
    Raw,
    /// The one of its fields that is set.
    Either,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    String,
    Bytes,
    Int32,
    Int64,
    Bool,
    Double,
    Message(MessageId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    One,
    List,
    /// By string.
    Map,
    /// The members of the message stand in the JSON of the one that holds it.
    Inline,
}

#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub name: &'static str,
    pub number: u32,
    pub wire: Wire,
    pub held: Held,
}

#[derive(Debug)]
struct Message {
    name: &'static str,
    form: Form,
    first_field: usize,
    field_count: usize,
}

#[derive(Debug, Default)]
pub struct Table {
    /// Sorted by name.
    messages: Vec<Message>,
    /// Of one message: sorted by number.
    fields: Vec<Field>,
}

pub fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let text: &'static str = Box::leak(crate::schema::unpack(PACKED).into_boxed_str());
        Table::parse(text).expect("the build packed facts that a test has read")
    })
}

impl Table {
    pub fn find(&self, name: &str) -> Option<MessageId> {
        let found = self
            .messages
            .binary_search_by(|message| message.name.cmp(name))
            .ok()?;
        u16::try_from(found).ok().map(MessageId)
    }

    pub fn form(&self, id: MessageId) -> Form {
        self.messages[usize::from(id.0)].form
    }

    /// Sorted by number.
    pub fn fields(&self, id: MessageId) -> &[Field] {
        let message = &self.messages[usize::from(id.0)];
        &self.fields[message.first_field..message.first_field + message.field_count]
    }

    pub fn field(&self, id: MessageId, number: u32) -> Option<&Field> {
        let fields = self.fields(id);
        let found = fields
            .binary_search_by_key(&number, |field| field.number)
            .ok()?;
        Some(&fields[found])
    }

    /// The last part of the name of the message whose members stand in `id`, and that has `field`.
    pub fn embedded(&self, id: MessageId, field: &str) -> Option<&'static str> {
        self.fields(id).iter().find_map(|one| {
            let Wire::Message(inner) = one.wire else {
                return None;
            };
            let is_there = one.held == Held::Inline
                && self.fields(inner).iter().any(|inner| inner.name == field);
            let name = self.messages[usize::from(inner.0)].name;
            is_there.then(|| name.rsplit('.').next().unwrap_or(name))
        })
    }

    /// `None` when the text is not well formed.
    fn parse(text: &'static str) -> Option<Self> {
        let lines = || text.lines().filter(|line| !line.starts_with('#'));
        let mut ids = HashMap::new();
        for line in lines().filter(|line| !line.starts_with('\t')) {
            let id = MessageId(u16::try_from(ids.len()).ok()?);
            ids.insert(line.split('\t').next()?.to_owned(), id);
        }
        let mut table = Self::default();
        for line in lines() {
            if let Some(line) = line.strip_prefix('\t') {
                let message = table.messages.last_mut()?;
                message.field_count += 1;
                let package = message.name.rsplit_once('.')?.0;
                table.fields.push(field(line, package, &ids)?);
            } else {
                let (name, form) = line.split_once('\t').unwrap_or((line, ""));
                table.messages.push(Message {
                    name,
                    form: form_of(form)?,
                    first_field: table.fields.len(),
                    field_count: 0,
                });
            }
        }
        table.fields.shrink_to_fit();
        table.messages.shrink_to_fit();
        Some(table)
    }
}

fn form_of(word: &str) -> Option<Form> {
    Some(match word {
        "" => Form::Object,
        "list" => Form::List,
        "quantity" => Form::Quantity,
        "intOrString" => Form::IntOrString,
        "time" => Form::Time,
        "microTime" => Form::MicroTime,
        "duration" => Form::Duration,
        "raw" => Form::Raw,
        "either" => Form::Either,
        _ => return None,
    })
}

fn field(line: &'static str, package: &str, ids: &HashMap<String, MessageId>) -> Option<Field> {
    let mut columns = line.split('\t');
    let name = columns.next()?;
    let number = columns.next()?.parse().ok()?;
    let wire = match columns.next()? {
        "string" => Wire::String,
        "bytes" => Wire::Bytes,
        "int32" => Wire::Int32,
        "int64" => Wire::Int64,
        "bool" => Wire::Bool,
        "double" => Wire::Double,
        near if near.starts_with('.') => Wire::Message(*ids.get(&format!("{package}{near}"))?),
        far => Wire::Message(*ids.get(far)?),
    };
    let held = match columns.next() {
        None => Held::One,
        Some("list") => Held::List,
        Some("map") => Held::Map,
        Some("inline") => Held::Inline,
        Some(_) => return None,
    };
    Some(Field {
        name,
        number,
        wire,
        held,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_numbers_are_in_order() {
        let table = table();
        assert!(table.messages.is_sorted_by(|a, b| a.name < b.name));
        for message in &table.messages {
            let id = table.find(message.name).unwrap();
            let numbers = table.fields(id);
            assert!(
                numbers.is_sorted_by(|a, b| a.number < b.number),
                "{}",
                message.name
            );
        }
    }

    #[test]
    fn what_is_resident_is_small() {
        let table = table();
        let bytes = table.messages.len() * size_of::<Message>()
            + table.fields.len() * size_of::<Field>()
            + crate::schema::unpack(PACKED).len();
        assert!(bytes < 300_000, "{bytes}");
    }
}
