//! What may come between two entries. Long names and attributes come before the entry that has
//! them, and are held in memory: a stream could claim that they have no end.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// Go's library takes a mebibyte each for names, targets and attributes.
pub const HEAD_BYTES_MAX: u64 = 4 << 20;

/// How much the next header may have; shared by who reads entries and who reads the stream.
#[derive(Clone, Debug)]
pub struct Left(Rc<Cell<u64>>);

impl Left {
    pub fn new() -> Self {
        Self(Rc::new(Cell::new(u64::MAX)))
    }

    pub fn expect_header(&self) {
        self.0.set(HEAD_BYTES_MAX);
    }

    /// Contents have their own bounds.
    pub fn expect_content(&self) {
        self.0.set(u64::MAX);
    }
}

#[derive(Debug)]
pub struct Heads<R> {
    pub inner: R,
    pub left: Left,
}

impl<R: Read> Read for Heads<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let left = self.left.0.get().checked_sub(count as u64);
        let left = left.ok_or_else(|| {
            io::Error::other(format!("a header of more than {HEAD_BYTES_MAX} bytes"))
        })?;
        self.left.0.set(left);
        Ok(count)
    }
}
