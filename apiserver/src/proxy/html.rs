//! Turns the links of an HTML page while it streams by. Pure.
//!
//! Only values of attributes that hold links change; every other byte stays as it is. Holds back
//! one tag at most.

use super::rewrite::Rewriter;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::{GzDecoder, GzEncoder};
use std::io::{self, Write};

/// A tag that is longer is passed on as it is.
const TAG_BYTES_MAX: usize = 64 * 1024;
/// Elements whose content is text whatever it looks like.
const RAW: &[&str] = &[
    "iframe",
    "noembed",
    "noframes",
    "plaintext",
    "script",
    "style",
    "textarea",
    "title",
    "xmp",
];
/// Attributes that hold links, by element (HTML 4 and 5).
const LINKS: &[(&str, &[&str])] = &[
    ("a", &["href"]),
    ("applet", &["codebase"]),
    ("area", &["href"]),
    ("audio", &["src"]),
    ("base", &["href"]),
    ("blockquote", &["cite"]),
    ("body", &["background"]),
    ("button", &["formaction"]),
    ("command", &["icon"]),
    ("del", &["cite"]),
    ("embed", &["src"]),
    ("form", &["action"]),
    ("frame", &["longdesc", "src"]),
    ("head", &["profile"]),
    ("html", &["manifest"]),
    ("iframe", &["longdesc", "src"]),
    ("img", &["longdesc", "src", "usemap"]),
    ("input", &["src", "usemap", "formaction"]),
    ("ins", &["cite"]),
    ("link", &["href"]),
    ("object", &["classid", "codebase", "data", "usemap"]),
    ("q", &["cite"]),
    ("script", &["src"]),
    ("source", &["src"]),
    ("video", &["poster", "src"]),
];

/// How a page is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    Plain,
    Gzip,
}

impl Coding {
    /// None for what cannot be looked into.
    pub fn of(encoding: &str) -> Option<Self> {
        match encoding {
            "" | "identity" => Some(Self::Plain),
            "gzip" => Some(Self::Gzip),
            _ => None,
        }
    }
}

/// Unpacks what comes and packs what goes.
type Gzip = (GzDecoder<Vec<u8>>, GzEncoder<Vec<u8>>);

/// A page on its way.
pub struct Links {
    page: Page,
    gzip: Option<Gzip>,
}

impl Links {
    pub fn new(rewriter: Rewriter, coding: Coding) -> Self {
        let gzip = (coding == Coding::Gzip).then(|| {
            let packer = GzEncoder::new(Vec::new(), Compression::fast());
            (GzDecoder::new(Vec::new()), packer)
        });
        let page = Page {
            rewriter,
            held: Vec::new(),
            raw: None,
        };
        Self { page, gzip }
    }

    /// What can be sent on after these bytes; empty while a tag is not complete.
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<Bytes> {
        let Some((unpacker, packer)) = &mut self.gzip else {
            return Ok(self.page.push(bytes, false).into());
        };
        unpacker.write_all(bytes)?;
        unpacker.flush()?;
        let plain = std::mem::take(unpacker.get_mut());
        packer.write_all(&self.page.push(&plain, false))?;
        packer.flush()?;
        Ok(std::mem::take(packer.get_mut()).into())
    }

    /// The rest.
    pub fn finish(mut self) -> io::Result<Bytes> {
        let Some((mut unpacker, mut packer)) = self.gzip else {
            return Ok(self.page.push(&[], true).into());
        };
        unpacker.try_finish()?;
        let plain = std::mem::take(unpacker.get_mut());
        packer.write_all(&self.page.push(&plain, true))?;
        Ok(packer.finish()?.into())
    }
}

struct Page {
    rewriter: Rewriter,
    /// The beginning of a tag, or of the end of raw text.
    held: Vec<u8>,
    /// The element whose raw text this is.
    raw: Option<&'static str>,
}

impl Page {
    fn push(&mut self, bytes: &[u8], is_last: bool) -> Vec<u8> {
        let mut input = std::mem::take(&mut self.held);
        input.extend_from_slice(bytes);
        let mut out = Vec::with_capacity(input.len());
        let mut rest = &input[..];
        while !rest.is_empty() {
            let Some(taken) = self.step(rest, &mut out) else {
                if !is_last && rest.len() <= TAG_BYTES_MAX {
                    self.held = rest.to_vec();
                    return out;
                }
                out.extend_from_slice(rest);
                return out;
            };
            rest = &rest[taken..];
        }
        out
    }

