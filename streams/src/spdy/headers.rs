//! Blocks of headers: one zlib stream over a whole connection, begun with a dictionary that both
//! sides know. Pure.
//!
//! What we send is zlib too, in blocks that are stored as they are: our answers have no headers
//! worth packing, and every reader of zlib takes them.

use bytes::{Buf, Bytes};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_HAS_MORE_INPUT, TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
};
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

/// All headers of one block together; those of Kubernetes' streams are some tens of bytes.
const BLOCK_BYTES_MAX: usize = 16 * 1024;
const HEADERS_MAX: u32 = 100;
/// How far back zlib looks.
const WINDOW_BYTES: usize = 32 * 1024;
/// In the second byte of a zlib stream: a dictionary's checksum follows.
const HAS_DICTIONARY: u8 = 0x20;

/// Of the dictionary's words, each stands there with its length before it.
const WORDS: &[&str] = &[
    "options",
    "head",
    "post",
    "put",
    "delete",
    "trace",
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "connection",
    "content-base",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "retry-after",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "method",
    "get",
    "status",
    "200 OK",
    "version",
    "HTTP/1.1",
    "url",
    "public",
    "set-cookie",
    "keep-alive",
    "origin",
];
/// And its end.
const TEXT: &str = "100101201202205206300302303304305306307402405406407408409410411412413414415416\
    417502504505203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad \
    Request401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not \
    Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 \
    Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,\
    application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,\
    deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadersError {
    #[error("a block of headers is too long")]
    TooLong,
    #[error("a block of headers is no zlib stream")]
    Packed,
    #[error("a block of headers is malformed")]
    Malformed,
}

pub fn dictionary() -> Vec<u8> {
    let mut all = Vec::new();
    for word in WORDS {
        all.extend_from_slice(&(word.len() as u32).to_be_bytes());
        all.extend_from_slice(word.as_bytes());
    }
    all.extend_from_slice(TEXT.as_bytes());
    all
}

/// Headers of a stream, with names in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// Empty for none.
    pub fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(own, _)| own == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    fn parse(mut block: &[u8]) -> Result<Self, HeadersError> {
        fn text(block: &mut &[u8]) -> Result<String, HeadersError> {
            let length = number(block)? as usize;
            let bytes = block.get(..length).ok_or(HeadersError::Malformed)?;
            let text = String::from_utf8_lossy(bytes).into_owned();
            block.advance(length);
            Ok(text)
        }
        fn number(block: &mut &[u8]) -> Result<u32, HeadersError> {
            block.try_get_u32().map_err(|_| HeadersError::Malformed)
        }
        let count = number(&mut block)?;
        if count > HEADERS_MAX {
            return Err(HeadersError::TooLong);
        }
        let mut headers = Vec::new();
        for _ in 0..count {
            let name = text(&mut block)?.to_ascii_lowercase();
            headers.push((name, text(&mut block)?));
        }
        Ok(Self(headers))
    }
}

/// Unpacks the blocks of one connection, in the order in which they come.
#[derive(Default)]
pub struct Unpacker {
    inflater: Box<DecompressorOxide>,
    /// What was unpacked last, to which the next block may refer.
    window: Vec<u8>,
    has_begun: bool,
}

impl std::fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unpacker").finish_non_exhaustive()
    }
}

impl Unpacker {
    pub fn unpack(&mut self, mut block: &[u8]) -> Result<Headers, HeadersError> {
        if !self.has_begun {
            self.begin(&mut block)?;
        }
        let start = self.window.len();
        let mut out = std::mem::take(&mut self.window);
        out.resize(start + BLOCK_BYTES_MAX, 0);
        let flags = TINFL_FLAG_HAS_MORE_INPUT | TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
        let (status, read, written) = decompress(&mut self.inflater, block, &mut out, start, flags);
        match status {
            TINFLStatus::NeedsMoreInput if read == block.len() => {}
            TINFLStatus::HasMoreOutput => return Err(HeadersError::TooLong),
            _ => return Err(HeadersError::Packed),
        }
        out.truncate(start + written);
        let headers = Headers::parse(&out[start..]);
        out.drain(..out.len().saturating_sub(WINDOW_BYTES));
        self.window = out;
        headers
    }

    /// The head of the zlib stream.
    fn begin(&mut self, block: &mut &[u8]) -> Result<(), HeadersError> {
        let head = block.try_get_u16().map_err(|_| HeadersError::Packed)?;
        let [method, flags] = head.to_be_bytes();
        if method & 0x0f != 8 || head % 31 != 0 {
            return Err(HeadersError::Packed);
        }
        if flags & HAS_DICTIONARY != 0 {
            let _checksum = block.try_get_u32().map_err(|_| HeadersError::Packed)?;
            self.window = dictionary();
        }
        self.has_begun = true;
        Ok(())
    }
}

/// Packs the blocks of one connection, in stored blocks of one stream of zlib.
#[derive(Debug, Default)]
pub struct Packer {
    has_begun: bool,
}

impl Packer {
    /// Headers of streams are some tens of bytes: more than 64 KiB are none of ours.
    pub fn pack(&mut self, headers: &[(&str, &str)]) -> Bytes {
        const HEAD: [u8; 2] = [0x78, 0x01];
        /// An empty block, which is what readers look for before they give out what they have.
        const FLUSH: [u8; 5] = [0, 0, 0, 0xff, 0xff];
        let number = |count: usize| (count as u32).to_be_bytes();
        let mut plain = number(headers.len()).to_vec();
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            plain.extend_from_slice(&number(text.len()));
            plain.extend_from_slice(text.as_bytes());
        }
        let size = plain.len() as u16;
        let mut packed = Vec::new();
        if !self.has_begun {
            packed.extend_from_slice(&HEAD);
            self.has_begun = true;
        }
        packed.push(0);
        packed.extend_from_slice(&size.to_le_bytes());
        packed.extend_from_slice(&(!size).to_le_bytes());
        packed.extend_from_slice(&plain);
        packed.extend_from_slice(&FLUSH);
        packed.into()
    }
}
