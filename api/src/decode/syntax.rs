//! What is wrong with the syntax of a document, in the words of Go's scanner.
//!
//! Only looked at when the document is refused: one pass over its bytes, keeping nothing but the
//! kinds of brackets that are open.

/// As Go's scanner: deeper documents are refused.
const DEPTH_MAX: usize = 10_000;

/// `None` when Go finds no fault.
pub(super) fn error(bytes: &[u8]) -> Option<String> {
    let mut scanner = Scanner {
        bytes,
        at: 0,
        open: Vec::new(),
    };
    scanner.document().err()
}

/// What stands around the place where the scanner is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Array,
    Object,
}

struct Scanner<'b> {
    bytes: &'b [u8],
    at: usize,
    open: Vec<Open>,
}

type Step = Result<(), String>;

const VALUE: &str = "looking for beginning of value";
const KEY: &str = "looking for beginning of object key string";

impl Scanner<'_> {
    /// The end reads as a space, as Go's scanner has it.
    fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(b' ')
    }

    fn is_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn skip_space(&mut self) {
        while !self.is_end() && matches!(self.peek(), b' ' | b'\t' | b'\r' | b'\n') {
            self.at += 1;
        }
    }

    /// The fault of the byte here. Where only space may come, the end is its own fault.
    fn wrong<T>(&self, place: &str) -> Result<T, String> {
        Err(format!("invalid character {} {place}", byte(self.peek())))
    }

    fn expect_more(&self) -> Step {
        if self.is_end() {
            return Err("unexpected end of JSON input".into());
        }
        Ok(())
    }

    fn document(&mut self) -> Step {
        self.value()?;
        loop {
            self.skip_space();
            let Some(open) = self.open.last().copied() else {
                break;
            };
            self.expect_more()?;
            match (open, self.peek()) {
                (_, b',') => {
                    self.at += 1;
                    if open == Open::Object {
                        self.key()?;
                    }
                    self.value()?;
                }
                (Open::Array, b']') | (Open::Object, b'}') => {
                    self.at += 1;
                    self.open.pop();
                }
                (Open::Array, _) => return self.wrong("after array element"),
                (Open::Object, _) => return self.wrong("after object key:value pair"),
            }
        }
        if self.is_end() {
            return Ok(());
        }
        self.wrong("after top-level value")
    }

    /// A scalar, or the beginning of an array or object up to its first scalar.
    fn value(&mut self) -> Step {
        loop {
            self.skip_space();
            self.expect_more()?;
            match self.peek() {
                b'[' => {
                    self.push(Open::Array)?;
                    self.skip_space();
                    if self.peek() == b']' && !self.is_end() {
                        self.at += 1;
                        self.open.pop();
                        return Ok(());
                    }
                }
                b'{' => {
                    self.push(Open::Object)?;
                    self.skip_space();
                    if self.peek() == b'}' && !self.is_end() {
                        self.at += 1;
                        self.open.pop();
                        return Ok(());
                    }
                    self.key()?;
                }
                b'"' => return self.string(),
                b'-' | b'0'..=b'9' => return self.number(),
                b't' => return self.literal("true"),
                b'f' => return self.literal("false"),
                b'n' => return self.literal("null"),
                _ => return self.wrong(VALUE),
            }
        }
    }

    fn push(&mut self, open: Open) -> Step {
        self.at += 1;
        self.open.push(open);
        if self.open.len() > DEPTH_MAX {
            return Err("exceeded max depth".into());
        }
        Ok(())
    }

    /// A key with its colon.
    fn key(&mut self) -> Step {
        self.skip_space();
        self.expect_more()?;
        if self.peek() != b'"' {
            return self.wrong(KEY);
        }
        self.string()?;
        self.skip_space();
        self.expect_more()?;
        if self.peek() != b':' {
            return self.wrong("after object key");
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Step {
        self.at += 1;
        loop {
            self.expect_more()?;
            match self.peek() {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => {
                    self.at += 1;
                    self.escape()?;
                }
                0..0x20 => return self.wrong("in string literal"),
                _ => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Step {
        match self.peek() {
            b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' if !self.is_end() => {
                self.at += 1;
                Ok(())
            }
            b'u' => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_ascii_hexdigit() {
                        return self.wrong("in \\u hexadecimal character escape");
                    }
                    self.at += 1;
                }
                Ok(())
            }
            _ => self.wrong("in string escape code"),
        }
    }

    fn number(&mut self) -> Step {
        if self.peek() == b'-' {
            self.at += 1;
        }
        match self.peek() {
            b'0' => self.at += 1,
            b'1'..=b'9' => self.digits(),
            _ => return self.wrong("in numeric literal"),
        }
        if self.peek() == b'.' {
            self.at += 1;
            if !self.peek().is_ascii_digit() {
                return self.wrong("after decimal point in numeric literal");
            }
            self.digits();
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.at += 1;
            }
            if !self.peek().is_ascii_digit() {
                return self.wrong("in exponent of numeric literal");
            }
            self.digits();
        }
        Ok(())
    }

    fn digits(&mut self) {
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
    }

    fn literal(&mut self, word: &str) -> Step {
        for expected in word.bytes() {
            if self.peek() != expected {
                let expected = char::from(expected);
                return self.wrong(&format!("in literal {word} (expecting '{expected}')"));
            }
            self.at += 1;
        }
        Ok(())
    }
}

/// A byte as Go quotes it.
fn byte(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".into(),
        b'"' => "'\"'".into(),
        _ => {
            let quoted = super::go::quoted(&char::from(byte).to_string());
            format!("'{}'", &quoted[1..quoted.len() - 1])
        }
    }
}
