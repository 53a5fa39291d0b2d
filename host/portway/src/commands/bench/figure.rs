//! One figure and what has to be known beside it.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

/// Writes of the flush probe.
const PROBES: usize = 64;

/// A figure as it is printed.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    pub case: String,
    pub value: f64,
    pub unit: &'static str,
    /// Where messages were stored, if any were: `sqlite` or `postgresql`.
    pub store: Option<&'static str>,
    /// Commits during the measurement.
    pub commits: Option<u64>,
    /// The mean time of one.
    pub commit_ms: Option<f64>,
    /// Part of the time with a commit in hand, 0 to 1.
    pub commit_busy: Option<f64>,
    /// The median time of a 4 KiB write and its flush on this disk, just before.
    pub flush_ms: Option<f64>,
    pub cores: usize,
    /// Of the last minute, at the start.
    pub load: f64,
    /// What the case compares, as its page says.
    pub ratio: Option<f64>,
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub version: &'static str,
}

impl Figure {
    pub fn new(case: impl Into<String>, value: f64, unit: &'static str) -> Figure {
        Figure {
            case: case.into(),
            value: round(value),
            unit,
            store: None,
            commits: None,
            commit_ms: None,
            commit_busy: None,
            flush_ms: None,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            load: load(),
            ratio: None,
            p50_ms: None,
            p99_ms: None,
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    pub fn text(&self) -> String {
        let mut text = format!("{:<40} {:>12} {}", self.case, self.value, self.unit);
        if let (Some(commits), Some(mean)) = (self.commits, self.commit_ms) {
            text.push_str(&format!("   {commits} commits of {mean} ms"));
        }
        if let Some(flush) = self.flush_ms {
            text.push_str(&format!("   flush {flush} ms"));
        }
        if let Some(ratio) = self.ratio {
            text.push_str(&format!("   ratio {ratio}"));
        }
        if let (Some(p50), Some(p99)) = (self.p50_ms, self.p99_ms) {
            text.push_str(&format!("   p50 {p50} ms, p99 {p99} ms"));
        }
        text.push_str(&format!("   {} cores, load {}", self.cores, self.load));
        text
    }
}

/// Three digits after the point are more than any of these figures holds.
pub fn round(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or_default()
}

/// The median time of a small write and its flush in a folder.
pub fn flush_ms(folder: &Path) -> std::io::Result<f64> {
    let path = folder.join("flush-probe");
    let mut file = File::create(&path)?;
    let mut times = Vec::with_capacity(PROBES);
    for _ in 0..PROBES {
        let began = Instant::now();
        file.write_all(&[0x5a; 4096])?;
        file.sync_data()?;
        times.push(began.elapsed());
    }
    std::fs::remove_file(&path)?;
    times.sort();
    let median = times.get(times.len() / 2).copied().unwrap_or(Duration::ZERO);
    Ok(round(median.as_secs_f64() * 1_000.0))
}
