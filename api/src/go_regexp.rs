//! Regular expressions in Go's syntax, compiled by the crate `regex`.
//!
//! Both are of RE2's family and differ in details: in Go `\d`, `\w`, `\s` and `\b` are of ASCII, a
//! class has no operators and no class in it, `\Q` quotes, codes may be octal, a brace that is no
//! repetition is one of the text, and there are fewer flags. A pattern is read as Go reads it,
//! brought into the crate's form, and then compiled.

mod class; // Characters and sets of them.
mod group; // Parentheses and flags.
mod memo; // Patterns that are matched again and again.

pub use memo::Memo;

use regex::{Regex, RegexBuilder};

/// A pattern that compiles to more is refused: it is written by whoever may define resources, and
/// kept as long as its validator. A label of any letters, `^[\p{L}\p{N}-]{1,63}$`, has room.
const PATTERN_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A longer pattern is refused before anybody looks at it: what it is read into takes memory by its
/// length, and each brace may be looked for up to its end.
const LENGTH_MAX: usize = 16 * 1024;
/// So are more classes of Unicode, `\pL` and the like: each is read into hundreds of ranges,
/// thousands where case does not count.
const UNICODE_CLASSES_MAX: usize = 128;
/// And more code points in ranges where case does not count, for each of which the other cases are
/// looked up: sixteen times all there are.
const FOLDED_MAX: usize = 16 * CODE_POINTS;
const CODE_POINTS: usize = 0x11_0000;
/// As how many bytes at least a pattern counts, however simple.
const SIZE_MIN: usize = 64 * 1024;
/// As how many bytes of what is compiled one of the text counts, which takes as long to read, and a
/// class of Unicode. A code point that is folded counts as one.
const READING_BYTES: usize = 1024;
const CLASS_BYTES: usize = 64 * 1024;
/// Of a pattern that is too long, its error shows no more.
const SHOWN_BYTES: usize = 64;
const TOO_LARGE: &str = "expression too large";
/// As Go: nothing is repeated more often, by repetitions of repetitions neither.
const REPETITIONS_MAX: u32 = 1000;

/// The error is worded as Go's, for what often goes wrong.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    let translated = translated(pattern)?;
    let compiled = build(&translated.text, PATTERN_BYTES_MAX);
    compiled.map_err(|error| reason(&error, pattern))
}

/// The pattern, with about how many bytes it compiles to, by steps of four, and what reading it
/// takes; or what is wrong with it.
pub fn sized(pattern: &str) -> (usize, Result<Regex, String>) {
    let reading = READING_BYTES * pattern.len().min(LENGTH_MAX);
    let (translated, reading) = match translated(pattern) {
        Ok(Translated { text, more }) => (text, reading + more),
        Err(why) => return (reading, Err(why)),
    };
    let mut size = SIZE_MIN;
    loop {
        match build(&translated, size) {
            Ok(regex) => return (reading + size, Ok(regex)),
            Err(regex::Error::CompiledTooBig(_)) if size < PATTERN_BYTES_MAX => size *= 4,
            Err(error) => return (reading + size, Err(reason(&error, pattern))),
        }
    }
}

fn build(translated: &str, bytes_max: usize) -> Result<Regex, regex::Error> {
    RegexBuilder::new(translated).size_limit(bytes_max).build()
}

fn failed(why: &str, of: &str) -> String {
    format!("error parsing regexp: {why}: `{of}`")
}

/// A pattern in the crate's form.
struct Translated {
    text: String,
    /// Bytes as which what is in its classes counts.
    more: usize,
}

fn translated(pattern: &str) -> Result<Translated, String> {
    let told = |Problem { why, of }| failed(why, &of);
    if pattern.len() > LENGTH_MAX {
        let start = &pattern[..pattern.floor_char_boundary(SHOWN_BYTES)];
        return Err(told(Problem::new(TOO_LARGE, start)));
    }
    Translator::new(pattern).translated().map_err(told)
}

fn reason(error: &regex::Error, pattern: &str) -> String {
    if matches!(error, regex::Error::CompiledTooBig(_)) {
        return failed(TOO_LARGE, pattern);
    }
    let text = error.to_string();
    let last = text.lines().last().unwrap_or("");
    let why = match last.strip_prefix("error: ").unwrap_or(last) {
        "repetition operator missing expression" => "missing argument to repetition operator",
        why if why.starts_with("Unicode property") => "invalid character class range",
        why if why.contains("nested parentheses") => "expression nests too deeply",
        other => other,
    };
    failed(why, pattern)
}

/// What Go does not take.
struct Problem {
    why: &'static str,
    of: String,
}

impl Problem {
    fn new(why: &'static str, of: &str) -> Self {
        let of = of.to_owned();
        Self { why, of }
    }
}

