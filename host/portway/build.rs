//! Puts the first-party plugins that `cargo xtask plugins` has built into the binary.
//!
//! A build without them works: the table then says what is missing, and so does the
//! binary when a project names such a plugin. The pages of errors travel in the binary, too.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Component files, without `.wasm`.
const FIRST_PARTY: &[&str] = &[
    "file-source",
    "http-source",
    "mllp-source",
    "schedule-source",
    "tcp-source",
    "respond-hello",
    "csv-to-json",
    "filter",
    "hl7-to-json",
    "json-map",
    "json-to-csv",
    "look-up",
    "oru-to-json",
    "route",
    "file-sender",
    "http-sender",
    "mllp-sender",
    "smtp-sender",
    "tcp-sender",
];

fn main() -> io::Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let plugins = plugins_folder(&out);
    let mut table = String::from("pub const EMBEDDED: &[(&str, Option<&[u8]>)] = &[\n");
    for name in FIRST_PARTY {
        let file = plugins.join(format!("{name}.wasm"));
        println!("cargo::rerun-if-changed={}", file.display());
        let bytes = match file.is_file() {
            true => format!("Some(include_bytes!({:?}))", file.display().to_string()),
            false => "None".to_owned(),
        };
        table.push_str(&format!("    ({name:?}, {bytes}),\n"));
    }
    table.push_str("];\n");
    fs::write(out.join("embedded.rs"), table)?;
    fs::write(out.join("error_pages.rs"), error_pages()?)
}

/// The pages of errors by their codes, in the order of the codes.
fn error_pages() -> io::Result<String> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let folder = root.join("../../docs/reference/errors");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        let code = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.extension().is_some_and(|extension| extension == "md") && code != "README" {
            files.push((code, path));
        }
    }
    files.sort();
    let mut table = String::from("pub const PAGES: &[(&str, &str)] = &[\n");
    for (code, path) in files {
        table.push_str(&format!("    ({code:?}, include_str!({:?})),\n", path.display().to_string()));
    }
    table.push_str("];\n");
    Ok(table)
}

/// `plugins` beside the profile folders of the target directory that `out` lies in.
fn plugins_folder(out: &Path) -> PathBuf {
    let build = out.ancestors().find(|folder| folder.ends_with("build"));
    let profile = build.and_then(Path::parent);
    let target = profile.and_then(Path::parent).unwrap_or(out);
    target.join("plugins")
}
