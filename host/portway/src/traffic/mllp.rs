//! Messages over MLLP: each frame is one, and answered in order.

use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::answer;
use super::frame::{FrameReader, write_frame};
use super::receive::{BODY_BYTES_MAX, Desk, Reply};

/// One connection until it ends, or a frame is none.
pub(super) async fn serve(stream: TcpStream, desk: Arc<Desk>) {
    let (reader, mut writer) = stream.into_split();
    let mut frames = FrameReader::new(reader, BODY_BYTES_MAX);
    while let Ok(Some(message)) = frames.next().await {
        let (code, text) = match desk.take(&message).await {
            Reply::Taken => ("AA", ""),
            Reply::Failed(400..=499) => ("AR", "rejected on purpose"),
            Reply::Failed(_) => ("AE", "failed on purpose"),
            Reply::Never => std::future::pending().await,
        };
        let Some(acknowledgement) = answer::write(&message, code, text) else { return };
        let mut frame = Vec::with_capacity(acknowledgement.len() + 3);
        write_frame(&mut frame, |into| into.extend_from_slice(&acknowledgement));
        if writer.write_all(&frame).await.is_err() {
            return;
        }
    }
}
