//! The grammars of `labelSelector=` and `fieldSelector=`.
//!
//! Recursive descent over tokens; `in` and `notin` are identifiers where a key or value may stand.

use super::{FieldRequirement, Operator, Requirement, SelectorError};
use crate::field::{FieldError, Path};
use crate::names;
use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'t> {
    Identifier(&'t str),
    In,
    NotIn,
    /// `=`, `==`, `!=`, `>`, `<`, `!`, `,`, `(`, `)`.
    Symbol(&'t str),
    End,
}

impl Token<'_> {
    fn literal(&self) -> String {
        match self {
            Self::Identifier(text) | Self::Symbol(text) => (*text).to_owned(),
            Self::In => "in".into(),
            Self::NotIn => "notin".into(),
            Self::End => String::new(),
        }
    }
}

fn is_special(byte: u8) -> bool {
    matches!(byte, b'=' | b'!' | b'(' | b')' | b',' | b'>' | b'<')
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn lex(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        while at < bytes.len() && is_space(bytes[at]) {
            at += 1;
        }
        let Some(first) = bytes.get(at) else {
            tokens.push(Token::End);
            return tokens;
        };
        let rest = &text[at..];
        let token = if is_special(*first) {
            match rest.get(..2) {
                Some(two @ ("==" | "!=")) => Token::Symbol(two),
                _ => Token::Symbol(&rest[..1]),
            }
        } else {
            let end = rest
                .bytes()
                .position(|byte| is_special(byte) || is_space(byte));
            match &rest[..end.unwrap_or(rest.len())] {
                "in" => Token::In,
                "notin" => Token::NotIn,
                identifier => Token::Identifier(identifier),
            }
        };
        at += match token {
            Token::Symbol(symbol) => symbol.len(),
            other => other.literal().len(),
        };
        tokens.push(token);
    }
}

struct Parser<'t> {
    tokens: Vec<Token<'t>>,
    at: usize,
}

fn wrong<T>(text: String) -> Result<T, SelectorError> {
    Err(SelectorError(text))
}

