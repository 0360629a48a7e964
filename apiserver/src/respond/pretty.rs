//! JSON for people: two spaces a level, as Go indents it. Works on bytes as they pass, so that a
//! list needs no second form in memory.

/// Where in a document the bytes are that come next.
#[derive(Debug, Default)]
pub struct Pretty {
    depth: usize,
    in_text: bool,
    escaped: bool,
    /// The last byte opened an object or a list: its end may follow at once.
    opened: bool,
}

/// The whole of a document; a line break ends it.
pub fn document(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() * 2);
    Pretty::default().push(bytes, &mut out);
    out.push(b'\n');
    out
}

impl Pretty {
    /// `bytes` go on where the last ones ended.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for byte in bytes {
            self.byte(*byte, out);
        }
    }

    fn byte(&mut self, byte: u8, out: &mut Vec<u8>) {
        if self.in_text {
            out.push(byte);
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_text = false,
                _ => {}
            }
            return;
        }
        let opened = std::mem::take(&mut self.opened);
        match byte {
            b' ' | b'\n' | b'\t' | b'\r' => self.opened = opened,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if !opened {
                    self.line(out);
                }
                out.push(byte);
            }
            _ => {
                if opened {
                    self.line(out);
                }
                out.push(byte);
                self.after(byte, out);
            }
        }
    }

    fn after(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            b'"' => self.in_text = true,
            b'{' | b'[' => {
                self.depth += 1;
                self.opened = true;
            }
            b',' => self.line(out),
            b':' => out.push(b' '),
            _ => {}
        }
    }

    fn line(&self, out: &mut Vec<u8>) {
        out.push(b'\n');
        out.resize(out.len() + 2 * self.depth, b' ');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn it_is_what_go_and_serde_write() {
        let value = json!({
            "a": [], "b": {}, "c": [1, { "d": "x, \"y\": {[" }], "e": { "f": null, "g": [[]] },
        });
        let wanted = serde_json::to_string_pretty(&value).unwrap() + "\n";
        let bytes = document(value.to_string().as_bytes());
        assert_eq!(String::from_utf8(bytes).unwrap(), wanted);
    }

    #[test]
    fn it_may_come_in_pieces() {
        let text = br#"{"a":["b\\\"",{}],"c":{"d":-1.5e3}}"#;
        let whole = document(text);
        for cut in 0..text.len() {
            let (mut pretty, mut out) = (Pretty::default(), Vec::new());
            pretty.push(&text[..cut], &mut out);
            pretty.push(&text[cut..], &mut out);
            out.push(b'\n');
            assert_eq!(out, whole, "cut at {cut}");
        }
    }
}
