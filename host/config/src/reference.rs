//! The reference page of all options, from their declarations.

use std::fmt::Write;

use crate::case::CaseFile;
use crate::group::{GroupDoc, OptionDoc};
use crate::interface::InterfaceFile;
use crate::project::ProjectFile;
use crate::template::Mark;
use crate::value::Value;

const INTRODUCTION: &str = "# Options of project files

<!-- Generated from the declarations in host/config; change those and run `cargo xtask gen`. -->

A project is a folder with `portway.toml` and one file for each interface under `interfaces/`.
Unknown keys are refused.
Editors that know JSON Schema complete them: `portway schema --out .portway/schema` writes the schemas, and `portway init` names them in the files it makes.

| written as | means |
|---|---|
| duration | a whole number and `ms`, `s`, `m`, `h` or `d`: `\"30s\"` |
| size | a whole number and `B`, `KB`, `MB` or `GB`, which count in 1,024s: `\"64MB\"` |
| rate | a whole number, `/` and `s`, `min`, `h` or `d`: `\"100/s\"` |
| share | a part of a whole with at most four digits behind the point: `\"0.5%\"` |
| name | lower-case letters, digits, `-` and `_`, at most 64 |
| path | relative to the project folder, or absolute |
| env | `${env:NAME}` may stand in the text: an environment variable, or with `--env PLACE` a value of `environments/PLACE.toml`; the variable wins |
| secret | `${secret:NAME}` may stand there, too: from the environment variable `PORTWAY_SECRET_NAME`, from `secrets.toml` (mode 0600) beside `portway.toml`, or from the encrypted file `secrets.age`, with `--env PLACE` `environments/PLACE.secrets.age`; the first that has it wins |
";

/// Every option of a project, as Markdown.
pub fn reference() -> String {
    let mut groups: Vec<GroupDoc> = Vec::new();
    ProjectFile::groups(&mut groups);
    InterfaceFile::groups(&mut groups);
    CaseFile::groups(&mut groups);
    let mut seen = Vec::new();
    let mut page = INTRODUCTION.to_owned();
    for group in groups {
        if !seen.contains(&(group.file, group.path)) {
            seen.push((group.file, group.path));
            write_group(&mut page, &group);
        }
    }
    page
}

fn write_group(page: &mut String, group: &GroupDoc) {
    // A table at the top of a file has no path of its own.
    let title =
        if group.path.is_empty() { format!("{}, at the top", group.file) } else { group.path.to_owned() };
    let _ = write!(page, "\n## `{title}`\n\n{}\n", sentences(&group.text));
    if !group.path.is_empty() {
        let _ = writeln!(page, "Stands in `{}`.", group.file);
    }
    page.push_str("\n| option | type | default | limits | references | |\n|---|---|---|---|---|---|\n");
    for option in &group.options {
        write_option(page, option);
    }
}

fn write_option(page: &mut String, option: &OptionDoc) {
    let default = match &option.default {
        Some(default) => format!("`{default}`"),
        None if option.required => "required".to_owned(),
        None => String::new(),
    };
    let limits = match &option.limits {
        Some((least, most)) => format!("`{least}` to `{most}`"),
        None => String::new(),
    };
    let references = match option.mark {
        Mark::None => "",
        Mark::Env => "env",
        Mark::Secret => "env, secret",
    };
    let OptionDoc { key, type_name, text, .. } = option;
    let _ = writeln!(page, "| `{key}` | {type_name} | {default} | {limits} | {references} | {text} |");
}

/// One sentence a line.
fn sentences(text: &str) -> String {
    text.replace(". ", ".\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_has_every_group_and_its_defaults() {
        let page = reference();
        for title in [
            "`store`",
            "`admin`",
            "`plugins.NAME`",
            "`limits`",
            "`source`",
            "`source.tls`",
            "`destination`",
            "`destination.retry`",
            "`destination.transform, destination.sender`",
            "`grants.NAME (http)`",
            "`grants.NAME (tcp)`",
            "`grants.NAME.credentials (bearer)`",
            "`grants.NAME.tls`",
        ] {
            assert!(page.contains(&format!("## {title}\n")), "{title} is missing");
        }
        assert!(page.contains("| `first_wait` | duration | `\"1s\"` | `\"10ms\"` to `\"1d\"` |"), "{page}");
    }

    #[test]
    fn every_option_is_explained_or_speaks_for_itself() {
        let mut groups = Vec::new();
        ProjectFile::groups(&mut groups);
        InterfaceFile::groups(&mut groups);
        for group in groups {
            for option in group.options {
                let clear = ["user", "password", "value"].contains(&option.key);
                assert!(clear || !option.text.is_empty(), "{}.{}", group.path, option.key);
            }
        }
    }
}