impl<'t> Parser<'t> {
    /// The next token where a key or value may stand.
    fn peek(&self) -> Token<'t> {
        match self.tokens[self.at.min(self.tokens.len() - 1)] {
            Token::In => Token::Identifier("in"),
            Token::NotIn => Token::Identifier("notin"),
            other => other,
        }
    }

    fn next(&mut self) -> Token<'t> {
        let token = self.peek();
        self.at += 1;
        token
    }

    /// The next token where an operator may stand.
    fn next_operator(&mut self) -> Token<'t> {
        let token = self.tokens[self.at.min(self.tokens.len() - 1)];
        self.at += 1;
        token
    }

    fn selector(&mut self) -> Result<Vec<Requirement>, SelectorError> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                Token::Identifier(_) | Token::Symbol("!") => {
                    let one = self.requirement().map_err(|error| {
                        SelectorError(format!("unable to parse requirement: {error}"))
                    })?;
                    requirements.push(one);
                }
                Token::End => return Ok(requirements),
                other => {
                    return wrong(format!(
                        "found '{}', expected: !, identifier, or 'end of string'",
                        other.literal()
                    ));
                }
            }
            match self.next() {
                Token::End => return Ok(requirements),
                Token::Symbol(",") => match self.peek() {
                    Token::Identifier(_) | Token::Symbol("!") => {}
                    other => {
                        let found = other.literal();
                        return wrong(format!("found '{found}', expected: identifier after ','"));
                    }
                },
                other => {
                    let found = other.literal();
                    return wrong(format!("found '{found}', expected: ',' or 'end of string'"));
                }
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let mut token = self.next();
        let negated = token == Token::Symbol("!");
        if negated {
            token = self.next();
        }
        let Token::Identifier(key) = token else {
            return wrong(format!("found '{}', expected: identifier", token.literal()));
        };
        let faults = names::qualified_name(key);
        if !faults.is_empty() {
            let error = FieldError::invalid(&Path::root("<nil>"), key, faults.join("; "));
            return wrong(error.to_string());
        }
        let key = key.to_owned();
        if negated {
            return Requirement::new(key, Operator::DoesNotExist, Vec::new());
        }
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Requirement::new(key, Operator::Exists, Vec::new());
        }
        let operator = match self.next_operator() {
            Token::In => return Requirement::new(key, Operator::In, self.values()?),
            Token::NotIn => return Requirement::new(key, Operator::NotIn, self.values()?),
            Token::Symbol("=" | "==") => Operator::In,
            Token::Symbol("!=") => Operator::NotIn,
            Token::Symbol(">") => Operator::GreaterThan,
            Token::Symbol("<") => Operator::LessThan,
            other => {
                let found = other.literal();
                return wrong(format!("found '{found}', expected: {OPERATORS}"));
            }
        };
        let value = self.exact_value()?;
        Requirement::new(key, operator, vec![value])
    }

    fn exact_value(&mut self) -> Result<String, SelectorError> {
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Ok(String::new());
        }
        match self.next() {
            Token::Identifier(value) => Ok(value.to_owned()),
            other => wrong(format!("found '{}', expected: identifier", other.literal())),
        }
    }

    /// `(a,b)`.
    fn values(&mut self) -> Result<Vec<String>, SelectorError> {
        let open = self.next();
        if open != Token::Symbol("(") {
            return wrong(format!("found '{}' expected: '('", open.literal()));
        }
        match self.peek() {
            Token::Symbol(")") => {
                self.next();
                Ok(vec![String::new()])
            }
            Token::Identifier(_) | Token::Symbol(",") => {
                let found = self.identifiers()?;
                self.next(); // The parenthesis that ended the list.
                Ok(found.into_iter().map(str::to_owned).collect())
            }
            other => {
                let found = other.literal();
                wrong(format!("found '{found}', expected: ',', ')' or identifier"))
            }
        }
    }

    /// Identifiers, each of which may be empty, up to the closing parenthesis.
    fn identifiers(&mut self) -> Result<BTreeSet<&'t str>, SelectorError> {
        let mut found = BTreeSet::new();
        loop {
            match self.next() {
                Token::Identifier(one) => {
                    found.insert(one);
                    match self.peek() {
                        Token::Symbol(",") => {}
                        Token::Symbol(")") => return Ok(found),
                        other => {
                            let literal = other.literal();
                            return wrong(format!("found '{literal}', expected: ',' or ')'"));
                        }
                    }
                }
                Token::Symbol(",") => {
                    if found.is_empty() {
                        found.insert("");
                    }
                    match self.peek() {
                        Token::Symbol(")") => {
                            found.insert("");
                            return Ok(found);
                        }
                        Token::Symbol(",") => drop(found.insert("")),
                        _ => {}
                    }
                }
                other => {
                    let literal = other.literal();
                    return wrong(format!("found '{literal}', expected: ',', or identifier"));
                }
            }
        }
    }
}

const OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

pub(super) fn labels(text: &str) -> Result<Vec<Requirement>, SelectorError> {
    Parser {
        tokens: lex(text),
        at: 0,
    }
    .selector()
}

pub(super) fn fields(text: &str) -> Result<Vec<FieldRequirement>, SelectorError> {
    let mut terms = split_terms(text);
    terms.sort_unstable();
    let terms = terms.into_iter().filter(|term| !term.is_empty());
    terms.map(|term| field_requirement(text, term)).collect()
}

fn field_requirement(whole: &str, term: &str) -> Result<FieldRequirement, SelectorError> {
    let found = term.char_indices().find_map(|(at, _)| {
        let operator = ["!=", "==", "="]
            .into_iter()
            .find(|one| term[at..].starts_with(one))?;
        Some((&term[..at], operator, &term[at + operator.len()..]))
    });
    let Some((field, operator, value)) = found else {
        return wrong(format!(
            "invalid selector: '{whole}'; can't understand '{term}'"
        ));
    };
    let (field, value) = (field.to_owned(), unescape(value)?);
    Ok(FieldRequirement {
        field,
        equal: operator != "!=",
        value,
    })
}

/// Splits at commas that no backslash stands before.
fn split_terms(text: &str) -> Vec<&str> {
    let (mut terms, mut start, mut escaped) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn unescape(text: &str) -> Result<String, SelectorError> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(next @ ('\\' | ',' | '=')) => plain.push(next),
                next => {
                    let sequence: String = std::iter::once('\\').chain(next).collect();
                    let text = "invalid field selector: invalid escape sequence";
                    return wrong(format!("{text}: {sequence}"));
                }
            },
            ',' | '=' => {
                let text = "invalid field selector: unescaped character in value";
                return wrong(format!("{text}: {}", u32::from(c)));
            }
            _ => plain.push(c),
        }
    }
    Ok(plain)
}
