//! How facts look to people: times as ages, sizes, numbers, columns.

use std::time::Duration;

use portway_admin::views::Time;

use crate::traffic::message::now;

/// `1,234,567`
pub(super) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// `3 messages`, `1 message`
pub(super) fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", number(count))
}

/// In the two largest units that say enough.
pub(super) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{} ms", duration.as_millis()),
        1..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// How long ago.
pub(super) fn age(time: Time) -> String {
    duration(now().since(time.0))
}

/// How long until then.
pub(super) fn until(time: Time) -> String {
    match time.0.since(now()) {
        Duration::ZERO => "now".to_owned(),
        wait => format!("in {}", duration(wait)),
    }
}

pub(super) fn bytes(bytes: u64) -> String {
    let units = [("GB", 1_u64 << 30), ("MB", 1 << 20), ("KB", 1 << 10)];
    match units.into_iter().find(|(_, size)| bytes >= *size) {
        Some((unit, size)) => format!("{:.1} {unit}", bytes as f64 / size as f64),
        None => format!("{bytes} B"),
    }
}

/// Rows under a head, each column as wide as its widest cell.
pub(super) fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let mut widths = head.map(|cell| cell.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: [&str; N]| {
        let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let rows = rows.iter().map(|row| line(row.each_ref().map(String::as_str)));
    std::iter::once(line(head)).chain(rows).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_sizes_and_durations_are_readable() {
        assert_eq!([number(0), number(999), number(1_234_567)], ["0", "999", "1,234,567"]);
        assert_eq!([counted(1, "message"), counted(2_000, "message")], ["1 message", "2,000 messages"]);
        assert_eq!([bytes(12), bytes(1_536), bytes(3 << 30)], ["12 B", "1.5 KB", "3.0 GB"]);
        let seconds = [0, 59, 61, 3_661, 90_000].map(|seconds| duration(Duration::from_secs(seconds)));
        assert_eq!(seconds, ["0 ms", "59 s", "1 min 1 s", "1 h 1 min", "1 d 1 h"]);
    }

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let rows = [["é".to_owned(), "long cell".to_owned()]];
        assert_eq!(table(["id", "b"], &rows), "id  b\né   long cell");
    }
}
