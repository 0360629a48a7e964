//! A command that nobody talks with, run to its end.

use super::RuntimeError;
use super::contract::{ExecConfig, ExecStreams};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Of each output, this much is kept.
const OUTPUT_BYTES_MAX: u64 = 10 * 1024;
/// After a command has ended, its outputs may be held open by others for this long.
const DRAIN_MAX: Duration = Duration::from_millis(100);

pub fn config(command: Vec<String>) -> ExecConfig {
    ExecConfig {
        command,
        stdout: true,
        stderr: true,
        ..ExecConfig::default()
    }
}

/// The exit code and the first of both outputs.
pub async fn output(streams: ExecStreams) -> Result<(i32, Vec<u8>), RuntimeError> {
    let (stdout, stderr) = (streams.stdout, streams.stderr);
    let reading = async { tokio::join!(head(stdout), head(stderr)) };
    tokio::pin!(reading);
    let mut exit = streams.exit;
    let mut read = None;
    // Goes on reading, so that a talkative command does not stand still.
    let code = loop {
        tokio::select! {
            code = &mut exit => break code?,
            both = &mut reading, if read.is_none() => read = Some(both),
        }
    };
    // A grandchild may hold the outputs open: what is there by now is enough.
    let (mut output, errors) = match read {
        Some(both) => both,
        None => tokio::time::timeout(DRAIN_MAX, reading)
            .await
            .unwrap_or_default(),
    };
    output.extend(errors);
    Ok((code, output))
}

async fn head(stream: Option<Box<dyn AsyncRead + Send + Unpin>>) -> Vec<u8> {
    let mut kept = Vec::new();
    if let Some(mut stream) = stream {
        let mut first = (&mut stream).take(OUTPUT_BYTES_MAX);
        if first.read_to_end(&mut kept).await.is_ok() {
            // What is over is read and let go of.
            let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
        }
    }
    kept
}
