//! Regular expressions in Go's syntax, compiled by the crate `regex`.
//!
//! Both are of RE2's family and differ in details: in Go `\d`, `\w`, `\s` and `\b` are of ASCII, a
//! class has no operators and no class in it, `\Q` quotes, codes may be octal, a brace that is no
//! repetition is one of the text, and there are fewer flags. A pattern is read as Go reads it,
//! brought into the crate's form, and then compiled.

mod class; // Characters and sets of them.
mod group; // Parentheses and flags.

use regex::{Regex, RegexBuilder};

/// A pattern that compiles to more is refused: it is written by whoever may define resources, and
/// kept as long as its validator. A label of any letters, `^[\p{L}\p{N}-]{1,63}$`, has room.
const PATTERN_BYTES_MAX: usize = 4 * 1024 * 1024;
/// As Go: nothing is repeated more often, by repetitions of repetitions neither.
const REPETITIONS_MAX: u32 = 1000;

/// The error is worded as Go's, for what often goes wrong.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    let failed = |why: &str, of: &str| format!("error parsing regexp: {why}: `{of}`");
    let translated = Translator::new(pattern)
        .translated()
        .map_err(|Problem { why, of }| failed(why, &of))?;
    let mut builder = RegexBuilder::new(&translated);
    let compiled = builder.size_limit(PATTERN_BYTES_MAX).build();
    compiled.map_err(|error| {
        if matches!(error, regex::Error::CompiledTooBig(_)) {
            return failed("expression too large", pattern);
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
    })
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
        }
    }

    fn translated(mut self) -> Result<String, Problem> {
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
        Ok(self.out)
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
