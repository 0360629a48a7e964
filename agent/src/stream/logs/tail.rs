//! Finds where the last lines of a file begin, reading backwards.

use std::io::SeekFrom;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

/// Read at one time on the way back.
const BLOCK_BYTES: u64 = 64 * 1024;

/// The offset of the last `lines` lines; a last line without an end counts.
pub async fn offset(file: &mut File, lines: u64) -> std::io::Result<u64> {
    let size = file.seek(SeekFrom::End(0)).await?;
    if lines == 0 {
        return Ok(size);
    }
    let mut left = lines;
    let mut end = size;
    let mut block = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(BLOCK_BYTES);
        file.seek(SeekFrom::Start(start)).await?;
        block.clear();
        file.take(end - start).read_to_end(&mut block).await?;
        for (index, byte) in block.iter().enumerate().rev() {
            let at = start + index as u64;
            // The end of the last line ends no line before the ones that are counted.
            if *byte == b'\n' && at + 1 != size {
                left -= 1;
                if left == 0 {
                    return Ok(at + 1);
                }
            }
        }
        end = start;
    }
    Ok(0)
}
