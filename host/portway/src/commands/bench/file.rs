//! A file of records, split and stored: from the first row in the store to the last.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::engine::{Bench, with_commits};
use super::figure::Figure;
use super::place::Place;

const PATIENCE: Duration = Duration::from_secs(300);

/// Rows a second, from the engine's start of reading until the last row is stored and the file is
/// moved. `relaxed` is the interface's durability; its cursor is flushed all the same.
pub async fn measure(place: &Place, rows: u64, relaxed: bool, destinations: usize) -> Result<Vec<Figure>> {
    let word = if relaxed { "relaxed" } else { "strict" };
    let bench = Bench::new(place).await?;
    bench.write("interfaces/bench.toml", &interface(word, destinations))?;
    for folder in ["in", "done"] {
        std::fs::create_dir(bench.path().join(folder))?;
    }
    let flush_ms = bench.flush_ms()?;
    let running = bench.start().await?;
    let before = running.engine.status().await?;
    // It appears whole, as a file that is renamed into the folder does.
    bench.write("rows.csv", &text(rows))?;
    std::fs::rename(bench.path().join("rows.csv"), bench.path().join("in/rows.csv"))?;
    let began = Instant::now();
    let done = bench.path().join("done/rows.csv");
    while !done.exists() {
        if began.elapsed() > PATIENCE {
            bail!("not read within {PATIENCE:?}");
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let seconds = began.elapsed().as_secs_f64();
    let after = running.engine.status().await?;
    running.stop().await?;
    let stored = after.intake.stored - before.intake.stored;
    if stored != rows {
        bail!("{stored} of {rows} rows are stored");
    }
    let figure = Figure::new(format!("file --durability {word}"), rows as f64 / seconds, "rows/s");
    let mut figure = with_commits(figure, &before.commits, &after.commits);
    figure.flush_ms = Some(flush_ms);
    Ok(vec![figure])
}

fn interface(durability: &str, destinations: usize) -> String {
    let mut text = format!(
        "durability = \"{durability}\"\n[source]\nplugin = \"file\"\n\
         settings = {{ split = \"csv\", header = \"left-out\", attributes = \"none\", settle = \"0ms\", \
         interval = \"10ms\" }}\n\
         grants.inbox = {{ type = \"folder\", path = \"in\" }}\n\
         grants.done = {{ type = \"folder\", path = \"done\" }}\n"
    );
    for number in 0..destinations {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "[[destination]]\nname = \"file-{number}\"\n[destination.sender]\nplugin = \"file\"\n\
             settings = {{ mode = \"append\", file = \"{number}.csv\" }}\n\
             grants.folder = {{ type = \"folder\", path = \"out\" }}\n"
        );
    }
    text
}

/// About 44 bytes a row.
fn text(rows: u64) -> String {
    let mut text = String::from("id,code,name,amount,time\n");
    for row in 0..rows {
        let _ = writeln!(text, "{row:06},GLU,\"Smith, Jane\",{}.5,2026-01-01T00:00", row % 1_000);
    }
    text
}
