//! What one connection of HTTP may ask of whoever serves it, and how a peer that is gone is found
//! out.

use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use std::time::Duration;

/// After the handshake, and after each answer.
pub const HEADER_READ_MAX: Duration = Duration::from_secs(30);
/// All headers of a request together.
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// Whoever acts for a user of many groups sends each in a header of its own.
const HEADERS_MAX: usize = 1024;
/// Streams of one HTTP/2 connection: upstream's own bound.
const STREAMS_MAX: u32 = 250;
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_MAX: Duration = Duration::from_secs(15);

/// HTTP/1.1 and HTTP/2.
pub fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_READ_MAX)
        .max_buf_size(HEADER_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(HEADER_BYTES_MAX as u32)
        .max_concurrent_streams(STREAMS_MAX)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_MAX);
    builder
}
