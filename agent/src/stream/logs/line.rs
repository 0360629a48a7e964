//! One line of a log in CRI format: `<time> <stdout|stderr> <F|P> <content>`. Pure.

use jiff::Timestamp;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Line<'a> {
    /// As it is written, with nanoseconds.
    pub time: &'a [u8],
    pub stream: &'a [u8],
    /// The content goes on in the next line.
    pub is_partial: bool,
    /// Without its end of line.
    pub content: &'a [u8],
}

/// None for what is no such line. `line` has no `\n` at its end.
pub fn parse(line: &[u8]) -> Option<Line<'_>> {
    let mut parts = line.splitn(4, |byte| *byte == b' ');
    let (time, stream, tag) = (parts.next()?, parts.next()?, parts.next()?);
    if stream != b"stdout" && stream != b"stderr" {
        return None;
    }
    Some(Line {
        time,
        stream,
        is_partial: tag == b"P",
        content: parts.next().unwrap_or_default(),
    })
}

impl Line<'_> {
    pub fn timestamp(&self) -> Option<Timestamp> {
        std::str::from_utf8(self.time).ok()?.parse().ok()
    }
}