struct Translator<'p> {
    whole: &'p str,
    rest: &'p str,
    out: String,
    /// Of each group that is open, the outermost first: how often at most what has been read of it
    /// is repeated within it.
    repeated: Vec<u32>,
    /// The same of what has just been read and may be repeated, if there is any.
    last: Option<u32>,
    /// Classes of Unicode so far.
    unicode_classes: usize,
    /// Case does not count, from some flag on; taken for all that follows.
    folds: bool,
    /// Code points in classes since.
    folded: usize,
}

/// `*`, `+`, `?` or `{1,2}`, with what makes it lazy.
struct Repetition<'p> {
    text: &'p str,
    /// Of a counted one, as often as it counts against the limit.
    count: Option<u32>,
}

impl<'p> Translator<'p> {
    fn new(pattern: &'p str) -> Self {
        Self {
            whole: pattern,
            rest: pattern,
            out: String::with_capacity(pattern.len()),
            repeated: vec![1],
            last: None,
            unicode_classes: 0,
            folds: false,
            folded: 0,
        }
    }

    fn translated(mut self) -> Result<Translated, Problem> {
        // The repetition that has just been read.
        let mut before: Option<&'p str> = None;
        while let Some(first) = self.rest.chars().next() {
            if let Some(repetition) = self.repetition()? {
                self.repeat(&repetition, before)?;
                before = Some(repetition.text);
                continue;
            }
            before = None;
            match first {
                '(' => self.open()?,
                ')' => self.close()?,
                '|' => {
                    self.copy(1);
                    self.last = None;
                }
                '[' => self.class()?,
                '\\' => self.escape()?,
                '{' => {
                    self.rest = &self.rest[1..];
                    self.literal(first);
                    self.may_repeat(1);
                }
                _ => {
                    self.copy(first.len_utf8());
                    self.may_repeat(1);
                }
            }
        }
        if self.repeated.len() > 1 {
            return Err(Problem::new("missing closing )", self.whole));
        }
        Ok(Translated {
            more: CLASS_BYTES * self.unicode_classes + self.folded,
            text: self.out,
        })
    }

    fn copy(&mut self, bytes: usize) {
        let (text, rest) = self.rest.split_at(bytes);
        self.out.push_str(text);
        self.rest = rest;
    }

    /// A character that means itself.
    fn literal(&mut self, one: char) {
        self.out
            .push_str(&regex::escape(one.encode_utf8(&mut [0; 4])));
    }

    /// Notes what has been read, in which something is repeated `count` times.
    fn may_repeat(&mut self, count: u32) {
        self.last = Some(count);
        if let Some(most) = self.repeated.last_mut() {
            *most = count.max(*most);
        }
    }

    /// Takes a repetition, if that is what comes.
    fn repetition(&mut self) -> Result<Option<Repetition<'p>>, Problem> {
        let (length, count) = match self.rest.as_bytes().first() {
            Some(b'*' | b'+' | b'?') => (1, None),
            Some(b'{') => match counted(self.rest) {
                Some((length, Some(count))) => (length, Some(count)),
                Some((length, None)) => {
                    let of = &self.rest[..length];
                    return Err(Problem::new("invalid repeat count", of));
                }
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        let is_lazy = self.rest[length..].starts_with('?');
        let (text, rest) = self.rest.split_at(length + usize::from(is_lazy));
        self.rest = rest;
        Ok(Some(Repetition { text, count }))
    }

    fn repeat(&mut self, now: &Repetition<'p>, before: Option<&str>) -> Result<(), Problem> {
        if let Some(before) = before {
            let of = format!("{before}{}", now.text);
            let why = "invalid nested repetition operator";
            return Err(Problem { why, of });
        }
        let Some(inner) = self.last else {
            let why = "missing argument to repetition operator";
            return Err(Problem::new(why, now.text));
        };
        let total = match now.count {
            None => inner,
            Some(0) => 1,
            Some(count) => inner.saturating_mul(count),
        };
        if total > REPETITIONS_MAX {
            return Err(Problem::new("invalid repeat count", now.text));
        }
        self.out.push_str(now.text);
        self.may_repeat(total);
        Ok(())
    }
}

/// The length of `{2}`, `{2,}` or `{2,3}`, and as often as it repeats at most; at least, where there
/// is no most. `None` for that where it is too often, or more at least than at most.
fn counted(text: &str) -> Option<(usize, Option<u32>)> {
    let inner = text.strip_prefix('{')?;
    let inner = &inner[..inner.find('}')?];
    let (least, most) = inner.split_once(',').unwrap_or((inner, inner));
    let is_number = |text: &str| {
        let has_zero = text.len() > 1 && text.starts_with('0');
        !text.is_empty() && !has_zero && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !is_number(least) || !(most.is_empty() || is_number(most)) {
        return None;
    }
    let number = |text: &str| text.parse::<u32>().unwrap_or(u32::MAX);
    let least = number(least);
    let most = if most.is_empty() { least } else { number(most) };
    let fits = least <= most && most <= REPETITIONS_MAX;
    Some((inner.len() + 2, fits.then_some(most)))
}

#[cfg(test)]
mod tests;