    /// Takes one piece of text or one tag; None when it is not all there.
    fn step(&mut self, rest: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        if let Some(element) = self.raw {
            let taken = match end_of_raw(rest, element) {
                Some(end) => {
                    self.raw = None;
                    end
                }
                // All but what may be the beginning of the end.
                None => rest
                    .len()
                    .checked_sub(element.len() + 1)
                    .filter(|n| *n > 0)?,
            };
            out.extend_from_slice(&rest[..taken]);
            return Some(taken);
        }
        let begin = rest.iter().position(|byte| *byte == b'<');
        match begin {
            None => {
                out.extend_from_slice(rest);
                return Some(rest.len());
            }
            Some(0) => {}
            Some(text) => {
                out.extend_from_slice(&rest[..text]);
                return Some(text);
            }
        }
        match rest.get(1)? {
            b'!' | b'?' | b'/' => {
                let end = end_of_other(rest)?;
                out.extend_from_slice(&rest[..end]);
                Some(end)
            }
            first if first.is_ascii_alphabetic() => {
                let end = end_of_tag(rest)?;
                self.tag(&rest[..end], out);
                Some(end)
            }
            _ => {
                out.push(b'<');
                Some(1)
            }
        }
    }

    fn tag(&mut self, tag: &[u8], out: &mut Vec<u8>) {
        let name_end = 1 + name_bytes(&tag[1..]);
        let name = String::from_utf8_lossy(&tag[1..name_end]).to_ascii_lowercase();
        self.raw = RAW.iter().copied().find(|raw| *raw == name);
        let Some((_, wanted)) = LINKS.iter().find(|(element, _)| *element == name) else {
            out.extend_from_slice(tag);
            return;
        };
        let mut copied = 0;
        for (attribute, value) in attributes(tag, name_end) {
            let link = wanted.iter().any(|one| attribute.eq_ignore_ascii_case(one));
            if let (true, Ok(text)) = (link, std::str::from_utf8(&tag[value.clone()])) {
                out.extend_from_slice(&tag[copied..value.start]);
                out.extend_from_slice(self.rewriter.turn(text).as_bytes());
                copied = value.end;
            }
        }
        out.extend_from_slice(&tag[copied..]);
    }
}

fn name_bytes(text: &[u8]) -> usize {
    let end = text
        .iter()
        .position(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>'));
    end.unwrap_or(text.len())
}

/// Just past the `>`; quotes hide one.
fn end_of_tag(tag: &[u8]) -> Option<usize> {
    let mut quote = None;
    let mut after_equals = false;
    for (at, byte) in tag.iter().enumerate() {
        match (quote, byte) {
            (Some(open), byte) if open == *byte => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') if after_equals => quote = Some(*byte),
            (None, b'>') => return Some(at + 1),
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            after_equals = *byte == b'=';
        }
    }
    None
}

/// Comments, declarations and end tags.
fn end_of_other(text: &[u8]) -> Option<usize> {
    const COMMENT: &[u8] = b"<!--";
    let is_comment = text.starts_with(COMMENT);
    if !is_comment && text.len() < COMMENT.len() && COMMENT.starts_with(text) {
        return None;
    }
    let (skipped, end): (usize, &[u8]) = if is_comment { (4, b"-->") } else { (0, b">") };
    let found = find(&text[skipped..], end)?;
    Some(skipped + found + end.len())
}

/// Where the element's end tag begins.
fn end_of_raw(text: &[u8], element: &str) -> Option<usize> {
    let end = format!("</{element}");
    let lower = text.to_ascii_lowercase();
    find(&lower, end.as_bytes())
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len())
        .position(|window| window == wanted)
}

/// Names of attributes and where their values are, without quotes.
fn attributes(tag: &[u8], name_end: usize) -> Vec<(String, std::ops::Range<usize>)> {
    let mut found = Vec::new();
    let mut at = name_end;
    let skip = |mut at: usize, wanted: &dyn Fn(u8) -> bool| {
        while tag.get(at).is_some_and(|byte| wanted(*byte)) {
            at += 1;
        }
        at
    };
    let space = |byte: u8| byte.is_ascii_whitespace();
    while at < tag.len() {
        let begin = skip(at, &|byte| space(byte) || byte == b'/');
        let end = skip(begin, &|byte| {
            !space(byte) && !matches!(byte, b'=' | b'>' | b'/')
        });
        let name = String::from_utf8_lossy(&tag[begin..end]).into_owned();
        let equals = skip(end, &space);
        if tag.get(equals) != Some(&b'=') {
            // At least one byte further, whatever it is.
            at = end.max(begin + 1);
            continue;
        }
        let value = skip(equals + 1, &space);
        at = match tag.get(value) {
            Some(&quote @ (b'"' | b'\'')) => {
                let close = skip(value + 1, &|byte| byte != quote);
                found.push((name, value + 1..close));
                close + 1
            }
            Some(_) => {
                let close = skip(value, &|byte| !space(byte) && byte != b'>');
                found.push((name, value..close));
                close
            }
            None => tag.len(),
        };
    }
    found
}
