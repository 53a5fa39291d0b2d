//! What a guest prints, as lines of the log: limited, escaped, and the end of it kept for the
//! report of a fault.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use portway_model::code;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use crate::fault_text::{Lines, cut, escape};
use crate::opening::{Level, Observer};
use crate::settings::RuntimeClock;

/// Bytes of a line; a longer one is cut.
pub(crate) const LINE_BYTES_MAX: usize = 4096;
/// Of standard error, kept for the report of a fault.
const TAIL_BYTES: usize = 1024;
/// What a plugin may print in a second.
const LINES_A_SECOND: u32 = 100;
const BYTES_A_SECOND: usize = 64 << 10;
/// What one write of a guest's may hand over.
const WRITE_BYTES_MAX: usize = 64 << 10;

/// The log of one plugin: shared by its instances, so that many do not print more than one.
pub(crate) struct Throttle {
    clock: Arc<dyn RuntimeClock>,
    window: Mutex<Window>,
}

#[derive(Default)]
struct Window {
    second: u64,
    lines: u32,
    bytes: usize,
    dropped: u64,
}

/// Where one instance's output goes.
#[derive(Clone)]
pub(crate) struct Sink {
    inner: Arc<Mutex<SinkInner>>,
}

struct SinkInner {
    throttle: Arc<Throttle>,
    observer: Arc<dyn Observer>,
    out: Vec<u8>,
    err: Vec<u8>,
    tail: Vec<u8>,
}

/// One of a guest's two streams.
#[derive(Clone)]
pub(crate) struct GuestStream {
    sink: Sink,
    which: Which,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Out,
    Err,
}

impl Throttle {
    pub fn new(clock: Arc<dyn RuntimeClock>) -> Throttle {
        Throttle { clock, window: Mutex::default() }
    }

    /// Whether a line may be shown; also says how many were not, once that is over.
    fn admit(&self, bytes: usize) -> (bool, u64) {
        let second = self.clock.monotonic().as_secs();
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let mut dropped = 0;
        if window.second != second {
            dropped = window.dropped;
            *window = Window { second, ..Window::default() };
        }
        let fits = window.lines < LINES_A_SECOND && window.bytes + bytes <= BYTES_A_SECOND;
        if fits {
            window.lines += 1;
            window.bytes += bytes;
        } else {
            window.dropped += 1;
        }
        (fits, dropped)
    }
}

impl Sink {
    pub fn new(throttle: Arc<Throttle>, observer: Arc<dyn Observer>) -> Sink {
        let inner = SinkInner { throttle, observer, out: Vec::new(), err: Vec::new(), tail: Vec::new() };
        Sink { inner: Arc::new(Mutex::new(inner)) }
    }

    pub fn stream(&self, which: Which) -> GuestStream {
        GuestStream { sink: self.clone(), which }
    }

    /// A call begins: its lines go to this observer, and only its words count for a fault.
    pub fn begin(&self, observer: &Arc<dyn Observer>) {
        let mut inner = self.lock();
        inner.tail.clear();
        if !Arc::ptr_eq(&inner.observer, observer) {
            inner.observer = observer.clone();
        }
    }

    /// A call ends: lines without an end are shown.
    pub fn end(&self) {
        let mut inner = self.lock();
        for which in [Which::Out, Which::Err] {
            let line = std::mem::take(inner.buffer(which));
            if !line.is_empty() {
                inner.show(which.level(), &String::from_utf8_lossy(&line));
            }
        }
    }

    /// A line of the service `log`.
    pub fn log(&self, level: Level, text: &str) {
        self.lock().show(level, text);
    }

    /// The last words on standard error, fit to be shown.
    pub fn last_words(&self) -> String {
        let inner = self.lock();
        escape(String::from_utf8_lossy(&inner.tail).trim(), Lines::Many)
    }

    fn lock(&self) -> MutexGuard<'_, SinkInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SinkInner {
    fn buffer(&mut self, which: Which) -> &mut Vec<u8> {
        match which {
            Which::Out => &mut self.out,
            Which::Err => &mut self.err,
        }
    }

    fn write(&mut self, which: Which, bytes: &[u8]) {
        if which == Which::Err {
            self.tail.extend_from_slice(bytes.get(bytes.len().saturating_sub(TAIL_BYTES)..).unwrap_or(bytes));
            let over = self.tail.len().saturating_sub(TAIL_BYTES);
            self.tail.drain(..over);
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let buffer = self.buffer(which);
            let room = LINE_BYTES_MAX.saturating_sub(buffer.len());
            buffer.extend_from_slice(piece.get(..room).unwrap_or(piece));
            if piece.ends_with(b"\n") {
                let line = std::mem::take(self.buffer(which));
                let line = line.strip_suffix(b"\n").unwrap_or(&line);
                self.show(which.level(), &String::from_utf8_lossy(line));
            }
        }
    }

    fn show(&mut self, level: Level, text: &str) {
        let line = cut(text, LINE_BYTES_MAX);
        let (fits, dropped) = self.throttle.admit(line.len());
        if dropped > 0 {
            self.observer
                .notice(code::LOG_DROPPED, &format!("{dropped} lines were over the limit of the log"));
        }
        if fits {
            self.observer.log(level, &escape(line, Lines::One));
        }
    }
}

impl Which {
    const fn level(self) -> Level {
        match self {
            Which::Out => Level::Info,
            Which::Err => Level::Warn,
        }
    }
}

impl IsTerminal for GuestStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for GuestStream {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        // Only WASI 0.3 asks for it, which is not linked.
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for GuestStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.sink.lock().write(self.which, &bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(WRITE_BYTES_MAX)
    }
}

#[async_trait::async_trait]
impl Pollable for GuestStream {
    async fn ready(&mut self) {}
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use portway_model::Timestamp;

    use super::*;
    use crate::fault::Fault;

    #[derive(Default)]
    struct Heard {
        lines: Mutex<Vec<String>>,
        millis: AtomicU64,
    }

    impl Observer for Heard {
        fn log(&self, level: Level, text: &str) {
            self.lines.lock().unwrap().push(format!("{} {text}", level.as_str()));
        }
        fn notice(&self, code: &str, text: &str) {
            self.lines.lock().unwrap().push(format!("{code}: {text}"));
        }
        fn fault(&self, _: &Fault) {}
    }

    impl RuntimeClock for Heard {
        fn now(&self) -> Timestamp {
            Timestamp(0)
        }
        fn monotonic(&self) -> Duration {
            Duration::from_millis(self.millis.load(Ordering::Relaxed))
        }
    }

    fn sink() -> (Arc<Heard>, Sink) {
        let heard = Arc::new(Heard::default());
        let sink = Sink::new(Arc::new(Throttle::new(heard.clone())), heard.clone());
        (heard, sink)
    }

    fn lines(heard: &Heard) -> Vec<String> {
        std::mem::take(&mut heard.lines.lock().unwrap())
    }

    #[test]
    fn output_becomes_escaped_lines() {
        let (heard, sink) = sink();
        sink.stream(Which::Out).write(Bytes::from_static(b"a\nb\x1b")).unwrap();
        sink.stream(Which::Err).write(Bytes::from_static(b"e")).unwrap();
        assert_eq!(lines(&heard), ["info a"]);
        sink.end();
        assert_eq!(lines(&heard), ["info b\\u{1b}", "warn e"]);
    }

    #[test]
    fn a_flood_is_dropped_and_counted() {
        let (heard, sink) = sink();
        for _ in 0..LINES_A_SECOND + 7 {
            sink.log(Level::Info, "x");
        }
        assert_eq!(lines(&heard).len(), LINES_A_SECOND as usize);
        heard.millis.store(1_000, Ordering::Relaxed);
        sink.log(Level::Info, "y");
        assert_eq!(lines(&heard), ["log-dropped: 7 lines were over the limit of the log", "info y"]);
    }

    #[test]
    fn bytes_are_limited_too_and_a_long_line_is_cut() {
        let (heard, sink) = sink();
        let mut stream = sink.stream(Which::Out);
        for _ in 0..20 {
            stream.write(Bytes::from(vec![b'x'; 8192])).unwrap();
            stream.write(Bytes::from_static(b"\n")).unwrap();
        }
        let heard = lines(&heard);
        assert_eq!(heard.len(), BYTES_A_SECOND / LINE_BYTES_MAX);
        assert!(heard.iter().all(|line| line.len() == LINE_BYTES_MAX + "info ".len()));
    }

    #[test]
    fn the_last_words_of_a_call_are_kept() {
        let (heard, sink) = sink();
        let observer: Arc<dyn Observer> = heard;
        sink.stream(Which::Err).write(Bytes::from_static(b"old\n")).unwrap();
        sink.begin(&observer);
        sink.stream(Which::Err).write(Bytes::from(vec![b'x'; 5000])).unwrap();
        sink.stream(Which::Err).write(Bytes::from_static(b"\nthe end\n")).unwrap();
        let words = sink.last_words();
        assert!(words.ends_with("x\nthe end") && words.len() <= TAIL_BYTES, "{words}");
    }
}
